"""One stitch in training: the stitch itself, its receiver's tail, its optimiser and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from stitching_core import record
from stitching_core.seeding import stream
from stitching_core.spec import Protocol
from stitching_core.stitch.layers import NormConvNorm

OBJECTIVES = {"cross_entropy": F.cross_entropy}
BN_MODES = ("adapt", "frozen")


def is_random(module: nn.Module | None) -> bool:
    """Whether a forward pass in train mode draws random numbers."""
    return module is not None and any(isinstance(part, _DropoutNd) for part in module.modules())


@dataclass
class StitchRun:
    """A stitch between one tap of the front and one tail, with concrete hyperparameters.

    Attributes:
        key: names the cell (and the candidate, in a search); seeds what the tail draws.
        tap: which of the front's activations it reads.
        classes: of the receiver.
        curve: mean training loss of each epoch so far.
        status: ok until the loss stops being finite (diverged) or something raises (failed).
    """

    key: str
    tap: str
    stitch: NormConvNorm
    tail: nn.Module
    protocol: Protocol
    classes: int
    curve: list[float] = field(default_factory=list)
    status: str = record.OK
    reason: str | None = None

    def __post_init__(self) -> None:
        self.parameters = list(self.stitch.parameters())
        self.start = [self.stitch.map.weight.detach().clone(), self._bias().detach().clone()]
        self.optimizer = torch.optim.SGD(
            self.parameters,
            lr=self.protocol.learning_rate,
            momentum=self.protocol.momentum,
            weight_decay=self.protocol.weight_decay,
        )
        self.objective = OBJECTIVES[self.protocol.objective]
        self.draws = is_random(self.tail)
        self.loss = torch.zeros((), device=self.parameters[0].device)
        self.steps = 0

    def _bias(self) -> torch.Tensor:
        assert self.stitch.map.bias is not None
        return self.stitch.map.bias

    def train_mode(self, training: bool) -> None:
        """The stitch always trains; in `adapt` the frozen tail's batch norm and dropout are in train mode with it."""
        self.stitch.train(training)
        self.tail.train(training and self.protocol.bn_mode == "adapt")

    def targets(self, labels: torch.Tensor) -> torch.Tensor:
        """(labels + offset) mod classes."""
        return (labels + self.protocol.label_offset) % self.classes if self.protocol.label_offset else labels

    def step(self, activation: torch.Tensor, labels: torch.Tensor, epoch: int) -> None:
        """One update on one batch. The loss is only summed here: reading it would make a GPU wait."""
        if self.draws:
            torch.manual_seed(stream("tail_dropout", self.key, epoch, self.steps))
        loss = self.objective(self.tail(self.stitch(activation)), self.targets(labels))
        if self.protocol.l1:
            loss = loss + self.protocol.l1 * torch.stack([p.abs().sum() for p in self.parameters]).sum()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.loss += loss.detach()
        self.steps += 1

    def end_epoch(self) -> None:
        """Adds the epoch to the curve and notices a loss that is no longer finite."""
        mean = float(self.loss) / max(self.steps, 1)
        self.loss.zero_()
        self.steps = 0
        self.curve.append(mean)
        if not torch.isfinite(torch.tensor(mean)):
            self.status = record.DIVERGED
            self.reason = f"training loss was {mean} in epoch {len(self.curve)} of {self.protocol.epochs}"

    def fail(self, error: Exception) -> None:
        """Marks the run as failed; the rest of its block goes on."""
        self.status = record.FAILED
        self.reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"

    def movement(self) -> dict[str, float | int]:
        """How far the stitch's map moved from its init: Frobenius norms, and the count of weight entries that moved by
        more than 10% of the largest move."""
        moved = (self.stitch.map.weight.detach() - self.start[0]).abs()
        return {
            "weight_delta": float(moved.double().norm()),
            "bias_delta": float((self._bias().detach() - self.start[1]).double().norm()),
            "weight_moved": int((moved > 0.1 * moved.max()).sum()),
        }
