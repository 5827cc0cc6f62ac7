"""Colour as a cue: the class palette, which image gets which colour, and painting digits on a coloured background.

After Smith, Mannering and Marcu 2025, *Functional Alignment Can Mislead: Examining Model Stitching* (ICML 2025).
"""

from __future__ import annotations

import math

import numpy as np

from stitching_core.errors import InputError
from stitching_core.seeding import numpy_generator

# RGB of class 0..9; the two entries with 225 are as published
PALETTE = np.array(
    [
        (255, 0, 0),
        (0, 255, 0),
        (0, 0, 255),
        (225, 225, 0),
        (225, 0, 225),
        (0, 255, 255),
        (255, 128, 0),
        (255, 0, 128),
        (128, 0, 255),
        (128, 128, 128),
    ],
    dtype=np.uint8,
)
PALETTE.setflags(write=False)
INK = 255


def assign_colours(labels: np.ndarray, classes: int, rho: float, split: str, seed: int) -> np.ndarray:
    """A colour class for every image, stratified: exactly the same share of each class, not an i.i.d. draw.

    Per class with n images: shuffle them; the first trunc(n * rho) get the class's own colour; the rest is cut into
    consecutive chunks of ceil(rest / (classes - 1)), and chunk i gets the i-th of the shuffled other colours.

    Args:
        labels: int64 (n,), classes 0..classes-1.
        classes: number of classes, 2 to 10.
        rho: share that gets its own class's colour, 0 to 1.
        split: "train" or "test"; each has a stream of its own.
        seed: the data seed.

    Returns:
        int64 (n,), colour classes 0..classes-1.

    Raises:
        InputError: more classes than colours, or rho outside of [0, 1].
    """
    check_classes(classes)
    if not 0 <= rho <= 1:
        raise InputError(f"rho {rho}: expected a share from 0 to 1")
    generator = numpy_generator("colours", split, seed)
    colours = np.empty(len(labels), dtype=np.int64)
    for label in range(classes):
        members = generator.permutation(np.flatnonzero(labels == label))
        others = generator.permutation(np.delete(np.arange(classes), label))
        own = int(len(members) * rho)
        colours[members[:own]] = label
        rest = len(members) - own
        if rest:
            chunk = math.ceil(rest / len(others))
            colours[members[own:]] = others[np.arange(rest) // chunk]
    return colours


def backgrounds(colours: np.ndarray, noise: float, *parts: str | int) -> np.ndarray:
    """One background colour per image: its class's colour plus one Gaussian triple, fixed for all epochs.

    The triple is clipped to [-1, 1] and scaled by noise * 255; the sum is clamped to 0..255 and truncated.

    Args:
        colours: int64 (n,), colour classes.
        noise: scale of the triple as a fraction of 255, at least 0.
        parts: names the stream that the triples come from.

    Returns:
        uint8 (n, 3), RGB.

    Raises:
        InputError: a noise that is negative or not finite.
    """
    if not (math.isfinite(noise) and noise >= 0):
        raise InputError(f"background_noise {noise}: expected a number of at least 0")
    triples = numpy_generator(*parts).standard_normal((len(colours), 3)).clip(-1, 1)
    return (PALETTE[colours] + triples * (noise * 255)).clip(0, 255).astype(np.uint8)


def paint(images: np.ndarray, background: np.ndarray) -> np.ndarray:
    """White digits (every pixel above 0) on a flat background.

    Args:
        images: uint8 (n, h, w), grey.
        background: uint8 (n, 3), RGB.

    Returns:
        uint8 (n, 3, h, w).
    """
    # ink as a mask of 255s or-ed in: x | 255 is 255 and x | 0 is x, in one pass over the output
    mask = np.where(images > 0, np.uint8(INK), np.uint8(0))
    return mask[:, None] | background[:, :, None, None]


def flat(background: np.ndarray, height: int, width: int) -> np.ndarray:
    """Nothing but the background: uint8 (n, 3, height, width) from uint8 (n, 3)."""
    return np.broadcast_to(background[:, :, None, None], (*background.shape, height, width)).copy()


def check_classes(classes: int) -> None:
    """Refuse more classes than there are colours.

    Raises:
        InputError: more than 10 classes.
    """
    if classes > len(PALETTE):
        raise InputError(f"{classes} classes: colour variants have {len(PALETTE)} colours, expected at most as many")
