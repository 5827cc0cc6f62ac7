"""Values that have the right type and still can't be meant. One line each, before anything is launched."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import inf

from stitching_core import record
from stitching_core.data.sequences import SEQUENCES
from stitching_core.data.sources import SOURCES
from stitching_core.data.variants import VARIANTS
from stitching_core.errors import InputError
from stitching_core.models.architectures import ARCHITECTURES
from stitching_core.models.weights import check_name as check_weights
from stitching_core.stitch.layers import INITS, STITCHES
from stitching_core.train.base import SCHEDULES
from stitching_core.train.stitching import BN_MODES, OBJECTIVES
from sweeps.schema import ModelConfig, ProtocolConfig, SearchConfig, SweepConfig, TrainingConfig, training_of

KINDS = (record.TRAINED, record.RANDOM_INIT, record.NOISE, record.WEIGHTS, record.SHUFFLED)


def one_of(key: str, value: object, allowed: Iterable[str]) -> None:
    """Raises InputError unless the value is among the allowed ones."""
    if value not in (known := list(allowed)):
        raise InputError(f"{key}={value} is unknown; allowed: {', '.join(known)}")


def within(key: str, value: float, low: float, high: float, *, open_low: bool = False) -> None:
    """Raises InputError unless low <= value <= high (low < value with ``open_low``) and value is finite."""
    if not (low < value if open_low else low <= value) or not value <= high or value == inf:
        bound = f"above {low:g}" if open_low else f"at least {low:g}"
        bound += f" and at most {high:g}" if high < inf else " and finite" if value == inf else ""
        raise InputError(f"{key}={value:g} is out of range; it must be {bound}")


def check(config: SweepConfig) -> None:
    """Checks every value that needs no data and no model.

    Raises:
        InputError: the first one that can't be meant.
    """
    if config.scale != "full" and config.experiment_id is None:
        raise InputError(
            f"scale={config.scale} is a size of the paper's experiments; name one, for example experiment=2e"
        )
    if config.scale != "full" and config.data.source == "imagenet":
        raise InputError(
            f"scale={config.scale} is a size of the ResNet-18 experiments, not of {config.experiment_id}; that has "
            "scale=full alone, and experiment=imagenet_noise is sized for 2 cores"
        )
    check_name("name", config.name)
    within("seed", config.seed, 0, 2**31)
    _data(config)
    _zoo(config)
    check_protocol(config.protocol)
    _search(config.search, config.protocol)
    one_of("grid.mode", config.grid.mode, ("same_cut", "all_cuts"))
    one_of("grid.pairs", config.grid.pairs, ("all", "self", "other"))
    within("grid.runs", config.grid.runs, 1, inf)
    if config.measure.columns is not None:
        within("measure.columns", config.measure.columns, 2, inf)
    cluster = config.cluster
    one_of("cluster.mode", cluster.mode, ("auto", "local"))
    one_of("cluster.device", cluster.device, ("auto", "cpu", "cuda"))
    for key in ("block_cells", "threads"):
        within(f"cluster.{key}", getattr(cluster, key), 1, inf)
    within("cluster.object_store_mib", cluster.object_store_mib, 80, inf)  # Ray's own minimum is 75 MB
    for key in ("cpus_per_block", "gpus_per_block"):
        within(f"cluster.{key}", getattr(cluster, key), 1e-4, inf)  # Ray counts in ten-thousandths
    if cluster.gpus_per_block > 1 and cluster.gpus_per_block % 1:
        raise InputError(
            f"cluster.gpus_per_block={cluster.gpus_per_block:g} is refused; it must be a part of one GPU or whole ones"
        )
    within("cluster.wait_slots", cluster.wait_slots, 1, inf)
    within("cluster.wait_seconds", cluster.wait_seconds, 0, inf)
    within("cluster.max_failures", cluster.max_failures, 0, inf)
    if cluster.cpus is not None:
        within("cluster.cpus", cluster.cpus, max(1, cluster.cpus_per_block), inf)
    if cluster.gpus is not None:
        within("cluster.gpus", cluster.gpus, 0, inf)


def check_name(key: str, value: str) -> None:
    """Raises InputError unless the value can name a folder and can't leave its parent."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", value):
        raise InputError(
            f"{key}={value!r} can't name a folder; allowed: up to 100 letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit"
        )


def _data(config: SweepConfig) -> None:
    one_of("data.source", config.data.source, SOURCES)
    within("data.seed", config.data.seed, 0, 2**31)
    within("data.background_noise", config.data.background_noise, 0, 1)
    for key in ("train_items", "noise_train_items", "noise_test_items"):
        value = getattr(config.data, key)
        if value is not None:
            within(f"data.{key}", value, 1, inf)
    for name in config.data.sequences:
        one_of("data.sequences key", name, SEQUENCES)


def _zoo(config: SweepConfig) -> None:
    _training("zoo.training", config.zoo.training)
    one_of("zoo.arch", config.zoo.arch, ARCHITECTURES)
    if config.zoo.classes is not None:
        within("zoo.classes", config.zoo.classes, 2, inf)
    for name, model in config.zoo.models.items():
        key = f"zoo.models.{name}"
        check_name(key.rpartition(".")[0] + " key", name)
        one_of(f"{key}.kind", model.kind, KINDS)
        _floor_and_source(config, key, model)
        if model.kind == record.TRAINED and model.variant is None and model.source is None:
            raise InputError(f"{key}.variant has no value; a trained model names the data variant it is trained on")
        if model.variant is not None:
            one_of(f"{key}.variant", model.variant, VARIANTS)
        if model.arch is not None:
            one_of(f"{key}.arch", model.arch, ARCHITECTURES)
        if model.kind == record.WEIGHTS and model.weights is None:
            raise InputError(f"{key}.weights has no value; it is a file, package:NAME or torchvision:NAME")
        if model.kind == record.WEIGHTS and model.weights is not None:
            check_weights(model.weights)
        if model.kind == record.NOISE:
            if model.sigma is None:
                raise InputError(f"{key}.sigma has no value; it is the sd of the noise around each class's point")
            within(f"{key}.sigma", model.sigma, 0, inf)
        if model.training is not None:
            _training(f"{key}.training", training_of(config.zoo, model))


def _floor_and_source(config: SweepConfig, key: str, model: ModelConfig) -> None:
    if model.kind == record.SHUFFLED:
        models = config.zoo.models
        one_of(f"{key}.of", model.of, [n for n, m in models.items() if m.kind not in (record.SHUFFLED, record.NOISE)])
    elif model.of is not None:
        raise InputError(f"{key}.of={model.of} is for kind shuffled alone; the kind is {model.kind}")
    if model.kind in (record.SHUFFLED, record.NOISE):
        own = [
            name for name in ("source", "arch", "variant", "weights", "training") if getattr(model, name) is not None
        ]
        if model.source is not None or (model.kind == record.SHUFFLED and own):
            raise InputError(f"{key}.{own[0]} is given; a sender of kind {model.kind} has none of its own")
        return
    arch = model.arch or config.zoo.arch
    reads = ARCHITECTURES[arch].sequence if arch in ARCHITECTURES else None
    if model.source is None:
        if reads is not None:
            raise InputError(f"{key}.arch={arch} reads sequences; {key}.source names them: {', '.join(SEQUENCES)}")
        return
    one_of(f"{key}.source", model.source, SEQUENCES)
    if reads is None:
        known = [name for name, entry in ARCHITECTURES.items() if entry.sequence]
        raise InputError(f"{key}.arch={arch} reads images, not {model.source}; allowed: {', '.join(known)}")
    if model.variant is not None:
        raise InputError(f"{key}.variant={model.variant} is a variant of images; a model with a source has none")


def _training(key: str, training: TrainingConfig) -> None:
    within(f"{key}.learning_rate", training.learning_rate, 0, inf, open_low=True)
    within(f"{key}.momentum", training.momentum, 0, 1)
    within(f"{key}.weight_decay", training.weight_decay, 0, inf)
    within(f"{key}.batch_size", training.batch_size, 2, inf)
    within(f"{key}.epochs", training.epochs, 1, inf)
    one_of(f"{key}.schedule", training.schedule, SCHEDULES)


def check_protocol(protocol: ProtocolConfig, key: str = "protocol.{}", only: str | None = None) -> None:
    """Raises InputError unless the protocol's values (or one of them) are allowed.

    Args:
        protocol: the values.
        key: what a value is called in the message, with ``{}`` for its field.
        only: the one field to check; None checks all.
    """
    bounds = {
        "learning_rate": (0, inf, True),
        "momentum": (0, 1, False),
        "weight_decay": (0, inf, False),
        "batch_size": (2, inf, False),
        "epochs": (1, inf, False),
        "l1": (0, inf, False),
        "label_offset": (0, inf, False),
    }
    known: dict[str, Iterable[str]] = {"stitch": STITCHES, "init": INITS, "bn_mode": BN_MODES, "objective": OBJECTIVES}
    for field in bounds if only is None else bounds.keys() & {only}:
        low, high, open_low = bounds[field]
        within(key.format(field), getattr(protocol, field), low, high, open_low=open_low)
    for field in known if only is None else known.keys() & {only}:
        one_of(key.format(field), getattr(protocol, field), known[field])


def _search(search: SearchConfig, protocol: ProtocolConfig) -> None:
    one_of("search.mode", search.mode, ("none", "per_cell", "shared"))
    if search.mode == "none":
        return
    within("search.n_trials", search.n_trials, 1, inf)
    within("search.batch", search.batch, 1, inf)
    within("search.startup_trials", search.startup_trials, 0, inf)
    within("search.validation_fraction", search.validation_fraction, 0, 0.9, open_low=True)
    if search.mode == "shared":
        within("search.sample_cells", search.sample_cells, 1, inf)
    for key in ("learning_rate", "momentum", "weight_decay", "epochs"):
        bounds = getattr(search.space, key)
        if len(bounds) != 2 or not bounds[0] <= bounds[1]:
            raise InputError(f"search.space.{key}={bounds} is no range; write [low, high]")
        log_scale = key in ("learning_rate", "weight_decay")
        least = 1 if key == "epochs" else 0
        within(f"search.space.{key}", bounds[0], least, inf, open_low=log_scale)
        within(f"search.space.{key}", bounds[1], least, 1 if key == "momentum" else inf)
    if protocol.weight_decay == 0:
        raise InputError(
            "protocol.weight_decay=0 can't be a candidate of a search, which draws it on a log scale; "
            "it must be above 0, for example 1e-6"
        )
    if not search.space.init:
        raise InputError("search.space.init=[] is empty; allowed: " + ", ".join(INITS))
    for init in search.space.init:
        one_of("search.space.init", init, INITS)
