"""The order of a table's rows: that of the plan, and without a plan that of a network."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from stitching_core.record import FLOORS

UNCUT, STITCHED, FLOOR = ROWS = ("uncut", "stitched", "floor")

# A network's order where its cuts' names don't tell: what precedes and what follows the numbered stages.
_STEM = ("conv1", "bn1", "relu", "act1", "maxpool", "stem")
_HEAD = ("avgpool", "global_pool", "flatten", "classifier", "fc", "head")


def is_of_stitch(column: str) -> bool:
    """Whether a column describes the sender or a cut: what an uncut receiver has none of."""
    return column.startswith("sender") or column == "receiver_cut"


def ordered(table: pl.DataFrame, cells: pl.DataFrame, by: Sequence[str], natural: bool) -> pl.DataFrame:
    """Sort a long table: by receiver and data, then uncut, stitched, floor, then by sender and cuts.

    Args:
        table: a long table with the columns of ``by``, ``row`` and ``floor``.
        cells: the columns of ``by`` of all cells; names sort by their first appearance here, numbers by value.
        by: the columns that the table is grouped by.
        natural: sort cuts by ``network_order`` instead of first appearance.
    """
    ranks = {name: _rank(cells[name], natural and name.endswith("_cut")) for name in by}
    row = pl.col("row").replace_strict(ROWS, range(len(ROWS)), return_dtype=pl.Int64)
    floor = pl.col("floor").replace_strict(FLOORS, range(len(FLOORS)), default=None, return_dtype=pl.Int64)
    outer = [rank for name, rank in ranks.items() if not is_of_stitch(name)]
    inner = [rank for name, rank in ranks.items() if is_of_stitch(name)]
    return table.sort([*outer, row, floor, *inner], nulls_last=False, maintain_order=True)


def _rank(column: pl.Series, natural: bool) -> pl.Expr:
    values = column.drop_nulls().unique(maintain_order=True)
    if column.dtype != pl.String:
        return pl.col(column.name)
    names = sorted(values, key=network_order) if natural else values.to_list()
    return pl.col(column.name).replace_strict(names, range(len(names)), default=None, return_dtype=pl.Int64)


def network_order(cut: str) -> tuple[int, int, list[tuple[int, str]]]:
    """Sort key that puts cuts in a network's order by name alone: stem, stages by number (9 before 10), head."""
    first = cut.split(".")[0]
    group, rank = 1, 0
    if first in _STEM:
        group, rank = 0, _STEM.index(first)
    elif first in _HEAD:
        group, rank = 2, _HEAD.index(first)
    parts = re.findall(r"\d+|\D+", cut)
    return group, rank, [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
