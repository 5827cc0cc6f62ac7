"""Colours and markers of lines: fixed for each network, and told apart by colour-blind readers and in print."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib import colormaps
from matplotlib.colors import to_hex

from stitching_core.record import NOISE, RANDOM_INIT, SHUFFLED

MARKERS = "osD^vPX<>ph"


@dataclass(frozen=True)
class Style:
    """How a line looks.

    Attributes:
        colour: of the line, its band and its dots.
        marker: of the means; "" is none.
        dashes: lengths of ink and gap in points; None is a solid line.
    """

    colour: str
    marker: str = ""
    dashes: tuple[float, ...] | None = None


UNCUT_STYLE = Style("black", dashes=(6, 2.5))

# Okabe and Ito's palette (2008) without black, which is the uncut receiver's, and yellow, which is too light for lines.
PAPER_STYLES = {
    "digit": Style("#0072B2", "o"),
    "correlated": Style("#D55E00", "s"),
    "colour": Style("#E69F00", "D"),
    "colour_only": Style("#CC79A7", "^"),
    "greyscale": Style("#009E73", "v"),
    "mix": Style("#56B4E9", "P"),
}
FLOOR_STYLES = {
    NOISE: Style("#8c8c8c", "X", (1.5, 1.5)),
    RANDOM_INIT: Style("#595959", "h", (4, 1.5, 1, 1.5)),
    SHUFFLED: Style("#a6a6a6", "*", (3, 2)),
}
# Paul Tol's muted scheme, for networks that the paper doesn't know.
_OTHERS = ("#332288", "#117733", "#882255", "#999933", "#44AA99", "#AA4499", "#CC6677", "#88CCEE", "#DDCC77")


def styles(models: Mapping[str, str | None]) -> dict[str, Style]:
    """The style of every network of a sweep.

    The paper's networks look the same in every figure of every sweep. Another's colour follows from its name; where two
    names of a sweep ask for the same one, the later in the alphabet takes the next.

    Args:
        models: which floor each is ("noise", "random_init", "shuffled"), or None.
    """
    found: dict[str, Style] = {}
    for name in sorted(models):
        floor = models[name]
        if floor is not None:
            same = [other for other in found if models[other] == floor]
            base = FLOOR_STYLES[floor]
            marker = MARKERS[(MARKERS.index(base.marker) + len(same)) % len(MARKERS)]
            found[name] = Style(base.colour, marker, base.dashes)
        elif name in PAPER_STYLES:
            found[name] = PAPER_STYLES[name]
        else:
            found[name] = _free(name, set(found.values()))
    return found


def _free(name: str, taken: set[Style]) -> Style:
    first = zlib.crc32(name.encode()) % len(_OTHERS)
    colours = _OTHERS[first:] + _OTHERS[:first]
    # One colour after the other, and only when they are all taken the next marker.
    every = [Style(colour, marker) for marker in MARKERS for colour in colours]
    return next((style for style in every if style not in taken), every[0])


def sequence(count: int) -> list[Style]:
    """Styles for what has an order, as cuts have: from dark to light in viridis, short of its pale end."""
    return [
        Style(to_hex(colormaps["viridis"](0.9 * place / max(1, count - 1))), MARKERS[place % len(MARKERS)])
        for place in range(count)
    ]
