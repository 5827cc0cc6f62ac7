"""The models of a sweep: what the zoo has of them, and their rows in the results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from stitching_core import record
from stitching_core.errors import InputError
from stitching_core.models.store import Card, Zoo, recipe_key
from stitching_core.models.weights import read_weights
from stitching_core.spec import ModelRecipe
from sweeps.ranks import Ranks, load_ranks, rank_rows, ranked_variants
from sweeps.sequences import classes_of, data_hash_of, read_by
from sweeps.uncut import load_uncut
from sweeps.worker import Setting, Uncut, measurable, network, source_of

Slot = tuple[str, int]  # a model's name and the run's seed


@dataclass
class Member:
    """One model of the zoo in one run: its recipe, its card and what it predicts uncut."""

    recipe: ModelRecipe
    key: str
    card: Card | None
    uncut: Uncut
    ranks: Ranks = field(default_factory=dict)


def find_members(zoo: Zoo, recipes: Iterable[ModelRecipe], setting: Setting, asked: list[str]) -> dict[Slot, Member]:
    """What the zoo already has of the recipes.

    Raises:
        InputError: a file of weights that can't be read, or that does not fit its architecture; a variant that can't be
            made of the source; a zoo that is no folder.
    """
    members = {}
    recipes = list(recipes)
    check_variants(setting, [*(recipe.variant for recipe in recipes if recipe.variant and not recipe.source), *asked])
    for recipe in recipes:
        key = recipe_key(recipe, classes_of(setting, recipe), setting.data, data_hash_of(setting, recipe))
        if recipe.kind == record.NOISE:
            members[recipe.name, recipe.seed] = Member(recipe, key, Card(key, {}, 0), {})
            continue
        try:
            card = zoo.find(key)
        except NotADirectoryError:
            raise InputError(f"zoo.dir={zoo.folder} is no folder; the models are kept in one") from None
        if card is None and recipe.kind == record.WEIGHTS:  # what the zoo has did fit
            assert recipe.arch is not None
            assert recipe.weights is not None
            network(recipe.arch, classes_of(setting, recipe), read_weights(recipe.weights))
        uncut = load_uncut(zoo, card, setting, asked) if card else {}
        ranks = load_ranks(zoo, card, setting, ranked_variants(setting, recipe, asked)) if card else {}
        members[recipe.name, recipe.seed] = Member(recipe, key, card, uncut, ranks)
    return members


def check_variants(setting: Setting, names: Iterable[str]) -> None:
    """Raises InputError if one can't be made of the source: colours take grey images, and at most ten classes."""
    source = source_of(setting)
    allowed = dict.fromkeys([*measurable(source), "original"])
    for name in names:
        if source.absent is not None:
            raise InputError(
                f"variant {name!r}: source {source.name!r} has no images, {source.absent}; "
                "allowed: noise senders, and models of kind weights"
            )
        if name not in allowed:
            raise InputError(f"variant {name!r} can't be made of source {source.name!r}; allowed: {', '.join(allowed)}")


def incomplete(member: Member, asked: list[str], setting: Setting) -> bool:
    """Whether the model, what it predicts on one of the variants, or its ranks are still to be made."""
    if member.recipe.kind == record.NOISE:
        return False
    measured = all(variant in member.uncut for variant in read_by(member.recipe, asked))
    ranked = all(variant in member.ranks for variant in ranked_variants(setting, member.recipe, asked))
    return member.card is None or not (measured and ranked)


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


def uncut_rows(members: dict[Slot, Member]) -> list[dict[str, Any]]:
    """Rows of the table ``predictions``, without a cell: what each model predicts uncut on each variant."""
    return [
        record.row(
            "predictions", model=name, seed=seed, eval_data=variant, target=uncut.target, predicted=uncut.predicted
        )
        for (name, seed), member in members.items()
        for variant, uncut in member.uncut.items()
    ]


def uncut_rank_rows(members: dict[Slot, Member]) -> list[dict[str, Any]]:
    """Rows of the table ``modules``, without a cell: ranks of the uncut models."""
    return [row for (name, seed), member in members.items() for row in rank_rows(member.ranks, seed, model=name)]


def model_rows(sweep: str, members: dict[Slot, Member]) -> list[dict[str, Any]]:
    """Rows of the table ``models``: one for each model and variant (one with nulls for a noise sender)."""
    rows = []
    for (name, seed), member in members.items():
        recipe, card = member.recipe, member.card
        kind = record.SHUFFLED if recipe.shuffled else recipe.kind
        assert card is not None
        known = {
            "sweep": sweep, "model": name, "kind": kind, "arch": recipe.arch, "variant": recipe.variant,
            "seed": seed, "hash": card.hash, "parameters": card.parameters, "learned": card.learned,
            "train_accuracy": card.train_accuracy, "train_seconds": card.train_seconds,
        }  # fmt: skip
        for variant, uncut in member.uncut.items():
            measured = {"eval_data": variant, "accuracy": uncut.accuracy, "cross_entropy": uncut.cross_entropy}
            rows.append(record.row("models", **known, **measured))
        if not member.uncut:
            reason = None if recipe.kind == record.NOISE else "the data source has no images to measure it on"
            rows.append(record.row("models", **known, reason=reason))
    return rows
