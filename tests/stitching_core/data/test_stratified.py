"""Stratified subsets: hand-counted quotas."""

import numpy as np
import pytest

from stitching_core.data.stratified import class_quotas, stratified_indices


@pytest.mark.parametrize(
    ("counts", "items", "quotas"),
    [
        ([100, 100], 50, [25, 25]),
        ([5, 5, 5], 3, [1, 1, 1]),
        ([5, 5, 5], 4, [2, 1, 1]),  # equal remainders: the first class
        ([1, 1, 98], 10, [1, 1, 8]),  # a rare class keeps one
        ([61, 31, 11], 13, [8, 4, 1]),  # exact 7.70, 3.91, 1.39
        ([3, 4], 7, [3, 4]),
        ([1, 1], 2, [1, 1]),
    ],
)
def test_quotas(counts: list[int], items: int, quotas: list[int]) -> None:
    assert class_quotas(np.array(counts), items).tolist() == quotas


def test_indices_are_a_function_of_their_name() -> None:
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    first = stratified_indices(labels, 100, "a")
    assert np.bincount(labels[first]).tolist() == [60, 30, 10]
    assert (np.diff(first) > 0).all()
    assert (stratified_indices(labels, 100, "a") == first).all()
    other = stratified_indices(labels, 100, "b")
    # two draws of 10% share about 10 of 100
    assert len(np.intersect1d(first, other)) < 30
    # spread over the class, not its first items: the mean of 60 of 0..599 has a standard deviation of 21
    assert abs(first[labels[first] == 0].mean() - 299.5) < 100
