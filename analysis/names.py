"""What figures call networks, data and cuts, and the order of their lines: as in Smith et al. 2025, else own names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stitching_core.record import FLOORS, NOISE, RANDOM_INIT, SHUFFLED

OWN = "own"  # fit or evaluation data that are each sender's own

NAMES = {
    "digit": "Digit",
    "correlated": "Correlated",
    "colour": "Colour",
    "colour_only": "Colour-Only",
    "greyscale": "Greyscale-MNIST",
    "mix": "Mix",
    NOISE: "Noise",
    RANDOM_INIT: "Random init",
    SHUFFLED: "Shuffled labels",
}
_TRAINED = [name for name in NAMES if name not in FLOORS]

# The first receiver layer after the stitch, for a ResNet's cuts.
RES_BLOCKS = {
    "maxpool": "Res Block 1",
    "layer1": "Res Block 2",
    "layer2": "Res Block 3",
    "layer3": "Res Block 4",
    "layer4": "Linear",
    "avgpool": "Linear",
}


@dataclass(frozen=True)
class CutAxis:
    """The places of an axis of cuts.

    Attributes:
        cuts: those that have a place, in order.
        labels: one for each.
        left_out: cuts without a place, and the cut that falls on the same layer.
    """

    cuts: list[str]
    labels: list[str]
    left_out: dict[str, str]


def shown(name: str) -> str:
    """A network's or a data set's name in the paper, else its own."""
    return NAMES.get(name, name)


def in_order(names: Iterable[str], floors: Mapping[str, str | None]) -> list[str]:
    """Names in the paper's order: its trained networks, others as they come, noise, random networks, shuffled labels.

    Args:
        names: any, in the order in which others shall stay.
        floors: which floor a name is; null or absent for networks that were trained.
    """

    def key(name: str) -> tuple[int, int]:
        floor = floors.get(name)
        if floor is not None:
            return 2, (NOISE, RANDOM_INIT, SHUFFLED).index(floor)
        return (0, _TRAINED.index(name)) if name in _TRAINED else (1, 0)

    return sorted(dict.fromkeys(names), key=key)


def cut_axis(cuts: Sequence[str], archs: Iterable[str | None]) -> CutAxis:
    """Places for cuts of receivers.

    Where every receiver is a ResNet and every cut is one of the paper's, a place is the first receiver layer after the
    stitch, as in the paper's figures; of cuts before the same layer the first is drawn (the paper leaves out cut 8).
    Elsewhere every cut has a place under its own name.

    Args:
        cuts: in the network's order.
        archs: architectures of the receivers.
    """
    if not (all((arch or "").startswith("resnet") for arch in archs) and set(cuts) <= set(RES_BLOCKS)):
        return CutAxis(list(cuts), list(cuts), {})
    first: dict[str, str] = {}
    for cut in cuts:
        first.setdefault(RES_BLOCKS[cut], cut)
    left_out = {cut: first[RES_BLOCKS[cut]] for cut in cuts if cut not in first.values()}
    return CutAxis(list(first.values()), [f"{layer}\n({cut})" for layer, cut in first.items()], left_out)
