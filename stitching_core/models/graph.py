"""Front and tail of a traced network: two graphs over the same weights."""

from __future__ import annotations

import operator

from torch import fx, nn

_IN_PLACE_FUNCTIONS = {operator.iadd, operator.isub, operator.imul, operator.itruediv}


def _in_place(node: fx.Node, model: nn.Module) -> bool:
    if node.op == "call_module":
        return bool(getattr(model.get_submodule(str(node.target)), "inplace", False))
    if node.op == "call_method":
        return str(node.target).endswith("_") and not str(node.target).endswith("__")
    return node.target in _IN_PLACE_FUNCTIONS or bool(node.kwargs.get("inplace", False))


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
            overwritten = any(_in_place(user, traced) for user in node.users)
            found[node.name] = graph.call_method("clone", (copied[node],)) if overwritten else copied[node]
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
