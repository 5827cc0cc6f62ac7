"""What figures show, one value for each run: accuracies or errors, and ranks at the stitch and right after it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from analysis.load import Results
from analysis.measures import measure_of
from analysis.order import UNCUT
from analysis.tables import DEFAULT_BY, stitchability

BY = (*DEFAULT_BY, "run")
_MODULE = ("cell_id", "model", "seed", "eval_data", "part", "module", "position", "feature_rank")
RECEIVER, STITCH = "receiver", "stitch"  # parts of a stitched network


@dataclass(frozen=True)
class Measured:
    """One quantity of all stitched networks of a sweep, and of the uncut receivers.

    Attributes:
        stitched: columns of ``BY``, floor (null, "noise" or "random_init"), failed (cells without a value) and value
            (mean over the cells of a run that differ in other settings; null without an ok cell), in the table's order.
        uncut: receiver, fit_data, eval_data, receiver_cut (null: whatever the cut), run and value.
        own: the same on the receiver's own data, without fit_data and eval_data: for what an uncut receiver can't read.
    """

    stitched: pl.DataFrame
    uncut: pl.DataFrame
    own: pl.DataFrame


def outcomes(results: Results) -> Measured:
    """What the sweep is measured by, on the test set: accuracy (as fractions), or the reconstruction error."""
    measure = measure_of(results.cells)
    table = stitchability(results, by=BY)
    is_uncut = pl.col("row") == UNCUT
    columns = [*BY, "floor", "failed", pl.col(measure.value).alias("value")]
    known = results.models.filter(pl.col("eval_data") == pl.col("variant")).select(
        receiver_hash="hash", value=measure.value
    )
    own = (
        _receivers(results, "receiver_hash")
        .join(known.unique("receiver_hash"), on="receiver_hash", how="inner", maintain_order="left")
        .select("receiver", _any_cut(), "run", "value")
        .drop_nulls("value")
        .unique(maintain_order=True)
    )
    uncut = table.filter(is_uncut).select(
        "receiver", "fit_data", "eval_data", "receiver_cut", "run", value=measure.value
    )
    return Measured(table.filter(~is_uncut).select(columns), uncut, own.collect())


def ranks(results: Results, stitched: pl.DataFrame, part: str) -> Measured | None:
    """Feature rank at the first convolution or linear layer of the receiver after the stitch, or of the stitch itself.

    An uncut receiver's is that of the same layer; it has none of the stitch.

    Args:
        results: of the sweep.
        stitched: its ``outcomes(...).stitched``: its rows are kept, failed ones too.
        part: "receiver", or "stitch" (the last of its layers).

    Returns:
        None where the sweep measured no ranks.
    """
    modules = results.modules.select(_MODULE)
    of_part = modules.filter(pl.col("part") == part).sort("position", descending=part == STITCH, maintain_order=True)
    at = of_part.unique(["cell_id", "eval_data"], keep="first", maintain_order=True)
    cells = _ok(results).join(at, on=["cell_id", "eval_data"], how="inner", maintain_order="left").collect()
    if cells.is_empty():
        return None
    values = cells.group_by(BY, maintain_order=True).agg(pl.col("feature_rank").mean().alias("value"))
    table = stitched.drop("value").join(values, on=BY, how="left", nulls_equal=True, maintain_order="left")

    uncut = modules.filter(pl.col("cell_id").is_null(), part == RECEIVER).select(
        "eval_data", "module", receiver="model", receiver_seed="seed", value=pl.col("feature_rank").cast(pl.Float64)
    )
    keys = ["receiver", "receiver_seed", "module"]
    found = []
    for on, kept in (("eval_data", ["fit_data", "eval_data"]), ("receiver_variant", [])):
        known = uncut.rename({"eval_data": on}).collect()
        rows = cells.join(known, on=[*keys, on], how="inner", nulls_equal=True, maintain_order="left")
        found.append(rows.select("receiver", *kept, "receiver_cut", "run", "value").unique(maintain_order=True))
    return Measured(table, *found)


def module_ranks(results: Results) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Feature rank of every module, one value for each run.

    Returns:
        Of stitched networks: columns of ``BY``, part, module, position and value, by position. Of uncut receivers:
        receiver, run, eval_data, receiver_variant, module, position and value.
    """
    modules = results.modules.select(_MODULE)
    measured = modules.filter(pl.col("cell_id").is_not_null(), pl.col("part").is_not_null())
    stitched = (
        _ok(results)
        .join(measured, on=["cell_id", "eval_data"], how="inner", maintain_order="left")
        .group_by([*BY, "part", "module"], maintain_order=True)
        .agg(pl.col("position").min(), pl.col("feature_rank").mean().alias("value"))
        .sort("position", maintain_order=True)
    )
    uncut = (
        _receivers(results, "receiver_seed")
        .join(
            modules.filter(pl.col("cell_id").is_null()),
            left_on=["receiver", "receiver_seed"],
            right_on=["model", "seed"],
            how="inner",
            nulls_equal=True,
            maintain_order="left",
        )
        .select("receiver", "run", "eval_data", "receiver_variant", "module", "position", value="feature_rank")
        .unique(["receiver", "run", "eval_data", "module"], maintain_order=True)
        .sort("position", maintain_order=True)
    )
    return stitched.collect(), uncut.collect()


def networks(stitched: pl.DataFrame) -> dict[str, str | None]:
    """Every sender and receiver, and which floor it is; receivers are none."""
    found: dict[str, str | None] = dict.fromkeys(stitched["receiver"].unique(maintain_order=True))
    return found | dict(stitched.select("sender", "floor").unique(maintain_order=True).rows())


def _ok(results: Results) -> pl.LazyFrame:
    return results.cells.filter(measure_of(results.cells).ok).select(
        "cell_id", *BY, "receiver_seed", "receiver_variant"
    )


def _receivers(results: Results, *columns: str) -> pl.LazyFrame:
    """The receivers of all runs, once each."""
    names = ["receiver", "receiver_variant", "run", *columns]
    return results.cells.select(names).unique(maintain_order=True)


def _any_cut() -> pl.Expr:
    return pl.lit(None, pl.String).alias("receiver_cut")
