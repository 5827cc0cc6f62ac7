"""Front and tail of a traced network: two graphs over the same weights."""

from __future__ import annotations

import inspect
import operator

import torch
from torch import fx, nn

_IN_PLACE_FUNCTIONS = {operator.iadd, operator.isub, operator.imul, operator.itruediv}
# what surely returns memory of its own, as every module with weights does; anything else may return a view
_NEW_FUNCTIONS = {operator.add, operator.sub, operator.mul, operator.truediv, torch.add, torch.cat}
_NEW_MODULES = (nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d)


def _in_place(node: fx.Node, model: nn.Module) -> bool:
    if node.op == "call_module":
        return bool(getattr(model.get_submodule(str(node.target)), "inplace", False))
    if node.op == "call_method":
        return str(node.target).endswith("_") and not str(node.target).endswith("__")
    if node.op != "call_function":
        return False
    if node.target in _IN_PLACE_FUNCTIONS or getattr(node.target, "__name__", "").endswith("_"):
        return True
    try:
        arguments = inspect.signature(node.target).bind(*node.args, **node.kwargs).arguments  # type: ignore[arg-type]
    except (TypeError, ValueError):  # a builtin without a signature
        return False
    return bool(arguments.get("inplace", False))


def _overwritten(node: fx.Node, model: nn.Module) -> bool:
    """Whether a later operation may write into the node's memory, at once or through a view (flatten, identity)."""
    views, seen = [node], {node}
    while views:
        value = views.pop()
        for user in value.users:
            if _in_place(user, model):
                if user.args[:1] == (value,) or value in user.kwargs.values():
                    return True
                continue  # it writes into its first argument and returns that
            if user.op == "call_module":
                module = model.get_submodule(str(user.target))
                new = isinstance(module, _NEW_MODULES) or next(module.parameters(), None) is not None
            else:
                new = user.target in _NEW_FUNCTIONS
            if not new and user not in seen:
                seen.add(user)
                views.append(user)
    return False


def front(traced: fx.GraphModule, taps: list[str]) -> fx.GraphModule:
    """The part of the network up to its deepest tap.

    A tapped activation that a later operation of the front would overwrite is cloned first.

    Args:
        traced: the whole network.
        taps: names of nodes, in any order.

    Returns:
        A module from an image batch to a tuple of activations, in the order of ``taps``. It shares the weights.
    """
    graph = fx.Graph()
    copied: dict[fx.Node, fx.Node] = {}
    found: dict[str, fx.Node] = {}
    for node in traced.graph.nodes:
        copied[node] = graph.node_copy(node, lambda old: copied[old])
        if node.name in taps:
            clone = _overwritten(node, traced)
            found[node.name] = graph.call_method("clone", (copied[node],)) if clone else copied[node]
            if len(found) == len(set(taps)):
                break
    graph.output(tuple(found[tap] for tap in taps))
    return fx.GraphModule(traced, graph)


def tail(traced: fx.GraphModule, tap: str) -> fx.GraphModule:
    """The part of the network after a cut: a module from an activation to logits. It shares the weights."""
    nodes = list(traced.graph.nodes)
    position = next(i for i, node in enumerate(nodes) if node.name == tap)
    later = set(nodes[position + 1 :])
    graph = fx.Graph()
    copied: dict[fx.Node, fx.Node] = {}
    for node in nodes[:position]:
        if node.op == "get_attr" and any(user in later for user in node.users):
            copied[node] = graph.node_copy(node)
    copied[nodes[position]] = graph.placeholder("activation")
    for node in nodes[position + 1 :]:
        copied[node] = graph.node_copy(node, lambda old: copied[old])
    return fx.GraphModule(traced, graph)
