"""Ranks of stitched networks: the right modules in the right order, each over the whole test set."""

import numpy as np
import pytest
import torch
from torch import nn

from stitching_core.data.noise import NoisePoints
from stitching_core.data.variants import VariantData
from stitching_core.measure import modules
from stitching_core.models.architectures import architecture
from stitching_core.models.divide import DividedModel
from stitching_core.spec import Protocol
from stitching_core.stitch.layers import build_stitch
from stitching_core.train.block import train_block
from stitching_core.train.fronts import Front, ModelFront, NoiseFront
from stitching_core.train.images import ImageTensors
from stitching_core.train.ranks import block_ranks, uncut_ranks
from stitching_core.train.stitching import StitchRun

CPU = torch.device("cpu")
PROTOCOL = Protocol("p", "bn-conv1x1-bn", "default", "adapt", "cross_entropy", 0.05, 0.9, 0.01, 16, 1)


class Plain(nn.Module):
    """Each convolution's output is overwritten in place by what follows."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 4, stride=4), nn.ReLU(inplace=True))
        self.mid = nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(inplace=True))
        self.deep = nn.Sequential(nn.Conv2d(6, 5, 3, stride=2), nn.ReLU(inplace=True))
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(45, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.deep(self.mid(self.stem(x))))


class Hooked(Plain):
    """The same, but torch.fx can't follow it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x * 1.0 if self.training else x)


def images(items: int, seed: int) -> ImageTensors:
    generator = np.random.default_rng(seed)
    pixels = generator.integers(0, 256, (items, 3, 28, 28), dtype=np.uint8)
    data = VariantData("made", pixels, generator.integers(0, 10, items), (0.5,) * 3, (0.5,) * 3, False)
    return ImageTensors(data, 28, CPU)


def divided(kind: type[nn.Module], seed: int) -> DividedModel:
    torch.manual_seed(seed)
    return DividedModel(kind(), 28)


def stitched(front: Front, receiver: DividedModel, cut: str, tap: str, sent: tuple[int, ...]) -> StitchRun:
    stitch = build_stitch("bn-conv1x1-bn", "default", sent, receiver.cut(cut).shape, 1)
    return StitchRun(f"{tap} to {cut}", tap, stitch, receiver.tail(cut), PROTOCOL, 10)


def by_numpy(features: torch.Tensor) -> int:
    eigenvalues = np.linalg.eigvalsh(np.cov(features.flatten(1).double().numpy(), rowvar=False))
    return int((eigenvalues > 1e-3 * eigenvalues.max()).sum())


@pytest.mark.parametrize("kind", [Plain, Hooked])
@torch.no_grad()
def test_an_uncut_network(kind: type[nn.Module]) -> None:
    model, data = divided(kind, 0).model, images(60, 0)
    x = data.batch(torch.arange(60))
    first = model.stem[0](x)
    second = model.mid[0](first.relu())
    third = model.deep[0](model.mid[1](second).relu())
    last = model.head[1](third.relu().flatten(1))
    found = uncut_ranks(model, data)
    assert [(rank.part, rank.module, rank.position) for rank in found] == [
        (None, "stem.0", 0),
        (None, "mid.0", 1),
        (None, "deep.0", 2),
        (None, "head.1", 3),
    ]
    assert [rank.features.rank for rank in found] == [by_numpy(one) for one in (first, second, third, last)]
    assert [rank.features.width for rank in found] == [196, 294, 45, 10]
    assert [rank.weight for rank in found] == [4, 6, 5, 10]
    assert found[2].features.normalised == found[2].features.rank / 45
    assert found[0].features.normalised == found[0].features.rank / 60  # fewer samples than features


@pytest.mark.parametrize("kind", [Plain, Hooked])
def test_a_stitched_network_after_training(kind: type[nn.Module]) -> None:
    sender, receiver = divided(kind, 0), divided(kind, 1)
    front = ModelFront(sender, ["stem", "mid"], {"fit": images(64, 1), "test": images(50, 2)})
    runs = [stitched(front, receiver, cut, cut, sender.cut(cut).shape) for cut in ("stem", "mid")]
    train_block(front, runs, ("made", 0), lambda run: ("test",))
    found = block_ranks(front, runs, "test")
    assert [(r.part, r.module, r.position) for r in found["mid to mid"]] == [
        ("sender", "stem.0", 0),
        ("sender", "mid.0", 1),
        ("stitch", "map", 2),
        ("receiver", "deep.0", 3),
        ("receiver", "head.1", 4),
    ]
    assert [(r.part, r.module) for r in found["stem to stem"]] == [
        ("sender", "stem.0"),
        ("stitch", "map"),
        ("receiver", "mid.0"),
        ("receiver", "deep.0"),
        ("receiver", "head.1"),
    ]
    with torch.no_grad():
        activation = front.activations("test", torch.arange(50))["mid"]
        stitch = runs[1].stitch
        mapped = stitch.map(stitch.norm_in(activation))
        deep = receiver.model.deep[0](stitch.norm_out(mapped))
        logits = receiver.model.head[1](deep.relu().flatten(1))
        entered = sender.model.stem[0](front.splits["test"].batch(torch.arange(50)))
    ranks = [rank.features.rank for rank in found["mid to mid"]]
    assert ranks[0] == by_numpy(entered)
    assert ranks[2:] == [by_numpy(mapped), by_numpy(deep), by_numpy(logits)]


def test_it_does_not_matter_how_many_passes_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    sender, receiver = divided(Plain, 0), divided(Plain, 1)
    front = ModelFront(sender, ["stem", "mid"], {"test": images(40, 2)})
    runs = [stitched(front, receiver, cut, cut, sender.cut(cut).shape) for cut in ("stem", "mid")]
    at_once = block_ranks(front, runs, "test")
    monkeypatch.setattr(modules.feature_ranks, "__defaults__", (1,))  # a pass for every module
    assert block_ranks(front, runs, "test") == at_once
    alone = ModelFront(sender, ["mid"], {"test": images(40, 2)})
    assert block_ranks(alone, runs[1:], "test")["mid to mid"] == at_once["mid to mid"]


def test_noise_has_no_sender() -> None:
    receiver = divided(Plain, 1)
    points = NoisePoints(receiver.cut("mid").shape, 10, 0.1, 40, 0, "test", ("receiver", "mid"))
    front = NoiseFront({"noise": ({"tap": points}, None)}, CPU)
    run = stitched(front, receiver, "mid", "tap", receiver.cut("mid").shape)
    (found,) = block_ranks(front, [run], "noise").values()
    assert [(rank.part, rank.position) for rank in found] == [("stitch", 0), ("receiver", 1), ("receiver", 2)]


def test_a_run_that_failed_has_none() -> None:
    sender, receiver = divided(Plain, 0), divided(Plain, 1)
    front = ModelFront(sender, ["mid"], {"test": images(20, 2)})
    run = stitched(front, receiver, "mid", "mid", sender.cut("mid").shape)
    run.diverge("it did")
    assert block_ranks(front, [run], "test") == {}


def test_resnet18s_modules_are_those_of_the_published_tables() -> None:
    model = DividedModel(architecture("resnet18_eighth").build(10), 28)
    front = ModelFront(model, ["layer3"], {"test": images(12, 0)})
    run = stitched(front, model, "layer3", "layer3", model.cut("layer3").shape)
    (found,) = block_ranks(front, [run], "test").values()
    names = [f"{rank.part} {rank.module}" for rank in found]
    assert len(names) == 22  # as many as there are in a published stitched network cut after layer3
    assert names[:3] == ["sender conv1", "sender layer1.0.conv1", "sender layer1.0.conv2"]
    assert names[14:19] == [
        "sender layer3.1.conv2",
        "stitch map",
        "receiver layer4.0.conv1",
        "receiver layer4.0.conv2",
        "receiver layer4.0.downsample.0",
    ]
    assert names[-1] == "receiver fc"
