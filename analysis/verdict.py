"""A sweep against the published runs of its experiment: each cell within or outside what their spread predicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from analysis import published
from analysis.interval import allowed_outside, binomial_sd, prediction_interval
from analysis.load import Results
from analysis.setting import differences, experiment_of
from stitching_core.record import OK

WITHIN, OUTSIDE, NOT_JUDGED = "within", "outside", "not judged"
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


@dataclass(frozen=True)
class Verdict:
    """What comes of comparing a sweep with a reference.

    Attributes:
        reference: whose numbers.
        experiment: bare id.
        differs: what the sweep has otherwise than the published runs; where there is anything, nothing is judged.
        accuracy: of stitched and of uncut networks, fractions.
        ranks: feature rank at the stitch; None where the sweep or the reference has none.
        absent: published cells that the sweep has no row of.
        missing: planned cells that lack a result.
    """

    reference: str
    experiment: str
    differs: list[str]
    accuracy: Comparison
    ranks: Comparison | None
    absent: int
    missing: int

    @property
    def passed(self) -> bool | None:
        """Whether every measure that was judged passed; None where none was judged."""
        found = [part.passed for part in (self.accuracy, self.ranks) if part and part.passed is not None]
        return all(found) if found else None


def judge(results: Results, reference: str) -> Verdict:
    """Compare a sweep with the published runs of its experiment.

    A cell is within if the mean of its runs lies in the 95% prediction interval of the published ones
    (``prediction_interval``), with the largest of three standard deviations: the cell's own; that of a count over 10,000
    test items; and the pooled one of the experiment's stitched cells. Five runs give a cell's own sd badly, and often as
    0. Uncut models are left out of the pool (`colour_only` reads correlated images with an sd of 0.16), yet judged with it.
    Ranks spread in proportion to their size: there the coefficient of variation is pooled, and nothing is binomial.

    A cell none of whose runs ended well is outside. One with fewer than 3 published runs is not judged, nor is any cell
    of a sweep that was made otherwise than the published runs.

    Raises:
        InputError: an unknown reference, or results of no experiment that has published numbers.
    """
    experiment = experiment_of(results, reference)
    differs = differences(results, reference, experiment)
    known = published.accuracies(reference).filter(experiment=experiment)
    cells = _own_cut(results.cells)
    ours = pl.concat([_over_runs(cells, "accuracy"), _uncut(results.models)])
    pooled = _pooled(known.drop_nulls("sender"), pl.col("sd"))
    accuracy = _comparison(
        ours, known, not differs, pooled, lambda mean: max(pooled, binomial_sd(mean, published.ITEMS))
    )
    return Verdict(
        reference,
        experiment,
        differs,
        accuracy,
        _ranks(results, cells, published.ranks(reference).filter(experiment=experiment, part="stitch"), not differs),
        known.height - accuracy.table.height,
        results.missing,
    )


def _ranks(results: Results, cells: pl.LazyFrame, known: pl.DataFrame, comparable: bool) -> Comparison | None:
    at_stitch = results.modules.filter(part="stitch").join(
        known.lazy().select("module").unique(), on="module", how="semi"
    )
    columns = ["cell_id", "eval_data", "feature_rank"]
    measured = cells.join(at_stitch.select(columns), on=["cell_id", "eval_data"], how="inner")
    ours = _over_runs(measured, "feature_rank")
    if known.is_empty() or ours.is_empty():
        return None
    pooled = _pooled(known, pl.col("sd") / pl.col("mean"))
    return _comparison(ours, known, comparable, pooled, lambda mean: pooled * mean)


def _own_cut(cells: pl.LazyFrame) -> pl.LazyFrame:
    """Cells that join a front to a tail at one cut, as all published ones do; noise has no cut of its own."""
    return cells.filter(pl.coalesce("sender_cut", "receiver_cut") == pl.col("receiver_cut")).with_columns(
        cut="receiver_cut", ok=(pl.col("status") == OK) & pl.col("accuracy").is_not_nan().fill_null(False)
    )


def _over_runs(cells: pl.LazyFrame, value: str) -> pl.DataFrame:
    ok = pl.col(value).cast(pl.Float64).filter(pl.col("ok"))
    runs = cells.group_by(*KEYS, "run", maintain_order=True).agg(ok.mean().alias("value"))
    return _summary(runs)


def _uncut(models: pl.LazyFrame) -> pl.DataFrame:
    """Uncut models by name, a network once a run."""
    runs = models.drop_nulls("accuracy").select(
        pl.col("model").alias("receiver"),
        pl.lit(None, pl.String).alias("sender"),
        pl.lit(None, pl.String).alias("cut"),
        "eval_data",
        pl.col("accuracy").alias("value"),
    )
    return _summary(runs)


def _summary(runs: pl.LazyFrame) -> pl.DataFrame:
    value = pl.col("value")
    return (
        runs.group_by(KEYS, maintain_order=True)
        .agg(
            ours=value.mean(),
            ours_sd=value.std(ddof=1),
            ours_n=value.count().cast(pl.Int64),
            lost=value.null_count().cast(pl.Int64),
        )
        .collect()
    )


def _pooled(known: pl.DataFrame, spread: pl.Expr) -> float:
    """Root of the mean variance over cells, weighted by degrees of freedom."""
    freedom = pl.col("n") - 1
    variance = known.drop_nulls("sd").select((spread**2 * freedom).sum() / freedom.sum()).item()
    return math.sqrt(variance) if variance is not None and not math.isnan(variance) else 0.0


def _comparison(
    ours: pl.DataFrame, known: pl.DataFrame, comparable: bool, pooled: float, least: Callable[[float], float]
) -> Comparison:
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
            row["low"], row["high"] = prediction_interval(
                row["published"], row["sd"], row["published_n"], runs or row["lost"]
            )
            row["verdict"] = OUTSIDE if mean is None or not row["low"] <= mean <= row["high"] else WITHIN
        yield {name: row.get(name) for name in SCHEMA}
