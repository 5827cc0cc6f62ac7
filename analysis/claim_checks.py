"""The checks behind the claims: from a sweep's cells and ranks to whether a criterion is met, and the numbers.

Only cells that ended well count in a mean; how many did not is said, and a sender or cut of which none did fails. To be
no worse than a network that did not learn its task says nothing: its cells are no cells here.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from analysis.comparison import ENDED_WELL
from analysis.load import Results
from stitching_core.record import NOISE, RANDOM_INIT, TRAINED

# What a sender's training rewarded. `mix` is neither: a third of its images has only a digit, a third only a colour.
COLOUR_CUE = ("colour", "colour_only", "correlated")
DIGIT_CUE = ("digit", "greyscale")

MARGIN = 0.01  # of accuracy: within it one network is as good as another
SENDER_MARGIN = 0.02  # of accuracy between senders of one receiver; published: 0.018 at most at RANK_CUTS
NOISE_ACCURACY = 0.995  # what rounds to 100%; the lowest published mean of a cell is 0.99892
# Where published ranks part: the mean rank at the stitch of every digit-cue sender is over four times that of every
# colour-cue sender (1.7 to 2.1 times at the other cuts).
RANK_CUTS = ("layer1", "layer2", "layer3")

NO_CELL = "no finished cell of it between networks that learnt their task"

Checked = tuple[bool | None, str]  # None: there are no cells for it

_CORRELATED = (pl.col("fit_data") == "correlated") & (pl.col("eval_data") == "correlated")
_DECIMALS = 9  # 0.97 - 0.96 is no more than 0.01


def misaligned_sender(sweep: Results) -> Checked:
    """Mean over cuts and runs of (stitched - uncut receiver) >= -MARGIN, for each colour-cue sender into `digit`."""
    its = _cells(sweep).filter(_CORRELATED, receiver_variant="digit", sender_kind=TRAINED)
    return _no_worse(its.filter(pl.col("sender_variant").is_in(COLOUR_CUE)))


def random_sender(sweep: Results) -> Checked:
    """Mean over cuts and runs of (stitched - uncut receiver) >= -MARGIN, for an untrained sender into `digit`."""
    return _no_worse(_cells(sweep).filter(_CORRELATED, receiver_variant="digit", sender_kind=RANDOM_INIT))


def self_stitch(sweep: Results) -> Checked:
    """Mean over cuts and runs of (stitched - uncut receiver) >= -MARGIN, `digit` into itself, on decorrelated data.

    The stitch may have been fitted on correlated data, where colour would do as well: it is on decorrelated data that
    it shows whether the digit came through.
    """
    same = pl.col("sender_hash") == pl.col("receiver_hash")
    return _no_worse(_cells(sweep).filter(same, receiver_variant="digit", eval_data="digit"))


def noise(sweep: Results) -> Checked:
    """Mean over receivers and runs >= NOISE_ACCURACY at every cut, for points of noise."""
    its = _cells(sweep).filter(sender_kind=NOISE)
    if _unmeasured(its):
        return None, NO_CELL
    mean = pl.col("accuracy").mean()
    cuts = its.group_by("receiver_cut", maintain_order=True).agg(mean)
    lowest = its.group_by("receiver", "receiver_cut", maintain_order=True).agg(mean).drop_nulls().sort("accuracy")
    receiver, cut, accuracy = lowest.row(0)
    means = ", ".join(f"{cut} {_percent(value)}" for cut, value in cuts.rows())
    numbers = f"{means}; lowest cell {receiver} at {cut} {_percent(accuracy)}{_lost(its)}"
    return bool((cuts["accuracy"] >= NOISE_ACCURACY).fill_null(False).all()), numbers


def rank(sweep: Results) -> Checked:
    """Rank at the stitch parts the two kinds of sender in every run, accuracy does not.

    Of each sender the mean over RANK_CUTS counts. Rank: in every run that has both kinds, the largest of the colour-cue
    senders lies below the smallest of the digit-cue senders. Accuracy: over all runs no colour-cue sender lies more
    than SENDER_MARGIN below a digit-cue sender. (The published ones lie above: who takes accuracy for alignment would
    find them the better aligned.)
    """
    cells = _ranked(sweep)
    runs = cells.group_by("run", "cue", "sender", maintain_order=True).agg(pl.col("feature_rank", "accuracy").mean())
    value, of_colour, of_digit = pl.col("feature_rank"), pl.col("cue") == "colour", pl.col("cue") == "digit"
    parts = value.filter(of_colour).max() < value.filter(of_digit).min()
    parted = runs.group_by("run").agg(parts.alias("parted"))["parted"].drop_nulls()
    if parted.is_empty():
        return None, "no ranks at the stitch, in one run, of both kinds of sender"
    senders = runs.group_by("cue", "sender", maintain_order=True).agg(value.mean(), pl.col("accuracy").mean())
    accuracy = pl.col("accuracy")
    lag = round(senders.select(accuracy.filter(of_digit).max() - accuracy.filter(of_colour).min()).item(), _DECIMALS)
    each = ", ".join(
        f"{sender} {ranked:.1f} ({_percent(share)})" for _, sender, ranked, share in senders.sort("cue").rows()
    )
    numbers = f"rank (accuracy) over {_cuts(cells)}: {each}; parted in {parted.sum()} of {parted.len()} runs"
    return bool(parted.all()) and lag <= SENDER_MARGIN, numbers


def _ranked(sweep: Results) -> pl.DataFrame:
    """Cells of colour-cue and digit-cue senders at RANK_CUTS, with their ``cue`` and ``feature_rank`` at the stitch."""
    stitches = sweep.modules.filter(part="stitch", eval_data="correlated").select("cell_id", "feature_rank").collect()
    cells = _cells(sweep).filter(_CORRELATED, pl.col("receiver_cut").is_in(RANK_CUTS), receiver_variant="digit")
    variant = pl.col("sender_variant")
    cue = pl.when(variant.is_in(COLOUR_CUE)).then(pl.lit("colour"))
    cells = cells.filter(sender_kind=TRAINED).with_columns(cue=cue.when(variant.is_in(DIGIT_CUE)).then(pl.lit("digit")))
    return cells.drop_nulls(["accuracy", "cue"]).join(stitches, on="cell_id", maintain_order="left")


def _cells(sweep: Results) -> pl.DataFrame:
    """The cells between networks that learnt their task, without measures where they did not end well."""
    unlearned = sweep.models.filter(learned=False).select("hash").collect()["hash"].implode()
    of_unlearned = pl.any_horizontal(pl.col("sender_hash", "receiver_hash").is_in(unlearned).fill_null(False))
    measures = pl.when(ENDED_WELL).then(pl.col("accuracy", "penalty"))
    return sweep.cells.filter(~of_unlearned).with_columns(measures).collect()


def _no_worse(cells: pl.DataFrame) -> Checked:
    """Whether each sender is at most MARGIN worse than the uncut receiver: its penalty over cuts, then over runs."""
    if _unmeasured(cells):
        return None, NO_CELL
    runs = cells.group_by("sender", "run", maintain_order=True).agg(pl.col("accuracy", "penalty").mean())
    senders = runs.group_by("sender", maintain_order=True).agg(
        pl.col("accuracy", "penalty").mean(), sd=pl.col("penalty").std(ddof=1), n=pl.col("penalty").count()
    )
    numbers = f"stitched minus uncut, in points, over {_cuts(cells)}: {', '.join(_gains(senders))}{_lost(cells)}"
    return bool((senders["penalty"].round(_DECIMALS) <= MARGIN).fill_null(False).all()), numbers


def _gains(senders: pl.DataFrame) -> Iterator[str]:
    for row in senders.iter_rows(named=True):
        if row["penalty"] is None:
            yield f"{row['sender']} none"
            continue
        spread = "" if row["sd"] is None else f" ±{100 * row['sd']:.2f}"
        runs = f"{row['n']} run{'s'[: row['n'] > 1]}"
        yield f"{row['sender']} {-100 * row['penalty'] + 0.0:+.2f}{spread} ({_percent(row['accuracy'])}, {runs})"


def _cuts(cells: pl.DataFrame) -> str:
    return ", ".join(cells["receiver_cut"].unique(maintain_order=True))


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.2f}%"


def _unmeasured(cells: pl.DataFrame) -> bool:
    return cells["accuracy"].count() == 0


def _lost(cells: pl.DataFrame) -> str:
    lost = cells["accuracy"].null_count()
    return f"; {lost} failed or diverged, in no mean" if lost else ""
