"""Colours: counts by hand, and a painter that goes image by image."""

import numpy as np
import pytest

from stitching_core.data.colour import PALETTE, assign_colours, backgrounds, flat, paint
from stitching_core.errors import InputError


def test_palette() -> None:
    assert PALETTE.shape == (10, 3)
    assert PALETTE[3].tolist() == [225, 225, 0]
    assert PALETTE[4].tolist() == [225, 0, 225]
    assert PALETTE[9].tolist() == [128, 128, 128]
    assert len({tuple(colour) for colour in PALETTE.tolist()}) == 10


@pytest.mark.parametrize(
    ("n", "own", "others"),
    [
        # 100 images: 10 own, 90 left in 9 chunks of 10
        (100, 10, [10] * 9),
        # 95: trunc(9.5) = 9 own, 86 left, chunks of ceil(86 / 9) = 10: eight of 10, one of 6
        (95, 9, [10] * 8 + [6]),
        # 5: none own, chunks of 1: five colours once, four never
        (5, 0, [1] * 5 + [0] * 4),
        # 22: 2 own, 20 left, chunks of 3: six of 3 and one of 2, two colours never
        (22, 2, [3] * 6 + [2] + [0] * 2),
    ],
)
def test_counts_per_class_are_exact(n: int, own: int, others: list[int]) -> None:
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), n))
    colours = assign_colours(labels, 10, 0.1, "train", 0)
    for label in range(10):
        counts = np.bincount(colours[labels == label], minlength=10)
        assert counts[label] == own
        assert sorted(np.delete(counts, label), reverse=True) == others


def test_full_and_no_correlation() -> None:
    labels = np.arange(300) % 3
    assert (assign_colours(labels, 3, 1.0, "train", 0) == labels).all()
    assert (assign_colours(labels, 3, 0.0, "train", 0) != labels).all()


def test_assignment_is_shuffled_and_follows_seed_and_split() -> None:
    labels = np.zeros(1000, dtype=np.int64)
    colours = assign_colours(labels, 10, 0.1, "train", 0)
    own = np.flatnonzero(colours == 0)
    # not the first hundred: the mean of 100 of 0..999 has a standard deviation of 27
    assert abs(own.mean() - 499.5) < 130
    assert (assign_colours(labels, 10, 0.1, "train", 0) == colours).all()
    for split, seed in (("test", 0), ("train", 1)):
        same = (assign_colours(labels, 10, 0.1, split, seed) == colours).mean()
        assert same < 0.2


def test_more_classes_than_colours() -> None:
    with pytest.raises(InputError, match=r"11 classes: .* 10 colours"):
        assign_colours(np.arange(11), 11, 0.1, "train", 0)


@pytest.mark.parametrize("rho", [-0.1, 1.5, float("nan")])
def test_bad_rho(rho: float) -> None:
    with pytest.raises(InputError, match=f"rho {rho}"):
        assign_colours(np.arange(2), 2, rho, "train", 0)


def test_backgrounds_without_noise_are_the_palette() -> None:
    assert (backgrounds(np.arange(10), 0.0, "here") == PALETTE).all()


def test_background_noise_is_a_clipped_gaussian() -> None:
    n = 100_000
    grey = backgrounds(np.full(n, 9), 0.1, "here").astype(float)
    # 128 + 25.5 * clip(N(0, 1), -1, 1), truncated: from 102 to 153
    assert grey.min() == 102
    assert grey.max() == 153
    # P(N > 1) = 0.158655 sits on the upper end: 153.5 truncated, with P(152.x..153.5) for a triple's channel above
    # (153 - 128) / 25.5 = 0.98039, P = 0.163447
    for channel in range(3):
        assert (grey[:, channel] == 153).mean() == pytest.approx(0.163447, abs=0.005)
    # the variance of a Gaussian clipped to [-1, 1] is 0.516058; truncation adds 1/12 and shifts the mean by -1/2 where
    # the value is not on an end
    assert grey.var() == pytest.approx(0.516058 * 25.5**2, rel=0.02)
    assert grey.mean() == pytest.approx(127.5, abs=0.3)
    # the channels are independent of each other
    assert np.abs(np.corrcoef(grey.T)[np.triu_indices(3, 1)]).max() < 0.02
    # red: its 255 is clamped, its 0s likewise
    red = backgrounds(np.zeros(n, dtype=np.int64), 0.1, "here")
    assert (red[:, 0] == 255).mean() == pytest.approx(0.5, abs=0.01)
    assert red[:, 1].min() == 0


@pytest.mark.parametrize("noise", [-0.1, float("nan"), float("inf")])
def test_bad_noise(noise: float) -> None:
    with pytest.raises(InputError, match=f"background_noise {noise}"):
        backgrounds(np.arange(3), noise, "here")


def test_paint_against_a_slow_painter() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 3, (7, 4, 5), dtype=np.uint8)
    background = rng.integers(0, 256, (7, 3), dtype=np.uint8)
    images.setflags(write=False)
    painted = paint(images, background)
    assert painted.shape == (7, 3, 4, 5)
    assert painted.dtype == np.uint8
    for i in range(7):
        for y in range(4):
            for x in range(5):
                expected = [255, 255, 255] if images[i, y, x] > 0 else background[i].tolist()
                assert painted[i, :, y, x].tolist() == expected


def test_flat() -> None:
    background = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.uint8)
    images = flat(background, 2, 3)
    assert images.shape == (2, 3, 2, 3)
    assert (images[1, 2] == 6).all()
    images[0, 0, 0, 0] = 9  # its own memory
    assert background[0, 0] == 1
