"""Noise: its distribution by formula, and that a sample is the same wherever it is asked for."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from stitching_core.data import noise
from stitching_core.data.noise import NoisePoints
from stitching_core.errors import InputError

POINTS = NoisePoints((4, 3, 2), 10, 0.1, 105, 7, "train", ("resnet18", "layer1"))


def test_labels_are_balanced_and_items_rounded_down() -> None:
    assert len(POINTS) == POINTS.items == 100
    assert POINTS.labels.dtype == np.int64
    assert np.bincount(POINTS.labels).tolist() == [10] * 10


def test_a_sample_is_the_same_in_any_batch_and_process() -> None:
    everything = POINTS.batch(range(100))
    assert everything.shape == (100, 4, 3, 2)
    assert everything.dtype == np.float32
    chosen = np.array([42, 0, 99, 42])
    chosen.setflags(write=False)
    assert (POINTS.batch(chosen) == everything[chosen]).all()
    assert (pickle.loads(pickle.dumps(POINTS)).batch([5]) == everything[5]).all()
    assert pickle.loads(pickle.dumps(POINTS)) == POINTS
    assert POINTS.batch([]).shape == (0, 4, 3, 2)
    # more items change none that are there
    assert (replace(POINTS, items=1000).batch(range(100)) == everything).all()


def test_base_points_computed_on_demand_are_the_kept_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = POINTS.batch(range(30))
    for points in (0, 3):  # none are kept, three of ten are
        monkeypatch.setattr(noise, "_KEPT", noise._KeptPoints())
        monkeypatch.setattr(noise, "BASE_BYTES", points * 4 * 24)
        assert (POINTS.batch(range(30)) == kept).all()
        assert len(noise._KEPT.points) == points
        assert noise._KEPT.bytes == points * 4 * 24


def test_splits_share_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_KEPT", noise._KeptPoints())
    POINTS.batch(range(10))
    replace(POINTS, split="test").batch(range(10))
    assert len(noise._KEPT.points) == 10
    replace(POINTS, base_key=("another",)).batch([0])
    assert len(noise._KEPT.points) == 11
    with pytest.raises(ValueError, match="read-only"):
        POINTS.base_point(0)[:] = 0


def test_without_noise_a_sample_is_its_base_point() -> None:
    points = replace(POINTS, sigma=0.0)
    samples = points.batch(range(20))
    assert (samples[:10] == samples[10:]).all()
    assert (samples[3] == points.base_point(3)).all()
    assert len({bytes(sample) for sample in samples}) == 10


def test_base_points_are_shared_by_the_splits_and_noise_is_not() -> None:
    clean = replace(POINTS, sigma=0.0)
    assert (clean.batch(range(10)) == replace(clean, split="test").batch(range(10))).all()
    for other in (replace(clean, seed=8), replace(clean, base_key=("resnet18", "layer2"))):
        assert (clean.batch(range(10)) != other.batch(range(10))).mean() > 0.99
    wide = NoisePoints((50_000,), 2, 0.01, 4, 7, "train", ("x",))
    train, test = wide.batch(range(4)), replace(wide, split="test").batch(range(4))
    draws = np.concatenate([train, test]) - np.concatenate([replace(wide, sigma=0.0).batch(range(4))] * 2)
    # eight independent streams: correlations of 50,000 pairs have a standard deviation of 0.0045
    assert np.abs(np.corrcoef(draws)[np.triu_indices(8, 1)]).max() < 0.025
    # the same item has the same noise around another cut's base points
    moved = replace(wide, base_key=("y",))
    inside = (np.abs(train - 0.5) < 0.4) & (np.abs(moved.batch(range(4)) - 0.5) < 0.4)
    shift = moved.batch(range(4)) - replace(moved, sigma=0.0).batch(range(4))
    assert np.abs((draws[:4] - shift)[inside]).max() < 1e-6


def test_distribution() -> None:
    points = NoisePoints((200_000,), 2, 0.2, 2, 0, "train", ("x",))
    base, sample = replace(points, sigma=0.0).batch([0])[0].astype(float), points.batch([0])[0].astype(float)
    # uniform on [0, 1): mean 1/2, variance 1/12, the largest gap to the diagonal of order 1 / sqrt(n)
    assert base.min() >= 0
    assert base.max() < 1
    assert base.mean() == pytest.approx(0.5, abs=0.003)
    assert base.var() == pytest.approx(1 / 12, abs=0.001)
    assert np.abs(np.sort(base) - np.arange(200_000) / 200_000).max() < 0.005
    # far from the ends the noise is Gaussian: standard deviation 0.2, 4.55% beyond two of them
    middle = np.abs(base - 0.5) < 0.02
    draws = (sample - base)[middle]
    assert draws.std() == pytest.approx(0.2 * 0.987, rel=0.05)  # 0.987: clamped at 2.5 standard deviations
    assert (np.abs(draws) > 0.4).mean() == pytest.approx(0.0455, abs=0.01)
    # clamped: P(u + sigma * z < 0) over uniform u is sigma / sqrt(2 * pi), at either end
    assert (sample == 0).mean() == pytest.approx(0.2 / math.sqrt(2 * math.pi), abs=0.003)
    assert (sample == 1).mean() == pytest.approx(0.2 / math.sqrt(2 * math.pi), abs=0.003)


def test_large_virtual_sets_cost_nothing() -> None:
    points = NoisePoints((256, 56, 56), 1000, 0.1, 1_200_000, 0, "train", ("resnet50", "layer1"))
    assert points.batch([1_199_999, 0]).shape == (2, 256, 56, 56)


@pytest.mark.parametrize("index", [-1, 100])
def test_index_out_of_range(index: int) -> None:
    with pytest.raises(IndexError, match=r"0\.\.99"):
        POINTS.batch([0, index])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shape": ()}, "noise shape"),
        ({"shape": (4, 0)}, r"noise shape \(4, 0\)"),
        ({"classes": 0}, "noise classes 0"),
        ({"sigma": -0.5}, r"noise sigma -0\.5"),
        ({"sigma": math.nan}, "noise sigma nan"),
        ({"items": 9}, "noise items 9: expected at least one for each of 10 classes"),
        ({"split": "dev"}, "split 'dev': unknown, expected train or test"),
    ],
)
def test_bad_values(change: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        replace(POINTS, **change)
