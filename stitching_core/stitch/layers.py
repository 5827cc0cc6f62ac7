"""The trainable stitches. To add one: a builder and a line of ``STITCHES``."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from stitching_core.errors import InputError
from stitching_core.stitch.shapes import Shape, match


class NormConvNorm(nn.Module):
    """BatchNorm -> 1x1 convolution with bias -> BatchNorm, the stitch of Smith et al. 2025 (Section 3).

    Into a vector it is BatchNorm1d -> Linear -> BatchNorm1d, the same map at a single position. What has another shape
    than the receiver expects is resampled first, see ``shapes``.

    Args:
        sender: shape of the sender's activation without the batch: (channels, height, width), (channels, length) or
            (features,).
        receiver: shape that the receiver's tail expects, of a map or a vector.

    Raises:
        InputError: the shapes can't match.
    """

    def __init__(self, sender: Shape, receiver: Shape) -> None:
        super().__init__()
        self.resample = match(sender, receiver) or nn.Identity()
        spatial = len(receiver) == 3
        self.norm_in = nn.BatchNorm2d(sender[0]) if spatial else nn.BatchNorm1d(sender[0])
        self.map = nn.Conv2d(sender[0], receiver[0], 1) if spatial else nn.Linear(sender[0], receiver[0])
        self.norm_out = nn.BatchNorm2d(receiver[0]) if spatial else nn.BatchNorm1d(receiver[0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm_out(self.map(self.norm_in(self.resample(x))))


STITCHES: dict[str, Callable[[Shape, Shape], NormConvNorm]] = {"bn-conv1x1-bn": NormConvNorm}


@torch.no_grad()
def _identity(stitch: NormConvNorm) -> None:
    weight = stitch.map.weight
    weight.zero_()
    torch.diagonal(weight.view(weight.shape[0], weight.shape[1])).fill_(1.0)
    if stitch.map.bias is not None:
        stitch.map.bias.zero_()


@torch.no_grad()
def _orthogonal(stitch: NormConvNorm) -> None:
    nn.init.orthogonal_(stitch.map.weight)
    if stitch.map.bias is not None:
        stitch.map.bias.zero_()


# `default` is PyTorch's own init of each layer; the others replace the map's weight and zero its bias.
INITS: dict[str, Callable[[NormConvNorm], None]] = {
    "default": lambda stitch: None,
    "identity": _identity,
    "orthogonal": _orthogonal,
}


def build_stitch(kind: str, init: str, sender: Shape, receiver: Shape, seed: int) -> NormConvNorm:
    """A new stitch on the CPU whose initial weights depend on ``seed`` alone.

    Raises:
        InputError: unknown stitch or init, or shapes that can't match.
    """
    for what, value, known in (("stitch", kind, STITCHES), ("init", init, INITS)):
        if value not in known:
            raise InputError(f"unknown {what} {value!r}; known: {', '.join(known)}")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # the stitch is made on the CPU: leave other devices alone
        stitch = STITCHES[kind](sender, receiver)
        INITS[init](stitch)
    return stitch.to(memory_format=torch.channels_last)
