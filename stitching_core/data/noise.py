"""Clustered noise in representation space, as a data set that is never stored.

After Smith, Mannering and Marcu 2025, *Functional Alignment Can Mislead: Examining Model Stitching* (ICML 2025): one
point per class, and samples around it, are enough for a stitch to reach high accuracy. Stored, the training samples of
VGG19's first cut would take 15 GB; here each one is computed when asked for, and is the same in every epoch. It costs
about 0.05 ms per sample of 64x7x7, nearly all of it the Gaussian numbers themselves.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stitching_core.errors import InputError
from stitching_core.seeding import Part, stream

BASE_BYTES = 256 * 2**20  # of base points that a process keeps, over all sources; what is over is computed when needed


@dataclass(frozen=True)
class NoisePoints:
    """Samples base[class] + sigma * N(0, 1), clamped to [0, 1]; the base points are i.i.d. uniform in [0, 1).

    Item i belongs to class i % classes. Its noise is a function of (seed, split, i), whatever the batch, the order or
    the process: the generator counts, and item i owns 2**192 counts of its own. The base points depend on the seed and
    the base key, not on the split, so train and test share them.

    Attributes:
        shape: of a sample, e.g. (64, 7, 7): the output shape of the cut.
        classes: number of classes.
        sigma: standard deviation of the noise, at least 0.
        items: number of samples, rounded down to a multiple of the classes.
        seed: the data seed.
        split: "train" or "test"; their noise comes from different streams.
        base_key: what the base points are for, e.g. (receiver, cut).

    Raises:
        InputError: a value out of its range.
    """

    shape: tuple[int, ...]
    classes: int
    sigma: float
    items: int
    seed: int
    split: str
    base_key: tuple[Part, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        object.__setattr__(self, "base_key", tuple(self.base_key))
        if not self.shape or min(self.shape) < 1:
            raise InputError(f"noise shape {self.shape}: expected sizes of at least 1")
        if self.classes < 1:
            raise InputError(f"noise classes {self.classes}: expected at least 1")
        if not (math.isfinite(self.sigma) and self.sigma >= 0):
            raise InputError(f"noise sigma {self.sigma}: expected a number of at least 0")
        if self.split not in ("train", "test"):
            raise InputError(f"split {self.split!r}: unknown, expected train or test")
        if self.items < self.classes:
            raise InputError(f"noise items {self.items}: expected at least one for each of {self.classes} classes")
        object.__setattr__(self, "items", self.items - self.items % self.classes)

    @property
    def labels(self) -> np.ndarray:
        """int64 (items,)."""
        return np.arange(self.items, dtype=np.int64) % self.classes

    def __len__(self) -> int:
        return self.items

    def batch(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """The samples with these indices, in this order.

        Args:
            indices: whole numbers from 0 to items - 1, any number of them, repeated or not.

        Returns:
            float32 (len(indices), *shape), values in [0, 1].

        Raises:
            IndexError: an index outside of 0..items-1.
        """
        chosen = [int(index) for index in indices]
        if chosen and not (min(chosen) >= 0 and max(chosen) < self.items):
            raise IndexError(f"noise index outside of 0..{self.items - 1}")
        out = np.empty((len(chosen), *self.shape), dtype=np.float32)
        counter = _Counter(self._noise_stream)
        sigma = np.float32(self.sigma)
        for sample, index in zip(out, chosen, strict=True):  # a sample at a time stays in the processor's cache
            counter.at(index).standard_normal(out=sample, dtype=np.float32)
            sample *= sigma
            sample += self.base_point(index % self.classes)
            np.clip(sample, 0, 1, out=sample)
        return out

    def base_point(self, label: int) -> np.ndarray:
        """float32 of the given shape, uniform in [0, 1), not to be written to: the centre of a class."""
        return _KEPT.get(self._base_stream, label, self.shape)

    @cached_property
    def _noise_stream(self) -> int:
        return stream("noise", self.split, self.seed)

    @cached_property
    def _base_stream(self) -> int:
        return stream("noise_base", self.seed, *self.base_key)

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.shape, self.classes, self.sigma, self.items, self.seed, self.split, self.base_key)
        return NoisePoints, fields


class _Counter:
    """A Philox generator that is set to the start of item i's numbers: counter (0, 0, 0, i), lowest word first."""

    def __init__(self, key: int) -> None:
        self._bits = np.random.Philox(key=key)
        self._generator = np.random.Generator(self._bits)
        self._state: Any = self._bits.state

    def at(self, index: int) -> np.random.Generator:
        self._state["state"]["counter"][3] = index
        self._bits.state = self._state  # also empties the buffers; setting it is cheaper than a new generator
        return self._generator


class _KeptPoints:
    """The base points used last, of all sources of this process (train and test share theirs), in ``BASE_BYTES``.

    1,000 base points of ResNet-50's first cuts are 3.2 GB, and a block may have several cuts: what is not kept is
    computed again, which takes about half of the time of the sample's own noise.
    """

    def __init__(self) -> None:
        self.points: OrderedDict[tuple[int, int, tuple[int, ...]], np.ndarray] = OrderedDict()
        self.bytes = 0

    def get(self, key: int, label: int, shape: tuple[int, ...]) -> np.ndarray:
        point = self.points.get((key, label, shape))
        if point is None:
            point = _Counter(key).at(label).random(shape, dtype=np.float32)
            point.setflags(write=False)
            if point.nbytes > BASE_BYTES:
                return point
            self.points[key, label, shape] = point
            self.bytes += point.nbytes
        self.points.move_to_end((key, label, shape))
        while self.bytes > BASE_BYTES:
            self.bytes -= self.points.popitem(last=False)[1].nbytes
        return point


_KEPT = _KeptPoints()
