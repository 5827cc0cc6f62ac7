"""Which of a table's data the receivers can't read, and what the uncut rows then say."""

from __future__ import annotations

import polars as pl

from stitching_core.record import NOISE, OK, SHUFFLED

_NAMES = ("eval_data", "receiver_accuracy", "penalty", "sender_kind", "status")


def unread_notes(cells: pl.LazyFrame) -> list[str]:
    """Lines on evaluation data of another modality than the receivers', and on the floor of shuffled labels.

    Args:
        cells: of a sweep.
    """
    its = cells.select(_NAMES).filter(status=OK).collect()
    compared = pl.col("receiver_accuracy").is_not_null() & pl.col("penalty").is_null()
    names = its.filter(compared, pl.col("sender_kind").ne_missing(NOISE))["eval_data"].unique(maintain_order=True)
    notes = []
    if len(names):
        notes.append(
            f"{', '.join(names)}: of another modality, which receivers can't read: the uncut receiver is shown on its "
            "own images of the mapped classes, and there is no penalty: compare with the floors."
        )
    if (its["sender_kind"] == SHUFFLED).any():
        notes.append("shuffled: the stitch was fitted to labels shuffled over the items and measured on the true ones.")
    return notes
