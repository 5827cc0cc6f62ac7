"""Tables as text cells, before any format: titles, headers, sections of rows and the notes that belong below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from analysis.measures import ACCURACY, Measure, measure_in
from analysis.order import UNCUT
from analysis.wide import Entry, Grid
from stitching_core.record import NOISE

NONE = "-"
NOISE_NOTE = (
    "noise: trained and measured on noise, where the uncut receiver has no accuracy: "
    "compare with chance (1 / classes{})."
)


@dataclass(frozen=True)
class Block:
    """One printed table.

    Attributes:
        title: may be empty.
        header: one text per column.
        sections: rows of texts; a format sets sections apart.
        labels: number of leading columns that are names, aligned left.
        notes: lines below the table.
    """

    title: str
    header: list[str]
    sections: list[list[list[str]]]
    labels: int = 1
    notes: list[str] = field(default_factory=list)


def percent(mean: float | None, sd: float | None = None) -> str:
    """``98.61 ±0.20`` from fractions; a dash without a mean."""
    return ACCURACY.text(mean, sd)


def entry_text(entry: Entry | None, measure: Measure = ACCURACY) -> str:
    """A mean; ``failed`` where cells were trained but none is ok."""
    if entry is None:
        return NONE
    return "failed" if entry.mean is None and entry.failed else measure.text(entry.mean, entry.sd)


def grid_block(grid: Grid) -> Block:
    """The wide table of one receiver, fit data and evaluation data."""
    measure = grid.measure
    header = ["sender" if not grid.all_cuts else "sender and its cut", *grid.cuts, "mean", measure.against_title]
    sections: list[list[list[str]]] = []
    failed = []
    kind = None
    for row in grid.rows:
        if row.kind != kind:
            sections.append([])
            kind = row.kind
        cells = [entry_text(row.entries.get(cut), measure) for cut in grid.cuts]
        against = measure.against_text(row.penalty.mean, row.penalty.sd)
        sections[-1].append([row.label, *cells, entry_text(row.mean, measure), against])
        failed += [(row.label, cut, entry.failed) for cut, entry in row.entries.items() if entry.failed]
    total = sum(count for _, _, count in failed)
    named = ", ".join(f"{label} at {cut} ({count})" for label, cut, count in failed[:5]) + (
        ", ..." if failed[5:] else ""
    )
    notes = [f"{total} failed or diverged cell{'s'[: total > 1]} in no mean: {named}."] if failed else []
    data = f"stitch fitted on {grid.fit_data}, evaluated on {grid.eval_data}"
    title = f"Receiver {grid.receiver}, {data}: {measure.title}"
    return Block(title, header, sections, notes=notes)


def long_block(table: pl.DataFrame, by: list[str]) -> Block:
    """A long table with its means: one line per group."""
    measure = measure_in(table)
    value, against = measure.value, measure.against
    header = [*by, "row", "accuracy" if measure.percent else "error", measure.against_title, "runs", "cells", "failed"]
    rows = []
    for row in table.iter_rows(named=True):
        kind = row["row"] if row["floor"] is None else f"{row['row']} ({row['floor']})"
        uncut = row["row"] == UNCUT
        counts = [str(row["n"]), *(NONE if uncut else str(row[name]) for name in ("cells", "failed"))]
        mean = entry_text(Entry(row[value], row[f"{value}_sd"], row["failed"]), measure)
        compared = measure.against_text(row[against], row[f"{against}_sd"])
        rows.append([*(text(row[name]) for name in by), kind, mean, compared, *counts])
    return Block(measure.title[0].upper() + measure.title[1:], header, [rows], labels=len(by) + 1)


def frame_block(frame: pl.DataFrame) -> Block:
    """Any table as it is."""
    labels = next((i for i, dtype in enumerate(frame.dtypes) if dtype.is_numeric()), frame.width)
    return Block("", frame.columns, [[[text(value) for value in row] for row in frame.rows()]], labels=labels)


def text(value: object) -> str:
    """A value as people read it: a dash for null, six significant digits for a float."""
    if value is None:
        return NONE
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def reading_notes(
    table: pl.DataFrame,
    averaged: Mapping[str, list[str]] | None = None,
    missing: int = 0,
    classes: Sequence[int] = (),
) -> list[str]:
    """How a table is to be read: its spread, the penalty, noise, and what it silently contains or lacks otherwise.

    Args:
        table: the long table.
        averaged: settings that the table averages over, and their values.
        missing: planned cells that have no result yet.
        classes: of the networks, as far as the cells say.
    """
    runs = table.filter(pl.col("n") > 0)["n"].unique().sort().to_list()
    span = f"{runs[0]} to {runs[-1]}" if len(runs) > 1 else f"{runs[0]}" if runs else "0"
    spread = "One run: no spread." if runs == [1] else f"±: standard deviation over runs ({span})."
    notes = [spread, measure_in(table).note]
    if (table["floor"] == NOISE).any():
        chance = " or ".join(f"{100 / count:.4g}%" for count in classes)
        notes.append(NOISE_NOTE.format(f" = {chance}" if chance else ""))
    notes += [
        f"Averaged over {name} ({', '.join(values)}); --by {name} tells them apart."
        for name, values in (averaged or {}).items()
    ]
    if missing:
        notes.append(f"{missing} planned cell{'s'[: missing > 1]} without a result yet.")
    return notes
