"""A source: labelled train and test images that have been checked, with a fingerprint of their content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import numpy as np

from stitching_core.data.pixels import mean_std
from stitching_core.data.read_only import read_only
from stitching_core.errors import InputError


@dataclass(frozen=True, eq=False)
class Images:
    """Labelled images; both arrays are read-only views of what was given.

    Attributes:
        images: uint8, (n, h, w) grey or (n, 3, h, w) RGB.
        labels: int64 (n,), class numbers from 0.
    """

    images: np.ndarray
    labels: np.ndarray

    def __post_init__(self) -> None:
        read_only(self, "images", "labels")

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Source:
    """A data set as it was published, before any colouring.

    Attributes:
        name: the name it is registered under.
        train: the training images.
        test: the test images, of the same height, width and number of channels.
        classes: number of classes; labels are 0..classes-1 and the training images have every one.
        grey_mean: mean of the training pixels as a fraction of 255 (over all channels), for the variant ``greyscale``.
        grey_std: their standard deviation, likewise.
        fingerprint: SHA-256 of the content, 64 hex digits.
        absent: why there are no images, None where there are. Such a source still says how many classes there are:
            noise can be stitched into its networks, and nothing else of it can be asked for.

    Raises:
        InputError: the images or labels have the wrong type, shape or range.
    """

    name: str
    train: Images
    test: Images
    classes: int
    grey_mean: float
    grey_std: float
    fingerprint: str
    absent: str | None = None

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise InputError(f"source {self.name!r}: labels of {self.classes} class only, expected at least 2")
        if self.absent is not None:
            return
        for split, part in (("train", self.train), ("test", self.test)):
            _check(f"source {self.name!r}: {split}", part, self.classes)
        train, test = self.train.images.shape[1:], self.test.images.shape[1:]
        if train != test:
            raise InputError(f"source {self.name!r}: test images are {test} each, expected {train} as in training")
        absent = np.flatnonzero(np.bincount(self.train.labels, minlength=self.classes) == 0)
        if len(absent):
            raise InputError(
                f"source {self.name!r}: no training image has the label {absent[0]}, "
                f"expected every class from 0 to {self.classes - 1}"
            )
        if not (0 <= self.grey_mean <= 1 and 0 < self.grey_std <= 1):
            raise InputError(
                f"source {self.name!r}: grey_mean {self.grey_mean} and grey_std {self.grey_std}, "
                "expected fractions of 255: a mean in [0, 1] and a standard deviation in (0, 1]"
            )


def source_from_arrays(
    name: str,
    train_images: np.ndarray,
    train_labels: np.ndarray,
    test_images: np.ndarray,
    test_labels: np.ndarray,
    grey_mean: float | None = None,
    grey_std: float | None = None,
) -> Source:
    """A checked source from a user's own arrays. The number of classes is the largest training label plus 1.

    Registering one takes three lines, in any module that is imported before the source is loaded::

        def birds(root: Path | None, download: bool) -> Source:
            arrays = np.load(root)
            return source_from_arrays("birds", arrays["x"], arrays["y"], arrays["test_x"], arrays["test_y"])
        SOURCES["birds"] = birds

    Args:
        name: the name it is registered under.
        train_images: uint8, (n, h, w) grey or (n, 3, h, w) RGB. Not copied.
        train_labels: any integer type, (n,).
        test_images: as the training images.
        test_labels: any integer type, (m,).
        grey_mean: mean of the pixels as a fraction of 255; computed from the training images when not given.
        grey_std: their standard deviation, likewise.

    Raises:
        InputError: the images or labels have the wrong type, shape or range.
    """
    train = Images(train_images, _as_int64(train_labels))
    test = Images(test_images, _as_int64(test_labels))
    for split, part in (("train", train), ("test", test)):
        _check(f"source {name!r}: {split}", part, None)
    if grey_mean is None or grey_std is None:
        mean, std = mean_std(train.images)
        grey_mean = mean if grey_mean is None else grey_mean
        grey_std = std if grey_std is None else grey_std
    classes = int(train.labels.max()) + 1
    digest = fingerprint(name, train, test, classes, grey_mean, grey_std)
    return Source(name, train, test, classes, grey_mean, grey_std, digest)


def source_without_images(name: str, classes: int, size: int, absent: str) -> Source:
    """A source of which only the classes and the size of its RGB images are at hand.

    Args:
        name: the name it is registered under.
        classes: number of classes.
        size: height and width.
        absent: why it has no images; ends the messages of what asks for them.
    """
    none = Images(np.zeros((0, 3, size, size), np.uint8), np.zeros(0, np.int64))
    return Source(name, none, none, classes, 0.5, 0.5, fingerprint(name, none, none, classes, 0.5, 0.5), absent)


def fingerprint(name: str, train: Images, test: Images, classes: int, grey_mean: float, grey_std: float) -> str:
    """SHA-256 (hex) over everything that a result can depend on: name, classes, normalisation, and all arrays."""
    digest = hashlib.sha256(json.dumps([name, classes, float(grey_mean), float(grey_std)]).encode())
    for array in (train.images, train.labels, test.images, test.labels):
        little_endian = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(json.dumps([array.dtype.name, array.shape]).encode())
        digest.update(little_endian.data)
    return digest.hexdigest()


def _as_int64(labels: np.ndarray) -> np.ndarray:
    """Labels of any integer type as int64; others as they are, for the check to refuse."""
    labels = np.asarray(labels)
    return labels.astype(np.int64, copy=False) if np.issubdtype(labels.dtype, np.integer) else labels


def _check(what: str, part: Images, classes: int | None) -> None:
    images, labels = part.images, part.labels
    grey, colour = images.ndim == 3, images.ndim == 4 and images.shape[1] == 3
    if images.dtype != np.uint8 or not (grey or colour) or images.size == 0:
        raise InputError(
            f"{what} images are {images.dtype} {images.shape}, expected uint8 (n, h, w) grey or (n, 3, h, w) RGB"
        )
    if labels.dtype != np.int64 or labels.shape != (len(images),):
        raise InputError(f"{what} labels are {labels.dtype} {labels.shape}, expected integers ({len(images)},)")
    if labels.min() < 0:
        raise InputError(f"{what} label {labels.min()}, expected class numbers from 0")
    if classes is not None and labels.max() >= classes:
        raise InputError(f"{what} label {labels.max()}, expected class numbers from 0 to {classes - 1}")
