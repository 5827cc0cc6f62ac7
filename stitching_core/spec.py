"""What is to be done, as frozen values: hashable, comparable, and with one canonical JSON from which all ids come."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from stitching_core import record


def canonical_json(value: Any) -> str:
    """JSON that is the same in every process: sorted keys, no spaces, no NaN, dataclasses as objects, tuples as lists.

    Types count: 1 and 1.0 differ. A configuration's values have been cast to their fields' types, so there this can't
    matter; anywhere else the worst that can follow is a result computed twice, never one taken for another.
    """

    def plain(item: Any) -> Any:
        if dataclasses.is_dataclass(item) and not isinstance(item, type):
            return dataclasses.asdict(item)
        raise TypeError(f"{type(item).__name__} has no canonical JSON")

    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=plain)


def digest(value: Any) -> str:
    """SHA-256 over the canonical JSON, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


@dataclass(frozen=True)
class DataSpec:
    """A data source and how it is coloured. Where the files lie is no part of it: the content's hash is."""

    source: str
    seed: int = 0
    background_noise: float = 0.1  # sd of the background's Gaussian, as a share of 255
    train_items: int | None = None  # a stratified subset of the training images; None is all
    noise_train_items: int | None = None  # points of a noise sender; None is as many as the source has images
    noise_test_items: int | None = None


@dataclass(frozen=True)
class TrainingRecipe:
    """How a base model is trained: SGD, cross entropy, no augmentation, no validation set."""

    learning_rate: float
    momentum: float
    weight_decay: float
    batch_size: int
    epochs: int
    schedule: str = "none"


@dataclass(frozen=True)
class ModelRecipe:
    """One model of the zoo: what it is called, what it is made of and what it was trained on."""

    name: str
    kind: str  # record.TRAINED, RANDOM_INIT, NOISE or WEIGHTS
    arch: str | None  # None for noise
    variant: str | None  # the data variant it was trained on; None for random_init and noise
    seed: int
    training: TrainingRecipe | None = None
    sigma: float | None = None  # noise only
    weights: str | None = None  # a file, package:NAME or torchvision:NAME; for WEIGHTS only
    source: str | None = None  # a sequence source, for a network of another modality than images
    shuffled: bool = False  # stitches are fitted to shuffled labels: a floor


@dataclass(frozen=True)
class Protocol:
    """How a stitch is built and trained."""

    name: str
    stitch: str
    init: str
    bn_mode: str
    objective: str
    learning_rate: float
    momentum: float
    weight_decay: float
    batch_size: int
    epochs: int
    l1: float = 0.0
    label_offset: int = 0


@dataclass(frozen=True)
class SearchSpec:
    """Hyperparameter search: which way, how many candidates, and over which ranges."""

    mode: str = "none"  # none, per_cell or shared
    n_trials: int = 0
    batch: int = 1  # candidates asked and told together
    validation_fraction: float = 0.2
    startup_trials: int = 5  # drawn at random before the sampler models anything
    sample_cells: int = 0  # shared only: how many cells a candidate is scored over
    sample: str = ""  # shared only: a hash of which cells those are
    learning_rate: tuple[float, float] = (1e-4, 1e-1)
    momentum: tuple[float, float] = (0.0, 0.99)
    weight_decay: tuple[float, float] = (1e-6, 1e-1)
    epochs: tuple[int, int] = (1, 20)
    init: tuple[str, ...] = ("default",)


@dataclass(frozen=True)
class CellSpec:
    """One cell: a sender's front up to a cut, a stitch, a receiver's tail from a cut, a protocol, a fit set, a seed."""

    sender: ModelRecipe
    sender_cut: str | None  # None for a noise sender: its points stand for the activation
    receiver: ModelRecipe
    receiver_cut: str
    fit_data: str
    eval_data: tuple[str, ...]
    protocol: Protocol
    seed: int


def cell_id(
    cell: CellSpec,
    *,
    sender_hash: str,
    receiver_hash: str,
    data: DataSpec,
    data_hash: str,
    search: SearchSpec,
    more: dict[str, str] | None = None,
) -> str:
    """The id of a cell: a hash of everything that decides its result, and of nothing else.

    Names of models, the evaluations asked and the place of the data are left out. For a searched cell the search's
    definition stands in for the values that it finds. ``more`` is what else decides: a pairing, shuffled labels.

    Returns:
        24 hexadecimal digits (96 bits: a collision among 10^9 cells has probability below 10^-10).
    """
    protocol = {k: v for k, v in dataclasses.asdict(cell.protocol).items() if k != "name"}
    coloured = {k: v for k, v in dataclasses.asdict(data).items() if k in ("seed", "background_noise")}
    if cell.sender.kind == record.NOISE:
        coloured |= {"noise_train_items": data.noise_train_items, "noise_test_items": data.noise_test_items}
    return digest(
        {
            "schema_version": record.SCHEMA_VERSION,
            "sender": sender_hash,
            "sender_cut": cell.sender_cut,
            "receiver": receiver_hash,
            "receiver_cut": cell.receiver_cut,
            "protocol": protocol,
            "search": None if search.mode == "none" else dataclasses.asdict(search),
            "data": data_hash,
            "colouring": coloured,
            "fit_data": cell.fit_data,
            "seed": cell.seed,
        }
        | (more or {})
    )[:24]
