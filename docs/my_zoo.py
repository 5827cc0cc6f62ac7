from collections import OrderedDict

from sklearn.datasets import load_digits
from torch import nn

from stitching_core.data.sources import SOURCES, source_from_arrays
from stitching_core.models.architectures import ARCHITECTURES, Architecture


def odd_or_even(root, download):  # images: uint8 (n, h, w) or (n, 3, h, w); labels: integers from 0
    digits = load_digits()
    images, labels = (digits.images * 15.9).astype("uint8").repeat(3, 1).repeat(3, 2), digits.target % 2
    return source_from_arrays("odd_or_even", images[::2], labels[::2], images[1::2], labels[1::2])


def small_cnn(classes):
    block1 = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU())
    block2 = nn.Sequential(nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU())
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes))
    return nn.Sequential(OrderedDict(block1=block1, block2=block2, head=head))


SOURCES["odd_or_even"] = odd_or_even
ARCHITECTURES["small_cnn"] = Architecture(small_cnn, size=24)
