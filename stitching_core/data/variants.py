"""The variants of a source: the same pictures with another cue for the class, as networks are trained on them.

After Smith, Mannering and Marcu 2025, *Functional Alignment Can Mislead: Examining Model Stitching* (ICML 2025), who
call them Digit, Correlated, Colour, Colour-Only, Greyscale-MNIST and Mix. `original` is a user's own images as they
are. Everything is a function of the source, the split and the data seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stitching_core.data.colour import assign_colours, backgrounds, check_classes, flat, paint
from stitching_core.data.pixels import mean_std
from stitching_core.data.source import Images, Source
from stitching_core.errors import InputError
from stitching_core.seeding import numpy_generator

Split = Literal["train", "test"]
Triple = tuple[float, float, float]

HALF: Triple = (0.5, 0.5, 0.5)


@dataclass(frozen=True, eq=False)
class VariantData:
    """One split of a variant.

    Attributes:
        name: the variant.
        images: uint8 (n, 3, h, w), RGB.
        labels: int64 (n,), the class to be predicted.
        mean: per channel, of pixels / 255, to be subtracted.
        std: per channel, of pixels / 255, to divide by.
        drop_last: training drops the last batch when it is short.
    """

    name: str
    images: np.ndarray
    labels: np.ndarray
    mean: Triple
    std: Triple
    drop_last: bool


def digit(source: Source, split: Split, seed: int, noise: float) -> VariantData:
    """White digit on a colour that tells nothing about it; the target is the digit."""
    images, _ = _independent(source, split, seed, noise, "digit")
    return VariantData("digit", images, _part(source, split).labels.copy(), HALF, HALF, drop_last=False)


def colour(source: Source, split: Split, seed: int, noise: float) -> VariantData:
    """The very images of `digit`; the target is the colour."""
    images, colours = _independent(source, split, seed, noise, "colour")
    return VariantData("colour", images, colours, HALF, HALF, drop_last=False)


def correlated(source: Source, split: Split, seed: int, noise: float) -> VariantData:
    """White digit on its own class's colour: both cues tell the class."""
    part = _grey(source, split, "correlated")
    images = paint(part.images, _own_backgrounds(source, split, seed, noise, "correlated"))
    return VariantData("correlated", images, part.labels.copy(), HALF, HALF, drop_last=False)


def colour_only(source: Source, split: Split, seed: int, noise: float) -> VariantData:
    """The class's colour without a digit."""
    part = _grey(source, split, "colour_only")
    background = _own_backgrounds(source, split, seed, noise, "colour_only")
    images = flat(background, *part.images.shape[1:])
    return VariantData("colour_only", images, part.labels.copy(), HALF, HALF, drop_last=False)


def greyscale(source: Source, split: Split, seed: int, noise: float) -> VariantData:
    """The grey image in three equal channels, not binarised, with the source's own mean and standard deviation."""
    part = _grey(source, split, "greyscale")
    mean, std = source.grey_mean, source.grey_std
    return VariantData(
        "greyscale", _three_channels(part.images), part.labels.copy(), (mean,) * 3, (std,) * 3, drop_last=True
    )


def mix(source: Source, split: Split, seed: int, noise: float) -> VariantData:
    """A third each of greyscale, correlated and colour_only, in this order, all normalised alike.

    With third = n // 3: the last n - 2 * third of a greyscale copy, the first third of a correlated copy, the second
    third of a colour_only copy, each copy in an order of its own.
    """
    part = _grey(source, split, "mix")
    n, third = len(part), len(part) // 3
    slices = {
        "greyscale": slice(2 * third, n),
        "correlated": slice(0, third),
        "colour_only": slice(third, 2 * third),
    }
    # only the third that is kept gets painted
    kept = {name: numpy_generator("mix", name, split, seed).permutation(n)[cut] for name, cut in slices.items()}
    in_colour = _own_backgrounds(source, split, seed, noise, "correlated")[kept["correlated"]]
    flat_colour = _own_backgrounds(source, split, seed, noise, "colour_only")[kept["colour_only"]]
    images = np.concatenate(
        [
            _three_channels(part.images[kept["greyscale"]]),
            paint(part.images[kept["correlated"]], in_colour),
            flat(flat_colour, *part.images.shape[1:]),
        ]
    )
    labels = part.labels[np.concatenate([kept[name] for name in slices])]
    return VariantData("mix", images, labels, HALF, HALF, drop_last=False)


def original(source: Source, split: Split, seed: int, noise: float) -> VariantData:
    """The images as they are, grey ones in three equal channels, normalised per channel by the training images."""
    part = _part(source, split)
    if part.images.ndim == 3:
        images, statistics = _three_channels(part.images), [mean_std(source.train.images)] * 3
    else:
        images = part.images.copy()
        statistics = [mean_std(source.train.images[:, channel]) for channel in range(3)]
    (red, green, blue) = statistics
    mean, std = (red[0], green[0], blue[0]), (red[1], green[1], blue[1])
    return VariantData("original", images, part.labels.copy(), mean, std, drop_last=False)


Builder = Callable[[Source, Split, int, float], VariantData]

VARIANTS: dict[str, Builder] = {
    "digit": digit,
    "correlated": correlated,
    "colour": colour,
    "colour_only": colour_only,
    "greyscale": greyscale,
    "mix": mix,
    "original": original,
}


def build_variant(source: Source, variant: str, split: Split, seed: int, background_noise: float = 0.1) -> VariantData:
    """One split of a variant of a source.

    Args:
        source: where the images come from.
        variant: a key of `VARIANTS`.
        split: "train" or "test"; their random streams are disjoint.
        seed: the data seed. The same seed gives `digit` and `colour` the same images.
        background_noise: scale of the Gaussian noise on a background colour, as a fraction of 255.

    Returns:
        New arrays, which the caller may change.

    Raises:
        InputError: an unknown variant or split, a source without images, a variant that needs grey images of a source
            in RGB, more classes than colours, or a background noise below 0.
    """
    if variant not in VARIANTS:
        raise InputError(f"variant {variant!r}: unknown, expected one of {', '.join(VARIANTS)}")
    if split not in ("train", "test"):
        raise InputError(f"split {split!r}: unknown, expected train or test")
    if source.absent is not None:
        raise InputError(f"variant {variant!r}: source {source.name!r} has no images, {source.absent}")
    return VARIANTS[variant](source, split, seed, background_noise)


def _part(source: Source, split: Split) -> Images:
    return source.train if split == "train" else source.test


def _grey(source: Source, split: Split, variant: str) -> Images:
    part = _part(source, split)
    if part.images.ndim != 3:
        raise InputError(
            f"variant {variant!r} needs grey images, source {source.name!r} is in RGB: expected variant original"
        )
    return part


def _independent(source: Source, split: Split, seed: int, noise: float, variant: str) -> tuple[np.ndarray, np.ndarray]:
    """Images and colour classes: the same for `digit` and `colour`; the variant is only named in an error."""
    part = _grey(source, split, variant)
    # a share of 1 / classes in its own class's colour is what makes the two independent: 0.1 for ten, as published
    colours = assign_colours(part.labels, source.classes, 1 / source.classes, split, seed)
    return paint(part.images, backgrounds(colours, noise, "backgrounds", "independent", split, seed)), colours


def _own_backgrounds(source: Source, split: Split, seed: int, noise: float, scene: str) -> np.ndarray:
    check_classes(source.classes)
    return backgrounds(_part(source, split).labels, noise, "backgrounds", scene, split, seed)


def _three_channels(images: np.ndarray) -> np.ndarray:
    """A copy, uint8 (n, 3, h, w), of uint8 (n, h, w)."""
    return np.repeat(images[:, None], 3, axis=1)
