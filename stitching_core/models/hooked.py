"""Front and tail by forward hooks, for networks that torch.fx can't trace.

A cut is then a named module that is called once and returns one tensor. The front stops as soon as the deepest cut is
reached; the tail has to run the whole network (on a blank image) and swaps the cut module's output, so it costs more.
Whether the module really carries everything is what ``divide.check`` finds out: a path around it would still hold the
blank image.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from stitching_core.models.cuts import Cut


class _Reached(Exception):
    """Ends a forward pass at the deepest cut."""


def find_cuts(model: nn.Module, example: torch.Tensor) -> list[Cut]:
    """Candidate cuts: modules called once whose output is one tensor with the batch first; the last one has no tail."""
    calls: dict[str, list[Any]] = {}
    handles = [
        module.register_forward_hook(lambda _m, _i, out, name=name: calls.setdefault(name, []).append(out))
        for name, module in model.named_modules()
        if name
    ]
    try:
        with torch.no_grad():
            logits = model(example)
    finally:
        for handle in handles:
            handle.remove()
    cuts = []
    for name, outputs in calls.items():  # in the order in which they finished
        output = outputs[0]
        if len(outputs) == 1 and isinstance(output, torch.Tensor) and output.shape[:1] == example.shape[:1]:
            if output is logits:
                continue
            cuts.append(Cut(name, (), tuple(output.shape[1:]), name))
    return cuts


class HookedFront(nn.Module):
    """The network, stopped at the deepest of its cuts. Returns the activations in the order of ``taps``."""

    def __init__(self, model: nn.Module, taps: list[str]) -> None:
        super().__init__()
        self.model, self.taps = model, taps

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found: dict[str, torch.Tensor] = {}

        def keep(name: str, output: torch.Tensor) -> None:
            found[name] = output.clone()  # what comes next may be in-place, and can't be seen from here
            if len(found) == len(set(self.taps)):
                raise _Reached

        handles = [
            self.model.get_submodule(tap).register_forward_hook(lambda _m, _i, out, tap=tap: keep(tap, out))
            for tap in set(self.taps)
        ]
        try:
            self.model(images)
        except _Reached:
            pass
        finally:
            for handle in handles:
                handle.remove()
        return tuple(found[tap] for tap in self.taps)


class HookedTail(nn.Module):
    """The network run on a blank image, with the cut module's output replaced by the given activation."""

    def __init__(self, model: nn.Module, tap: str, image_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.model, self.tap, self.image_shape = model, tap, image_shape

    def forward(self, activation: torch.Tensor) -> torch.Tensor:
        blank = torch.zeros(len(activation), *self.image_shape, device=activation.device, dtype=activation.dtype)
        handle = self.model.get_submodule(self.tap).register_forward_hook(lambda _m, _i, _o: activation)
        try:
            return self.model(blank)
        finally:
            handle.remove()
