"""Resizing against PIL itself."""

import warnings

import numpy as np
import pytest
from PIL import Image

from stitching_core.data import resize
from stitching_core.data.resize import resize_uint8
from stitching_core.data.sources import load_source
from stitching_core.data.variants import build_variant


@pytest.mark.parametrize("size", [32, (20, 45), 9])
def test_within_one_level_of_pil(size, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resize, "CHUNK", 7)
    digits = build_variant(load_source("digits", train_items=10), "digit", "train", 0).images
    random = np.random.default_rng(0).integers(0, 256, (10, 3, 28, 28), dtype=np.uint8)
    images = np.concatenate([digits, random])
    images.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resized = resize_uint8(images, size)
    height, width = (size, size) if isinstance(size, int) else size
    assert resized.shape == (20, 3, height, width)
    assert resized.dtype == np.uint8
    for ours, image in zip(resized, images, strict=True):
        pil = Image.fromarray(image.transpose(1, 2, 0)).resize((width, height), Image.Resampling.BILINEAR)
        assert np.abs(ours.transpose(1, 2, 0).astype(int) - np.asarray(pil)).max() <= 1


def test_the_right_size_is_left_alone() -> None:
    images = np.zeros((2, 3, 28, 28), dtype=np.uint8)
    assert resize_uint8(images, 28) is images
