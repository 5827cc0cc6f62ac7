"""Sweeps written by hand that were made, by what they say of themselves, as the published runs of 2e and its like."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from analysis.load import polars_schema
from stitching_core.record import row

CELL = {
    "experiment": "2e",
    "sender_kind": "trained",
    "sender_arch": "resnet18",
    "receiver": "digit",
    "receiver_kind": "trained",
    "receiver_arch": "resnet18",
    "receiver_variant": "digit",
    "data_source": "mnist",
    "fit_data": "correlated",
    "eval_data": "correlated",
    "label_offset": 0,
    "l1": 0.0,
    "protocol": "smith2025",
    "objective": "cross_entropy",
    "stitch": "bn-conv1x1-bn",
    "init": "default",
    "bn_mode": "adapt",
    "search": "none",
    "learning_rate": 1e-4,
    "momentum": 0.9,
    "weight_decay": 0.01,
    "batch_size": 128,
    "epochs": 10,
    "receiver_accuracy": 0.98,
}
CONFIG: dict[str, Any] = {
    "schema_version": 1,
    "data": {"train_items": None, "noise_train_items": None, "noise_test_items": None, "background_noise": 0.1},
    "zoo": {
        "training": {
            "learning_rate": 0.1,
            "momentum": 0.9,
            "weight_decay": 1e-4,
            "batch_size": 128,
            "epochs": 4,
            "schedule": "none",
        },
        "models": {"digit": {"kind": "trained", "variant": "digit", "training": None}},
    },
}


def repeated(sender: str, cut: str, accuracy: float | None, run: int = 0, **values: Any) -> dict[str, Any]:
    """A row of cells; without an accuracy it diverged."""
    filled = {**CELL, "sender": sender, "run": run, "seed": run, "receiver_cut": cut, "accuracy": accuracy, **values}
    filled.setdefault("sender_cut", None if filled["sender_kind"] == "noise" else cut)
    filled.setdefault("sender_variant", sender if filled["sender_kind"] == "trained" else None)
    for end in ("sender", "receiver"):
        filled.setdefault(f"{end}_hash", f"{filled[end]}-{run}")
    names = ("sender", "receiver", "receiver_cut", "run", "fit_data")
    filled.setdefault("cell_id", "/".join(str(filled[name]) for name in names))
    filled["status"] = "diverged" if accuracy is None else "ok"
    if accuracy is not None and filled["receiver_accuracy"] is not None:
        filled["penalty"] = filled["receiver_accuracy"] - accuracy
    return row("cells", **filled)


def uncut(model: str, accuracy: float, eval_data: str = "correlated", run: int = 0, **values: Any) -> dict[str, Any]:
    """A row of models."""
    trained = {"kind": "trained", "arch": "resnet18", "variant": model, "learned": True, "hash": f"{model}-{run}"}
    return row(
        "models", **{**trained, "model": model, "seed": run, "eval_data": eval_data, "accuracy": accuracy, **values}
    )


def stitch_rank(cell: dict[str, Any], rank: int) -> dict[str, Any]:
    """A row of modules: the rank at a cell's stitch."""
    named = {"cell_id": cell["cell_id"], "eval_data": cell["eval_data"], "seed": cell["seed"]}
    return row("modules", **named, part="stitch", module="map", feature_rank=rank)


def write_repetition(
    folder: Path,
    cells: Sequence[dict[str, Any]],
    models: Sequence[dict[str, Any]] = (),
    modules: Sequence[dict[str, Any]] = (),
    **config: Any,
) -> Path:
    """Write a results folder.

    Args:
        folder: to be made.
        cells: rows.
        models: rows.
        modules: rows.
        config: values of ``group__key`` that its config.yaml has otherwise.
    """
    changed = copy.deepcopy(CONFIG)
    for name, value in config.items():
        *groups, key = name.split("__")
        place = changed
        for group in groups:
            place = place[group]
        place[key] = value
    (folder / "cells").mkdir(parents=True)
    (folder / "modules").mkdir()
    (folder / "config.yaml").write_text(yaml.safe_dump(changed))
    for file, table, rows in (
        ("cells/part-00000", "cells", cells),
        ("models", "models", models),
        ("modules/part-00000", "modules", modules),
    ):
        pl.DataFrame(list(rows), schema=polars_schema(table)).write_parquet(folder / f"{file}.parquet")
    return folder
