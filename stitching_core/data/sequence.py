"""A source of sequences (audio series, texts): labelled train and test items, checked, and a fingerprint."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import numpy as np

from stitching_core.data.read_only import read_only
from stitching_core.errors import InputError


@dataclass(frozen=True, eq=False)
class Sequences:
    """Labelled sequences of one length; both arrays are read-only views of what was given.

    Attributes:
        items: float32 (n, channels, length) of a series, already normalised; or uint8 (n, length) of tokens, 0 is
            padding.
        labels: int64 (n,), class numbers from 0.
    """

    items: np.ndarray
    labels: np.ndarray

    def __post_init__(self) -> None:
        read_only(self, "items", "labels")

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class SequenceSource:
    """A data set of another modality than images.

    Attributes:
        name: the name it is registered under.
        train: the training items.
        test: the test items, of the same shape.
        class_names: one for each class; labels are 0..len(class_names)-1 and both splits have every one.
        tokens: number of different tokens (padding, 0, is none of them); None for series.

    Raises:
        InputError: items or labels of the wrong type, shape or range.
    """

    name: str
    train: Sequences
    test: Sequences
    class_names: tuple[str, ...]
    tokens: int | None = None

    def __post_init__(self) -> None:
        for split, part in (("train", self.train), ("test", self.test)):
            what = f"source {self.name!r}: {split}"
            kind, dims = (np.float32, 3) if self.tokens is None else (np.uint8, 2)
            if part.items.dtype != kind or part.items.ndim != dims or part.items.size == 0:
                expected = "float32 (n, channels, length)" if self.tokens is None else "uint8 (n, length)"
                raise InputError(f"{what} items are {part.items.dtype} {part.items.shape}, expected {expected}")
            if part.items.shape[1:] != self.train.items.shape[1:]:
                raise InputError(f"{what} items are {part.items.shape[1:]} each, those of train are not")
            if self.tokens is not None and part.items.max() > self.tokens:
                raise InputError(f"{what} has the token {part.items.max()}, expected 0 to {self.tokens}")
            if self.tokens is None and not np.isfinite(part.items).all():
                raise InputError(f"{what} items are not all finite")
            if part.labels.dtype != np.int64 or part.labels.shape != (len(part.items),):
                raise InputError(
                    f"{what} labels are {part.labels.dtype} {part.labels.shape}, expected one for each item"
                )
            if part.labels.min() < 0 or part.labels.max() >= self.classes:
                raise InputError(f"{what} labels are not all from 0 to {self.classes - 1}")
            absent = np.flatnonzero(np.bincount(part.labels, minlength=self.classes) == 0)
            if len(absent):
                raise InputError(f"{what} has no item of the class {self.class_names[absent[0]]!r}")

    @property
    def classes(self) -> int:
        return len(self.class_names)

    @property
    def shape(self) -> tuple[int, int]:
        """What a network of this source reads, without the batch: (channels, length), a channel for each token."""
        *channels, length = self.train.items.shape[1:]
        return (channels[0] if self.tokens is None else self.tokens, length)

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over everything that a result can depend on."""
        digest = hashlib.sha256(json.dumps([self.name, self.class_names, self.tokens]).encode())
        for array in (self.train.items, self.train.labels, self.test.items, self.test.labels):
            digest.update(json.dumps([array.dtype.name, array.shape]).encode())
            digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
        return digest.hexdigest()
