"""Architectures: parameters counted by hand, and the layout of torchvision's own ResNet-18."""

import pytest
import torch
from torchvision.models import resnet18

from stitching_core.errors import InputError
from stitching_core.models.architectures import ARCHITECTURES, SlimResNet18, architecture


def resnet18_parameters(w: int, classes: int) -> int:
    """Weights of a ResNet-18 of width w: 3x3 convolutions without bias, two numbers per batch-norm channel."""
    stem = 3 * w * 49 + 2 * w
    stage1 = 4 * (9 * w * w + 2 * w)
    total = stem + stage1
    for c_in, c in ((w, 2 * w), (2 * w, 4 * w), (4 * w, 8 * w)):
        total += 9 * c_in * c + 3 * 9 * c * c + c_in * c + 5 * 2 * c  # the first, three more, the shortcut, five norms
    return total + 8 * w * classes + classes


@pytest.mark.parametrize(("arch", "width"), [("resnet18", 64), ("resnet18_quarter", 16), ("resnet18_eighth", 8)])
def test_parameter_count(arch: str, width: int) -> None:
    with torch.device("meta"):
        model = architecture(arch).build(10)
    assert sum(p.numel() for p in model.parameters()) == resnet18_parameters(width, 10)


def test_published_parameter_count() -> None:
    assert resnet18_parameters(64, 1000) == 11_689_512  # torchvision's documentation


def test_the_full_width_is_torchvisions_network() -> None:
    with torch.device("meta"):
        ours, theirs = SlimResNet18(64, 10), resnet18(num_classes=10)
    assert {k: v.shape for k, v in ours.state_dict().items()} == {k: v.shape for k, v in theirs.state_dict().items()}
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    theirs, ours = resnet18(num_classes=10).eval(), SlimResNet18(64, 10).eval()
    ours.load_state_dict(theirs.state_dict())
    images = torch.randn(2, 3, 28, 28)
    with torch.no_grad():
        assert torch.equal(ours(images), theirs(images))


def test_the_slim_network_starts_as_he_et_al_do() -> None:
    torch.manual_seed(0)
    model = SlimResNet18(16, 10)
    weight = model.layer4[1].conv2.weight.detach()  # fan-out 9 * 128: standard deviation sqrt(2 / 1152)
    assert float(weight.std()) == pytest.approx((2 / 1152) ** 0.5, rel=0.02)
    assert float(model.layer4[1].bn2.weight.detach().min()) == 1


@pytest.mark.parametrize("arch", ["resnet18_eighth", "resnet18"])
def test_weights_are_a_function_of_the_seed(arch: str) -> None:
    states = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        states.append(architecture(arch).build(10).state_dict())
    first, again, other = states
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["conv1.weight"], other["conv1.weight"])
    assert not torch.equal(first["fc.weight"], other["fc.weight"])


def test_unknown_architecture() -> None:
    with pytest.raises(InputError, match=r"unknown architecture 'resnet19'; known: autoencoder, resnet18, .*vgg19"):
        architecture("resnet19")
    assert all(entry.size > 0 and entry.version for entry in ARCHITECTURES.values())
