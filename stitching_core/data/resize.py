"""Resize stored images before they are scaled, for networks that need another input size (VGG19: 32x32)."""

from __future__ import annotations

import numpy as np
import torch
from torchvision.transforms.v2 import functional

CHUNK = 2_000  # images at a time: bounds the memory that the copies take


def resize_uint8(images: np.ndarray, size: int | tuple[int, int]) -> np.ndarray:
    """Bilinear with antialiasing, as PIL does it (within one grey level).

    Args:
        images: uint8 (n, c, h, w).
        size: height and width of the result, one number for a square.

    Returns:
        uint8 (n, c, *size); the very same array when its size is right already.
    """
    height, width = (size, size) if isinstance(size, int) else size
    if images.shape[2:] == (height, width):
        return images
    out = np.empty((*images.shape[:2], height, width), dtype=np.uint8)
    for start in range(0, len(images), CHUNK):
        # torch.tensor copies: the images may be read-only, which torch doesn't support
        chunk = torch.tensor(images[start : start + CHUNK])
        out[start : start + CHUNK] = functional.resize(
            chunk, [height, width], functional.InterpolationMode.BILINEAR, antialias=True
        ).numpy()
    return out
