"""Where a network may be divided: found from its graph, not listed by hand.

A cut is a node of the traced graph that every path from the input to the output passes through (an articulation point)
and that carries one tensor. Its name is the module path that a user knows: ``layer2`` for the last operation inside
``layer2``, ``features.8`` for one layer of a Sequential, ``layer2.0.add`` for a function called inside ``layer2.0``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import fx, nn
from torch.fx.passes.shape_prop import ShapeProp, TensorMetadata


@dataclass(frozen=True)
class Cut:
    """A named place where a network may be divided.

    Attributes:
        name: the outermost module whose output this is.
        aliases: every other name for the same place (``layer1.1`` for ``layer1``).
        shape: of the activation, without the batch dimension.
        node: name of the node in the traced graph; the module's path where a network is cut with hooks.
    """

    name: str
    aliases: tuple[str, ...]
    shape: tuple[int, ...]
    node: str


def trace(model: nn.Module) -> fx.GraphModule | None:
    """The model's graph, or None if tracing it would lose something.

    Tracing runs ``forward`` once with placeholders. What it can't follow raises; what depends on train or eval mode by
    an ``if self.training`` would be baked in silently, so both modes are traced and must give the same code.
    """
    was_training = model.training
    codes = []
    try:
        for mode in (True, False):
            traced = fx.symbolic_trace(model.train(mode))
            codes.append(traced.code)
    except Exception:  # tracing runs the user's forward on proxies: any exception means "can't be traced"
        return None
    finally:
        model.train(was_training)
    return traced if codes[0] == codes[1] else None


def find_cuts(traced: fx.GraphModule, example: torch.Tensor) -> list[Cut]:
    """All cuts of a traced model, from input to output; the output itself, which leaves no tail, is not among them.

    Args:
        traced: the graph; eval mode; on the device of ``example`` (both may be on ``meta``: nothing is computed then).
        example: an input of batch size 2 or more.
    """
    with torch.no_grad():
        ShapeProp(traced).propagate(example)
    nodes = [node for node in traced.graph.nodes if node.op != "get_attr"]  # parameters are no paths from the input
    order = {node: position for position, node in enumerate(nodes)}
    last_use = {node: max((order[user] for user in node.users), default=-1) for node in nodes}
    live: set[fx.Node] = set()
    cuts = []
    names = _Names(nodes)
    for position, node in enumerate(nodes):
        # In a topological order a node is an articulation point exactly when it is all that is still needed after it.
        live.add(node)
        live = {value for value in live if last_use[value] > position}
        if node.op in ("placeholder", "output") or live != {node} or any(user.op == "output" for user in node.users):
            continue
        meta = node.meta.get("tensor_meta")
        if isinstance(meta, TensorMetadata) and meta.shape[:1] == example.shape[:1]:
            name, *aliases = names.of(node)
            cuts.append(Cut(name, tuple(aliases), tuple(meta.shape[1:]), node.name))
    return cuts


class _Names:
    """The module paths of which a node is the output, outermost first; a name made from its function if it has none."""

    def __init__(self, nodes: list[fx.Node]) -> None:
        self.last: dict[str, fx.Node] = {}  # by module call: the last node inside
        self.calls: dict[str, int] = {}
        for node in nodes:
            for call in node.meta.get("nn_module_stack", {}):
                if call not in self.last:
                    path = call.split("@")[0]
                    self.calls[path] = self.calls.get(path, 0) + 1
                self.last[call] = node
        self.taken = {_nth(path, call) for path, calls in self.calls.items() for call in range(1, calls + 1)}

    def of(self, node: fx.Node) -> list[str]:
        stack = node.meta.get("nn_module_stack", {})
        names = [call for call in stack if self.last[call] is node and self.calls[call.split("@")[0]] == 1]
        if names:
            return names
        scope, _, repeat = next(reversed(stack), "").partition("@")
        if node.op == "call_module":  # a module called more than once: the path and which call it is
            return [_nth(scope, int(repeat or 0) + 1)]
        function = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", node.name)
        base = f"{scope}.{function}" if scope else str(function)
        name = next(name for count in itertools.count(1) if (name := _nth(base, count)) not in self.taken)
        self.taken.add(name)
        return [name]


def _nth(name: str, count: int) -> str:
    return name if count == 1 else f"{name}:{count}"
