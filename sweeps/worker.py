"""What a process needs to work on a sweep: inputs by reference, kept once loaded."""

from __future__ import annotations

import os
import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ray
import torch

from stitching_core.data.sources import Source
from stitching_core.data.variants import VARIANTS, VariantData, build_variant
from stitching_core.errors import InputError
from stitching_core.models.architectures import architecture
from stitching_core.models.divide import DividedModel
from stitching_core.models.store import Tensors
from stitching_core.spec import DataSpec, ModelRecipe, SearchSpec
from stitching_core.train.block import Evaluation
from stitching_core.train.images import ImageTensors, as_images
from stitching_core.train.items import Items
from sweeps.plugins import Plugin, activate
from sweeps.sequences import classes_of, own_items, pairing_of

Uncut = dict[str, Evaluation]  # by eval_data


@dataclass(frozen=True)
class Setting:
    """What is the same for every task of a sweep. Large things are references into Ray's object store.

    Attributes:
        sequences: the sequence sources that senders read, paired with the receivers' classes, or references to them.
        source: reference to the data source; its arrays are read without a copy.
        data_hash: of the source and the plugins.
        classes: of the networks.
        rank: whether the ranks of all modules are measured.
        columns: at most so many features of a module are looked at for its rank; None is all.
        tensors: references to the weights, by content hash.
        uncut: references to the uncut models' predictions, by content hash.
        writer: the ledger's actor; None where nothing is written.
    """

    sweep: str
    experiment: str | None
    data: DataSpec
    source: Any
    data_hash: str
    classes: int
    search: SearchSpec
    device: str
    threads: int
    rank: bool = False
    columns: int | None = None
    plugins: tuple[Plugin, ...] = ()
    sequences: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, Any] = field(default_factory=dict)
    uncut: dict[str, Any] = field(default_factory=dict)
    writer: Any = None


class _Kept:
    """The most recently used values of a function of a key, at most ``limit`` of them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.values: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self.values:
            self.values[key] = make()
        self.values.move_to_end(key)
        while len(self.values) > self.limit:
            self.values.popitem(last=False)
        return self.values[key]


_MODELS, _IMAGES, _VARIANTS = _Kept(32), _Kept(24), _Kept(16)


def prepare(setting: Setting) -> torch.device:
    """Makes this process ready: plugins, threads, deterministic kernels. Returns the device to work on.

    Raises:
        InputError: ``cuda`` is asked for and this process has been given none.
    """
    activate(setting.plugins)
    torch.set_num_threads(setting.threads)  # a reused Ray worker may have another number than was asked for
    torch.use_deterministic_algorithms(True, warn_only=True)
    random.seed(0)  # nothing draws from these; whatever a plugin draws is at least the same everywhere
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = False  # 10-bit mantissas are no single precision
    torch.backends.cuda.matmul.allow_tf32 = False
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic cuBLAS, read when CUDA starts
    given = bool(ray.get_gpu_ids())
    available = torch.cuda.is_available() and given
    if given and not available and setting.device != "cpu":
        raise InputError("this worker was given a GPU that its torch can't use; set cluster.device=cpu or mend it")
    if setting.device == "cuda" and not available:
        raise InputError("cluster.device=cuda, but this worker was given no GPU")
    return torch.device("cuda" if available and setting.device != "cpu" else "cpu")


def source_of(setting: Setting) -> Source:
    return ray.get(setting.source) if isinstance(setting.source, ray.ObjectRef) else setting.source


def variant_data(setting: Setting, variant: str, split: str) -> VariantData:
    """One split of a variant, coloured once per process."""
    key = (setting.data_hash, setting.data.seed, setting.data.background_noise, variant, split)
    data = setting.data
    return _VARIANTS.get(
        key,
        lambda: build_variant(source_of(setting), variant, split, data.seed, data.background_noise),  # type: ignore[arg-type]
    )


def images(setting: Setting, variant: str, split: str, size: int, device: torch.device) -> Items:
    """The same, at a network's input size and on its device; the items of a sequence source, where that is named."""
    if variant in setting.sequences:
        content = pairing_of(setting, variant).source.fingerprint
        return _IMAGES.get((content, split, str(device)), lambda: own_items(setting, variant, split, device))
    key = (setting.data_hash, setting.data.seed, setting.data.background_noise, variant, split, size, str(device))
    return _IMAGES.get(key, lambda: ImageTensors(variant_data(setting, variant, split), size, device))


def images_for(setting: Setting, recipe: ModelRecipe, variant: str, split: str, device: torch.device) -> Items:
    """A variant as a model is shown it: at its input size, normalised as the variant is.

    An auto-encoder sees, and gives back, every variant in the units of the images that it was trained on: in others
    its output could not be told from its input even if it were perfect.
    """
    assert recipe.arch is not None
    entry = architecture(recipe.arch)
    shown = images(setting, variant, split, entry.size, device)
    if not entry.reconstructs or recipe.variant in (None, variant):
        return shown
    own = variant_data(setting, recipe.variant, "test")  # both splits have the same
    return as_images(shown).in_units(own.mean, own.std)


def divided(setting: Setting, recipe: ModelRecipe, content: str, device: torch.device) -> DividedModel:
    """A stored model, ready to be cut. Its weights are never changed."""
    assert recipe.arch is not None
    arch = recipe.arch

    def make() -> DividedModel:
        tensors: Tensors = ray.get(setting.tensors[content])
        entry, classes = architecture(arch), classes_of(setting, recipe)
        return DividedModel(network(arch, classes, tensors).to(device), entry.size, entry.shape)

    return _MODELS.get((content, str(device)), make)


def network(arch: str, classes: int, tensors: Tensors) -> torch.nn.Module:
    """The architecture with these weights (copied).

    Raises:
        InputError: the weights are not this architecture's.
    """
    model = architecture(arch).build(classes)
    try:
        model.load_state_dict({name: torch.tensor(array) for name, array in tensors.items()})
    except RuntimeError as error:
        detail = " ".join(str(error).split())[:300]
        raise InputError(f"weights do not fit {arch} with {classes} classes: {detail}") from None
    return model


def uncut(setting: Setting, content: str) -> Uncut:
    return ray.get(setting.uncut[content]) if content in setting.uncut else {}


def measurable(source: Source) -> list[str]:
    """The variants that a source can be made into; every stored model is measured on all of them."""
    if source.absent is not None:
        return []
    grey = source.train.images.ndim == 3
    names = [name for name in VARIANTS if name != "original"] if grey else ["original"]
    return names if source.classes <= 10 or not grey else ["greyscale", "original"]
