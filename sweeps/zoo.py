"""The zoo of a sweep: what is missing is trained by Ray tasks, what is there is reused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

from stitching_core import record
from stitching_core.errors import InputError
from stitching_core.measure.accuracy import Predictions
from stitching_core.models.architectures import architecture
from stitching_core.models.store import (
    Card,
    Tensors,
    Zoo,
    content_hash,
    read_weights,
    recipe_key,
    write_atomically,
)
from stitching_core.seeding import stream
from stitching_core.spec import ModelRecipe, digest
from stitching_core.train.base import evaluate, learned, train_base
from sweeps.worker import Setting, Uncut, images, measurable, network, prepare, source_of

Slot = tuple[str, int]  # a model's name and the run's seed


@dataclass
class Member:
    """One model of the zoo in one run: its recipe, its card and what it predicts uncut."""

    recipe: ModelRecipe
    key: str
    card: Card | None
    uncut: Uncut


def find_members(zoo: Zoo, recipes: Iterable[ModelRecipe], setting: Setting, asked: list[str]) -> dict[Slot, Member]:
    """What the zoo already has of the recipes.

    Raises:
        InputError: a file of weights that can't be read, or that does not fit its architecture.
    """
    members = {}
    for recipe in recipes:
        if recipe.kind == record.WEIGHTS:
            assert recipe.arch is not None and recipe.weights is not None
            tensors = read_weights(Path(recipe.weights))
            network(recipe.arch, setting.classes, tensors)
        key = recipe_key(recipe, setting.classes, setting.data, setting.data_hash)
        if recipe.kind == record.NOISE:
            members[recipe.name, recipe.seed] = Member(recipe, key, Card(key, {}, 0), {})
            continue
        card = zoo.find(key)
        uncut = load_uncut(zoo, card, setting, asked) if card else {}
        members[recipe.name, recipe.seed] = Member(recipe, key, card, uncut)
    return members


def incomplete(member: Member, asked: list[str]) -> bool:
    """Whether the model, or what it predicts on one of the variants, is still to be made."""
    return member.recipe.kind != record.NOISE and (member.card is None or any(v not in member.uncut for v in asked))


def complete_zoo(
    zoo: Zoo,
    members: dict[Slot, Member],
    setting: Setting,
    asked: list[str],
    resources: dict[str, float],
    on_done: Callable[[Member, int, int], None],
) -> None:
    """Trains what is missing and measures what has not been measured, in parallel; the driver alone writes files.

    Args:
        members: completed in place.
        asked: the variants that the sweep needs predictions on.
        resources: ``num_cpus`` and ``num_gpus`` of a task.
        on_done: called with each finished model, the count so far and the total.

    Raises:
        ray.exceptions.RayTaskError: a training raised.
        InputError: a stored file does not match its hash.
    """
    task = ray.remote(_make).options(**resources, max_retries=2)
    pending: dict[Any, list[Member]] = {}
    by_key: dict[str, list[Member]] = {}
    for member in members.values():
        if incomplete(member, asked):
            by_key.setdefault(member.key, []).append(member)  # two names may stand for one recipe
    for same in by_key.values():
        first = same[0]
        tensors = zoo.load(first.card, first.recipe) if first.card else None
        pending[task.remote(setting, first.recipe, tensors, asked)] = same
    total = len(pending)
    while pending:
        (ready,), _ = ray.wait(list(pending), num_returns=1)
        same = pending.pop(ready)
        tensors, trained, uncut = ray.get(ready)
        card = same[0].card or make_card(same[0].recipe, setting, tensors, trained, uncut)
        if same[0].card is None:
            zoo.save(same[0].key, card, tensors)
        save_uncut(zoo, card, setting, uncut)
        for member in same:
            member.card, member.uncut = card, uncut
            on_done(member, total - len(pending), total)


def make_card(recipe: ModelRecipe, setting: Setting, tensors: Tensors, trained: dict[str, Any], uncut: Uncut) -> Card:
    """The JSON card: what it is, what it was made from and how good it is on every variant."""
    named = dataclasses.asdict(recipe)
    named["classes"] = setting.classes
    named["data"] = {"source": setting.data.source, "seed": setting.data.seed, "hash": setting.data_hash}
    named["accuracy"] = {variant: predictions.accuracy for variant, predictions in uncut.items()}
    parameters = sum(array.size for array in tensors.values() if array.dtype == np.float32)
    return Card(content_hash(recipe, tensors), named, parameters, **trained)


def _make(setting: Setting, recipe: ModelRecipe, tensors: Tensors | None, asked: list[str]) -> Any:
    """The Ray task: trains (or builds, or reads) one model and measures it uncut on every variant."""
    device = prepare(setting)
    assert recipe.arch is not None
    size = architecture(recipe.arch).size
    trained: dict[str, Any] = {}
    if tensors is not None:
        model = network(recipe.arch, setting.classes, tensors).to(device)
    elif recipe.kind == record.WEIGHTS:
        model = network(recipe.arch, setting.classes, read_weights(Path(recipe.weights or ""))).to(device)
    else:
        torch.manual_seed(stream("model", recipe.arch, recipe.variant, recipe.seed))
        model = architecture(recipe.arch).build(setting.classes).to(device)
    if tensors is None and recipe.kind == record.TRAINED:
        assert recipe.training is not None and recipe.variant is not None
        data = images(setting, recipe.variant, "train", size, device)
        result = train_base(model, data, recipe.training, recipe.seed)
        trained = {
            "learned": learned(result.train_accuracy, data.labels),
            "train_accuracy": result.train_accuracy,
            "train_seconds": result.seconds,
        }
    model.to(memory_format=torch.channels_last)
    variants = dict.fromkeys([*measurable(source_of(setting)), *asked])
    uncut = {variant: evaluate(model, images(setting, variant, "test", size, device)) for variant in variants}
    state = {name: np.ascontiguousarray(tensor.cpu().numpy()) for name, tensor in model.state_dict().items()}
    return state, trained, uncut


def refuse_unlearned(members: dict[Slot, Member]) -> None:
    """Raises InputError if a trained model did not learn its own training data."""
    bad = [
        f"{name} (run {seed}, {member.card.train_accuracy:.1%} on its training data)"
        for (name, seed), member in members.items()
        if member.card and member.card.learned is False and member.card.train_accuracy is not None
    ]
    if bad:
        raise InputError(
            f"did not learn: {', '.join(bad)}; train it otherwise (zoo.training), take it out of the grid, "
            "or set zoo.allow_unlearned=true"
        )


def _uncut_file(zoo: Zoo, card: Card, setting: Setting, variant: str) -> Path:
    data = digest([setting.data_hash, setting.data.seed, setting.data.background_noise, variant])[:16]
    return zoo.folder / "uncut" / f"{card.hash[:32]}-{data}-{variant}.safetensors"


def save_uncut(zoo: Zoo, card: Card, setting: Setting, uncut: Uncut) -> None:
    """Keeps predictions beside the model: they depend on the weights and on the coloured test set."""
    for variant, predictions in uncut.items():
        file = _uncut_file(zoo, card, setting, variant)
        arrays = {
            "predicted": predictions.predicted,
            "target": predictions.target,
            "cross_entropy": np.array([predictions.cross_entropy]),
        }
        if not file.exists():
            write_atomically(file, lambda path, arrays=arrays: save_file(arrays, path))


def load_uncut(zoo: Zoo, card: Card, setting: Setting, asked: list[str]) -> Uncut:
    """The kept predictions, as far as there are any."""
    found = {}
    for variant in dict.fromkeys([*measurable(source_of(setting)), *asked]):
        file = _uncut_file(zoo, card, setting, variant)
        if file.exists():
            with safe_open(file, "numpy") as stored:
                found[variant] = Predictions(
                    stored.get_tensor("predicted"),
                    stored.get_tensor("target"),
                    float(stored.get_tensor("cross_entropy")[0]),
                )
    return found


def model_rows(sweep: str, members: dict[Slot, Member]) -> list[dict[str, Any]]:
    """Rows of the table ``models``: one for each model and variant (one with nulls for a noise sender)."""
    rows = []
    for (name, seed), member in members.items():
        recipe, card = member.recipe, member.card
        assert card is not None
        known = {
            "sweep": sweep, "model": name, "kind": recipe.kind, "arch": recipe.arch, "variant": recipe.variant,
            "seed": seed, "hash": card.hash, "parameters": card.parameters, "learned": card.learned,
            "train_accuracy": card.train_accuracy, "train_seconds": card.train_seconds,
        }  # fmt: skip
        for variant, uncut in member.uncut.items():
            measured = {"eval_data": variant, "accuracy": uncut.accuracy, "cross_entropy": uncut.cross_entropy}
            rows.append(record.row("models", **known, **measured))
        if not member.uncut:
            rows.append(record.row("models", **known))
    return rows


