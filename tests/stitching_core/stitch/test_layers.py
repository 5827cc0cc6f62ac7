"""The stitch of Smith et al. 2025 against its formula."""

import itertools

import pytest
import torch
from torch import nn

from stitching_core.errors import InputError
from stitching_core.stitch.layers import INITS, STITCHES, build_stitch

KIND = "bn-conv1x1-bn"


def inputs(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 3 + 1


@pytest.mark.parametrize(
    ("sender", "receiver"),
    [
        ((5, 4, 4), (5, 4, 4)),
        ((5, 4, 4), (7, 2, 2)),
        ((6,), (3,)),
        ((64, 7, 7), (128, 4, 4)),
        ((5, 29), (7, 3, 3)),
        ((5, 3), (7,)),
        ((5,), (7, 2, 2)),
    ],
)
@pytest.mark.parametrize("init", INITS)
def test_parameters_and_shapes(sender: tuple[int, ...], receiver: tuple[int, ...], init: str) -> None:
    stitch = build_stitch(KIND, init, sender, receiver, 0)
    c, d = sender[0], receiver[0]
    assert sum(p.numel() for p in stitch.parameters()) == 2 * c + c * d + d + 2 * d
    assert all(p.requires_grad for p in stitch.parameters())
    assert stitch(inputs(8, *sender)).shape == (8, *receiver)


def test_it_is_normalise_mix_normalise() -> None:
    """In train mode: statistics over items and positions, biased variance, epsilon 1e-5, momentum 0.1."""
    stitch = build_stitch(KIND, "default", (5, 4, 4), (3, 4, 4), 1)
    with torch.no_grad():
        for parameter in stitch.parameters():
            parameter.add_(inputs(*parameter.shape) * 0.1)
    x = inputs(8, 5, 4, 4)
    got = stitch(x)

    def normalise(flat: torch.Tensor, norm: nn.BatchNorm2d) -> torch.Tensor:
        centred = flat - flat.mean(0)
        return centred / ((centred**2).mean(0) + 1e-5).sqrt() * norm.weight + norm.bias

    rows = x.permute(0, 2, 3, 1).reshape(-1, 5)
    mixed = normalise(rows, stitch.norm_in) @ stitch.map.weight.reshape(3, 5).T + stitch.map.bias
    expected = normalise(mixed, stitch.norm_out).reshape(8, 4, 4, 3).permute(0, 3, 1, 2)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(stitch.norm_in.running_mean, 0.1 * rows.mean(0))
    torch.testing.assert_close(stitch.norm_in.running_var, 0.9 + 0.1 * rows.var(0))


def test_between_vectors_it_is_the_same_map_at_a_single_position() -> None:
    vector, position = (
        build_stitch(KIND, "default", (5,), (3,), 4),
        build_stitch(KIND, "default", (5, 1, 1), (3, 1, 1), 4),
    )
    x = inputs(16, 5)
    torch.testing.assert_close(vector(x), position(x[:, :, None, None]).flatten(1), rtol=1e-5, atol=1e-6)


def test_the_identity_passes_its_normalised_input_through() -> None:
    stitch = build_stitch(KIND, "identity", (5, 4, 4), (5, 4, 4), 0)
    x = inputs(8, 5, 4, 4)
    torch.testing.assert_close(stitch.map(x), x)
    expected = (x - x.mean((0, 2, 3), keepdim=True)) / x.std((0, 2, 3), keepdim=True, unbiased=False)
    torch.testing.assert_close(stitch(x), expected, rtol=1e-4, atol=1e-4)
    wider = build_stitch(KIND, "identity", (2, 1, 1), (3, 1, 1), 0)
    assert wider.map.weight.flatten(1).tolist() == [[1, 0], [0, 1], [0, 0]]


def test_the_orthogonal_init_keeps_lengths() -> None:
    weight = build_stitch(KIND, "orthogonal", (5, 4, 4), (5, 4, 4), 0).map.weight.detach().flatten(1)
    torch.testing.assert_close(weight @ weight.T, torch.eye(5), rtol=0, atol=1e-5)


@pytest.mark.parametrize("init", ["default", "orthogonal"])
def test_the_init_depends_on_the_seed_alone(init: str) -> None:
    state = torch.get_rng_state()
    first = build_stitch(KIND, init, (5, 4, 4), (3, 2, 2), 2**63 - 1)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(10)
    again, other = (build_stitch(KIND, init, (5, 4, 4), (3, 2, 2), seed) for seed in (2**63 - 1, 3))
    for (name, a), b in zip(first.state_dict().items(), again.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    assert not torch.equal(first.map.weight, other.map.weight)


def test_what_is_unknown_or_can_not_match_is_refused() -> None:
    with pytest.raises(InputError, match="unknown stitch 'conv3x3'; known: bn-conv1x1-bn"):
        build_stitch("conv3x3", "default", (5, 4, 4), (5, 4, 4), 0)
    with pytest.raises(InputError, match="unknown init 'zero'; known: default, identity, orthogonal"):
        build_stitch(KIND, "zero", (5, 4, 4), (5, 4, 4), 0)
    for kind, init in itertools.product(STITCHES, INITS):
        with pytest.raises(InputError, match="shapes can't match: 5x4x4 into 5x4"):
            build_stitch(kind, init, (5, 4, 4), (5, 4), 0)
