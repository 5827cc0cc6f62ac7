"""What models predict uncut, kept beside them in the zoo: a function of the weights and of the coloured test set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from stitching_core.measure.accuracy import Predictions
from stitching_core.models.store import Card, Zoo, write_atomically
from stitching_core.spec import digest
from sweeps.sequences import pairing_of
from sweeps.worker import Setting, Uncut, measurable, source_of


def uncut_name(card: Card, setting: Setting, variant: str) -> str:
    """What a file about an uncut model on a variant is called: by the content of both."""
    coloured = [setting.data_hash, setting.data.seed, setting.data.background_noise, variant]
    if variant in setting.sequences:
        coloured = [pairing_of(setting, variant).source.fingerprint, variant]
    data = digest(coloured)[:16]
    return f"{card.hash[:32]}-{data}-{variant}"


def _uncut_file(zoo: Zoo, card: Card, setting: Setting, variant: str) -> Path:
    return zoo.folder / "uncut" / f"{uncut_name(card, setting, variant)}.safetensors"


def save_uncut(zoo: Zoo, card: Card, setting: Setting, uncut: Uncut) -> None:
    """Keeps predictions beside the model."""
    for variant, predictions in uncut.items():
        file = _uncut_file(zoo, card, setting, variant)
        arrays = {
            "predicted": predictions.predicted,
            "target": predictions.target,
            "cross_entropy": np.array([predictions.cross_entropy]),
        }
        if not file.exists():
            write_atomically(file, lambda path, arrays=arrays: save_file(arrays, path))


def load_uncut(zoo: Zoo, card: Card, setting: Setting, asked: list[str]) -> Uncut:
    """The kept predictions, as far as there are any."""
    found = {}
    for variant in dict.fromkeys([*measurable(source_of(setting)), *setting.sequences, *asked]):
        file = _uncut_file(zoo, card, setting, variant)
        if file.exists():
            with safe_open(file, "numpy") as stored:
                found[variant] = Predictions(
                    stored.get_tensor("predicted"),
                    stored.get_tensor("target"),
                    float(stored.get_tensor("cross_entropy")[0]),
                )
    return found
