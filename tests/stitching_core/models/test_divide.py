"""Dividing changes nothing: the parts give what the whole gives, and leave the whole as it was."""

import hashlib
from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import vgg

from stitching_core.errors import InputError
from stitching_core.models import architectures, divide
from stitching_core.models.architectures import Architecture, architecture
from stitching_core.models.divide import DividedModel, check, cuts_of, own_buffers
from stitching_core.models.hooked import HookedFront


def build(arch: str, classes: int = 10) -> nn.Module:
    """A network whose batch-norm statistics are not their defaults, so that a lost buffer shows."""
    generator = torch.Generator().manual_seed(5)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = vgg19_with_a_small_head(classes) if arch == "vgg19" else architecture(arch).build(classes)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
    return model


def vgg19_with_a_small_head(classes: int) -> nn.Module:
    """The graph of VGG19 without the 120 million weights of its classifier, which only take time."""
    with torch.device("meta"):
        model = architecture("vgg19").build(classes)
    model.features = vgg.make_layers(vgg.cfgs["E"])
    for module in model.features:
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)
    for index, (n_in, n_out) in {0: (25_088, 16), 3: (16, 16), 6: (16, classes)}.items():
        model.classifier[index] = nn.Linear(n_in, n_out)
    return model


def state_hash(model: nn.Module) -> str:
    state = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        state.update(name.encode() + tensor.contiguous().numpy().tobytes())
    return state.hexdigest()


def assert_divides(divided: DividedModel, names: list[str]) -> None:
    images = torch.randn(2, 3, divided.size, divided.size, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = divided.model(images)
        activations = divided.front(names)(images)
        for name, activation in zip(names, activations, strict=True):
            assert activation.shape == (2, *divided.cut(name).shape)
            got = divided.tail(name)(activation.clone())
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()), msg=name)


@pytest.fixture
def no_tracing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(divide, "trace", lambda model: None)
    return


@pytest.mark.parametrize("arch", ["resnet18", "resnet18_eighth", "vgg19"])
def test_tail_of_front_is_the_model_at_every_cut(arch: str) -> None:
    divided = DividedModel(build(arch), architecture(arch).size)
    before = state_hash(divided.model)
    assert_divides(divided, list(divided.cuts))
    check(divided, ["features.1", "features.35"] if arch == "vgg19" else list(divided.cuts))
    assert state_hash(divided.model) == before


def test_resnet50_at_the_published_cuts() -> None:
    divided = DividedModel(build("resnet50", 1000), 224)
    assert_divides(divided, ["maxpool", "layer2", "layer4", "avgpool"])


@pytest.mark.usefixtures("no_tracing")
def test_with_hooks_the_articulation_points_are_the_same_places() -> None:
    divided = DividedModel(build("resnet18_eighth"), 28)
    assert divided.traced is None
    modules = ["conv1", "bn1", "relu", "maxpool", "layer1.0", "layer1", "layer2", "layer3", "layer4", "avgpool"]
    assert_divides(divided, modules)
    check(divided, modules)
    for name in modules:
        assert divided.cut(name).shape == cuts_of("resnet18_eighth", 10).cut(name).shape
    assert "fc" not in divided.cuts  # the output leaves no tail


@pytest.mark.usefixtures("no_tracing")
@pytest.mark.parametrize("name", ["layer1.0.conv1", "layer1.0.bn2", "layer3.0.downsample"])
def test_a_hooked_cut_that_something_passes_around_is_refused(name: str) -> None:
    divided = DividedModel(build("resnet18_eighth"), 28)
    check(divided, ["layer1"])
    with pytest.raises(InputError, match=rf"cut '{name}' does not carry everything"):
        check(divided, ["layer1", name])


@pytest.mark.usefixtures("no_tracing")
def test_a_hooked_front_stops_at_its_deepest_cut_in_any_order() -> None:
    divided = DividedModel(build("resnet18_eighth"), 28)
    calls: list[str] = []
    front = divided.front(["layer2", "maxpool"])
    assert isinstance(front, HookedFront)
    front.model.layer3.register_forward_hook(lambda *_: calls.append("layer3"))
    deep, shallow = front(torch.zeros(2, 3, 28, 28))
    assert (deep.shape[1:], shallow.shape[1:]) == ((16, 4, 4), (8, 7, 7))
    assert calls == []


def test_an_overwritten_activation_of_a_traced_and_a_hooked_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """VGG's ReLUs are in-place: what is tapped at a convolution must have its negative values."""
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8 * 900, 3))
    expected = F.conv2d(images, net[0].weight, net[0].bias).detach()
    for _ in range(2):
        divided = DividedModel(net, 32)
        before, after = divided.front(["0", "1"])(images)
        torch.testing.assert_close(before, expected)
        torch.testing.assert_close(after, expected.clamp_min(0))
        monkeypatch.setattr(divide, "trace", lambda model: None)


@pytest.mark.parametrize("hooks", [False, True])
def test_weights_are_shared_and_buffers_are_not(hooks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if hooks:
        monkeypatch.setattr(divide, "trace", lambda model: None)
    divided = DividedModel(build("resnet18_eighth"), 28)
    stored = {p.data_ptr() for p in divided.model.parameters()}
    buffers = {b.data_ptr() for b in divided.model.buffers()}
    parts = [divided.front(["layer2"]), divided.tail("layer2"), divided.tail("layer2")]
    for part in parts:
        assert {p.data_ptr() for p in part.parameters()} <= stored
        assert not any(p.requires_grad for p in part.parameters())
        assert buffers.isdisjoint({b.data_ptr() for b in part.buffers()})
        buffers |= {b.data_ptr() for b in part.buffers()}  # nor by two parts


def test_a_parts_train_mode_leaves_the_stored_model_alone() -> None:
    divided = DividedModel(build("resnet18_eighth"), 28)
    before = state_hash(divided.model)
    front = divided.front(["layer4"]).train()
    kept = front.bn1.running_mean.clone()
    front(torch.randn(4, 3, 28, 28, generator=torch.Generator().manual_seed(2)))
    assert not torch.equal(front.bn1.running_mean, kept)
    assert state_hash(divided.model) == before
    assert not divided.model.training
    assert not divided.model.bn1.training


def test_own_buffers_keeps_the_parameters_themselves() -> None:
    module = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))
    copied = own_buffers(module)
    assert copied[0].weight is module[0].weight
    assert copied[1].bias is module[1].bias
    assert copied[0].running_mean is not module[0].running_mean


def test_unknown_cut_names_what_there_is() -> None:
    with pytest.raises(InputError, match=r"unknown cut 'layer9'; known: conv1, .*layer4"):
        cuts_of("resnet18", 10).cut("layer9")


class OnData(nn.Module):
    """Looks at its data, so that it runs neither as a graph nor without data."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 4, 3, bias=False), nn.Linear(4, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(x)
        return self.head(x.mean((2, 3)) if x.abs().max() < 1e6 else x.amax((2, 3)))


def test_cuts_of_a_network_that_looks_at_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(architectures.ARCHITECTURES, "on_data", Architecture(OnData, size=8))
    state = torch.get_rng_state()
    assert {name: cut.shape for name, cut in cuts_of("on_data", 3).cuts.items()} == {"body": (4, 6, 6)}
    assert torch.equal(torch.get_rng_state(), state)
    check(cuts_of("on_data", 3), ["body"])


def test_cuts_of_takes_no_memory_for_weights() -> None:
    assert {p.device.type for p in cuts_of("vgg19", 10).model.parameters()} == {"meta"}
