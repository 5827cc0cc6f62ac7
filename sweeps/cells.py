"""From planned cells to trained ones: builds the front, the stitches and tails, and turns outcomes into rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch

from stitching_core import record
from stitching_core.data.noise import NoisePoints
from stitching_core.data.stratified import stratified_indices
from stitching_core.seeding import stream
from stitching_core.spec import CellSpec, ModelRecipe, Protocol
from stitching_core.stitch.layers import build_stitch
from stitching_core.train.block import Leaving, Results, nothing_more, train_block
from stitching_core.train.fronts import Front, ModelFront, NoiseFront
from stitching_core.train.images import as_images
from stitching_core.train.items import Items
from stitching_core.train.stitching import StitchRun
from sweeps.sequences import paired_hold_out, paired_items, shuffled
from sweeps.worker import Setting, divided, images_for, source_of

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
    on_leave: Leaving = nothing_more,
) -> tuple[dict[str, StitchRun], Results]:
    """Trains candidates in lock-step.

    Args:
        setting: of the sweep.
        candidates: they share a sender, fit data and seed.
        device: to train on.
        on_epoch: called after every epoch with the number of stitches that took part in it.
        validate: hold out a stratified part of the fit data, train on the rest and evaluate on that part alone. The
            test set is not touched.
        on_leave: see ``train_block``.

    Returns:
        The runs and the predictions of those that are ok, by candidate key.
    """
    spec = candidates[0].cell.spec
    cells = {candidate.key: candidate.cell for candidate in candidates}
    front = make_front(setting, list(cells.values()), device, validate)
    runs = [make_run(setting, candidate, device, validate) for candidate in candidates]
    asked = (lambda run: (VALIDATION,)) if validate else (lambda run: cells[run.key].spec.eval_data)
    results = train_block(front, runs, (spec.fit_data, spec.seed), asked, on_epoch, on_leave)
    return {run.key: run for run in runs}, results


def make_run(setting: Setting, candidate: Candidate, device: torch.device, validate: bool = False) -> StitchRun:
    """A cell's stitch at its start, with a tail of its own. Its init is drawn for the cell, whatever the candidate."""
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
    targets = None
    if candidate.protocol.objective == record.MSE:
        shown = splits_of(setting, spec, spec.receiver, spec.eval_data, device, validate)
        targets = {name: as_images(items) for name, items in shown.items()}
    return StitchRun(
        candidate.key, tap_of(cell), stitch, tail, candidate.protocol, setting.classes, seed=seed, images=targets
    )


def make_front(setting: Setting, cells: list[Planned], device: torch.device, validate: bool) -> Front:
    """The sender's front with every cut that the cells tap, or the noise sources for their receivers' cuts."""
    spec = cells[0].spec
    evaluations = list(dict.fromkeys(name for cell in cells for name in cell.spec.eval_data))
    if spec.sender.kind == record.NOISE:
        return _noise_front(setting, cells, device, validate)
    sender = divided(setting, spec.sender, cells[0].sender_hash, device)
    splits = splits_of(setting, spec, spec.sender, evaluations, device, validate)
    return ModelFront(sender, list(dict.fromkeys(tap_of(cell) for cell in cells)), splits)


def splits_of(
    setting: Setting,
    spec: CellSpec,
    recipe: ModelRecipe,
    evaluations: Iterable[str],
    device: torch.device,
    validate: bool,
) -> dict[str, Items]:
    """The items of a cell, split by split, as one of its two models is shown them."""
    paired = recipe.source is not None

    def shown(name: str, split: str) -> Items:
        if paired:
            return paired_items(setting, name, split, device)
        return images_for(setting, recipe, name, split, device)

    fit = shown(spec.fit_data, "train")
    if recipe.shuffled:
        fit = fit.subset(torch.arange(len(fit)))  # labels of its own: the process keeps the others
        fit.labels = shuffled(fit.labels, spec)
    if validate:
        kept, held = paired_hold_out(setting, spec) if paired else hold_out(setting, fit.labels.cpu().numpy(), spec)
        return {"fit": fit.subset(torch.from_numpy(kept)), VALIDATION: fit.subset(torch.from_numpy(held))}
    return {name: shown(name, "test") for name in evaluations} | {"fit": fit}


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
    """Indices of the fit data to train on and to score on: stratified, a function of the fit data and the seed."""
    size = max(setting.classes, round(len(labels) * setting.search.validation_fraction))
    held = stratified_indices(labels, size, "validation", spec.fit_data, spec.seed)
    return np.setdiff1d(np.arange(len(labels)), held), held
