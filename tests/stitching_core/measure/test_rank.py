"""Ranks of features and weights, against NumPy's covariance and features whose rank is known."""

import numpy as np
import pytest
import torch

from stitching_core.measure.rank import RankMeter, count_above, weight_rank


def features(samples: int, variances: list[float], width: int, seed: int = 0, mean: float = 5.0) -> torch.Tensor:
    """Samples whose covariance has exactly these non-zero eigenvalues: an orthonormal basis in both directions."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(samples, len(variances)))
    scores = np.linalg.qr(scores - scores.mean(0))[0] * np.sqrt(samples - 1)  # centred and of unit covariance
    basis = np.linalg.qr(generator.normal(size=(width, len(variances))))[0]
    return torch.from_numpy(scores * np.sqrt(variances) @ basis.T + mean).float()


def measured(data: torch.Tensor, batch: int = 7, columns: int | None = None) -> tuple[int, float]:
    meter = RankMeter(data[0].numel(), len(data), columns)
    for part in data.split(batch):
        meter.add(part)
    found = meter.result()
    return found.rank, found.normalised


@pytest.mark.parametrize(("samples", "width"), [(200, 30), (40, 90)])  # by the covariance, by the Gram matrix
def test_a_direction_counts_if_its_variance_is_above_a_thousandth_of_the_largest(samples: int, width: int) -> None:
    data = features(samples, [1.0, 0.5, 0.0011, 0.0009, 0.0002], width)
    assert measured(data) == (3, 3 / min(samples, width))


@pytest.mark.parametrize(("samples", "width"), [(300, 20), (25, 60)])
def test_it_agrees_with_numpys_covariance(samples: int, width: int) -> None:
    generator = np.random.default_rng(1)
    data = generator.normal(size=(samples, width)) * np.geomspace(1, 1e-3, width) + 100
    eigenvalues = np.linalg.eigvalsh(np.cov(data.astype(np.float32).astype(np.float64), rowvar=False))
    expected = int((eigenvalues > 1e-3 * eigenvalues.max()).sum())
    assert 3 < expected < min(samples, width)
    assert measured(torch.from_numpy(data).float())[0] == expected


def test_the_covariance_and_the_gram_matrix_give_the_same_rank() -> None:
    data = features(60, [3.0, 2.0, 1.0, 0.1, 0.01], 60)
    wide = torch.cat([data, torch.zeros(60, 1)], 1)  # one more column than samples: by the Gram matrix
    assert RankMeter(60, 60).by_samples is False
    assert RankMeter(61, 60).by_samples is True
    assert measured(data)[0] == measured(wide)[0] == 5


def test_maps_are_flattened_for_each_sample() -> None:
    data = features(50, [1.0, 1.0], 24)
    assert measured(data.view(50, 2, 3, 4))[0] == 2


def test_how_the_samples_come_in_batches_does_not_matter() -> None:
    data = features(80, [1.0, 0.4, 0.002], 16)
    assert measured(data, 1) == measured(data, 80) == measured(data, 33)


@pytest.mark.parametrize("samples", [4, 10])
def test_a_constant_has_no_rank(samples: int) -> None:
    assert measured(torch.full((samples, 6), 3.1)) == (0, 0.0)


def test_a_large_mean_costs_no_digits() -> None:
    assert measured(features(100, [1.0, 0.5], 10, mean=3e3))[0] == 2


def test_a_subset_of_columns_is_a_rank_of_those_columns_over_the_full_width() -> None:
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(400, 100, generator=generator)
    rank, normalised = measured(data, columns=12)
    assert rank == 12
    assert normalised == 12 / 100
    assert measured(data, columns=100) == (100, 1.0)


def test_the_subset_of_columns_depends_on_its_key_alone() -> None:
    chosen = [RankMeter(1000, 10, 5, key).chosen for key in (("a",), ("a",), ("b",))]
    assert torch.equal(chosen[0], chosen[1])
    assert not torch.equal(chosen[0], chosen[2])


def test_features_that_are_not_finite_and_single_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        measured(torch.full((4, 3), float("nan")))
    with pytest.raises(ValueError, match="two samples, got 1"):
        measured(torch.ones(1, 3))


def test_the_memory_of_the_widest_layer_is_within_two_gib() -> None:
    assert RankMeter.bytes_for(12_544, 10_000) <= 2 * 2**30  # ResNet-18's first convolution over MNIST's test set


def test_the_rank_of_a_weight_is_that_of_its_matrix() -> None:
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(8, 3, generator=generator), torch.randn(3, 18, generator=generator)
    assert weight_rank((left @ right).view(8, 2, 3, 3)) == 3
    assert weight_rank(torch.eye(5)) == 5
    assert weight_rank(torch.diag(torch.tensor([1.0, 0.002, 0.0005]))) == 2  # singular values, not variances


def test_none_is_above_where_nothing_varies() -> None:
    assert count_above(torch.tensor([0.0, 0.0])) == 0
    assert count_above(torch.tensor([1e-4, 1.0, 2e-3])) == 2
    assert count_above(torch.tensor([1e-4, 1.0, 2e-3]), noise=1.0) == 0
