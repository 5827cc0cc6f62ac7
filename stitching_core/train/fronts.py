"""What a block's stitches are fed with: one pass through a sender's front, or points of a noise source."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import nn

from stitching_core.data.noise import NoisePoints
from stitching_core.measure.modules import watch
from stitching_core.models.divide import DividedModel
from stitching_core.train.items import Items

Activations = dict[str, torch.Tensor]


class Front(Protocol):
    """Gives the activation at every tap for the same items. A split is ``fit``, ``validation`` or an eval_data."""

    module: nn.Module | None  # the sender's part of the network, if there is one

    def labels(self, split: str) -> torch.Tensor: ...

    def drop_last(self, split: str) -> bool: ...

    def activations(self, split: str, indices: torch.Tensor) -> Activations: ...

    def depth(self, tap: str) -> int:
        """How many watched modules (see ``measure.modules``) come before the tap."""
        ...


class ModelFront:
    """One pass of a batch through the sender taps every cut that the block needs.

    Args:
        sender: the network; its weights are shared, its batch-norm statistics copied.
        cuts: names of the cuts to tap; a tap is known by its cut's name.
        splits: the images of each split, at the sender's input size.
    """

    def __init__(self, sender: DividedModel, cuts: list[str], splits: dict[str, Items]) -> None:
        self.cuts = cuts
        self.module: nn.Module | None = sender.front(cuts)
        self._front = self.module
        self.splits = splits
        self.sender = sender

    def labels(self, split: str) -> torch.Tensor:
        return self.splits[split].labels

    def drop_last(self, split: str) -> bool:
        return self.splits[split].drop_last

    @torch.no_grad()
    def activations(self, split: str, indices: torch.Tensor) -> Activations:
        assert self._front is not None
        return dict(zip(self.cuts, self._front(self.splits[split].batch(indices)), strict=True))

    def depth(self, tap: str) -> int:
        alone = self.sender.front([tap]).eval()
        return len(watch(tap, None, alone, lambda: alone(self.sender.example)))


class NoiseFront:
    """Points in representation space instead of a network: each tap has a source of its own.

    Args:
        splits: for each split, the noise source of each tap and the items of it that belong to the split (None: all).
        device: where the points are needed.
    """

    def __init__(
        self, splits: dict[str, tuple[dict[str, NoisePoints], np.ndarray | None]], device: torch.device
    ) -> None:
        self.module: nn.Module | None = None
        self.splits, self.device = splits, device
        self._labels: dict[str, torch.Tensor] = {}
        for split, (sources, items) in splits.items():
            labels = next(iter(sources.values())).labels
            self._labels[split] = torch.tensor(labels if items is None else labels[items], device=device)

    def labels(self, split: str) -> torch.Tensor:
        return self._labels[split]

    def drop_last(self, split: str) -> bool:
        return True

    def activations(self, split: str, indices: torch.Tensor) -> Activations:
        sources, items = self.splits[split]
        wanted = indices.cpu().numpy() if items is None else items[indices.cpu().numpy()]
        return {tap: torch.from_numpy(source.batch(wanted)).to(self.device) for tap, source in sources.items()}

    def depth(self, tap: str) -> int:
        return 0
