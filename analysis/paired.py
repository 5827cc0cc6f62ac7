"""The mean difference between two measurements of the same cells, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class PairedDifference:
    """Mean of a - b in the unit of the value, its 95% interval (nan for fewer than two pairs), and the pairs."""

    mean: float
    low: float
    high: float
    n: int


def paired_difference(
    a: pl.DataFrame, b: pl.DataFrame, on: Sequence[str], value: str = "accuracy", unit: str | None = None
) -> PairedDifference:
    """Mean paired difference ``a - b`` over matched rows, with a 95% interval by Student's t.

    The rows (cells) are the units by default, since an interval over the two or three runs of a typical sweep is
    useless (t = 12.7 for two). Cells of one run share their base models, and cells of one eval data share its test
    items, so they aren't independent and the interval is optimistic: it speaks for these models, not for new ones.

    Args:
        a: rows with the columns of ``on`` and ``value``; rows whose value is null are no pair.
        b: likewise.
        on: columns that match a row of ``a`` to one of ``b``; null matches null.
        value: the column to compare.
        unit: column of ``on`` (such as "run") to average the differences within first; its values are then the units.

    Raises:
        ValueError: ``on`` matches a row to more than one row.
    """
    keys = list(on)
    for name, frame in (("a", a), ("b", b)):
        if frame.select(keys).is_duplicated().any():
            raise ValueError(f"several rows of {name} have the same {', '.join(keys)}")
    left = a.select(*keys, pl.col(value).alias("_a"))
    right = b.select(*keys, pl.col(value).alias("_b"))
    pairs = left.join(right, on=keys, how="inner", nulls_equal=True).with_columns(_d=pl.col("_a") - pl.col("_b"))
    pairs = pairs.drop_nulls("_d")
    if unit is not None:
        pairs = pairs.group_by(unit).agg(pl.col("_d").mean())
    differences = pairs["_d"].to_numpy()
    n = len(differences)
    if n < 2:
        return PairedDifference(float(differences.mean()) if n else math.nan, math.nan, math.nan, n)
    mean = float(differences.mean())
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * differences.std(ddof=1) / math.sqrt(n))
    return PairedDifference(mean, mean - half, mean + half, n)
