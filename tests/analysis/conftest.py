"""A small ledger written by hand: one receiver, two cuts, two runs, two trained senders and both floors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.load import polars_schema
from stitching_core.record import row

RECEIVER_ACCURACY = {0: 0.95, 1: 0.97}

# (sender, kind, cut, run): accuracy on "mnist"; None: diverged
ACCURACY: dict[tuple[str, str, str, int], float | None] = {
    ("colour", "trained", "maxpool", 0): 0.90,
    ("colour", "trained", "maxpool", 1): 0.94,
    ("colour", "trained", "layer1", 0): 0.80,
    ("colour", "trained", "layer1", 1): None,
    ("digit", "trained", "maxpool", 0): 0.96,
    ("digit", "trained", "maxpool", 1): 0.98,
    ("digit", "trained", "layer1", 0): 0.94,
    ("digit", "trained", "layer1", 1): 0.96,
    ("untrained", "random_init", "maxpool", 0): 0.30,
    ("untrained", "random_init", "maxpool", 1): 0.50,
    ("untrained", "random_init", "layer1", 0): 0.20,
    ("untrained", "random_init", "layer1", 1): 0.20,
    ("noise", "noise", "maxpool", 0): 0.12,
    ("noise", "noise", "maxpool", 1): 0.14,
    ("noise", "noise", "layer1", 0): 0.10,
    ("noise", "noise", "layer1", 1): 0.10,
}


def cell(accuracy: float | None = 0.9, **values: Any) -> dict[str, Any]:
    """A row of the cells table; its penalty follows from receiver_accuracy, its id from what it is."""
    run = values.setdefault("run", 0)
    defaults = {
        "sweep": "tiny",
        "sender": "colour",
        "sender_kind": "trained",
        "sender_cut": "maxpool",
        "receiver": "digit",
        "receiver_kind": "trained",
        "receiver_cut": values.get("sender_cut", "maxpool"),
        "receiver_hash": f"hash-{run}",
        "fit_data": "mnist",
        "eval_data": "mnist",
        "protocol": "smith2025",
        "seed": run,
        "status": "ok" if accuracy is not None else "diverged",
        "reason": None if accuracy is not None else "loss is not finite",
        "receiver_accuracy": RECEIVER_ACCURACY.get(run, 0.95),
        "finished_at": "2030-01-01T00:00:00Z",
    }
    filled = {**defaults, **values, "accuracy": accuracy}
    if accuracy is not None and filled["receiver_accuracy"] is not None:
        filled.setdefault("penalty", filled["receiver_accuracy"] - accuracy)
    names = ("sender", "sender_cut", "receiver", "receiver_cut", "fit_data", "protocol", "run")
    filled.setdefault("cell_id", "/".join(str(filled[name]) for name in names))
    return row("cells", **filled)


def default_cells() -> list[dict[str, Any]]:
    """The cells of ``ACCURACY``."""
    cells = []
    for (sender, kind, cut, run), accuracy in ACCURACY.items():
        of_noise = {"eval_data": "noise", "fit_data": "noise", "receiver_accuracy": None} if kind == "noise" else {}
        cells.append(cell(accuracy, sender=sender, sender_kind=kind, sender_cut=cut, run=run, **of_noise))
    return cells


def write_ledger(
    folder: Path,
    *parts: Sequence[dict[str, Any]],
    plan: Sequence[dict[str, Any]] | None = None,
    models: Sequence[dict[str, Any]] = (),
    version: int | str = 1,
) -> Path:
    """Write a results folder: each list of rows becomes one part of cells."""
    (folder / "cells").mkdir(parents=True)
    (folder / "config.yaml").write_text(f"# how the sweep was run\nname: tiny\nschema_version: {version}\n")
    for number, rows in enumerate(parts):
        pl.DataFrame(list(rows), schema=polars_schema("cells")).write_parquet(
            folder / f"cells/part-{number:05}.parquet"
        )
    pl.DataFrame(list(models), schema=polars_schema("models")).write_parquet(folder / "models.parquet")
    if plan is not None:
        asked = [{"cell_id": one["cell_id"], "eval_data": [one["eval_data"]]} for one in plan]
        schema = {"cell_id": pl.String, "eval_data": pl.List(pl.String)}
        pl.DataFrame(asked, schema=schema).write_parquet(folder / "plan.parquet")
    return folder


@pytest.fixture
def results_folder(tmp_path: Path) -> Path:
    """The default cells in two parts, with their plan."""
    cells = default_cells()
    return write_ledger(tmp_path / "tiny", cells[:7], cells[7:], plan=cells)


@pytest.fixture
def make_cell() -> Callable[..., dict[str, Any]]:
    return cell


@pytest.fixture
def cells() -> list[dict[str, Any]]:
    return default_cells()


@pytest.fixture
def write() -> Callable[..., Path]:
    return write_ledger
