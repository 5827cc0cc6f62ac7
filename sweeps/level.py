"""What ends every sweep, with or without Ray: plan and tables in its folder, and MLflow level with the ledger."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from analysis.figures import heatmaps
from analysis.formats import as_markdown, write_frame
from analysis.load import load
from analysis.pictures import pictures
from analysis.stitchability import notes_of, people_blocks
from analysis.tables import stitchability
from stitching_core import record
from stitching_core.spec import digest
from sweeps.cells import Planned
from sweeps.config import to_yaml
from sweeps.members import model_rows, uncut_rank_rows, uncut_rows
from sweeps.pictures import uncut_output_rows
from sweeps.prepare import Sweep, planned_cells

_NOTE = "level.json"  # what the folder's tables and the tracking store were last made from


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a sweep ended: cells that failed or diverged, and what MLflow lacks."""

    failed: int
    diverged: int
    behind: int
    problem: str | None


def config_text(sweep: Sweep) -> str:
    """The content of ``config.yaml``."""
    return f"schema_version: {record.SCHEMA_VERSION}\n{to_yaml(sweep.config)}"


def write_plan(sweep: Sweep, cells: list[Planned]) -> None:
    """The files that describe the sweep. The configuration comes first: by it a folder is known as a sweep's."""
    ledger = sweep.ledger
    ledger.write_text("config.yaml", config_text(sweep))
    (ledger.folder / "cells").mkdir(exist_ok=True)
    ledger.write_frame("plan.parquet", sweep.plan.with_columns(pl.Series("cell_id", [cell.id for cell in cells])))
    ledger.write_rows("models.parquet", "models", model_rows(sweep.config.name, sweep.members))
    ledger.write_rows("predictions/part-models.parquet", "predictions", uncut_rows(sweep.members))
    outputs = uncut_output_rows(sweep.members)
    if outputs:
        ledger.write_rows("outputs/part-models.parquet", "outputs", outputs)
    if sweep.setting.rank:
        ledger.write_rows("modules/part-models.parquet", "modules", uncut_rank_rows(sweep.members))


def write_tables(folder: Path) -> tuple[list[Path], str]:
    """The tables and figures of a sweep, written into its folder.

    Returns:
        The files and the table in Markdown.
    """
    results = load(folder)
    table = stitchability(results)
    files = [folder / "stitchability.csv", folder / "stitchability.md", folder / "config.yaml"]
    write_frame(table, "csv", files[0])
    notes = notes_of(results, table)
    markdown = as_markdown(people_blocks(results, table), notes)
    files[1].write_text(markdown + "\n")
    figures = folder / "figures"
    return files + heatmaps(results, figures) + pictures(results, figures, ("png", "svg")), markdown


def tracker_of(sweep: Sweep) -> dict[str, Any] | None:
    """Arguments of the sweep's ``Tracker``; None without tracking. The default store is SQLite beside the results."""
    config, home = sweep.config, Path(sweep.config.results_dir).resolve()
    if not config.tracking.enabled:
        return None
    return {
        "uri": config.tracking.uri or f"sqlite:///{home / 'mlflow.db'}",
        "experiment": config.tracking.experiment,
        "sweep": config.name,
        "folder": sweep.ledger.folder.resolve(),
        "artifacts": None if config.tracking.uri else home / "mlartifacts",
    }


def conclude(
    sweep: Sweep,
    cells: list[Planned],
    finish: Callable[..., tuple[int, str | None]],
) -> Outcome:
    """Writes tables and figures, hands them to MLflow and waits until it is level.

    Args:
        sweep: with its plan written.
        cells: of the plan.
        finish: the writer's ``finish``.
    """
    ids = [cell.id for cell in cells]
    rows = sweep.ledger.cells().filter(pl.col("cell_id").is_in(ids))
    status = rows.group_by("cell_id").agg(pl.col("status").first())["status"].to_list()
    failed, diverged = status.count(record.FAILED), status.count(record.DIVERGED)
    files, markdown = write_tables(sweep.ledger.folder.resolve())  # the writer may have another working directory
    behind, problem = finish(model_rows(sweep.config.name, sweep.members), files, markdown, failed)
    if not behind:
        sweep.ledger.write_json(_NOTE, {"made_from": _made_from(sweep)})
    return Outcome(failed, diverged, behind, problem)


def _made_from(sweep: Sweep) -> str:
    """Changes with the configuration, the plan, the ledger and the tracking store."""
    tracker = tracker_of(sweep)
    exists = tracker is not None and (not tracker["uri"].startswith("sqlite:///") or Path(tracker["uri"][10:]).exists())
    rows = sweep.ledger.cells().select("cell_id", "eval_data", "finished_at").sort(pl.all()).rows()
    return digest([config_text(sweep), str(tracker), exists, rows])


def bring_level(sweep: Sweep) -> Outcome | None:
    """For a sweep whose cells are all finished: renews plan, tables and MLflow if any of them is behind, without Ray.

    Returns:
        None if nothing was.
    """
    written = (sweep.ledger.folder / "stitchability.csv").exists()
    if written and sweep.ledger.note(_NOTE).get("made_from") == _made_from(sweep):
        return None
    from sweeps.writer import Writer

    cells = planned_cells(sweep)
    write_plan(sweep, cells)
    writer = Writer(sweep.ledger.folder.resolve(), tracker_of(sweep), [cell.id for cell in cells])
    return conclude(sweep, cells, writer.finish)
