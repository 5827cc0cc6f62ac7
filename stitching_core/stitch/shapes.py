"""Bringing a sender's activation to the shape that a receiver's tail expects, without anything to learn.

Where both maps have the same height and width this is the identity, as in Smith et al. 2025, who stitch equal cuts
only. For unequal ones (all cuts against all cuts) a larger map is averaged down and a smaller one interpolated up, each
of which a 1x1 convolution commutes with, so that all that is learnt stays in the stitch.

| from | to a map (C, H, W) | to a vector (C,) |
|---|---|---|
| map (C, h, w) | averaged or bilinear | mean over positions |
| series (C, T) | averaged or linear to H*W positions, then row by row into the map | mean over positions |
| vector (C,) | the same at every position | as it is |

What this does to information: averaging loses what varies within a cell of the smaller grid, a mean over positions
loses where anything was, and nothing is ever gained. A series' time becomes the map's reading order: neighbours in time
are neighbours in a row, and the ends of rows are not, so a receiver's spatial filters see time and its wrapping, no
place. A vector gives a map without any place. Channels are never mixed here: that is the stitch's 1x1 convolution.
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


class Fold(nn.Module):
    """(n, c, t) -> (n, c, *size): to h * w positions as in `Resample`, along time; then time runs along the rows."""

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions = self.size[0] * self.size[1]
        if x.shape[-1] >= positions:
            x = F.adaptive_avg_pool1d(x, positions)
        else:
            x = F.interpolate(x, size=positions, mode="linear", align_corners=False)
        return x.unflatten(-1, self.size)


class Spread(nn.Module):
    """(n, c) -> (n, c, *size): the same vector at every position."""

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, :, None, None].expand(*x.shape, *self.size)


class Average(nn.Module):
    """(n, c, ...) -> (n, c): the mean over all positions."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(2).mean(2)


def match(sender: Shape, receiver: Shape) -> nn.Module | None:
    """What has to happen before a stitch from one shape to another; None if nothing.

    Args:
        sender: (channels, height, width) of a map, (channels, length) of a series or (features,) of a vector, without
            the batch.
        receiver: of a map or a vector.

    Raises:
        InputError: a receiver of another shape, or a sender of none of these.
    """
    if 1 <= len(sender) <= 3 and len(receiver) in (1, 3):
        if len(receiver) == 1:
            return None if len(sender) == 1 else Average()
        size = (receiver[1], receiver[2])
        if len(sender) == 3:
            return None if sender[1:] == size else Resample(size)
        return Fold(size) if len(sender) == 2 else Spread(size)
    raise InputError(
        f"shapes can't match: {'x'.join(map(str, sender))} into {'x'.join(map(str, receiver))}; "
        "allowed: map (channels x height x width), series (channels x length) or vector into map or vector"
    )
