"""What training asks of labelled data on a device, whatever they are: images or sequences."""

from __future__ import annotations

from typing import Protocol

import torch


class Items(Protocol):
    """A split of a data set.

    Attributes:
        labels: int64 (n,).
        drop_last: training leaves out a last batch that is not full.
    """

    labels: torch.Tensor

    @property
    def drop_last(self) -> bool: ...

    def __len__(self) -> int: ...

    def subset(self, indices: torch.Tensor) -> Items:
        """Some of the items, as a set of its own."""
        ...

    def batch(self, indices: torch.Tensor) -> torch.Tensor:
        """float32 (b, ...): what a network reads."""
        ...
