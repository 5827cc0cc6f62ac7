"""What becomes of a cell, as rows: one for each evaluation asked, whatever happened to it."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stitching_core.record import CELLS
from sweeps import rows as module
from sweeps.cells import Planned
from sweeps.prepare import Sweep, planned_cells
from sweeps.rows import rows_of
from tests.sweeps.fakes import make_sweep, predictions

MOVED = {"weight_delta": 1.5, "bias_delta": 0.5, "weight_moved": 3}


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    monkeypatch.chdir(tmp_path)
    made = make_sweep("experiment_id=9z")
    uncut = {member.card.hash: member.uncut for member in made.members.values() if member.card}
    monkeypatch.setattr(module, "uncut", lambda setting, content: uncut.get(content, {}))
    return made


def outcome(status: str, reason: str | None = None) -> Any:
    return SimpleNamespace(status=status, reason=reason, curve=[2.0, 1.0], movement=lambda: MOVED)


def of(sweep: Sweep, sender: str) -> Planned:
    return next(cell for cell in planned_cells(sweep) if cell.spec.sender.name == sender)


def rows(sweep: Sweep, cell: Planned, run: Any, found: dict[str, Any], **values: Any) -> tuple[list, list]:
    return rows_of(sweep.setting, cell, cell.spec.protocol, "cpu", run, found, 2.5, **values)


def test_a_cell_that_trained(sweep: Sweep) -> None:
    cell = of(sweep, "digit")
    cells, predicted = rows(
        sweep, cell, outcome("ok"), {"correlated": predictions(8), "digit": predictions(3)}, validation_accuracy=0.7
    )
    assert [row["eval_data"] for row in cells] == ["correlated", "digit"]
    assert [set(row) for row in cells] == [set(CELLS)] * 2
    first, second = cells
    # the uncut model is right on the items 0..8 of 10, the stitched one on 0..7 and on 0..2
    assert (first["accuracy"], first["receiver_accuracy"], first["sender_accuracy"]) == (0.8, 0.9, 0.9)
    assert first["penalty"] == pytest.approx(0.1)
    assert second["penalty"] == pytest.approx(0.6)
    # equal on 0..7, and on item 9, where both say 0
    assert (first["agreement_receiver"], second["agreement_receiver"]) == (0.9, 0.4)
    assert first["worst_class_accuracy"] == 0
    assert {name: first[name] for name in MOVED} == MOVED
    assert (first["status"], first["reason"], first["learning_curve"]) == ("ok", None, [2.0, 1.0])
    assert (first["experiment"], first["sweep"], first["validation_accuracy"]) == ("9z", "digits", 0.7)
    assert (first["train_seconds"], first["search"], first["device"]) == (2.5, "none", "cpu")
    assert [(row["cell_id"], row["eval_data"]) for row in predicted] == [
        (cell.id, "correlated"),
        (cell.id, "digit"),
    ]
    assert list(predicted[0]["predicted"])[-2:] == [9, 0]


def test_a_cell_that_diverged_has_no_accuracy(sweep: Sweep) -> None:
    cells, predicted = rows(sweep, of(sweep, "digit"), outcome("diverged", "loss is nan"), {})
    assert predicted == []
    assert [(row["status"], row["reason"]) for row in cells] == [("diverged", "loss is nan")] * 2
    for row in cells:
        for name in ("accuracy", "cross_entropy", "penalty", "agreement_receiver", "weight_delta"):
            assert row[name] is None
        assert row["receiver_accuracy"] == 0.9  # known all the same
        assert row["learning_curve"] == [2.0, 1.0]


def test_a_cell_that_failed_says_why(sweep: Sweep) -> None:
    cells, predicted = rows(sweep, of(sweep, "digit"), None, {}, failure="RuntimeError: out of memory")
    assert predicted == []
    assert [(row["status"], row["reason"]) for row in cells] == [("failed", "RuntimeError: out of memory")] * 2
    assert {row["learning_curve"] for row in cells} == {None}


def test_a_noise_sender_has_nothing_to_compare_with(sweep: Sweep) -> None:
    cell = of(sweep, "noise")
    ((row,), _) = rows(sweep, cell, outcome("ok"), {"noise": predictions(1)})
    assert (row["eval_data"], row["fit_data"], row["sender_cut"], row["noise_sigma"]) == ("noise", "noise", None, 0.1)
    assert (row["accuracy"], row["receiver_accuracy"], row["penalty"], row["sender_accuracy"]) == (
        0.1,
        None,
        None,
        None,
    )


def test_the_hyperparameters_are_those_that_were_used(sweep: Sweep) -> None:
    cell = of(sweep, "digit")
    used = dataclasses.replace(cell.spec.protocol, learning_rate=0.5, epochs=3, init="identity")
    got, _ = rows_of(sweep.setting, cell, used, "cpu", outcome("diverged"), {}, 1.0)
    assert (got[0]["learning_rate"], got[0]["epochs"], got[0]["init"]) == (0.5, 3, "identity")
    assert got[0]["cell_id"] == cell.id
