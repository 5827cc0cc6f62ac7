"""How well images are reconstructed, and a few of them as pictures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

PICTURES = 10  # items of a test set that are kept as pictures


@dataclass(frozen=True)
class Reconstructions:
    """What an auto-encoder makes of a test set.

    Attributes:
        error: mean squared error per pixel and channel, of pixels as fractions of 255 (so that errors of networks with
            differently normalised images compare). Outputs beyond black and white count as they are.
        items: indices of the items that are kept as pictures, int64 (k,).
        labels: their labels, int64 (k,).
        inputs: the images that should have come out, uint8 (k, 3, h, w).
        outputs: those that came out, uint8 (k, 3, h, w), rounded, and clipped to 0..255.
    """

    error: float
    items: np.ndarray
    labels: np.ndarray
    inputs: np.ndarray
    outputs: np.ndarray

    @property
    def loss(self) -> float:
        """What training makes small, in units of its own; see also ``Predictions``."""
        return self.error


def pictured(labels: torch.Tensor) -> torch.Tensor:
    """Indices of the items that are kept as pictures: the first of each class, of the first ten classes.

    Args:
        labels: of a whole test set, (n,).

    Returns:
        int64 (k,), in the order of the classes; k is at most ``PICTURES``.
    """
    classes = labels.unique()[:PICTURES]
    return torch.stack([(labels == label).nonzero()[0, 0] for label in classes])


def pixel_errors(output: torch.Tensor, target: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
    """Squared errors of pixels as fractions of 255, from normalised images.

    Args:
        output: (b, 3, h, w), normalised.
        target: likewise; the mean that was subtracted cancels.
        std: what they were divided by, (1, 3, 1, 1).
    """
    return ((output - target) * std).square()


class PixelTally:
    """Collects a test set's reconstructions batch by batch; sums the errors in float64.

    Args:
        labels: of the whole test set, which comes in its own order.
        mean: per channel, that was subtracted from pixels / 255, (1, 3, 1, 1).
        std: that they were divided by, (1, 3, 1, 1).
    """

    def __init__(self, labels: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> None:
        self.items, self.labels = pictured(labels), labels
        self.mean, self.std = mean, std
        self.total = torch.zeros((), dtype=torch.float64, device=labels.device)
        self.pixels = self.seen = 0
        self.kept: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def add(self, output: torch.Tensor, target: torch.Tensor) -> None:
        """Args: output and target (b, 3, h, w), both normalised."""
        self.total += pixel_errors(output.double(), target.double(), self.std.double()).sum()
        self.pixels += target.numel()
        for item in self.items.tolist():
            if self.seen <= item < self.seen + len(target):
                self.kept[item] = (target[item - self.seen], output[item - self.seen])
        self.seen += len(target)

    def result(self) -> Reconstructions:
        """Of all batches so far, which must be the whole test set."""
        pairs = [self.kept[item] for item in self.items.tolist()]
        inputs, outputs = (self._pixels(torch.stack(images)) for images in zip(*pairs, strict=True))
        labels = self.labels[self.items].cpu().numpy()
        return Reconstructions(
            float(self.total) / max(self.pixels, 1), self.items.cpu().numpy(), labels, inputs, outputs
        )

    def _pixels(self, images: torch.Tensor) -> np.ndarray:
        shades = images * self.std + self.mean
        return (shades.nan_to_num() * 255).round().clamp(0, 255).to(torch.uint8).cpu().numpy()
