from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.interval import allowed_outside, binomial_sd, prediction_interval

T4 = 2.776445  # 97.5% quantile of Student's t with 4 degrees of freedom, from a table


def test_hand_computed_intervals() -> None:
    # 2e, digit into itself at layer4: 0.98538 ± 0.00123 over 5 runs; 2.776445 * 0.00123 * sqrt(1 + 1/5) = 0.003741
    assert prediction_interval(0.98538, 0.00123, 5, 1) == pytest.approx((0.981639, 0.989121), abs=1e-6)
    low, high = prediction_interval(0.0, 1.0, 5, 2)
    assert (low, high) == pytest.approx((-T4 * math.sqrt(0.7), T4 * math.sqrt(0.7)), rel=1e-6)


def test_nineteen_new_means_of_twenty_fall_inside() -> None:
    random = np.random.default_rng(7)
    missed = 0
    for _ in range(4000):
        old, new = random.normal(size=5), random.normal(size=2).mean()
        low, high = prediction_interval(old.mean(), old.std(ddof=1), 5, 2)
        missed += not low <= new <= high
    assert missed == pytest.approx(200, abs=3 * math.sqrt(4000 * 0.05 * 0.95))


def test_a_count_over_ten_thousand_items() -> None:
    assert binomial_sd(0.5, 10_000) == 0.005
    assert binomial_sd(1.0, 10_000) == 0.0


@pytest.mark.parametrize("judged", [1, 5, 6, 36, 42])
def test_chance_leaves_no_more_outside_nineteen_times_of_twenty(judged: int) -> None:
    def at_most(k: int) -> float:
        return sum(math.comb(judged, i) * 0.05**i * 0.95 ** (judged - i) for i in range(k + 1))

    allowed = allowed_outside(judged)
    assert at_most(allowed) >= 0.95 - 1e-12
    assert allowed == 0 or at_most(allowed - 1) < 0.95


def test_nothing_judged_allows_nothing_outside() -> None:
    assert allowed_outside(0) == 0
    assert allowed_outside(42) == 5
