"""A sweep against the published runs of its experiment: each cell within or outside what their spread predicts."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from analysis import published
from analysis.comparison import ENDED_WELL, KEYS, Comparison, compare, pooled_spread
from analysis.interval import binomial_sd
from analysis.load import Results
from analysis.setting import differences, experiment_of


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
    (``prediction_interval``), with the largest of three standard deviations: the cell's own; that of a count over
    10,000 test items; and the pooled one of the experiment's stitched cells, since five runs give a cell's own badly,
    often as 0. Uncut models don't enter the pool (`colour_only` reads correlated images with an sd of 0.16) but are
    judged with it. Ranks spread in proportion to their size: there the coefficient of variation is pooled, and nothing
    is binomial.

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
    pooled = pooled_spread(known.drop_nulls("sender"), pl.col("sd"))
    accuracy = compare(ours, known, not differs, pooled, lambda mean: max(pooled, binomial_sd(mean, published.ITEMS)))
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
    names = known["module"].unique()
    at_stitch = results.modules.filter(pl.col("part") == "stitch", pl.col("module").is_in(names.implode()))
    columns = ["cell_id", "eval_data", "feature_rank"]
    ours = _over_runs(cells.join(at_stitch.select(columns), on=columns[:2]), "feature_rank")
    if known.is_empty() or ours.is_empty():
        return None
    pooled = pooled_spread(known, pl.col("sd") / pl.col("mean"))
    return compare(ours, known, comparable, pooled, lambda mean: pooled * mean)


def _own_cut(cells: pl.LazyFrame) -> pl.LazyFrame:
    """Cells that join a front to a tail at one cut, as all published ones do; noise has no cut of its own."""
    return cells.filter(pl.coalesce("sender_cut", "receiver_cut") == pl.col("receiver_cut")).with_columns(
        cut="receiver_cut", ok=ENDED_WELL
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
