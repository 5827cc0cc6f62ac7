"""Sequences on the device; tokens become one channel each, batch by batch."""

from __future__ import annotations

import copy

import numpy as np
import torch
import torch.nn.functional as F

from stitching_core.data.sequence import Sequences, SequenceSource


class SequenceTensors:
    """One split of a sequence source, kept on a network's device; the same interface as ``ImageTensors``.

    Attributes:
        items: float32 (n, channels, length), or uint8 (n, length) of tokens.
        labels: int64 (n,).
        drop_last: training leaves out a last batch that is not full; never here.
    """

    drop_last = False

    def __init__(self, source: SequenceSource, data: Sequences, device: torch.device) -> None:
        self.tokens = source.tokens
        self.items = torch.tensor(np.asarray(data.items), device=device)
        self.labels = torch.tensor(data.labels, device=device)

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, indices: torch.Tensor) -> SequenceTensors:
        """Some of the items, as often as they are named, as a set of its own."""
        part = copy.copy(self)
        indices = indices.to(self.labels.device)
        part.items, part.labels = self.items[indices], self.labels[indices]
        return part

    def batch(self, indices: torch.Tensor) -> torch.Tensor:
        """float32 (b, channels, length): a series as it is, a token as a one in its own channel, padding as zeros."""
        items = self.items[indices]
        if self.tokens is None:
            return items
        return F.one_hot(items.long(), self.tokens + 1)[:, :, 1:].transpose(1, 2).float()
