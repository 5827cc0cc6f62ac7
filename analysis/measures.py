"""What a sweep's cells are measured by: accuracy and penalty of classes, or errors of reconstructed images."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stitching_core.errors import InputError
from stitching_core.record import MSE, OK


@dataclass(frozen=True)
class Measure:
    """A column of ``cells`` and how it is read.

    Attributes:
        value: of a stitched network; the column of ``models`` has the same name.
        uncut: of the uncut receiver on the same data.
        against: the two compared.
        more: further columns that are averaged along.
        title: heads a table or labels an axis.
        against_title: heads the column of ``against``.
        percent: ``value`` is a fraction, shown as a percentage.
        lower_is_better: its direction.
        note: what ``against`` means, below a table.
    """

    value: str
    uncut: str
    against: str
    more: tuple[str, ...]
    title: str
    against_title: str
    percent: bool
    lower_is_better: bool
    note: str

    @property
    def ok(self) -> pl.Expr:
        """Whether a cell ended well."""
        return ((pl.col("status") == OK) & pl.col(self.value).is_not_nan()).fill_null(False)

    def text(self, mean: float | None, sd: float | None = None) -> str:
        """``98.61 ±0.20`` from fractions, or an error in four significant digits; a dash without a mean."""
        if mean is None:
            return "-"
        if self.percent:
            rounded = round(100 * mean, 2) + 0.0  # no "-0.00"
            return f"{rounded:.2f}" + ("" if sd is None else f" ±{100 * sd:.2f}")
        return f"{mean:.4f}" + ("" if sd is None else f" ±{sd:.4f}")

    def against_text(self, mean: float | None, sd: float | None = None) -> str:
        """A penalty in percentage points, or a ratio."""
        if self.percent or mean is None:
            return self.text(mean, sd)
        return f"{mean:.2f}" + ("" if sd is None else f" ±{sd:.2f}")

    def short(self, mean: float) -> str:
        """For a cell of a heatmap."""
        return f"{100 * mean:.1f}" if self.percent else f"{mean:.4f}"


ACCURACY = Measure(
    value="accuracy",
    uncut="receiver_accuracy",
    against="penalty",
    more=("worst_class_accuracy",),
    title="accuracy in %",
    against_title="penalty",
    percent=True,
    lower_is_better=False,
    note=(
        "penalty: uncut receiver accuracy minus stitched accuracy on the same data, in percentage points; "
        "negative: the stitched network is better than the receiver."
    ),
)
ERROR = Measure(
    value="reconstruction_error",
    uncut="receiver_error",
    against="error_ratio",
    more=(),
    title="reconstruction error",
    against_title="ratio",
    percent=False,
    lower_is_better=True,
    note=(
        "reconstruction error: mean squared error per pixel and channel, pixels from 0 to 1; lower is better. "
        "ratio: that of the stitched network over that of the uncut receiver on the same data; "
        "below 1: the stitched network is better than the receiver."
    ),
)


def measure_of(cells: pl.LazyFrame | pl.DataFrame) -> Measure:
    """What a sweep's cells are measured by, which follows from their objective.

    Raises:
        InputError: they have objectives of both kinds.
    """
    if "objective" not in cells.lazy().collect_schema():
        return ACCURACY
    found = cells.lazy().select(pl.col("objective").unique().sort()).collect()["objective"].to_list()
    if MSE in found and len(found) > 1:
        raise InputError(
            f"these cells have the objectives {', '.join(map(str, found))}: accuracies and "
            "reconstruction errors have no table in common; a sweep has one objective"
        )
    return ERROR if MSE in found else ACCURACY


def measure_in(table: pl.DataFrame) -> Measure:
    """What a long table shows."""
    return ERROR if ERROR.value in table.columns else ACCURACY
