"""Ids: every field that decides a result is in them, and no other."""

import dataclasses
import hashlib
import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from stitching_core.spec import (
    CellSpec,
    DataSpec,
    ModelRecipe,
    Protocol,
    SearchSpec,
    TrainingRecipe,
    canonical_json,
    cell_id,
    digest,
)

TRAINING = TrainingRecipe(0.1, 0.9, 1e-4, 128, 4)
SENDER = ModelRecipe("s", "trained", "resnet18", "colour", 0, TRAINING)
RECEIVER = ModelRecipe("r", "trained", "resnet18", "digit", 0, TRAINING)
NOISE = ModelRecipe("n", "noise", None, None, 0, sigma=0.1)
PROTOCOL = Protocol("p", "bn-conv1x1-bn", "default", "adapt", "cross_entropy", 1e-4, 0.9, 0.01, 128, 10)
CELL = CellSpec(SENDER, "layer1", RECEIVER, "layer2", "correlated", ("digit",), PROTOCOL, 7)
SEARCH = SearchSpec("per_cell", 10)


def other(value: Any) -> Any:
    """A value of the same type that is not this one."""
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, tuple):
        return (*value, value[0])
    return 5 if value is None else value + 1


def id_of(cell: CellSpec = CELL, data: DataSpec | None = None, search: SearchSpec | None = None, **hashes: str) -> str:
    known = {"sender_hash": "s", "receiver_hash": "r", "data_hash": "d"} | hashes
    return cell_id(cell, data=data or DataSpec("mnist"), search=search or SearchSpec(), **known)


def test_canonical_json_is_written_one_way() -> None:
    assert canonical_json({"b": (1, 2), "a": [None, True, 0.1, "é"]}) == '{"a":[null,true,0.1,"\\u00e9"],"b":[1,2]}'
    assert canonical_json(TRAINING) == (
        '{"batch_size":128,"epochs":4,"learning_rate":0.1,"momentum":0.9,"schedule":"none","weight_decay":0.0001}'
    )
    assert canonical_json([{"z": 1, "a": CELL}]) == canonical_json([{"a": dataclasses.asdict(CELL), "z": 1}])
    assert digest([]) == hashlib.sha256(b"[]").hexdigest()


def test_types_count_so_that_no_result_is_ever_taken_for_another() -> None:
    assert len({canonical_json(value) for value in (1, 1.0, True, "1")}) == 4


@pytest.mark.parametrize("value", [math.nan, math.inf, [1, {"x": -math.inf}]])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(value)


@pytest.mark.parametrize("value", [{1, 2}, np.int64(1), np.zeros(2), TrainingRecipe, b"x"])
def test_what_has_no_one_way_to_be_written_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="has no canonical JSON"):
        canonical_json(value)


@pytest.mark.parametrize("salt", ["0", "42"])
def test_ids_are_the_same_in_every_process(salt: str) -> None:
    code = (
        "from stitching_core.spec import *\n"
        "t = TrainingRecipe(0.1, 0.9, 1e-4, 128, 4)\n"
        "s = ModelRecipe('s', 'trained', 'resnet18', 'colour', 0, t)\n"
        "r = ModelRecipe('r', 'trained', 'resnet18', 'digit', 0, t)\n"
        "p = Protocol('p', 'bn-conv1x1-bn', 'default', 'adapt', 'cross_entropy', 1e-4, 0.9, 0.01, 128, 10)\n"
        "c = CellSpec(s, 'layer1', r, 'layer2', 'correlated', ('digit',), p, 7)\n"
        "print(cell_id(c, sender_hash='s', receiver_hash='r', data=DataSpec('mnist'), data_hash='d', "
        "search=SearchSpec()))\n"
    )
    env = os.environ | {"PYTHONHASHSEED": salt}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == id_of()
    assert len(id_of()) == 24
    assert int(id_of(), 16) >= 0


def test_specs_are_values() -> None:
    assert dataclasses.replace(CELL) == CELL
    assert len({CELL, dataclasses.replace(CELL), dataclasses.replace(CELL, seed=8)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        CELL.seed = 8  # type: ignore[misc]


def test_everything_that_decides_a_result_is_in_its_id() -> None:
    ids = [id_of(), id_of(sender_hash="x"), id_of(receiver_hash="x"), id_of(data_hash="x")]
    for name in ("sender_cut", "receiver_cut", "fit_data", "seed"):
        ids.append(id_of(dataclasses.replace(CELL, **{name: other(getattr(CELL, name))})))
    for field in dataclasses.fields(Protocol):
        if field.name != "name":
            protocol = dataclasses.replace(PROTOCOL, **{field.name: other(getattr(PROTOCOL, field.name))})
            ids.append(id_of(dataclasses.replace(CELL, protocol=protocol)))
    ids += [id_of(data=DataSpec("mnist", seed=1)), id_of(data=DataSpec("mnist", background_noise=0.2))]
    ids.append(id_of(search=SEARCH))
    for field in dataclasses.fields(SearchSpec):
        ids.append(id_of(search=dataclasses.replace(SEARCH, **{field.name: other(getattr(SEARCH, field.name))})))
    assert len(set(ids)) == len(ids)


def test_nothing_else_is_in_the_id() -> None:
    same = [
        dataclasses.replace(CELL, eval_data=("digit", "mix")),
        dataclasses.replace(CELL, protocol=dataclasses.replace(PROTOCOL, name="q")),
        dataclasses.replace(CELL, sender=dataclasses.replace(SENDER, name="t", weights="elsewhere")),
        dataclasses.replace(CELL, receiver=dataclasses.replace(RECEIVER, name="t", seed=3)),  # its hash decides
    ]
    assert {id_of(cell) for cell in same} == {id_of()}
    assert id_of(data=DataSpec("digits", train_items=5)) == id_of()  # the hash of the data decides
    assert id_of(data=DataSpec("mnist", noise_train_items=5)) == id_of()
    assert id_of(search=SearchSpec("none", n_trials=9)) == id_of()


def test_the_number_of_points_decides_for_a_noise_sender_alone() -> None:
    cell = dataclasses.replace(CELL, sender=NOISE, sender_cut=None, fit_data="noise")
    ids = {id_of(cell, DataSpec("mnist", noise_train_items=n, noise_test_items=m)) for n, m in ((5, 5), (6, 5), (5, 6))}
    assert len(ids) == 3
