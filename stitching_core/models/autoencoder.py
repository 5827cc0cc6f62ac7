"""A small convolutional auto-encoder of 28x28 RGB images, every stage of which is a cut."""

from __future__ import annotations

import torch
from torch import nn

CODE, WIDTH, SIDE = 32, 16, 7  # features of the bottleneck; channels of the first stage; height and width of the last


def _stage(before: int, after: int, *, stride: int = 1, scale: int = 1) -> nn.Sequential:
    """3x3 convolution -> batch norm -> ReLU; coarser by ``stride``, or finer by ``scale`` (nearest neighbour) first."""
    # upsampling and a plain convolution instead of a transposed one: no checkerboard, and ranks are measured of it
    finer = [nn.Upsample(scale_factor=scale)] if scale > 1 else []
    convolution = nn.Conv2d(before, after, 3, stride, 1, bias=False)
    return nn.Sequential(*finer, convolution, nn.BatchNorm2d(after), nn.ReLU())


class Autoencoder(nn.Module):
    """Encoder ``down1``, ``down2``, ``bottleneck``; decoder ``expand``, ``up1``, ``up2``.

    Shapes behind the cuts: down1 16x14x14, down2 32x7x7, bottleneck 32, expand 32x7x7, up1 16x14x14. The output,
    3x28x28, has no range: it stands for a normalised image.
    """

    def __init__(self) -> None:
        super().__init__()
        self.down1 = _stage(3, WIDTH, stride=2)
        self.down2 = _stage(WIDTH, 2 * WIDTH, stride=2)
        self.bottleneck = nn.Sequential(nn.Flatten(), nn.Linear(2 * WIDTH * SIDE**2, CODE))
        self.expand = nn.Sequential(nn.Linear(CODE, 2 * WIDTH * SIDE**2), nn.Unflatten(1, (2 * WIDTH, SIDE, SIDE)))
        self.up1 = nn.Sequential(nn.BatchNorm2d(2 * WIDTH), nn.ReLU(), _stage(2 * WIDTH, WIDTH, scale=2))
        self.up2 = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(WIDTH, 3, 3, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, 3, 28, 28) -> (n, 3, 28, 28)."""
        return self.up2(self.up1(self.expand(self.bottleneck(self.down2(self.down1(x))))))
