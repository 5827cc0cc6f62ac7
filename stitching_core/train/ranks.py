"""Ranks at every module of the stitched networks of a block, and of an uncut network."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from stitching_core import record
from stitching_core.measure.modules import ModuleRank, Watched, feature_ranks, module_ranks, watch
from stitching_core.train.fronts import Front
from stitching_core.train.images import eval_batches
from stitching_core.train.items import Items
from stitching_core.train.stitching import StitchRun

FRONT = ""  # owner of the sender's modules, which are measured once for all stitches of a block


@torch.no_grad()
def uncut_ranks(model: nn.Module, data: Items, columns: int | None = None) -> list[ModuleRank]:
    """Every module of an uncut network over a test split, in eval mode.

    Args:
        model: the network.
        data: the split.
        columns: at most so many of a module's features are used.
    """
    model.eval()
    device = data.labels.device

    def over(_owners: set[str]) -> None:
        for indices in eval_batches(len(data)):
            model(data.batch(indices.to(device)))

    watched = watch("model", None, model, lambda: model(data.batch(torch.arange(2, device=device))))
    return module_ranks(watched, feature_ranks(watched, over, len(data), columns, device))


@torch.no_grad()
def block_ranks(
    front: Front, runs: list[StitchRun], split: str, columns: int | None = None
) -> dict[str, list[ModuleRank]]:
    """Every module of the stitched networks of a block over a split, in eval mode: sender, stitch, receiver.

    Args:
        front: of the block, as training left it: in `adapt` its statistics are those of the stitches' data.
        runs: those that are ok are measured.
        split: one of the front's.
        columns: at most so many of a module's features are used.

    Returns:
        The modules of each run that is ok, by its key.
    """
    runs = [run for run in runs if run.status == record.OK]
    labels = front.labels(split)
    if front.module is not None:
        front.module.eval()
    for run in runs:
        run.train_mode(False)
    few = torch.arange(2, device=labels.device)
    sent = []
    if front.module is not None:
        sent = watch(FRONT, "sender", front.module, lambda: front.activations(split, few))
    activations = front.activations(split, few)
    own: dict[str, list[Watched]] = {}
    for run in runs:
        stitched = run.stitch(activations[run.tap])
        own[run.key] = [
            *watch(run.key, "stitch", run.stitch, partial(run.stitch, activations[run.tap])),
            *watch(run.key, "receiver", run.tail, partial(run.tail, stitched)),
        ]
    watched = sent + [module for run in runs for module in own[run.key]]

    def over(owners: set[str]) -> None:
        asked = [run for run in runs if run.key in owners]
        for indices in eval_batches(len(labels)):
            activations = front.activations(split, indices.to(labels.device))
            for run in asked:
                run.tail(run.stitch(activations[run.tap]))

    found = feature_ranks(watched, over, len(labels), columns, labels.device)
    features = dict(zip(map(id, watched), found, strict=True))
    weights: dict[int, int] = {}
    ranks = {}
    for run in runs:
        modules = sent[: front.depth(run.tap)] + own[run.key]
        ranks[run.key] = module_ranks(modules, [features[id(module)] for module in modules], weights)
    return ranks
