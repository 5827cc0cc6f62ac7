"""One stitch in training: the stitch itself, its receiver's tail, its optimiser and what became of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from stitching_core import record
from stitching_core.measure.accuracy import Tally
from stitching_core.measure.reconstruction import PixelTally
from stitching_core.seeding import reseed
from stitching_core.spec import Protocol
from stitching_core.stitch.layers import NormConvNorm
from stitching_core.train.images import ImageTensors
from stitching_core.train.reconstruct import tally_of

OBJECTIVES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    record.CROSS_ENTROPY: F.cross_entropy,
    record.MSE: F.mse_loss,
}
BN_MODES = ("adapt", "frozen")


@dataclass
class StitchRun:
    """A stitch between one tap of the front and one tail, with concrete hyperparameters.

    Attributes:
        key: names the cell (and the candidate, in a search).
        tap: which of the front's activations it reads.
        classes: of the receiver.
        curve: mean training loss of each epoch so far.
        status: ok until something stops being finite (diverged) or raises (failed).
        seed: of what the tail draws at random (dropout); the same for all candidates of a cell.
        images: by split, what the tail is to reconstruct, in the receiver's units; None for labels.
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
    seed: int = 0
    images: dict[str, ImageTensors] | None = None

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
        self.loss = torch.zeros((), device=self.parameters[0].device)
        self.steps = 0

    def _bias(self) -> torch.Tensor:
        assert self.stitch.map.bias is not None
        return self.stitch.map.bias

    def train_mode(self, training: bool) -> None:
        """The stitch always trains; in `adapt` the frozen tail's batch norm and dropout are in train mode with it."""
        self.stitch.train(training)
        self.tail.train(training and self.protocol.bn_mode == "adapt")

    def truth(self, split: str, indices: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """What items of a split should lead to: labels (b,), or images (b, 3, h, w) as the receiver sees them."""
        return labels if self.images is None else self.images[split].batch(indices)

    def tally(self, split: str) -> Tally | PixelTally:
        """An empty tally of a split's outputs."""
        return Tally() if self.images is None else tally_of(self.images[split])

    def targets(self, labels: torch.Tensor) -> torch.Tensor:
        """(labels + offset) mod classes; images stay as they are."""
        return (labels + self.protocol.label_offset) % self.classes if self.protocol.label_offset else labels

    def step(self, activation: torch.Tensor, labels: torch.Tensor, epoch: int) -> None:
        """One update on one batch. The loss is only summed here: reading it would make a GPU wait."""
        # always: what draws (dropout, drop path, a function of the forward pass) can't be told from the modules
        reseed(self.loss.device, "tail_dropout", self.seed, epoch, self.steps)
        loss = self.objective(self.tail(self.stitch(activation)), self.targets(labels))
        if self.protocol.l1:
            loss = loss + self.protocol.l1 * torch.stack([p.abs().sum() for p in self.parameters]).sum()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.loss += loss.detach()
        self.steps += 1

    def end_epoch(self) -> None:
        """Adds the epoch to the curve and notices a loss or a stitch that is no longer finite."""
        if self.steps == 0:
            self.fail(ValueError(f"the fit data are fewer than one batch of {self.protocol.batch_size}"))
            return
        mean = float(self.loss) / self.steps
        self.loss.zero_()
        self.steps = 0
        self.curve.append(mean)
        where = f"epoch {len(self.curve)} of {self.protocol.epochs}"
        if not math.isfinite(mean):
            self.diverge(f"training loss was {mean} in {where}")
        elif not self._finite():
            self.diverge(f"weights or batch-norm statistics were no longer finite after {where}")

    def _finite(self) -> bool:
        """The loss shows less: it was taken before the last step, and batch norm divides by infinite variances."""
        statistics = [b for n, b in self.tail.named_buffers() if n.endswith(("running_mean", "running_var"))]
        tensors = [*self.parameters, *self.stitch.buffers(), *statistics]
        return bool(torch.stack([tensor.isfinite().all() for tensor in tensors]).all())

    def diverge(self, reason: str) -> None:
        """Marks the run as diverged; the rest of its block goes on."""
        self.status, self.reason = record.DIVERGED, reason

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
