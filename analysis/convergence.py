"""Cells whose stitch was still learning, or had not begun to: their accuracy says nothing about what could be stitched.

The rule reads the training loss (`learning_curve`, the mean of each epoch):

    chance = ln(classes), the loss of a network that knows nothing
    c(e)   = training loss of epoch e; c(0) = chance
    a cell has not converged if it names less than 90% of the test set of its own fit data, and its last loss c(E) is
      above 0.5 * chance                                      ("far above 0"), or
      above 0.1 * chance and below 0.95 * c(E - 1)            ("still falling": the last epoch took a twentieth off)

Any other cell counts as converged: it is good, or its loss is near 0, or is low enough and no longer falls. A loss that
stands still far above 0 may come of a learning rate that does not suit the cut as well as of a lack of anything to be
found: the accuracy can't tell. The loss alone would not do either: in `bn_mode: adapt` with 1,000 classes it stays high
in stitches that name nearly everything. The bounds were set on sweeps that were run (docs/imagenet_noise.md, the
embedded default). With one epoch c(0) stands in for the epoch before. Where a cell was not measured on its own fit data
its loss decides. Not judged: cells that are not ok, whose objective has another chance than ln(classes), that have an
L1 term in their loss, or that were recorded without their number of classes.
"""

from __future__ import annotations

import polars as pl

from stitching_core.record import OK

FAR, NEAR_ZERO, FALLING, GOOD = 0.5, 0.1, 0.95, 0.9
NAMED = 6  # cells that a note spells out


def unconverged(cells: pl.LazyFrame) -> pl.DataFrame:
    """The cells that have not converged, each once, in the order of the table.

    Args:
        cells: rows of the table ``cells``.

    Returns:
        cell_id, sender, sender_cut, receiver, receiver_cut, run, classes, loss (of the last epoch, nats), chance (nats)
        and why ("far above 0" or "still falling").
    """
    curve, chance = pl.col("learning_curve"), pl.col("classes").cast(pl.Float64).log()
    judged = cells.filter(
        pl.col("status") == OK,
        pl.col("objective") == "cross_entropy",
        pl.col("l1").fill_null(0.0) == 0.0,
        pl.col("classes") > 1,
        curve.list.len() > 0,
    )
    good = pl.col("eval_data").eq(pl.col("fit_data")) & (pl.col("accuracy") >= GOOD)
    judged = judged.filter(~good.fill_null(False).any().over("cell_id"))
    judged = judged.unique("cell_id", keep="first", maintain_order=True)
    last = judged.with_columns(
        chance=chance,
        loss=curve.list.last(),
        before=pl.when(curve.list.len() > 1).then(curve.list.get(-2, null_on_oob=True)).otherwise(chance),
    )
    far = pl.col("loss") > FAR * pl.col("chance")
    falling = (pl.col("loss") > NEAR_ZERO * pl.col("chance")) & (pl.col("loss") < FALLING * pl.col("before"))
    why = pl.when(far).then(pl.lit("far above 0")).when(falling).then(pl.lit("still falling"))
    columns = ("cell_id", "sender", "sender_cut", "receiver", "receiver_cut", "run", "classes", "loss", "chance", "why")
    return last.with_columns(why=why).filter(pl.col("why").is_not_null()).select(columns).collect()


def convergence_notes(cells: pl.LazyFrame) -> list[str]:
    """At most one line that names the cells that have not converged; cells that differ in their run count together."""
    found = unconverged(cells)
    if found.is_empty():
        return []
    same = found.group_by("sender", "sender_cut", "receiver", "receiver_cut", "classes", "why", maintain_order=True)
    groups = same.agg(pl.len().alias("cells"), pl.col("loss").mean(), pl.col("chance").first())
    named = []
    for row in groups.head(NAMED).iter_rows(named=True):
        sent = (
            row["sender"]
            if row["sender_cut"] in (None, row["receiver_cut"])
            else f"{row['sender']} {row['sender_cut']}"
        )
        times = f", {row['cells']} cells" if row["cells"] > 1 else ""
        named.append(
            f"{sent} into {row['receiver']} at {row['receiver_cut']} "
            f"({row['why']}: {row['loss']:.2f}, chance {row['chance']:.2f}{times})"
        )
    more = groups.height - len(named)
    rest = f"; and {more} more" if more > 0 else ""
    count = f"{found.height} cell{'s'[: found.height > 1]}"
    return [
        f"Not converged, by the training loss of the last epoch: {count}: {'; '.join(named)}{rest}. "
        "Such an accuracy shows a training that was not enough, not what can be stitched."
    ]
