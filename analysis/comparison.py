"""One measure of every cell of a sweep beside what was published of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from analysis.interval import allowed_outside, prediction_interval
from stitching_core.record import OK

WITHIN, OUTSIDE, NOT_JUDGED = "within", "outside", "not judged"
ENDED_WELL = ((pl.col("status") == OK) & pl.col("accuracy").is_not_nan()).fill_null(False)
MIN_RUNS = 3  # published runs; the spread of fewer says next to nothing

KEYS = ("receiver", "sender", "cut", "eval_data")
SCHEMA = pl.Schema(
    {
        **dict.fromkeys(KEYS, pl.String()),
        "ours": pl.Float64(),
        "ours_sd": pl.Float64(),
        "ours_n": pl.Int64(),
        "lost": pl.Int64(),
        "published": pl.Float64(),
        "published_sd": pl.Float64(),
        "published_n": pl.Int64(),
        "difference": pl.Float64(),
        "sd": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "verdict": pl.String(),
    }
)


@dataclass(frozen=True)
class Comparison:
    """One measure of every cell beside its published value.

    Attributes:
        table: one row a cell (an uncut model has null for ``sender`` and ``cut``): ``receiver``, ``sender``, ``cut``,
            ``eval_data``; ``ours`` (mean over runs), ``ours_sd``, ``ours_n`` (runs), ``lost`` (runs that failed or
            diverged, in no mean); ``published``, ``published_sd``, ``published_n``; ``difference`` (ours minus
            published); ``sd``, ``low`` and ``high`` of the prediction interval (null where there is none); ``verdict``.
        pooled: the spread that cells of the experiment have in common.
    """

    table: pl.DataFrame
    pooled: float

    @property
    def judged(self) -> int:
        """Number of cells that have a verdict."""
        return self.table.filter(pl.col("verdict") != NOT_JUDGED).height

    @property
    def outside(self) -> int:
        """Number of them outside their interval."""
        return self.table.filter(pl.col("verdict") == OUTSIDE).height

    @property
    def allowed(self) -> int:
        """The largest number outside that chance allows."""
        return allowed_outside(self.judged)

    @property
    def passed(self) -> bool | None:
        """Whether no more are outside than chance allows; None where none was judged."""
        return self.outside <= self.allowed if self.judged else None


def pooled_spread(known: pl.DataFrame, spread: pl.Expr) -> float:
    """Root of the mean variance over cells, weighted by degrees of freedom."""
    freedom = pl.col("n") - 1
    variance = known.drop_nulls("sd").select((spread**2 * freedom).sum() / freedom.sum()).item()
    return math.sqrt(variance) if variance is not None and not math.isnan(variance) else 0.0


def compare(
    ours: pl.DataFrame, known: pl.DataFrame, comparable: bool, pooled: float, least: Callable[[float], float]
) -> Comparison:
    """Put what a sweep measured beside what was published, and judge it.

    Args:
        ours: ``KEYS``, ``ours``, ``ours_sd``, ``ours_n`` and ``lost`` of each cell.
        known: ``KEYS``, ``mean``, ``sd`` and ``n`` of published ones.
        comparable: whether the sweep was made as the published runs; nothing is judged otherwise.
        pooled: the spread that is shown with the table.
        least: the sd that a cell of such a published mean has at least.

    Returns:
        The cells that both have.
    """
    theirs = known.select(*KEYS, published="mean", published_sd="sd", published_n="n")
    both = theirs.join(ours, on=KEYS, nulls_equal=True, maintain_order="left")
    rows = list(_judged(both, comparable, least))
    return Comparison(pl.DataFrame(rows, schema=SCHEMA), pooled)


def _judged(both: pl.DataFrame, comparable: bool, least: Callable[[float], float]) -> Iterator[dict[str, Any]]:
    for row in both.iter_rows(named=True):
        mean, runs = row["ours"], row["ours_n"]
        row["difference"] = None if mean is None else mean - row["published"]
        row["verdict"] = NOT_JUDGED
        if comparable and row["published_n"] >= MIN_RUNS:
            row["sd"] = max(row["published_sd"], least(row["published"]))
            new = runs or row["lost"]  # of a cell that has no mean the interval is shown all the same
            row["low"], row["high"] = prediction_interval(row["published"], row["sd"], row["published_n"], new)
            row["verdict"] = OUTSIDE if mean is None or not row["low"] <= mean <= row["high"] else WITHIN
        yield {name: row.get(name) for name in SCHEMA}
