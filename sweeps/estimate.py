"""What a plan would cost, before anything starts: counted multiply-adds, and time by rates that were measured."""

from __future__ import annotations

from functools import lru_cache

import polars as pl
import torch
from torch.utils.flop_counter import FlopCounterMode

from stitching_core import record
from stitching_core.models.divide import cuts_of
from sweeps.plan import SHAPES_AT, make_blocks, recipe
from sweeps.progress import clock
from sweeps.schema import SweepConfig, training_of

# Training images of the sources that come with the package; a user's own source is only known once it is loaded.
ITEMS = {"digits": 1437, "mnist": 60_000, "fashion_mnist": 60_000, "imagenet": 0}  # imagenet has none
SEQUENCES = {"japanese_vowels": 270, "fortunes": 6226}  # items, and about the pairs of a receiver without images

# One core of a server CPU, from the embedded default's 120 stitches in 151 s on two: what torch's convolutions reach on
# 28x28 images (multiply-adds), and what an operation costs however small it is.
FLOPS_PER_SECOND = 30e9
SECONDS_PER_OPERATION = 60e-6


@lru_cache(maxsize=256)
def forward_cost(arch: str, classes: int, cut: str | None, part: str) -> tuple[float, int]:
    """FLOPs of one image, and operations of one batch, of a forward pass through the front, tail or whole network."""
    divided = cuts_of(arch, classes)
    module, given = divided.model, divided.example
    if part == "front" and cut is not None:
        module = divided.front([cut])
    elif part == "tail" and cut is not None:
        module = divided.tail(cut)
        given = torch.zeros(2, *divided.cut(cut).shape, device=given.device)
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        module(given)
    operations = sum(1 for child in module.modules() if not list(child.children()))
    return counter.get_total_flops() / 2, operations


def core_seconds(config: SweepConfig, cells: pl.DataFrame, items: int) -> float:
    """Seconds of one CPU core for all stitches, front passes shared within a block; their evaluation is not counted.

    Args:
        config: names the models, the protocol and the search; a noise sender's points may be fewer or more than
            there are images.
        cells: the plan with its blocks.
        items: training images.
    """
    protocol = config.protocol
    classes = config.zoo.classes or SHAPES_AT
    candidates = 1.0
    if config.search.mode == "per_cell":
        candidates += config.search.n_trials * (1 - config.search.validation_fraction)

    def seconds(epochs: int, batch: int, flops: float, operations: int) -> float:
        steps = epochs * max(1, given // batch)
        return steps * max(flops * batch / FLOPS_PER_SECOND, operations * SECONDS_PER_OPERATION)

    models, total = config.zoo.models, 0.0
    for (_, sender), group in cells.group_by("block", "sender"):
        model = models[str(sender)]
        given = config.data.noise_train_items or items if model.kind == record.NOISE else items
        if model.kind != record.NOISE:
            sends = recipe(config, str(sender), config.seed)
            assert sends.arch is not None
            arch, given = sends.arch, given or SEQUENCES.get(sends.source or "", 0)
            fronts = [forward_cost(arch, classes, cut, "front") for cut in group["sender_cut"].unique()]
            epochs = max(group["epochs"]) if "epochs" in group.columns else protocol.epochs
            batch = group["batch_size"][0] if "batch_size" in group.columns else protocol.batch_size
            total += candidates * seconds(epochs, batch, *max(fronts))
        for cell in group.iter_rows(named=True):
            arch = models[cell["receiver"]].arch or config.zoo.arch
            flops, operations = forward_cost(arch, classes, cell["receiver_cut"], "tail")
            epochs, batch = cell.get("epochs", protocol.epochs), cell.get("batch_size", protocol.batch_size)
            # forward, and backward to the stitch
            total += candidates * seconds(epochs, batch, 2 * flops, 2 * (operations + 4))
    return total


def items_of(config: SweepConfig) -> int | None:
    """Training images, as far as that is known without loading them."""
    return config.data.train_items or ITEMS.get(config.data.source)


def base_seconds(config: SweepConfig, names: set[str], runs: int, items: int) -> tuple[int, float]:
    """How many base models these names stand for if none is there yet, and the core seconds to train them."""
    count, total = 0, 0.0
    for name in sorted(names):
        model = config.zoo.models[name]
        if model.kind == record.TRAINED:
            training = training_of(config.zoo, model)
            arch = model.arch or config.zoo.arch
            flops, operations = forward_cost(arch, config.zoo.classes or SHAPES_AT, None, "whole")
            own = SEQUENCES.get(model.source or "", items)
            steps = training.epochs * max(1, own // training.batch_size)
            work = max(3 * flops * training.batch_size / FLOPS_PER_SECOND, 3 * operations * SECONDS_PER_OPERATION)
            count += runs
            total += runs * steps * work
    return count, total


def describe(config: SweepConfig, plan: pl.DataFrame) -> str:
    """The plan in words: cells, blocks, base models and an estimate of the time."""
    from sweeps.cluster import local  # imports ray

    slots = local(config.cluster).slots
    cells = make_blocks(plan, config.cluster.block_cells, slots)
    items = items_of(config)
    senders, receivers = plan["sender"].n_unique(), plan["receiver"].n_unique()
    lines = [
        f"sweep     {config.name}: {plan.height} cells = {senders} senders, {receivers} receivers, "
        f"{plan['run'].n_unique()} runs, {config.grid.mode}",
        f"blocks    {cells['block'].n_unique()}, {slots} at a time here",
    ]
    if items is None:
        lines.append(f"estimate  none: the size of {config.data.source!r} is known once it is loaded")
        return "\n".join(lines)
    names = {*plan["sender"].unique(), *plan["receiver"].unique()}
    count, base = base_seconds(config, names, plan["run"].n_unique(), items)
    stitches = core_seconds(config, cells, items)
    lines += [
        f"zoo       {count} base models to train if none is there yet, about {clock(base)} of one core",
        f"stitches  about {clock(stitches)} of one core",
        f"estimate  about {clock((base + stitches) / max(slots, 1) + 30)} on {slots} cores of this kind; "
        "GPUs are not in the estimate",
    ]
    return "\n".join(lines)
