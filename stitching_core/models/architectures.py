"""The architectures of a zoo. To add one: a builder and a line of ``ARCHITECTURES``, here or in a plugin file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn
from torchvision.models import resnet18, resnet50, vgg19
from torchvision.models.resnet import BasicBlock, ResNet

from stitching_core.errors import InputError
from stitching_core.models.efficientnet import SIZE, EfficientNetLite0
from stitching_core.models.sequence_networks import series_cnn, text_cnn


@dataclass(frozen=True)
class Architecture:
    """A family of networks: how to build one, and the images that it takes.

    Attributes:
        build: makes an untrained network for a number of classes; it maps (n, 3, size, size) to (n, classes).
        size: height and width of its input, in pixels. Images are resized to it after colouring.
        version: raised when ``build`` changes what the same weights compute, so that no old result is taken for new.
        sequence: (channels, length) of a network that reads sequences instead of images; its ``size`` is the length.
    """

    build: Callable[[int], nn.Module]
    size: int
    version: str = "1"
    sequence: tuple[int, int] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of its input, without the batch."""
        return self.sequence or (3, self.size, self.size)


class SlimResNet18(ResNet):
    """ResNet-18 with every width divided by the same number; the layout and the module names are unchanged.

    Args:
        width: channels of the first block, 64 in ResNet-18 itself.
        classes: number of outputs.
    """

    def __init__(self, width: int, classes: int) -> None:
        super().__init__(BasicBlock, [2, 2, 2, 2], num_classes=classes)
        self.inplanes = width
        self.conv1 = nn.Conv2d(3, width, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = self._make_layer(BasicBlock, width, 2)
        self.layer2 = self._make_layer(BasicBlock, 2 * width, 2, stride=2)
        self.layer3 = self._make_layer(BasicBlock, 4 * width, 2, stride=2)
        self.layer4 = self._make_layer(BasicBlock, 8 * width, 2, stride=2)
        self.fc = nn.Linear(8 * width, classes)
        for module in self.modules():  # torchvision's own init, which ran on the layers that were just replaced
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


ARCHITECTURES: dict[str, Architecture] = {
    "resnet18": Architecture(lambda classes: resnet18(num_classes=classes), size=28),
    "resnet18_quarter": Architecture(lambda classes: SlimResNet18(16, classes), size=28),
    "resnet18_eighth": Architecture(lambda classes: SlimResNet18(8, classes), size=28),
    "vgg19": Architecture(lambda classes: vgg19(num_classes=classes), size=32),
    "resnet50": Architecture(lambda classes: resnet50(num_classes=classes), size=224),
    "series_cnn": Architecture(series_cnn, size=29, sequence=(12, 29)),
    "text_cnn": Architecture(text_cnn, size=256, sequence=(96, 256)),
    "efficientnet_lite0": Architecture(EfficientNetLite0, size=SIZE),
}


def architecture(name: str) -> Architecture:
    """The architecture of that name.

    Raises:
        InputError: there is none.
    """
    if name not in ARCHITECTURES:
        raise InputError(f"unknown architecture {name!r}; known: {', '.join(sorted(ARCHITECTURES))}")
    return ARCHITECTURES[name]
