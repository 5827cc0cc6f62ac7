"""Front and tail of a traced graph: taps that a later operation would overwrite."""

import operator

import pytest
import torch
from torch import nn

from stitching_core.models import graph
from stitching_core.models.cuts import trace


class Overwriting(nn.Module):
    """Each ``way`` writes into the first layer's output after it could be tapped."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2)
        self.relu, self.same, self.dropout = nn.ReLU(inplace=True), nn.Identity(), nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        if self.way == "module":
            x = self.relu(x)
        elif self.way == "method":
            x = x.relu_()
        elif self.way == "function":
            x = torch.nn.functional.relu(x, inplace=True)
        elif self.way == "function, by position":
            x = torch.nn.functional.relu(x, True)
        elif self.way == "function with an underscore":
            x = torch.relu_(x)
        elif self.way == "through a view":
            x = self.relu(x.view(-1, 2, 2)).flatten(1)
        elif self.way == "through an identity":
            x = self.relu(self.same(x))
        elif self.way == "through dropout":  # in eval mode that returns what it was given
            x = self.relu(self.dropout(x))
        elif self.way == "sum":
            x = operator.iadd(x, x)
        return self.last(x)


WAYS = (
    *("module", "method", "function", "function, by position", "function with an underscore"),
    *("through a view", "through an identity", "through dropout", "sum"),
)


@pytest.mark.parametrize("way", WAYS)
def test_a_tap_keeps_what_was_there(way: str) -> None:
    model = Overwriting(way).eval()
    traced = trace(model)
    assert traced is not None
    x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    expected = (x @ model.first.weight.T + model.first.bias).detach()
    nodes = [node.name for node in traced.graph.nodes]
    early, late = graph.front(traced, ["first", nodes[-3]])(x)
    assert (expected < 0).any()
    torch.testing.assert_close(early, expected)
    torch.testing.assert_close(graph.tail(traced, nodes[-3])(late), model(x))
    torch.testing.assert_close(graph.tail(traced, "first")(early.clone()), model(x))


def test_nothing_is_copied_where_nothing_overwrites() -> None:
    """In a residual network the sums are overwritten, and only they: the cuts of the paper are tapped for nothing."""
    from torchvision.models import resnet18

    traced = trace(resnet18().eval())
    assert traced is not None
    taps = ["maxpool", "layer1_0_relu_1", "layer1_1_relu_1", "layer4_1_relu_1", "avgpool"]
    assert [node.name for node in graph.front(traced, taps).graph.nodes if node.target == "clone"] == []
    overwritten = graph.front(traced, ["conv1", "bn1", "add", "avgpool"])
    assert len([node for node in overwritten.graph.nodes if node.target == "clone"]) == 2  # bn1 and the sum


def test_taps_come_back_in_the_order_asked_and_the_front_ends_at_the_deepest() -> None:
    traced = trace(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 5), nn.Linear(5, 2)).eval())
    assert traced is not None
    part = graph.front(traced, ["_2", "_0"])
    deep, shallow = part(torch.zeros(2, 3))
    assert (deep.shape, shallow.shape) == ((2, 5), (2, 4))
    assert not any(node.target == "3" for node in part.graph.nodes)
