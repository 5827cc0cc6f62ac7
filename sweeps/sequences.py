"""Senders of other modalities in a sweep: their data, and what there is to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import ray
import torch

from stitching_core import record
from stitching_core.data.pairing import Pairing, hold_out, make_pairing
from stitching_core.data.sequences import SEQUENCES, load_sequences
from stitching_core.data.source import Source
from stitching_core.errors import InputError
from stitching_core.measure.accuracy import Predictions
from stitching_core.models.architectures import architecture
from stitching_core.seeding import torch_generator
from stitching_core.spec import CellSpec, ModelRecipe
from stitching_core.train.sequences import SequenceTensors
from sweeps.schema import SequenceConfig, SweepConfig

if TYPE_CHECKING:
    from sweeps.worker import Setting


def make_pairings(config: SweepConfig, source: Source, classes: int) -> dict[str, Pairing]:
    """Loads and pairs the sequence sources that models of the zoo name; counts are those of the sweep's images.

    Raises:
        InputError: files that are missing or wrong, or a class map that can't be meant.
    """
    counts = tuple(np.bincount(part.labels, minlength=classes) for part in (source.train, source.test))
    pairings = {}
    for name in dict.fromkeys(model.source for model in config.zoo.models.values() if model.source):
        given = config.data.sequences.get(name) or SequenceConfig()
        sequences = load_sequences(name, given.root)
        for key, model in config.zoo.models.items():
            reads = architecture(model.arch or config.zoo.arch).shape
            if model.source == name and reads != sequences.shape:
                raise InputError(
                    f"zoo.models.{key}.arch: {model.arch} reads {_by(reads)}, {name} are {_by(sequences.shape)}"
                )
        images = (counts[0], counts[1]) if source.train.images.size else None
        pairings[name] = make_pairing(sequences, given.class_map, classes, images, config.data.seed)
    return pairings


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def pairing_of(setting: Setting, name: str) -> Pairing:
    found = setting.sequences[name]
    return ray.get(found) if isinstance(found, ray.ObjectRef) else found


def classes_of(setting: Setting, recipe: ModelRecipe) -> int:
    """Outputs of a model: as many as its own data have classes."""
    return pairing_of(setting, recipe.source).source.classes if recipe.source else setting.classes


def data_hash_of(setting: Setting, recipe: ModelRecipe) -> str:
    """Of what a model was trained on."""
    return pairing_of(setting, recipe.source).source.fingerprint if recipe.source else setting.data_hash


def read_by(recipe: ModelRecipe, names: list[str]) -> list[str]:
    """Of the test sets that are asked for, those that a model can read; of another modality its own alone."""
    return [recipe.source] if recipe.source else [name for name in names if name not in SEQUENCES]


def own_items(setting: Setting, name: str, split: str, device: torch.device) -> SequenceTensors:
    """A split of a sequence source with its own labels, each item once."""
    source = pairing_of(setting, name).source
    return SequenceTensors(source, source.train if split == "train" else source.test, device)


def paired_items(setting: Setting, name: str, split: str, device: torch.device) -> SequenceTensors:
    """The same, resampled and with the receiver's labels."""
    pairs = pairing_of(setting, name).split(split)
    items = own_items(setting, name, split, device).subset(torch.from_numpy(pairs.indices))
    items.labels = torch.tensor(pairs.labels, device=device)
    return items


def paired_hold_out(setting: Setting, spec: CellSpec) -> tuple[np.ndarray, np.ndarray]:
    """Pairs to train on and to score on in a search; no item is on both sides."""
    pairing = pairing_of(setting, spec.fit_data)
    fraction = setting.search.validation_fraction
    return hold_out(pairing.train, pairing.source.train.labels, fraction, spec.fit_data, spec.seed)


def shuffled(labels: torch.Tensor, spec: CellSpec) -> torch.Tensor:
    """The labels in an order that tells nothing about the items: the floor of a stitch that can only learn by heart."""
    order = torch.randperm(len(labels), generator=torch_generator("shuffled_labels", spec.fit_data, spec.seed))
    return labels[order.to(labels.device)]


def paired_predictions(setting: Setting, name: str, alone: Predictions) -> Predictions:
    """What an uncut sender says about the paired test items, in the receiver's classes; -1 where the map has none."""
    pairing = pairing_of(setting, name)
    to_receiver = np.full(pairing.source.classes, -1, dtype=np.int64)
    for sender, receiver in pairing.class_map:
        to_receiver[sender] = receiver
    chosen = pairing.test.indices
    return Predictions(to_receiver[alone.predicted[chosen]], to_receiver[alone.target[chosen]], alone.cross_entropy)


def on_mapped_images(setting: Setting, receiver: ModelRecipe, uncut: dict[str, Predictions], name: str) -> float | None:
    """Accuracy of an uncut receiver on its own variant's test images of mapped classes; None without any."""
    alone = uncut.get(receiver.variant or "")
    if alone is None:
        return None
    mapped = np.isin(alone.target, [b for _, b in pairing_of(setting, name).class_map])
    return float(np.mean(alone.predicted[mapped] == alone.target[mapped])) if mapped.any() else None


def part_of_id(setting: Setting, cell: CellSpec) -> dict[str, str]:
    """What a cell's id has besides, so that the ids of cells without a pairing or shuffled labels stay as they are."""
    parts = {}
    if cell.sender.source:
        parts["pairing"] = pairing_of(setting, cell.sender.source).fingerprint
    if cell.sender.shuffled:
        parts["labels"] = record.SHUFFLED
    return parts
