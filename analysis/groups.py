"""Which stitched networks belong into one figure, and which of their ends tells its lines apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from analysis.measured import Measured
from analysis.names import OWN
from analysis.wide import split
from stitching_core.record import NOISE

SENDER, RECEIVER = "sender", "receiver"


@dataclass(frozen=True)
class Group:
    """What one figure shows.

    Attributes:
        hue: "sender" or "receiver": what differs between its lines.
        fixed: name of the other end, which they share.
        fit_data: what its stitches were fitted on; "own" where that is each sender's own data.
        eval_data: what they were evaluated on.
        stitched: rows of ``Measured.stitched``.
        uncut: rows of ``Measured.uncut`` or ``Measured.own``.
        own_baseline: the uncut receivers are shown on their own data.
    """

    hue: str
    fixed: str
    fit_data: str
    eval_data: str
    stitched: pl.DataFrame
    uncut: pl.DataFrame
    own_baseline: bool


def groups(measured: Measured) -> Iterator[Group]:
    """The figures of a quantity.

    A sweep of one sender into several receivers (experiments 1f and 4a of Smith et al. 2025) has a line for each
    receiver; any other has a figure for each receiver and a line for each sender (2e), the floors among them. Where
    stitches are fitted on each sender's own data (2e_b) the senders share figures all the same. Where no data are
    common to all lines, or the receiver can't read them (noise), the baseline is the uncut receiver on its own data.
    """
    table = measured.stitched
    if table["sender"].n_unique() == 1 and table["receiver"].n_unique() > 1:
        keys = ["sender", "fit_data", "eval_data"]
        for (name, fit, evaluated), rows in table.group_by(keys, maintain_order=True):
            uncut = _uncut(measured.uncut, fit, evaluated)
            yield _group(RECEIVER, (str(name), str(fit), str(evaluated)), rows, uncut, measured.own)
        return
    for receiver in table["receiver"].unique(maintain_order=True):
        rows = table.filter(pl.col("receiver") == receiver)
        uncut = measured.uncut.filter(pl.col("receiver") == receiver)
        own = measured.own.filter(pl.col("receiver") == receiver)
        if _fitted_on_own(rows):
            for evaluated, rows_of in _own_evaluations(rows):
                same = uncut.filter(pl.col("eval_data") == evaluated).unique(
                    ["run", "receiver_cut"], maintain_order=True
                )
                yield _group(SENDER, (receiver, OWN, evaluated), rows_of, same, own)
        else:
            for (_, fit, evaluated), rows_of in split(rows):
                yield _group(SENDER, (receiver, fit, evaluated), rows_of, _uncut(uncut, fit, evaluated), own)


def _group(hue: str, names: tuple[str, str, str], rows: pl.DataFrame, uncut: pl.DataFrame, own: pl.DataFrame) -> Group:
    return Group(hue, *names, rows, own if uncut.is_empty() else uncut, uncut.is_empty())


def _uncut(uncut: pl.DataFrame, fit_data: object, eval_data: object) -> pl.DataFrame:
    return uncut.filter(
        pl.col("fit_data").eq_missing(pl.lit(fit_data)), pl.col("eval_data").eq_missing(pl.lit(eval_data))
    )


def _fitted_on_own(rows: pl.DataFrame) -> bool:
    """Whether senders were fitted on different data, each on one: a plan does that only with each one's own."""
    trained = rows.filter(pl.col("floor").ne_missing(NOISE))
    fits = trained.group_by("sender").agg(pl.col("fit_data").n_unique())
    return trained["fit_data"].n_unique() > 1 and fits["fit_data"].max() == 1


def _own_evaluations(rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Each sender on its own data, then all of them on each data set that was asked of all."""
    is_noise = pl.col("floor").eq_missing(NOISE)
    on_own = pl.col("eval_data") == pl.col("fit_data")
    noise, trained = rows.filter(is_noise), rows.filter(~is_noise)
    yield OWN, pl.concat([trained.filter(on_own), noise])
    for evaluated in trained.filter(~on_own)["eval_data"].unique(maintain_order=True):
        yield evaluated, pl.concat([trained.filter(pl.col("eval_data") == evaluated), noise])
