"""Bringing a sender's activation to the receiver's spatial size, without anything to learn.

Where both maps have the same height and width this is the identity, as in Smith et al. 2025, who stitch equal cuts
only. For unequal ones (all cuts against all cuts) a larger map is averaged down and a smaller one interpolated up, each
of which a 1x1 convolution commutes with, so that all that is learnt stays in the stitch.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from stitching_core.errors import InputError

Shape = tuple[int, ...]


class Resample(nn.Module):
    """(n, c, h, w) -> (n, c, *size): adaptive average pooling if that is smaller in area, else bilinear."""

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[-2] * x.shape[-1] >= self.size[0] * self.size[1]:
            return F.adaptive_avg_pool2d(x, self.size)
        return F.interpolate(x, size=self.size, mode="bilinear", align_corners=False)


def match(sender: Shape, receiver: Shape) -> nn.Module | None:
    """What has to happen before a stitch from one shape to another; None if nothing.

    Args:
        sender: (channels, height, width) of a map or (features,) of a vector, without the batch.
        receiver: likewise.

    Raises:
        InputError: one is a map and the other a vector, or either is neither.
    """
    if len(sender) == len(receiver) == 3:
        return None if sender[1:] == receiver[1:] else Resample((receiver[1], receiver[2]))
    if len(sender) == len(receiver) == 1:
        return None
    raise InputError(
        f"shapes can't match: {'x'.join(map(str, sender))} into {'x'.join(map(str, receiver))}; "
        "allowed: map into map (channels x height x width), vector into vector"
    )
