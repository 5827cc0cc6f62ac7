"""Measures against examples that were counted by hand."""

import math

import numpy as np
import pytest
import torch

from stitching_core.measure.accuracy import Predictions, Tally


def predictions(predicted: list[int], target: list[int]) -> Predictions:
    return Predictions(np.array(predicted), np.array(target), 0.0)


def test_by_hand() -> None:
    #                          hit   hit   miss  hit   miss  miss
    found = predictions([0, 0, 1, 2, 0, 1], [0, 0, 0, 2, 2, 2])
    assert found.accuracy == pytest.approx(3 / 6)
    assert found.worst_class_accuracy == pytest.approx(1 / 3)  # class 2; class 0 has 2/3, class 1 is not in the set
    assert found.agreement(predictions([0, 1, 1, 0, 0, 0], [0] * 6)) == pytest.approx(3 / 6)
    assert found.agreement(found) == 1


def test_a_lost_class_shows_in_the_worst_class_only() -> None:
    target = [label for label in range(10) for _ in range(10)]
    found = predictions([8 if label == 9 else label for label in target], target)
    assert found.accuracy == pytest.approx(0.9)
    assert found.worst_class_accuracy == 0


@pytest.mark.parametrize("sizes", [[7], [3, 4], [1, 1, 5]])
def test_cross_entropy_is_the_mean_over_items_in_any_batches(sizes: list[int]) -> None:
    generator = torch.Generator().manual_seed(0)
    logits, target = torch.randn(7, 3, generator=generator) * 4, torch.tensor([0, 1, 2, 2, 1, 0, 0])
    tally = Tally()
    for part, labels in zip(logits.split(sizes), target.split(sizes), strict=True):
        tally.add(part, labels)
    found = tally.predictions()
    by_hand = 0.0
    for row, label in zip(logits.tolist(), target.tolist(), strict=True):
        by_hand += math.log(sum(math.exp(value) for value in row)) - row[label]
    assert found.cross_entropy == pytest.approx(by_hand / 7, rel=1e-9)
    assert found.predicted.tolist() == [row.index(max(row)) for row in logits.tolist()]
    assert found.target.tolist() == target.tolist()
    assert found.predicted.dtype == found.target.dtype == np.int64


def test_equal_logits_cost_the_logarithm_of_the_classes() -> None:
    tally = Tally()
    tally.add(torch.zeros(5, 10), torch.arange(5))
    assert tally.predictions().cross_entropy == pytest.approx(math.log(10), abs=1e-12)
