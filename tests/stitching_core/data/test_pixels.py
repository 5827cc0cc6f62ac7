"""Mean and standard deviation of pixels against NumPy's, and by hand."""

import numpy as np
import pytest

from stitching_core.data import pixels
from stitching_core.data.pixels import mean_std


def test_against_floating_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixels, "CHUNK", 4)
    images = np.random.default_rng(0).integers(0, 256, (10, 3, 5, 5), dtype=np.uint8)
    assert mean_std(images) == pytest.approx(((images / 255).mean(), (images / 255).std()), rel=1e-12)
    channel = images[:, 1]  # not contiguous
    assert mean_std(channel) == pytest.approx(((channel / 255).mean(), (channel / 255).std()), rel=1e-12)


def test_half_black_half_white() -> None:
    assert mean_std(np.array([[[0, 255]]], dtype=np.uint8)) == (0.5, 0.5)


def test_constant_pixels_have_standard_deviation_one() -> None:
    assert mean_std(np.full((2, 3, 3), 51, dtype=np.uint8)) == (0.2, 1.0)
