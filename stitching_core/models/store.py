"""The zoo on disk: safetensors and a JSON card for each model, addressed by content. Never a pickle.

``cards/<recipe key>.json`` says what a recipe led to; ``weights/<content hash>.safetensors`` holds the tensors. A
recipe that was followed once is never followed again, and two recipes with the same outcome share one file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from stitching_core import record
from stitching_core.errors import InputError
from stitching_core.models.architectures import architecture
from stitching_core.models.weights import Tensors, identity
from stitching_core.spec import DataSpec, ModelRecipe, canonical_json, digest


@dataclass(frozen=True)
class Card:
    """What is known about a stored model. ``learned`` is None for models that nobody trained here."""

    hash: str
    recipe: dict[str, Any]
    parameters: int
    learned: bool | None = None
    train_accuracy: float | None = None
    train_seconds: float | None = None
    train_error: float | None = None


def recipe_key(recipe: ModelRecipe, classes: int, data: DataSpec, data_hash: str) -> str:
    """What a model's weights depend on, hashed. The model's name and the place of any file are no part of it.

    Raises:
        InputError: weights that are unknown or can't be read.
    """
    if recipe.kind == record.NOISE:
        return digest({"kind": recipe.kind, "sigma": recipe.sigma})
    assert recipe.arch is not None
    parts: dict[str, Any] = {
        "kind": recipe.kind,
        "arch": recipe.arch,
        "arch_version": architecture(recipe.arch).version,
        "classes": classes,
    }
    if recipe.kind == record.WEIGHTS:
        parts["weights"] = identity(recipe.weights or "")
    else:
        parts["seed"] = recipe.seed
    if recipe.kind != record.TRAINED and architecture(recipe.arch).reconstructs:
        parts["units"] = recipe.variant
    if recipe.kind == record.TRAINED:
        assert recipe.training is not None
        parts |= {
            "variant": recipe.variant,
            "training": dataclasses.asdict(recipe.training),
            "data": data_hash,
            "data_seed": data.seed,
            "background_noise": data.background_noise,
        }
    return digest(parts)


def content_hash(recipe: ModelRecipe, tensors: Tensors) -> str:
    """SHA-256 over what the model computes: its architecture and every tensor's name, type, shape and bytes.

    An auto-encoder's variant too: it says in which units its images are.
    """
    if recipe.kind == record.NOISE:
        return digest({"kind": recipe.kind, "sigma": recipe.sigma})
    assert recipe.arch is not None
    entry = architecture(recipe.arch)
    units = [recipe.variant] if entry.reconstructs else []
    state = hashlib.sha256(canonical_json([recipe.arch, entry.version, *units]).encode())
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        state.update(canonical_json([name, str(array.dtype), array.shape]).encode())
        state.update(array.tobytes())
    return state.hexdigest()


def write_atomically(path: Path, write: Any) -> None:
    """Calls ``write`` with a temporary path beside ``path``, flushes it to disk and renames it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    write(temporary)
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)


class Zoo:
    """The store in one folder. Only the driver of a sweep writes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _card(self, key: str) -> Path:
        return self.folder / "cards" / f"{key}.json"

    def _weights(self, content: str) -> Path:
        return self.folder / "weights" / f"{content}.safetensors"

    def find(self, key: str) -> Card | None:
        """The card of a recipe, or None if it was never followed or its weights are gone."""
        try:
            card = Card(**json.loads(self._card(key).read_text()))
        except (FileNotFoundError, ValueError, TypeError):  # cut off, not UTF-8, or of other fields
            return None
        return card if self._weights(card.hash).exists() else None

    def save(self, key: str, card: Card, tensors: Tensors) -> None:
        """Weights first, then the card: a card never points at nothing."""
        if not self._weights(card.hash).exists():
            # safetensors writes an array's memory as it lies: one that is channels last would be saved scrambled
            plain = {name: np.asarray(array, order="C") for name, array in tensors.items()}
            write_atomically(self._weights(card.hash), lambda path: save_file(plain, path))
        text = json.dumps(dataclasses.asdict(card), indent=2, sort_keys=True)
        write_atomically(self._card(key), lambda path: path.write_text(text))

    def load(self, card: Card, recipe: ModelRecipe) -> Tensors:
        """The weights of a card, verified.

        Raises:
            InputError: the file's content is not what the card says.
        """
        path = self._weights(card.hash)
        try:
            tensors = load_file(path)
            intact = content_hash(recipe, tensors) == card.hash
        except (SafetensorError, OSError):
            intact = False
        if not intact:
            raise InputError(f"model file {str(path)!r} does not match its hash; delete it to have it made again")
        return tensors
