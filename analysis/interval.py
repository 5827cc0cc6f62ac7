"""Where the mean of new runs should fall, given the published runs of the same experiment."""

from __future__ import annotations

import math

from scipy import stats

CONFIDENCE = 0.95


def prediction_interval(mean: float, sd: float, n: int, m: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    r"""Prediction interval of the mean of ``m`` new runs: mean ± t(n - 1) * sd * sqrt(1/m + 1/n).

    For runs that are draws from one normal distribution, published and new. Where ``sd`` is a pooled one it is known
    better than n - 1 degrees of freedom say, and the interval is wider than need be: that side was chosen, since runs
    of other cells are no draws from this one.

    Args:
        mean: of the published runs.
        sd: standard deviation of a run.
        n: published runs, 2 at least.
        m: new runs, 1 at least.
        confidence: share of such means that fall inside.

    Returns:
        Low and high end; not cut off at what is possible (an accuracy of 1).
    """
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * sd * math.sqrt(1 / m + 1 / n)
    return mean - half, mean + half


def binomial_sd(share: float, items: int) -> float:
    """Standard deviation of a share that is counted over independent items."""
    return math.sqrt(share * (1 - share) / items)


def allowed_outside(judged: int, confidence: float = CONFIDENCE) -> int:
    """The largest number of ``judged`` independent intervals that chance alone leaves outside.

    It is the upper 95% quantile of a binomial distribution: were every interval right, more than this many would be
    missed in one comparison of twenty at most.
    """
    return int(stats.binom.ppf(confidence, judged, 1 - confidence)) if judged else 0
