"""The stitchability table in its tidy long form, and what may be tabulated by."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from analysis.load import Results
from analysis.order import FLOOR, STITCHED, UNCUT, is_of_stitch, ordered
from stitching_core.errors import InputError
from stitching_core.record import CELLS, FLOORS, NOISE, OK

DEFAULT_BY = ("receiver", "eval_data", "fit_data", "sender", "sender_cut", "receiver_cut")

_DESIGN_END = list(CELLS).index("status")
# Columns that say what a cell is; those from `status` on say how it went.
ALLOWED_BY = tuple(name for name in list(CELLS)[:_DESIGN_END] if name != "cell_id")
# Columns that set up a cell but aren't part of the default table.
_SETTINGS = (
    *("experiment", "data_source", "label_offset", "noise_sigma", "l1", "protocol", "objective", "stitch", "init"),
    *("bn_mode", "search", "epochs", "batch_size", "device"),
)
_MEASURES = ("accuracy", "penalty")


def stitchability(
    cells: Results | pl.LazyFrame | pl.DataFrame,
    models: pl.LazyFrame | pl.DataFrame | None = None,
    by: Sequence[str] = DEFAULT_BY,
) -> pl.DataFrame:
    """Mean accuracy and penalty of the ok cells of every group, over runs.

    Cells of a group are averaged within their run first; mean, sd (ddof=1, null for one run) and ``n`` are over runs.

    Args:
        cells: a sweep's results, or its cells alone.
        models: base models, for the uncut accuracy of receivers whose cells all failed; default: those of the results.
        by: columns of ``ALLOWED_BY`` to group by.

    Returns:
        The columns of ``by``, then ``row`` ("uncut", "stitched" or "floor"; an uncut receiver has null for the columns
        of the sender and the cuts), ``floor`` (which one: "random_init", "noise" or "shuffled", else null: they are
        never averaged together), ``accuracy``, ``accuracy_sd``, ``penalty``, ``penalty_sd``, ``worst_class_accuracy``
        (fractions), ``n`` (runs), ``cells`` (ok cells in the means) and ``failed`` (failed and diverged cells, in
        no mean). Rows follow the plan's order, or without a plan a natural sort of the cuts.

    Raises:
        InputError: a column of ``by`` can't be grouped by.
    """
    check_by(by)
    planned = isinstance(cells, Results) and cells.planned is not None
    if isinstance(cells, Results):
        models = cells.models if models is None else models
        cells = cells.cells
    frame = _classified(cells.lazy())
    keys = [*by, "row", "floor"]
    ok = frame.filter(pl.col("ok"))
    counted = frame.group_by(keys, maintain_order=True).agg((~pl.col("ok")).sum().cast(pl.Int64).alias("failed"))
    means = _over_runs(_within_runs(ok, keys), keys)
    stitched = counted.join(means, on=keys, how="left", nulls_equal=True, maintain_order="left").with_columns(
        pl.col("n", "cells").fill_null(0)
    )
    table = pl.concat([_uncut(frame, models, by), stitched.select(_columns(by))]).collect()
    return ordered(table, frame.select(by).collect(), by, natural=not planned)


def check_by(by: Sequence[str]) -> None:
    """Raises InputError for no column, a column that can't be grouped by, or one named twice."""
    for name in by or [""]:
        if name not in ALLOWED_BY:
            raise InputError(f"--by {name!r} is not a column to group by; allowed: {', '.join(ALLOWED_BY)}")
    twice = [name for name in by if list(by).count(name) > 1]
    if twice:
        raise InputError(f"--by names {twice[0]!r} twice")


def averaged_over(cells: pl.LazyFrame, by: Sequence[str]) -> dict[str, list[str]]:
    """Settings that differ between otherwise equal cells, which the table therefore averages over, and their values."""
    settings = [name for name in _SETTINGS if name not in by]
    keys = list(dict.fromkeys([*by, *DEFAULT_BY, "run"]))
    varied = cells.group_by(keys).agg(pl.col(settings).n_unique()).select(pl.col(settings).max()).collect()
    names = [name for name in settings if (varied[name].item() or 0) > 1]
    values = cells.select(pl.col(names).unique().sort().implode()).collect() if names else pl.DataFrame()
    return {name: [str(value) for value in values[name].item()] for name in names}


def _classified(cells: pl.LazyFrame) -> pl.LazyFrame:
    is_floor = pl.col("sender_kind").is_in(FLOORS)
    return cells.with_columns(
        row=pl.when(is_floor).then(pl.lit(FLOOR)).otherwise(pl.lit(STITCHED)),
        floor=pl.when(is_floor).then("sender_kind"),
        ok=((pl.col("status") == OK) & pl.col("accuracy").is_not_nan()).fill_null(False),
    )


def _within_runs(ok: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
    return ok.group_by(list(dict.fromkeys([*keys, "run"])), maintain_order=True).agg(
        pl.col(*_MEASURES, "worst_class_accuracy").mean(), cells=pl.len().cast(pl.Int64)
    )


def _over_runs(runs: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
    return runs.group_by(keys, maintain_order=True).agg(
        pl.col(*_MEASURES, "worst_class_accuracy").mean(),
        pl.col(_MEASURES).std(ddof=1).name.suffix("_sd"),
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("cells").sum(),
    )


def _uncut(frame: pl.LazyFrame, models: pl.LazyFrame | pl.DataFrame | None, by: Sequence[str]) -> pl.LazyFrame:
    """One row per group of receivers; a receiver counts once in its run, however many cells it has."""
    frame = frame.filter(pl.col("sender_kind").ne_missing(NOISE))
    if models is not None:
        known = models.lazy().select("eval_data", receiver_hash="hash", known="accuracy").drop_nulls()
        known = known.unique(["receiver_hash", "eval_data"], keep="last")
        frame = frame.join(known, on=["receiver_hash", "eval_data"], how="left", maintain_order="left")
        frame = frame.with_columns(pl.coalesce("receiver_accuracy", "known").alias("receiver_accuracy"))
    nulled = [name for name in by if is_of_stitch(name)]
    kept = [name for name in by if name not in nulled]
    receivers = (
        frame.drop_nulls("receiver_accuracy")
        .unique([*dict.fromkeys([*kept, "run", "receiver", "receiver_hash", "eval_data"])], maintain_order=True)
        .with_columns(
            pl.lit(UNCUT).alias("row"),
            pl.lit(None, pl.String).alias("floor"),
            pl.col("receiver_accuracy").alias("accuracy"),
            pl.lit(None, pl.Float64).alias("penalty"),
            pl.lit(None, pl.Float64).alias("worst_class_accuracy"),
        )
    )
    keys = [*kept, "row", "floor"]
    schema = frame.collect_schema()
    return (
        _over_runs(_within_runs(receivers, keys), keys)
        .with_columns(pl.lit(0, pl.Int64).alias("cells"), pl.lit(0, pl.Int64).alias("failed"))
        .with_columns(pl.lit(None, schema[name]).alias(name) for name in nulled)
        .select(_columns(by))
    )


def _columns(by: Sequence[str]) -> list[str]:
    measures = ["accuracy", "accuracy_sd", "penalty", "penalty_sd", "worst_class_accuracy"]
    return [*by, "row", "floor", *measures, "n", "cells", "failed"]
