"""Auto-encoders: errors in pixel units, what counts as learnt, and stitches that train to the receiver's images."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from stitching_core.data.variants import VariantData
from stitching_core.models.autoencoder import Autoencoder
from stitching_core.models.divide import DividedModel, check
from stitching_core.spec import Protocol, TrainingRecipe
from stitching_core.stitch.layers import build_stitch
from stitching_core.train.base import train_base
from stitching_core.train.block import train_block
from stitching_core.train.fronts import ModelFront
from stitching_core.train.images import ImageTensors
from stitching_core.train.reconstruct import learned_to_reconstruct, mean_image_error, reconstruct
from stitching_core.train.stitching import StitchRun

CPU = torch.device("cpu")
MSE = Protocol("p", "bn-conv1x1-bn", "default", "frozen", "mse", 0.05, 0.9, 0.0, 8, 2)


def data(items: int = 24, std: float = 0.5, size: int = 28) -> ImageTensors:
    rng = np.random.default_rng(0)
    shades = rng.integers(0, 256, (items, 3, 1, 1)).repeat(size, 2).repeat(size, 3)
    labels = np.arange(items) % 3
    return ImageTensors(VariantData("made", shades.astype(np.uint8), labels, (0.5,) * 3, (std,) * 3, False), size, CPU)


class Darker(nn.Module):
    """Takes a tenth of the whole range from every pixel, in units of a standard deviation of 0.25."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - 0.1 / 0.25


def test_the_error_is_of_pixels_from_0_to_1_whatever_the_units() -> None:
    found = reconstruct(Darker(), data(std=0.25))
    assert found.error == pytest.approx(0.1**2, rel=1e-5)
    assert list(found.items) == list(found.labels) == [0, 1, 2]  # the first of each class
    np.testing.assert_array_equal(found.inputs, data().images[:3].numpy())
    # 25.5 levels darker, rounded, none below black
    assert np.abs(np.clip(found.inputs.astype(float) - 25.5, 0, 255) - found.outputs).max() <= 0.5


def test_other_units_change_the_numbers_and_not_the_pictures() -> None:
    images = data(std=0.5)
    other = images.in_units((0.25,) * 3, (0.125,) * 3)
    first = torch.arange(2)
    torch.testing.assert_close(other.batch(first), (images.batch(first) * 0.5 + 0.5 - 0.25) / 0.125)
    assert other.images is images.images
    np.testing.assert_array_equal(reconstruct(nn.Identity(), other).outputs, images.images[:3].numpy())


def test_a_constant_image_is_what_nothing_learnt_amounts_to() -> None:
    images = data()
    pixels = images.images.double() / 255
    # the definition, written out: the mean image against every image
    assert mean_image_error(images) == pytest.approx(float((pixels - pixels.mean(0)).square().mean()), rel=1e-9)
    limit = mean_image_error(images) / 2
    assert learned_to_reconstruct(0.99 * limit, images)
    assert not learned_to_reconstruct(1.01 * limit, images)
    assert not learned_to_reconstruct(float("inf"), images)


def test_every_stage_of_the_autoencoder_is_a_cut() -> None:
    divided = DividedModel(Autoencoder(), 28)
    check(divided, list(divided.cuts))
    shapes = {name: divided.cut(name).shape for name in ("down1", "down2", "bottleneck", "expand", "up1")}
    assert shapes == {
        "down1": (16, 14, 14), "down2": (32, 7, 7), "bottleneck": (32,), "expand": (32, 7, 7), "up1": (16, 14, 14)
    }  # fmt: skip
    assert divided.model(divided.example).shape == divided.example.shape


def test_it_learns_flat_colours_and_says_so() -> None:
    images = data(96)
    torch.manual_seed(0)
    model = Autoencoder()
    result = train_base(model, images, TrainingRecipe(0.1, 0.9, 0.0, 8, 10), 0, reconstructs=True)
    assert result.train_accuracy is None
    assert result.train_error is not None
    assert learned_to_reconstruct(result.train_error, images)
    assert reconstruct(model, images).error < mean_image_error(images) / 4
    torch.manual_seed(0)
    diverged = train_base(Autoencoder(), images, TrainingRecipe(1e30, 0.9, 0.0, 8, 1), 0, reconstructs=True)
    assert diverged.train_error == float("inf")


def stitched(cut: str, seed: int = 1, **changes: object) -> tuple[ModelFront, StitchRun, ImageTensors]:
    torch.manual_seed(seed)
    sender, receiver = DividedModel(Autoencoder(), 28), DividedModel(Autoencoder(), 28)
    images = data()
    theirs = images.in_units((0.1,) * 3, (0.3,) * 3)
    shapes = sender.cut(cut).shape, receiver.cut(cut).shape
    protocol = dataclasses.replace(MSE, **changes)  # type: ignore[arg-type]
    run = StitchRun(cut, cut, build_stitch(protocol.stitch, "default", *shapes, 1), receiver.tail(cut), protocol, 10)
    run.images = {"fit": theirs, "test": theirs}
    return ModelFront(sender, [cut], {"fit": images, "test": images}), run, theirs


def test_a_step_descends_the_error_of_the_receivers_units() -> None:
    """One step of plain gradient descent, written out: the loss is that of images as the *receiver* normalises them."""
    front, run, _ = stitched("bottleneck", momentum=0.0)
    _, twin, _ = stitched("bottleneck")
    twin.stitch.train()
    indices = torch.arange(8)
    activation = front.activations("fit", indices)["bottleneck"]
    wanted = (front.splits["fit"].images[:8].float() / 255 - 0.1) / 0.3
    torch.testing.assert_close(run.truth("fit", indices, torch.zeros(8)), wanted)
    parameters = list(twin.stitch.parameters())
    loss = (twin.tail.eval()(twin.stitch(activation)) - wanted).square().mean()
    steps = torch.autograd.grad(loss, parameters)
    run.train_mode(True)
    run.step(activation, run.truth("fit", indices, torch.zeros(8)), 0)
    for ours, before, gradient in zip(run.stitch.parameters(), parameters, steps, strict=True):
        torch.testing.assert_close(ours.detach(), before.detach() - 0.05 * gradient, rtol=1e-4, atol=1e-6)


def test_a_cell_is_the_same_alone_and_beside_another() -> None:
    outcomes = []
    for others in ([], ["down2"]):
        front, run, _ = stitched("bottleneck")
        runs = [run, *(stitched(cut)[1] for cut in others)]
        both = ModelFront(front.sender, [one.tap for one in runs], front.splits)
        found = train_block(both, runs, ("made", 0), lambda run: ("test",))["bottleneck"]["test"]
        outcomes.append((found.loss, [p.detach().clone() for p in run.stitch.parameters()]))
    assert outcomes[0][0] == outcomes[1][0]
    assert all(torch.equal(a, b) for a, b in zip(outcomes[0][1], outcomes[1][1], strict=True))


def test_a_stitch_that_diverges_is_said_to() -> None:
    front, run, _ = stitched("bottleneck", learning_rate=1e30, epochs=1)
    assert train_block(front, [run], ("made", 0), lambda run: ("test",)) == {}
    assert run.status == "diverged"
