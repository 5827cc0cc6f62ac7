"""scikit-learn's 1,797 handwritten digits, which need no file: 8x8 pixels, enlarged to 28x28.

Enlarging spreads a grey halo around the strokes. Everywhere else in this package a pixel above 0 is ink, and with the
halo 70% of a picture would be ink (51% of the 8x8 pixels are above 0, 19% of MNIST's): loops fill up and painted
digits become blobs. So what falls below 3/8 of full ink after the interpolation is set to 0; ink keeps its grey value.
That leaves 38% ink. A lower cut closes loops (both loops are open in 43% of the eights, at 1/4 in 27%), a higher one
breaks strokes (98% of the zeros are in one piece, at 1/2 80%).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits as sklearn_digits

from stitching_core.data.source import Source, source_from_arrays
from stitching_core.data.stratified import stratified_indices

SIZE, SMALL, FULL_INK = 28, 8, 16
TEST_ITEMS = 360
INK_NUMERATOR, INK_DENOMINATOR = 3, 8


def load_digits(root: Path | None, download: bool) -> Source:
    """The digits in a fixed stratified split of 1,437 train and 360 test images, the same for every seed.

    Args:
        root: not used, the data are part of scikit-learn.
        download: not used.
    """
    bunch = sklearn_digits()
    images, labels = enlarge(bunch.images.astype(np.int64)), bunch.target.astype(np.int64)
    test = np.zeros(len(labels), dtype=bool)
    test[stratified_indices(labels, TEST_ITEMS, "digits", "test")] = True
    return source_from_arrays("digits", images[~test], labels[~test], images[test], labels[test])


def enlarge(small: np.ndarray) -> np.ndarray:
    """Bilinear (half-pixel centres) in whole numbers, so that every machine gets the same bytes; faint pixels cut to 0.

    Args:
        small: int64 (n, 8, 8), values 0..16.

    Returns:
        uint8 (n, 28, 28): 0, or from 3/8 * 255 to 255.
    """
    weights, unit = _weights()
    total = weights @ small @ weights.T  # in 1/unit**2 of an ink level
    full = FULL_INK * unit**2
    rounded = (2 * 255 * total + full) // (2 * full)
    rounded[total * INK_DENOMINATOR < full * INK_NUMERATOR] = 0
    return rounded.astype(np.uint8)


def _weights() -> tuple[np.ndarray, int]:
    """Interpolation weights (28, 8) as whole multiples of 1/unit: pixel i lies at ((i + 1/2) * 8/28 - 1/2)."""
    unit = 2 * SIZE
    weights = np.zeros((SIZE, SMALL), dtype=np.int64)
    for pixel in range(SIZE):
        position = min(max((2 * pixel + 1) * SMALL - SIZE, 0), (SMALL - 1) * unit)
        left, fraction = divmod(position, unit)
        weights[pixel, left] += unit - fraction
        weights[pixel, min(left + 1, SMALL - 1)] += fraction
    return weights, unit
