"""Mean and standard deviation of stored pixels, exact and without a floating-point copy of the images."""

from __future__ import annotations

import math

import numpy as np

CHUNK = 1_000  # images at a time: a histogram of 47 million pixels at once would need 380 MB


def mean_std(images: np.ndarray) -> tuple[float, float]:
    """Mean and population standard deviation of the pixels, as fractions of 255.

    Args:
        images: uint8, any shape with the images along the first axis.

    Returns:
        The mean and the standard deviation, both in [0, 1]. Pixels that are all the same get the standard deviation 1,
        since a normalisation divides by it.
    """
    counts = np.zeros(256, dtype=np.int64)
    for start in range(0, len(images), CHUNK):
        counts += np.bincount(images[start : start + CHUNK].reshape(-1), minlength=256)
    # whole numbers until the end, so that every machine gets the same last bit
    n = int(counts.sum())
    total = sum(level * int(count) for level, count in enumerate(counts))
    squares = sum(level**2 * int(count) for level, count in enumerate(counts))
    mean = total / (n * 255)
    variance = (n * squares - total**2) / (n * 255) ** 2
    return mean, math.sqrt(variance) if variance > 0 else 1.0
