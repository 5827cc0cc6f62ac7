"""Accuracy and agreement from predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Predictions:
    """What a network says about a test set.

    Attributes:
        predicted: the class of each item, int64 (n,).
        target: the right class of each item, int64 (n,).
        cross_entropy: mean over items, in nats.
    """

    predicted: np.ndarray
    target: np.ndarray
    cross_entropy: float

    @property
    def loss(self) -> float:
        """What training makes small; see also ``Reconstructions``."""
        return self.cross_entropy

    @property
    def accuracy(self) -> float:
        return float(np.mean(self.predicted == self.target))

    @property
    def worst_class_accuracy(self) -> float:
        """Accuracy of the class that does worst: 0 where a stitch has lost a whole class."""
        hits = np.bincount(self.target, weights=self.predicted == self.target)
        counts = np.bincount(self.target)
        return float(np.min(hits[counts > 0] / counts[counts > 0]))

    def agreement(self, other: Predictions, offset: int = 0, classes: int | None = None) -> float:
        """Share of items on which both predict the same class, right or wrong.

        Args:
            other: of the same items, in the same order.
            offset: this network was taught (label + offset) mod classes, the other one the label.
            classes: number of classes; only needed with an offset.
        """
        expected = (other.predicted + offset) % classes if offset and classes else other.predicted
        return float(np.mean(self.predicted == expected))


class Tally:
    """Collects a test set's predictions batch by batch; sums the cross entropy in float64."""

    def __init__(self) -> None:
        self.predicted: list[torch.Tensor] = []
        self.target: list[torch.Tensor] = []
        self.loss = 0.0

    def add(self, logits: torch.Tensor, target: torch.Tensor) -> None:
        """Args: logits (b, classes); target (b,)."""
        self.predicted.append(logits.argmax(1).cpu())
        self.target.append(target.cpu())
        self.loss += float(F.cross_entropy(logits.double(), target, reduction="sum"))

    def predictions(self) -> Predictions:
        target = torch.cat(self.target).numpy()
        return Predictions(torch.cat(self.predicted).numpy(), target, self.loss / len(target))

    result = predictions  # what every kind of tally has
