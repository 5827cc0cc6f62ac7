"""Ranks of modules as rows of the results, and those of uncut models as they are kept in the zoo."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stitching_core import record
from stitching_core.measure.modules import ModuleRank
from stitching_core.measure.rank import FeatureRank
from stitching_core.models.store import Card, Zoo, write_atomically
from stitching_core.spec import ModelRecipe
from stitching_core.train.fronts import Front
from stitching_core.train.ranks import block_ranks
from stitching_core.train.stitching import StitchRun
from sweeps.cells import Planned
from sweeps.sequences import read_by
from sweeps.uncut import uncut_name
from sweeps.worker import Setting

Ranks = dict[str, list[ModuleRank]]  # by eval_data


def collector(setting: Setting, cells: dict[str, Planned], into: dict[str, Ranks]) -> Callable[..., None]:
    """What ``train_block`` calls with runs that leave: measures them on every evaluation asked of their cells.

    Args:
        setting: of the sweep.
        cells: by run key.
        into: ranks by run key, filled.
    """

    def measure(front: Front, runs: list[StitchRun]) -> None:
        for split in dict.fromkeys(name for run in runs for name in cells[run.key].spec.eval_data):
            asked = [run for run in runs if split in cells[run.key].spec.eval_data]
            for key, found in block_ranks(front, asked, split, setting.columns).items():
                into.setdefault(key, {})[split] = found

    return measure


def rank_rows(ranks: Ranks, seed: int, cell_id: str | None = None, model: str | None = None) -> list[dict[str, Any]]:
    """Rows of the table ``modules``, for a cell or for an uncut model."""
    return [
        record.row(
            "modules",
            cell_id=cell_id,
            model=model,
            seed=seed,
            eval_data=name,
            part=one.part,
            module=one.module,
            position=one.position,
            width=one.features.width,
            columns=one.features.columns,
            feature_rank=one.features.rank,
            normalised_rank=one.features.normalised,
            weight_rank=one.weight,
        )
        for name, modules in ranks.items()
        for one in modules
    ]


def ranked_variants(setting: Setting, recipe: ModelRecipe, asked: list[str]) -> list[str]:
    """The variants that an uncut model's ranks are measured on: those asked for, and the one that it was trained on."""
    if not setting.rank or recipe.kind == record.NOISE:
        return []
    return list(
        dict.fromkeys(
            [*read_by(recipe, asked), *([recipe.variant] if recipe.variant and recipe.kind == record.TRAINED else [])]
        )
    )


def _rank_file(zoo: Zoo, card: Card, setting: Setting, variant: str) -> Path:
    columns = "" if setting.columns is None else f"-{setting.columns}"
    return zoo.folder / "ranks" / f"{uncut_name(card, setting, variant)}{columns}.json"


def save_ranks(zoo: Zoo, card: Card, setting: Setting, ranks: Ranks) -> None:
    """Keeps an uncut model's ranks beside it."""
    for variant, modules in ranks.items():
        text = json.dumps([dataclasses.asdict(one) for one in modules])
        write_atomically(_rank_file(zoo, card, setting, variant), lambda path, text=text: path.write_text(text))


def load_ranks(zoo: Zoo, card: Card, setting: Setting, variants: list[str]) -> Ranks:
    """The kept ranks, as far as there are any."""
    found: Ranks = {}
    for variant in variants:
        try:
            kept = json.loads(_rank_file(zoo, card, setting, variant).read_text())
            found[variant] = [ModuleRank(**{**one, "features": FeatureRank(**one["features"])}) for one in kept]
        except (FileNotFoundError, ValueError, TypeError, KeyError):  # not there, cut off, or of other fields
            continue
    return found
