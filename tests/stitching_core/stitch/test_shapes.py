"""Bringing two shapes together: pooling down, interpolating up, and nothing that a 1x1 convolution minds."""

import pytest
import torch
from torch import nn

from stitching_core.errors import InputError
from stitching_core.stitch.shapes import Resample, match


def test_equal_sizes_need_nothing() -> None:
    assert match((64, 7, 7), (128, 7, 7)) is None
    assert match((512,), (10,)) is None


def test_a_larger_map_is_averaged() -> None:
    x = torch.tensor([[[[1.0, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]]])
    resample = match((1, 4, 4), (1, 2, 2))
    assert resample is not None
    assert resample(x).tolist() == [[[[3.5, 5.5], [11.5, 13.5]]]]
    assert Resample((1, 1))(x).item() == 8.5


def test_a_smaller_map_is_interpolated_between_pixel_centres() -> None:
    resample = match((1, 1, 2), (1, 1, 4))
    assert resample is not None
    assert resample(torch.tensor([[[[0.0, 4.0]]]])).flatten().tolist() == [0, 1, 3, 4]
    assert Resample((3, 2))(torch.full((1, 1, 1, 1), 5.0)).flatten().tolist() == pytest.approx([5] * 6)


@pytest.mark.parametrize("size", [(2, 2), (3, 5), (7, 7), (9, 4), (14, 14)])
def test_a_1x1_convolution_commutes_with_it(size: tuple[int, int]) -> None:
    x = torch.randn(2, 3, 7, 7, generator=torch.Generator().manual_seed(0))
    convolution, resample = nn.Conv2d(3, 4, 1), Resample(size)
    with torch.no_grad():
        convolution.bias.fill_(2.0)  # a constant survives only if the weights of the average sum to one
        torch.testing.assert_close(resample(convolution(x)), convolution(resample(x)), rtol=1e-5, atol=1e-5)


def test_a_series_runs_along_the_rows() -> None:
    fold = match((1, 8), (1, 2, 2))
    assert fold is not None
    assert fold(torch.arange(8.0).view(1, 1, 8)).tolist() == [[[[0.5, 2.5], [4.5, 6.5]]]]
    stretched = match((1, 2), (1, 2, 2))
    assert stretched is not None
    assert stretched(torch.tensor([[[0.0, 4.0]]])).tolist() == [[[[0, 1], [3, 4]]]]


def test_a_vector_is_the_same_everywhere_and_a_vector_again_on_average() -> None:
    x = torch.tensor([[1.0, -2.0]])
    spread, average = match((2,), (5, 2, 3)), match((2, 2, 3), (2,))
    assert spread is not None
    assert average is not None
    assert spread(x).tolist() == [[[[1.0] * 3] * 2, [[-2.0] * 3] * 2]]
    assert average(spread(x)).tolist() == x.tolist()
    series = match((1, 4), (3,))
    assert series is not None
    assert series(torch.tensor([[[1.0, 2, 3, 6]]])).tolist() == [[3]]


@pytest.mark.parametrize(
    ("sender", "receiver", "said"),
    [
        ((512,), (512, 4), "512 into 512x4"),
        ((4, 3), (4, 3), "4x3 into 4x3"),
        ((4, 3, 2, 1), (4,), "4x3x2x1 into 4"),
        ((), (), " into "),
    ],
)
def test_what_is_neither_map_nor_series_nor_vector_does_not_match(
    sender: tuple[int, ...], receiver: tuple[int, ...], said: str
) -> None:
    with pytest.raises(InputError, match=f"shapes can't match: {said}; allowed: map"):
        match(sender, receiver)
