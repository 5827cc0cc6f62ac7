"""A network that can be divided at its cuts, and the check that dividing it changes nothing."""

from __future__ import annotations

import copy
from functools import lru_cache

import torch
from torch import nn

from stitching_core.errors import InputError
from stitching_core.models import graph, hooked
from stitching_core.models.architectures import architecture
from stitching_core.models.cuts import Cut, find_cuts, trace


class DividedModel:
    """A network and its cuts. Its weights are frozen; fronts and tails share them and own their buffers.

    Args:
        model: the network; it is put into eval mode and its parameters stop requiring gradients.
        size: height and width of its input.
        shape: of its input where that is no RGB image, without the batch.
    """

    def __init__(self, model: nn.Module, size: int, shape: tuple[int, ...] | None = None) -> None:
        # channels last is the layout that convolutions and batch norm on small maps are fastest in, on CPUs and GPUs
        self.model = model.eval().requires_grad_(False).to(memory_format=torch.channels_last)
        self.size = size
        device = next((p.device for p in model.parameters()), torch.device("cpu"))
        self.example = torch.zeros(2, *(shape or (3, size, size)), device=device)
        self.traced = trace(self.model)
        found = find_cuts(self.traced, self.example) if self.traced else hooked.find_cuts(self.model, self.example)
        self.cuts: dict[str, Cut] = {cut.name: cut for cut in found}
        self._canonical = {alias: cut.name for cut in found for alias in (cut.name, *cut.aliases)}

    def cut(self, name: str) -> Cut:
        """The cut of that name or alias.

        Raises:
            InputError: there is none.
        """
        if name not in self._canonical:
            raise InputError(f"unknown cut {name!r}; known: {', '.join(self.cuts)}")
        return self.cuts[self._canonical[name]]

    def front(self, names: list[str]) -> nn.Module:
        """The part up to the deepest of the named cuts, with buffers of its own: images -> tuple of activations."""
        taps = [self.cut(name).node for name in names]
        part = graph.front(self.traced, taps) if self.traced else hooked.HookedFront(self.model, taps)
        return own_buffers(part)

    def tail(self, name: str) -> nn.Module:
        """The part after the named cut, with buffers of its own: activation -> logits."""
        tap = self.cut(name).node
        if self.traced:
            return own_buffers(graph.tail(self.traced, tap))
        return own_buffers(hooked.HookedTail(self.model, tap, tuple(self.example.shape[1:])))


def own_buffers(module: nn.Module) -> nn.Module:
    """A copy with buffers of its own (batch-norm statistics) that shares every parameter with the original."""
    return copy.deepcopy(module, {id(parameter): parameter for parameter in module.parameters()})


@torch.no_grad()
def check(divided: DividedModel, names: list[str], seed: int = 0) -> None:
    """Checks that ``tail(front(x)) == model(x)`` at every named cut, all taps on at once, in eval mode.

    Equality is to 1e-5 of the largest logit: the same kernels run on the same numbers, but a hooked or a cloned
    activation may lie differently in memory.

    Raises:
        InputError: dividing at a cut changes the output, which happens when something passes around the cut.
    """
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(divided.example.shape, generator=generator).to(divided.example.device)
    expected = divided.model(images)
    activations = divided.front(names).eval()(images)
    for name, activation in zip(names, activations, strict=True):
        got = divided.tail(name).eval()(activation.clone())
        error = float((got - expected).abs().max() / expected.abs().max().clamp_min(1e-12))
        if not error <= 1e-5:
            raise InputError(
                f"cut {name!r} does not carry everything: tail(front(x)) differs from model(x) by {error:.1e}"
            )


@lru_cache(maxsize=64)
def cuts_of(arch: str, classes: int) -> DividedModel:
    """The architecture's cuts and their shapes, without weights and without computing: the model is on ``meta``.

    A network whose forward pass looks at its data can't run there, and is built with weights that nobody asked for.
    """
    entry = architecture(arch)
    try:
        with torch.device("meta"):
            return DividedModel(entry.build(classes), entry.size, entry.shape)
    except RuntimeError:
        with torch.random.fork_rng(devices=[]):
            return DividedModel(entry.build(classes), entry.size, entry.shape)
