"""The zoo of a sweep: what is missing is trained by Ray tasks, what is there is reused."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import ray
import torch

from stitching_core import record
from stitching_core.measure.reconstruction import Reconstructions
from stitching_core.models.architectures import architecture
from stitching_core.models.store import Card, Tensors, Zoo, content_hash
from stitching_core.models.weights import origin, read_weights
from stitching_core.seeding import stream
from stitching_core.spec import ModelRecipe
from stitching_core.train.base import evaluate, learned, train_base
from stitching_core.train.block import Evaluation
from stitching_core.train.images import as_images
from stitching_core.train.ranks import uncut_ranks
from stitching_core.train.reconstruct import learned_to_reconstruct, reconstruct
from sweeps.members import Member, Slot, incomplete
from sweeps.objectives import reconstructs
from sweeps.progress import clock, say
from sweeps.ranks import Ranks, ranked_variants, save_ranks
from sweeps.sequences import classes_of, data_hash_of, read_by
from sweeps.uncut import save_uncut
from sweeps.worker import Setting, Uncut, images_for, measurable, network, prepare, source_of


def complete_zoo(
    zoo: Zoo,
    members: dict[Slot, Member],
    setting: Setting,
    asked: list[str],
    resources: dict[str, float],
) -> None:
    """Trains what is missing and measures what has not been measured, in parallel; the driver alone writes files.

    Prints a line for each.

    Args:
        zoo: where models are kept.
        members: completed in place.
        setting: of the sweep.
        asked: the variants that the sweep needs predictions on.
        resources: ``num_cpus`` and ``num_gpus`` of a task.

    Raises:
        ray.exceptions.RayTaskError: a training raised.
        InputError: a stored file does not match its hash.
    """
    task = ray.remote(_make).options(**resources, max_retries=2)
    pending: dict[Any, list[Member]] = {}
    by_key: dict[str, list[Member]] = {}
    for member in members.values():
        if incomplete(member, asked, setting):
            by_key.setdefault(member.key, []).append(member)  # two names may stand for one recipe
    for same in by_key.values():
        first = same[0]
        tensors = zoo.load(first.card, first.recipe) if first.card else None
        if tensors is None and first.recipe.kind == record.WEIGHTS:
            tensors = read_weights(first.recipe.weights or "")  # here: a worker may be on another machine
        ranked = [variant for variant in ranked_variants(setting, first.recipe, asked) if variant not in first.ranks]
        pending[task.remote(setting, first.recipe, tensors, asked, ranked)] = same
    total, started = len(pending), time.monotonic()
    while pending:
        (ready,), _ = ray.wait(list(pending), num_returns=1)
        same = pending.pop(ready)
        tensors, trained, uncut, ranks = ray.get(ready)
        card = same[0].card or make_card(same[0].recipe, setting, tensors, trained, uncut)
        if same[0].card is None:
            zoo.save(same[0].key, card, tensors)
        save_uncut(zoo, card, setting, uncut)
        save_ranks(zoo, card, setting, ranks)
        for member in same:
            member.card, member.uncut, member.ranks = card, uncut, member.ranks | ranks
        own = uncut.get(same[0].recipe.variant or "")
        good = f", {goodness(own)} on {same[0].recipe.variant}" if own else ""
        name = f"{same[0].recipe.name} (run {same[0].recipe.seed}{good})"
        say(f"base models {total - len(pending)}/{total} | {name} | {clock(time.monotonic() - started)} gone")


def goodness(evaluation: Evaluation) -> str:
    """How good an uncut model is, in words."""
    if isinstance(evaluation, Reconstructions):
        return f"reconstruction error {evaluation.error:.4f}"
    return f"{evaluation.accuracy:.1%}"


def make_card(recipe: ModelRecipe, setting: Setting, tensors: Tensors, trained: dict[str, Any], uncut: Uncut) -> Card:
    """The JSON card: what it is, what it was made from and how good it is on every variant."""
    named = dataclasses.asdict(recipe)
    classes = classes_of(setting, recipe)
    named["classes"] = classes
    named["data"] = {
        "source": recipe.source or setting.data.source,
        "seed": setting.data.seed,
        "hash": data_hash_of(setting, recipe),
    }
    for variant, found in uncut.items():
        error = isinstance(found, Reconstructions)
        named.setdefault("reconstruction_error" if error else "accuracy", {})[variant] = (
            found.error if isinstance(found, Reconstructions) else found.accuracy
        )
    if recipe.kind == record.WEIGHTS:
        named["weights"] = origin(recipe.weights or "") | {"learned": "declared by their source, not measured here"}
    assert recipe.arch is not None
    with torch.device("meta"):  # buffers are in the weights too, and are no parameters
        parameters = sum(parameter.numel() for parameter in architecture(recipe.arch).build(classes).parameters())
    return Card(content_hash(recipe, tensors), named, parameters, **trained)


def _make(
    setting: Setting, recipe: ModelRecipe, tensors: Tensors | None, asked: list[str], ranked: list[str]
) -> tuple[Tensors, dict[str, Any], Uncut, Ranks]:
    """The Ray task: trains or builds one model, unless given its tensors, and measures it uncut on every variant."""
    device = prepare(setting)
    assert recipe.arch is not None
    is_encoder = reconstructs(recipe)
    trained: dict[str, Any] = {}
    if tensors is not None:
        model = network(recipe.arch, classes_of(setting, recipe), tensors).to(device)
    else:
        variant = recipe.variant if recipe.kind == record.TRAINED else None  # as in the recipe's key
        torch.manual_seed(stream("model", recipe.arch, variant, recipe.seed))
        model = architecture(recipe.arch).build(classes_of(setting, recipe)).to(device)
    if tensors is None and recipe.kind == record.TRAINED:
        assert recipe.training is not None
        assert recipe.variant is not None
        data = images_for(setting, recipe, recipe.variant, "train", device)
        result = train_base(model, data, recipe.training, recipe.seed, is_encoder)
        if result.train_error is not None:
            trained = {
                "learned": learned_to_reconstruct(result.train_error, as_images(data)),
                "train_error": result.train_error,
            }
        elif result.train_accuracy is not None:
            trained = {
                "learned": learned(result.train_accuracy, data.labels),
                "train_accuracy": result.train_accuracy,
            }
        trained["train_seconds"] = result.seconds
    model.to(memory_format=torch.channels_last)
    variants = read_by(recipe, list(dict.fromkeys([*measurable(source_of(setting)), *asked])))
    uncut: Uncut = {}
    for variant in variants:
        shown = images_for(setting, recipe, variant, "test", device)
        uncut[variant] = reconstruct(model, as_images(shown)) if is_encoder else evaluate(model, shown)
    state = {name: np.ascontiguousarray(tensor.cpu().numpy()) for name, tensor in model.state_dict().items()}
    ranks = {
        variant: uncut_ranks(model, images_for(setting, recipe, variant, "test", device), setting.columns)
        for variant in ranked
    }
    return state, trained, uncut, ranks
