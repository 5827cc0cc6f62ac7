"""Ranks of every convolution and linear layer, of uncut and of stitched networks, over a whole test set.

After Smith et al. 2025 (rank analysis): every Conv2d and Linear is watched, the stitch's own included. A module's
output is read inside its hook, before whatever follows can overwrite it in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from stitching_core.measure.rank import FeatureRank, RankMeter, weight_rank
from stitching_core.models.hooked import HookedFront, HookedTail

WATCHED = (nn.Conv1d, nn.Conv2d, nn.Linear)
BUDGET = 3 * 2**29  # bytes of meters at a time; more modules than fit take more passes over the test set


@dataclass(frozen=True)
class ModuleRank:
    """What was found at one module.

    Attributes:
        part: "sender", "stitch" or "receiver" of a stitched network; None for an uncut one.
        module: its path inside its network.
        position: in the order of execution, from 0.
        features: rank of its output.
        weight: rank of its weight.
    """

    part: str | None
    module: str
    position: int
    features: FeatureRank
    weight: int


@dataclass(frozen=True)
class Watched:
    """A module of one of the networks that take part in a pass. ``owner`` says of which."""

    owner: str
    part: str | None
    path: str
    module: nn.Module
    width: int


@contextmanager
def hooked(modules: Iterable[tuple[nn.Module, Callable[[torch.Tensor], None]]]) -> Iterator[None]:
    """Calls each function with its module's output, as long as the context lasts."""
    handles = [module.register_forward_hook(lambda _m, _i, output, read=read: read(output)) for module, read in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def watch(owner: str, part: str | None, network: nn.Module, forward: Callable[[], Any]) -> list[Watched]:
    """The modules that a forward pass goes through, in order; one that is called more than once is left out.

    Args:
        owner: of the network.
        part: what the network is a part of.
        network: whose modules.
        forward: runs it on a few samples.
    """
    wrapper = "model." if isinstance(network, HookedFront | HookedTail) else ""
    named = {name: module for name, module in network.named_modules() if isinstance(module, WATCHED)}
    calls: list[tuple[str, int]] = []
    hooks: list[tuple[nn.Module, Callable[[torch.Tensor], None]]] = []
    for name, module in named.items():
        hooks.append((module, partial(_note, calls, name)))
    if isinstance(network, HookedTail):  # up to its tap it runs on a blank image; hooks run in the order they were made
        hooks.append((network.model.get_submodule(network.tap), lambda output: calls.clear()))
    with hooked(hooks):
        forward()
    names = [name for name, _ in calls]
    return [
        Watched(owner, part, name.removeprefix(wrapper), named[name], width)
        for name, width in calls
        if names.count(name) == 1
    ]


def _note(calls: list[tuple[str, int]], name: str, output: torch.Tensor) -> None:
    calls.append((name, output[0].numel()))


@torch.no_grad()
def feature_ranks(
    watched: list[Watched],
    over: Callable[[set[str]], None],
    items: int,
    columns: int | None,
    device: torch.device,
    budget: int = BUDGET,
) -> list[FeatureRank]:
    """The feature rank of every watched module, in as many passes as the memory asks for.

    Args:
        watched: the modules.
        over: runs the whole test set through the networks of the owners that it is given, in eval mode.
        items: samples in the test set.
        columns: at most so many of a module's features are used; None uses all.
        device: where the features are.
        budget: bytes of the meters of one pass; a single module may need more.
    """
    found: list[FeatureRank] = []
    waiting = list(watched)
    while waiting:
        group: list[Watched] = []
        size = 0
        while waiting and (not group or size + RankMeter.bytes_for(waiting[0].width, items, columns) <= budget):
            size += RankMeter.bytes_for(waiting[0].width, items, columns)
            group.append(waiting.pop(0))
        meters = [RankMeter(w.width, items, columns, (w.path,), str(device)) for w in group]
        with hooked((w.module, meter.add) for w, meter in zip(group, meters, strict=True)):
            over({w.owner for w in group})
        while meters:
            found.append(meters.pop(0).result())  # and its memory is free for the next one's eigenvalues
    return found


def module_ranks(
    watched: list[Watched], features: list[FeatureRank], weights: dict[int, int] | None = None
) -> list[ModuleRank]:
    """Numbers the modules of one network in their order and adds the ranks of their weights.

    Args:
        watched: in order.
        features: their feature ranks.
        weights: ranks that are known, by the weight's identity; completed.
    """
    known = {} if weights is None else weights
    ranks = []
    for position, (module, rank) in enumerate(zip(watched, features, strict=True)):
        weight = module.module.weight
        assert isinstance(weight, torch.Tensor)
        if id(weight) not in known:
            known[id(weight)] = weight_rank(weight)
        ranks.append(ModuleRank(module.part, module.path, position, rank, known[id(weight)]))
    return ranks
