"""From planned cells to trained ones: builds the front, the stitches and tails, and turns outcomes into rows."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from stitching_core import record
from stitching_core.data.noise import NoisePoints
from stitching_core.data.stratified import stratified_indices
from stitching_core.measure.accuracy import Predictions
from stitching_core.seeding import stream
from stitching_core.spec import CellSpec, Protocol
from stitching_core.stitch.layers import build_stitch
from stitching_core.train.block import Results, train_block
from stitching_core.train.fronts import Front, ModelFront, NoiseFront
from stitching_core.train.stitching import StitchRun
from sweeps.worker import Setting, divided, images, source_of, uncut

VALIDATION = "validation"


@dataclass(frozen=True)
class Planned:
    """A cell with its id and the content hashes of its two models."""

    id: str
    spec: CellSpec
    sender_hash: str
    receiver_hash: str


@dataclass(frozen=True)
class Candidate:
    """A cell with concrete hyperparameters, to be trained."""

    key: str
    cell: Planned
    protocol: Protocol


def tap_of(cell: Planned) -> str:
    """Which of a front's activations a cell reads: a cut of the sender, or noise made for a cut of a receiver."""
    return cell.spec.sender_cut or f"{cell.receiver_hash}/{cell.spec.receiver_cut}"


def train(
    setting: Setting,
    candidates: list[Candidate],
    device: torch.device,
    on_epoch: Callable[[int], None],
    validate: bool = False,
) -> tuple[dict[str, StitchRun], Results]:
    """Trains candidates that share a sender, fit data and seed, in lock-step.

    Args:
        validate: hold out a stratified part of the fit data, train on the rest and evaluate on that part alone. The
            test set is not touched.

    Returns:
        The runs and the predictions of those that are ok, by candidate key.
    """
    spec = candidates[0].cell.spec
    cells = {candidate.key: candidate.cell for candidate in candidates}
    front = make_front(setting, list(cells.values()), device, validate)
    runs = [make_run(setting, candidate, device) for candidate in candidates]
    asked = (lambda run: (VALIDATION,)) if validate else (lambda run: cells[run.key].spec.eval_data)
    results = train_block(front, runs, (spec.fit_data, spec.seed), asked, on_epoch)
    return {run.key: run for run in runs}, results


def make_run(setting: Setting, candidate: Candidate, device: torch.device) -> StitchRun:
    """A cell's stitch at its start, with a tail of its own. The init depends on the cell, not on its hyperparameters."""
    cell, spec = candidate.cell, candidate.cell.spec
    receiver = divided(setting, spec.receiver, cell.receiver_hash, device)
    shape = receiver.cut(spec.receiver_cut).shape
    sent = shape
    if spec.sender_cut is not None:
        sent = divided(setting, spec.sender, cell.sender_hash, device).cut(spec.sender_cut).shape
    seed = stream(
        "stitch", cell.sender_hash, spec.sender_cut, cell.receiver_hash, spec.receiver_cut, spec.fit_data, spec.seed
    )
    stitch = build_stitch(candidate.protocol.stitch, candidate.protocol.init, sent, shape, seed).to(device)
    tail = receiver.tail(spec.receiver_cut)
    return StitchRun(candidate.key, tap_of(cell), stitch, tail, candidate.protocol, setting.classes, seed=seed)


def make_front(setting: Setting, cells: list[Planned], device: torch.device, validate: bool) -> Front:
    """The sender's front with every cut that the cells tap, or the noise sources for their receivers' cuts."""
    spec = cells[0].spec
    evaluations = list(dict.fromkeys(name for cell in cells for name in cell.spec.eval_data))
    if spec.sender.kind == record.NOISE:
        return _noise_front(setting, cells, device, validate)
    sender = divided(setting, spec.sender, cells[0].sender_hash, device)
    fit = images(setting, spec.fit_data, "train", sender.size, device)
    if validate:
        kept, held = hold_out(setting, fit.labels.cpu().numpy(), spec)
        splits = {"fit": fit.subset(torch.from_numpy(kept)), VALIDATION: fit.subset(torch.from_numpy(held))}
    else:
        splits = {name: images(setting, name, "test", sender.size, device) for name in evaluations}
        splits["fit"] = fit
    return ModelFront(sender, list(dict.fromkeys(tap_of(cell) for cell in cells)), splits)


def _noise_front(setting: Setting, cells: list[Planned], device: torch.device, validate: bool) -> NoiseFront:
    spec, data, source = cells[0].spec, setting.data, source_of(setting)
    items = {
        "train": data.noise_train_items or len(source.train),
        "test": data.noise_test_items or len(source.test),
    }
    sources: dict[str, dict[str, NoisePoints]] = {"train": {}, "test": {}}
    for cell in {tap_of(cell): cell for cell in cells}.values():
        receiver = divided(setting, cell.spec.receiver, cell.receiver_hash, device)
        shape = receiver.cut(cell.spec.receiver_cut).shape
        key = (cell.receiver_hash, cell.spec.receiver_cut)
        for split in sources:
            assert spec.sender.sigma is not None
            points = NoisePoints(
                shape, setting.classes, spec.sender.sigma, items[split], seed=data.seed, split=split, base_key=key
            )
            sources[split][tap_of(cell)] = points
    if not validate:
        return NoiseFront({"fit": (sources["train"], None), record.NOISE: (sources["test"], None)}, device)
    labels = next(iter(sources["train"].values())).labels
    kept, held = hold_out(setting, labels, spec)
    return NoiseFront({"fit": (sources["train"], kept), VALIDATION: (sources["train"], held)}, device)


def hold_out(setting: Setting, labels: np.ndarray, spec: CellSpec) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the fit data to train a candidate on and to score it on: stratified, a function of fit data and seed."""
    size = max(setting.classes, round(len(labels) * setting.search.validation_fraction))
    held = stratified_indices(labels, size, "validation", spec.fit_data, spec.seed)
    return np.setdiff1d(np.arange(len(labels)), held), held


def rows_of(
    setting: Setting,
    cell: Planned,
    protocol: Protocol,
    device: torch.device | str,
    run: StitchRun | None,
    found: dict[str, Predictions],
    seconds: float | None,
    *,
    failure: str | None = None,
    validation_accuracy: float | None = None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A cell's rows of ``cells`` and ``predictions``: one for each evaluation asked, whatever became of it."""
    spec = cell.spec
    status = record.FAILED if run is None else run.status
    reason = failure if run is None else run.reason
    common = {
        "cell_id": cell.id, "sweep": setting.sweep, "run": spec.seed, "experiment": setting.experiment,
        "sender": spec.sender.name, "sender_kind": spec.sender.kind, "sender_arch": spec.sender.arch,
        "sender_variant": spec.sender.variant, "sender_seed": spec.sender.seed, "sender_hash": cell.sender_hash,
        "sender_cut": spec.sender_cut, "receiver": spec.receiver.name, "receiver_kind": spec.receiver.kind,
        "receiver_arch": spec.receiver.arch, "receiver_variant": spec.receiver.variant,
        "receiver_seed": spec.receiver.seed, "receiver_hash": cell.receiver_hash, "receiver_cut": spec.receiver_cut,
        "data_source": setting.data.source, "data_seed": setting.data.seed, "data_hash": setting.data_hash,
        "fit_data": spec.fit_data, "label_offset": protocol.label_offset, "noise_sigma": spec.sender.sigma,
        "l1": protocol.l1, "protocol": protocol.name, "objective": protocol.objective, "stitch": protocol.stitch,
        "init": protocol.init, "bn_mode": protocol.bn_mode, "search": setting.search.mode,
        "search_trials": setting.search.n_trials, "device": str(device), "seed": spec.seed,
        "learning_rate": protocol.learning_rate, "momentum": protocol.momentum,
        "weight_decay": protocol.weight_decay, "batch_size": protocol.batch_size, "epochs": protocol.epochs,
        "status": status, "reason": reason, "validation_accuracy": validation_accuracy, "train_seconds": seconds,
        "learning_curve": run.curve if run else None,
        "finished_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
    }  # fmt: skip
    if run is not None and status == record.OK:
        common |= run.movement()
    rows, predictions = [], []
    for name in spec.eval_data:
        values = dict(common, eval_data=name)
        if status == record.OK:
            got = found[name]
            values |= {
                "accuracy": got.accuracy,
                "cross_entropy": got.cross_entropy,
                "worst_class_accuracy": got.worst_class_accuracy,
            }
            predictions.append(
                record.row(
                    "predictions", cell_id=cell.id, eval_data=name, target=got.target, predicted=got.predicted
                )
            )
        for end, content in (("receiver", cell.receiver_hash), ("sender", cell.sender_hash)):
            alone = uncut(setting, content).get(name)  # the same items in the same order, with their true labels
            if alone is not None:
                values[f"{end}_accuracy"] = alone.accuracy
                if status == record.OK:
                    values[f"agreement_{end}"] = found[name].agreement(alone)
        if status == record.OK and values.get("receiver_accuracy") is not None:
            values["penalty"] = values["receiver_accuracy"] - values["accuracy"]
        rows.append(record.row("cells", **values))
    return rows, predictions
