from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from analysis.paired import paired_difference


def _frame(accuracies: list[float | None], runs: list[int | None], names: list[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {"run": runs, "sender": names, "accuracy": accuracies}, schema_overrides={"accuracy": pl.Float64}
    )


def test_interval_is_that_of_the_paired_t_test() -> None:
    random = np.random.default_rng(3)
    first, second = random.random(12), random.random(12)
    names = [f"s{i}" for i in range(12)]
    a, b = _frame(list(first), [0] * 12, names), _frame(list(second), [0] * 12, names)
    found = paired_difference(a.sample(fraction=1, shuffle=True, seed=1), b, on=["run", "sender"])
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert found.mean == pytest.approx(first.mean() - second.mean())
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert found.n == 12


def test_only_matched_rows_with_values_are_pairs() -> None:
    a = _frame([0.9, 0.8, None, 0.5], [0, 0, 0, None], ["x", "y", "z", "n"])
    b = _frame([0.8, 0.6, 0.1, 0.4], [0, 1, 0, None], ["x", "y", "z", "n"])
    found = paired_difference(a, b, on=["run", "sender"])
    assert (found.mean, found.n) == (pytest.approx(0.1), 2)


def test_runs_as_units_average_within_a_run_first() -> None:
    a = _frame([0.9, 0.7, 0.9], [0, 0, 1], ["x", "y", "x"])
    b = _frame([0.8, 0.5, 0.4], [0, 0, 1], ["x", "y", "x"])
    found = paired_difference(a, b, on=["run", "sender"], unit="run")
    # differences 0.15 (run 0) and 0.5 (run 1): mean 0.325; t(0.975, 1) = 12.7062 times sd / sqrt(2) = 0.175
    assert found.mean == pytest.approx(0.325)
    assert found.high == pytest.approx(0.325 + 12.7062 * 0.175, abs=1e-4)
    assert found.n == 2


def test_too_few_pairs_have_no_interval() -> None:
    one = paired_difference(_frame([0.9], [0], ["x"]), _frame([0.8], [0], ["x"]), on=["run", "sender"])
    assert one.mean == pytest.approx(0.1)
    assert math.isnan(one.low)
    none = paired_difference(_frame([0.9], [0], ["x"]), _frame([0.8], [0], ["y"]), on=["run", "sender"])
    assert math.isnan(none.mean)
    assert none.n == 0


def test_ambiguous_match_is_refused() -> None:
    twice = _frame([0.9, 0.8], [0, 0], ["x", "x"])
    with pytest.raises(ValueError, match="several rows of b have the same run, sender"):
        paired_difference(twice.head(1), twice, on=["run", "sender"])
