"""Cuts: articulation points of graphs written by hand, and the published cuts of the published networks."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from stitching_core.models.cuts import Cut, find_cuts, trace
from stitching_core.models.divide import cuts_of


def cuts(model: nn.Module, *shape: int) -> list[Cut]:
    traced = trace(model.eval())
    assert traced is not None
    return find_cuts(traced, torch.zeros(2, *shape))


class Skip(nn.Module):
    """a -> b -> relu -> (+ a) -> c -> mean -> head: only what lies inside the skip is no articulation point."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 1), nn.Conv2d(4, 5, 3)
        self.head = nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.a(x)
        x = torch.relu(self.b(x)) + x
        return self.head(self.c(x).mean((2, 3)))


def test_articulation_points_of_a_skip_connection() -> None:
    found = cuts(Skip(), 3, 6, 6)
    assert [(cut.name, cut.shape) for cut in found] == [
        ("a", (4, 6, 6)),
        ("add", (4, 6, 6)),
        ("c", (5, 4, 4)),
        ("mean", (5,)),
    ]


def test_a_second_path_from_the_input_leaves_only_what_follows_it() -> None:
    class Around(Skip):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.c(self.b(self.a(x)) + x[:, :1]).mean((2, 3)))

    assert [cut.name for cut in cuts(Around(), 3, 6, 6)] == ["add", "c", "mean"]


def test_a_learnt_scale_is_no_path_from_the_input() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.first, self.last = nn.Parameter(torch.ones(4)), nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(self.first(x) * self.scale)

    assert [cut.name for cut in cuts(Scaled(), 3)] == ["first", "mul"]


def test_a_module_that_is_called_again_is_numbered_and_functions_do_not_take_its_names() -> None:
    class Reused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.relu, self.tanh, self.last = nn.Linear(4, 4), nn.ReLU(), nn.Tanh(), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.tanh(self.relu(self.fc(x)))  # a function with a module's name, before that module
            x = self.tanh(self.relu(self.fc(x)))
            return self.last(torch.relu(x))

    names = [cut.name for cut in cuts(Reused(), 4)]
    assert names == ["fc", "relu", "tanh:2", "fc:2", "relu:2", "tanh", "relu:3"]


def test_the_number_of_a_call_counts_calls_not_cuts() -> None:
    class Late(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act, self.fc, self.last = nn.ReLU(), nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.fc(self.act(x)) + x  # the first call is inside a skip
            return self.last(self.act(x))

    assert [cut.name for cut in cuts(Late(), 4)] == ["add", "act:2"]


def test_a_module_that_returns_a_tuple_is_no_cut_and_what_is_taken_from_it_is() -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.last = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(self.gru(x)[0])

    assert [(cut.name, cut.shape) for cut in cuts(Recurrent(), 5, 3)] == [("getitem", (5, 4))]


def test_nested_modules_that_end_together_are_one_cut_with_aliases() -> None:
    net = nn.Sequential(nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 5), nn.ReLU())), nn.Linear(5, 2))
    found = cuts(net, 3)
    assert [(cut.name, cut.aliases) for cut in found] == [("0.0", ()), ("0.1.0", ()), ("0", ("0.1", "0.1.1"))]


class OnData(Skip):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) if x.sum() > 0 else super().forward(-x)


class OnMode(Skip):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x * 2) if self.training else super().forward(x)


class FunctionalDropout(Skip):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(F.dropout(x, 0.5, self.training))


@pytest.mark.parametrize("kind", [OnData, OnMode, FunctionalDropout])
@pytest.mark.parametrize("training", [True, False])
def test_what_a_trace_would_lose_is_not_traced(kind: type[nn.Module], training: bool) -> None:
    model = kind().train(training)
    assert trace(model) is None
    assert model.training is training
    assert model.c.training is training


@pytest.mark.parametrize(
    ("arch", "published"),
    [
        (  # children 3 to 8 at 28x28
            "resnet18",
            {
                "maxpool": (64, 7, 7),
                "layer1": (64, 7, 7),
                "layer2": (128, 4, 4),
                "layer3": (256, 2, 2),
                "layer4": (512, 1, 1),
                "avgpool": (512, 1, 1),
            },
        ),
        (
            "vgg19",
            {
                "features.1": (64, 32, 32),
                "features.8": (128, 16, 16),
                "features.22": (512, 4, 4),
                "features.29": (512, 2, 2),
                "features.35": (512, 2, 2),
            },
        ),
        (
            "resnet50",
            {
                "maxpool": (64, 56, 56),
                "layer1": (256, 56, 56),
                "layer2": (512, 28, 28),
                "layer3": (1024, 14, 14),
                "layer4": (2048, 7, 7),
                "avgpool": (2048, 1, 1),
            },
        ),
    ],
)
def test_published_cuts_and_shapes(arch: str, published: dict[str, tuple[int, ...]]) -> None:
    found = cuts_of(arch, 10).cuts
    assert [name for name in found if name in published] == list(published)
    assert {name: found[name].shape for name in published} == published


@pytest.mark.parametrize(
    ("arch", "count"),
    [
        # stem 4; each block its sum and its end; pooling, flatten
        ("resnet18", 4 + 2 * 8 + 2),
        ("resnet18_quarter", 4 + 2 * 8 + 2),
        ("resnet18_eighth", 4 + 2 * 8 + 2),
        ("resnet50", 4 + 2 * 16 + 2),
        ("vgg19", 37 + 1 + 1 + 6),  # a chain: everything but the last linear layer
    ],
)
def test_every_cut_of_the_architectures_has_one_name(arch: str, count: int) -> None:
    divided = cuts_of(arch, 10)
    assert len(divided.cuts) == count
    names = [name for cut in divided.cuts.values() for name in (cut.name, *cut.aliases)]
    assert len(set(names)) == len(names)
    assert not any(name.endswith(("conv2", "bn2", "downsample")) for name in names)  # these lie inside a block


def test_aliases_lead_to_the_same_cut() -> None:
    divided = cuts_of("resnet18", 10)
    assert divided.cut("layer1.1") is divided.cut("layer1")
    assert divided.cut("layer4.1").name == "layer4"
