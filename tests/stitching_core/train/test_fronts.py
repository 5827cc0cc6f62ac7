"""Fronts: what each tap hands to the stitches."""

import numpy as np
import torch
from torch import nn

from stitching_core.data.noise import NoisePoints
from stitching_core.data.variants import VariantData
from stitching_core.models.divide import DividedModel
from stitching_core.train.fronts import ModelFront, NoiseFront
from stitching_core.train.images import ImageTensors

CPU = torch.device("cpu")


def points(split: str, shape: tuple[int, ...], cut: str, items: int = 30) -> NoisePoints:
    return NoisePoints(shape, 10, 0.1, items, 7, split, ("receiver", cut))


def test_a_model_front_gives_the_activation_at_each_cut_under_its_name() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(64, 2))
    images = np.random.default_rng(0).integers(0, 256, (5, 3, 6, 6), dtype=np.uint8)
    split = ImageTensors(VariantData("made", images, np.arange(5), (0.5,) * 3, (0.5,) * 3, True), 6, CPU)
    front = ModelFront(DividedModel(net, 6), ["1", "0"], {"fit": split})
    found = front.activations("fit", torch.tensor([4, 2]))
    first = net[0](split.batch(torch.tensor([4, 2])))
    assert list(found) == ["1", "0"]
    torch.testing.assert_close(found["0"], first)
    torch.testing.assert_close(found["1"], first.clamp_min(0))
    assert not any(activation.requires_grad for activation in found.values())
    assert front.labels("fit").tolist() == [0, 1, 2, 3, 4]
    assert front.drop_last("fit")
    assert front.module is not None


def test_noise_is_the_points_of_each_tap() -> None:
    sources = {"a": points("train", (4, 2, 2), "a"), "b": points("train", (3,), "b")}
    front = NoiseFront({"fit": (sources, None), "noise": ({"a": points("test", (4, 2, 2), "a", 10)}, None)}, CPU)
    found = front.activations("fit", torch.tensor([12, 3]))
    assert {tap: value.shape for tap, value in found.items()} == {"a": (2, 4, 2, 2), "b": (2, 3)}
    assert np.array_equal(found["a"].numpy(), sources["a"].batch([12, 3]))
    again = NoiseFront({"fit": (sources, None)}, CPU).activations("fit", torch.tensor([3, 12]))
    assert torch.equal(again["b"].flip(0), found["b"])
    assert front.labels("fit").tolist() == [i % 10 for i in range(30)]
    assert front.labels("noise").tolist() == list(range(10))
    assert not torch.equal(front.activations("noise", torch.tensor([3]))["a"], found["a"][1:])
    assert front.drop_last("fit")
    assert front.module is None


def test_a_part_of_the_noise_keeps_labels_and_points_together() -> None:
    sources = {"a": points("train", (4,), "a")}
    items = np.array([29, 5, 11])
    front = NoiseFront({"fit": (sources, items)}, CPU)
    assert front.labels("fit").tolist() == [9, 5, 1]
    found = front.activations("fit", torch.tensor([2, 0]))["a"]
    assert np.array_equal(found.numpy(), sources["a"].batch([11, 29]))
