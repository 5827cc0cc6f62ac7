"""Images on the device as uint8, normalised batch by batch: no per-image work, no loader processes."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch

from stitching_core.data.resize import resize_uint8
from stitching_core.data.variants import Triple, VariantData
from stitching_core.seeding import Part, torch_generator
from stitching_core.train.items import Items

EVAL_BATCH = 500  # fixed, so that an evaluation's kernels see the same shapes in every block


class ImageTensors:
    """One split of one data variant, resized to a network's input and kept on its device.

    Attributes:
        images: uint8 (n, 3, size, size).
        labels: int64 (n,).
        drop_last: training leaves out a last batch that is not full.
    """

    def __init__(self, data: VariantData, size: int, device: torch.device) -> None:
        images = resize_uint8(data.images, size)
        # torch warns about arrays that it may not write to (those of an object store); nothing here writes to them
        self.images = torch.tensor(images, device=device).contiguous(memory_format=torch.channels_last)
        self.labels = torch.tensor(data.labels, device=device)
        self.mean = torch.tensor(data.mean, device=device).view(1, 3, 1, 1)
        self.std = torch.tensor(data.std, device=device).view(1, 3, 1, 1)
        self.drop_last = data.drop_last

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, indices: torch.Tensor) -> ImageTensors:
        """Some of the items, as a set of its own."""
        part = copy.copy(self)
        indices = indices.to(self.labels.device)
        part.images, part.labels = self.images[indices], self.labels[indices]
        return part

    def in_units(self, mean: Triple, std: Triple) -> ImageTensors:
        """The same images, to be normalised by another mean and standard deviation."""
        other = copy.copy(self)
        other.mean, other.std = (
            torch.tensor(values, device=self.labels.device).view(1, 3, 1, 1) for values in (mean, std)
        )
        return other

    def batch(self, indices: torch.Tensor) -> torch.Tensor:
        """float32 (b, 3, size, size): scaled to [0, 1], then normalised per channel."""
        return self.images[indices].float().div_(255).sub_(self.mean).div_(self.std)


def batch_order(items: int, batch_size: int, drop_last: bool, *key: Part) -> Iterator[torch.Tensor]:
    """The index batches of one epoch: a permutation that depends on the key alone.

    A last batch of a single item is dropped in any case: batch statistics of one value per channel do not exist.
    """
    order = torch.randperm(items, generator=torch_generator("batch_order", *key))
    for indices in order.split(batch_size):
        if len(indices) == batch_size or not (drop_last or len(indices) == 1):
            yield indices


def eval_batches(items: int) -> Iterator[torch.Tensor]:
    """All items in their own order."""
    yield from torch.arange(items).split(EVAL_BATCH)


def as_images(items: Items) -> ImageTensors:
    """The same items where they can only be images: an auto-encoder reads nothing else.

    Raises:
        TypeError: they are sequences.
    """
    if not isinstance(items, ImageTensors):
        raise TypeError(f"expected images, got {type(items).__name__}")
    return items
