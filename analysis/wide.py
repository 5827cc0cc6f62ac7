"""The stitchability table as people read it: senders down, cuts across, one grid per receiver and data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from analysis.measures import ACCURACY, Measure, measure_in
from analysis.order import UNCUT
from stitching_core.record import NOISE


@dataclass(frozen=True)
class Entry:
    """One mean over runs: fractions (or errors), null where nothing was measured.

    Attributes:
        mean: over runs.
        sd: over runs, null for one run.
        failed: failed and diverged cells, which are not in this mean.
    """

    mean: float | None = None
    sd: float | None = None
    failed: int = 0


@dataclass(frozen=True)
class Row:
    """One sender (and in an all-cuts grid one of its cuts), or the uncut receiver.

    Attributes:
        label: what a reader sees.
        kind: "uncut", "stitched" or "floor".
        sender: name of the sender as shown, null for the uncut receiver.
        sender_cut: the sender's cut in an all-cuts grid, else null.
        entries: the measure per receiver cut.
        mean: the measure, mean over cuts.
        penalty: mean over cuts; of errors the ratio.
    """

    label: str
    kind: str
    sender: str | None
    sender_cut: str | None
    entries: dict[str, Entry]
    mean: Entry
    penalty: Entry = field(default_factory=Entry)


@dataclass(frozen=True)
class Grid:
    """The wide table of one receiver, fit data and evaluation data; rows run from uncut through trained to floors."""

    receiver: str
    fit_data: str
    eval_data: str
    cuts: list[str]
    rows: list[Row]
    all_cuts: bool
    measure: Measure = ACCURACY


def mean_by(table: pl.DataFrame) -> list[str]:
    """Columns to average over cuts by, so that the sd of the mean over cuts is over runs."""
    return _keys(_all_cuts(table))[:-2]


def wide(table: pl.DataFrame, means: pl.DataFrame | None = None) -> list[Grid]:
    """Lay out a long table that was made with the default ``by``.

    The noise floor has no evaluation data of its own: its rows stand in every grid of the receiver and fit data that it
    is the floor for (in all of the receiver's where its fit data name none of them).

    Args:
        table: ``stitchability(...)``.
        means: ``stitchability(..., by=mean_by(table))`` for the means over cuts; without it they are means of the
            table's means and have no sd.
    """
    all_cuts = _all_cuts(table)
    index = {} if means is None else _indexed(means, all_cuts)
    grids = []
    for (receiver, fit_data, eval_data), its in split(table):
        rows = list(_rows(its, index, all_cuts))
        grids.append(Grid(receiver, fit_data, eval_data, _merged(rows), rows, all_cuts, measure_in(table)))
    return grids


def split(table: pl.DataFrame) -> Iterator[tuple[tuple[str, str, str], pl.DataFrame]]:
    """The rows of a long table that belong into one grid, by receiver, fit data and evaluation data: see ``wide``."""
    is_noise = pl.col("floor").eq_missing(NOISE)
    measured, noise = table.filter(~is_noise), table.filter(is_noise)
    keys = ["receiver", "fit_data", "eval_data"]
    order = measured.select(keys).unique(maintain_order=True)
    only_noise = noise.select(keys).unique(maintain_order=True).join(order, on="receiver", how="anti")
    for receiver, fit_data, eval_data in pl.concat([order, only_noise]).rows():
        its = pl.col("receiver") == receiver
        floors = noise.filter(its)
        if fit_data in floors["fit_data"].to_list():
            floors = floors.filter(pl.col("fit_data").eq_missing(pl.lit(fit_data)))
        else:
            fits = measured.filter(its)["fit_data"].unique()
            floors = floors.filter(~pl.col("fit_data").is_in(fits.implode(), nulls_equal=True))
        here = measured.filter(its, pl.col("fit_data").eq_missing(pl.lit(fit_data)), pl.col("eval_data") == eval_data)
        yield (receiver, fit_data, eval_data), pl.concat([here, floors])


def _all_cuts(table: pl.DataFrame) -> bool:
    return table.filter(pl.col("sender_cut") != pl.col("receiver_cut")).height > 0


def _merged(rows: list[Row]) -> list[str]:
    """The cuts of all rows in one order, though a row may lack some."""
    order: list[str] = []
    for row in rows:
        place = 0
        for cut in row.entries:
            if cut not in order:
                order.insert(place, cut)
            place = order.index(cut) + 1
    return order


def _keys(all_cuts: bool) -> list[str]:
    return ["receiver", "eval_data", "fit_data", "sender", *(["sender_cut"] if all_cuts else []), "row", "floor"]


def _indexed(means: pl.DataFrame, all_cuts: bool) -> dict[tuple[Any, ...], dict[str, Any]]:
    keys = _keys(all_cuts)
    return {tuple(row[name] for name in keys): row for row in means.iter_rows(named=True)}


def _rows(table: pl.DataFrame, index: dict[tuple[Any, ...], dict[str, Any]], all_cuts: bool) -> Iterator[Row]:
    measure = measure_in(table)
    value, against = measure.value, measure.against
    for key, group in table.group_by(_keys(all_cuts), maintain_order=True):
        first = group.row(0, named=True)
        if first["row"] == UNCUT:
            yield Row("uncut receiver", UNCUT, None, None, {}, Entry(first[value], first[f"{value}_sd"]))
            continue
        sender = f"{first['sender']} (on {first['eval_data']})" if first["floor"] == NOISE else str(first["sender"])
        cut = first["sender_cut"] if all_cuts else None
        entries = {
            cell["receiver_cut"]: Entry(cell[value], cell[f"{value}_sd"], cell["failed"])
            for cell in group.iter_rows(named=True)
        }
        over = index.get(key) or group.select(pl.col(value, against).mean()).row(0, named=True)
        mean = Entry(over[value], over.get(f"{value}_sd"), sum(entry.failed for entry in entries.values()))
        penalty = Entry(over[against], over.get(f"{against}_sd"))
        yield Row(f"{sender} {cut}" if cut else sender, first["row"], sender, cut, entries, mean, penalty)
