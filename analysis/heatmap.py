"""One grid of the stitchability table as a heatmap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis.measures import Measure
from analysis.order import FLOOR, UNCUT
from analysis.wide import Entry, Grid, Row

COLOURS = colormaps["cividis"]  # light is good; sequential, even in lightness, and the same to colour-blind readers
GAP = 0.3  # between what is set apart, in cells
CELL_WIDTH, CELL_HEIGHT = 0.82, 0.42  # inches
LONGEST_LEVEL = 11  # characters of a column label that fit below a cell without a slant


@dataclass(frozen=True)
class Scale:
    """From a mean to a colour and a text: accuracies from 0 to 1, errors from 0 to the largest of the grid."""

    measure: Measure
    highest: float

    def colour(self, mean: float) -> tuple[float, float, float, float]:
        return COLOURS(1 - mean / self.highest if self.measure.lower_is_better else mean)

    def bar(self) -> ScalarMappable:
        top = 100.0 if self.measure.percent else self.highest
        return ScalarMappable(Normalize(0, top), COLOURS.reversed() if self.measure.lower_is_better else COLOURS)


def scale_of(grid: Grid) -> Scale:
    """The colours of a grid."""
    means = [entry.mean for row in grid.rows for entry in (*row.entries.values(), row.mean) if entry.mean is not None]
    return Scale(grid.measure, 1.0 if grid.measure.percent else max(means, default=0.0) or 1.0)


def draw(grid: Grid) -> Figure:
    """Senders down and cuts across, with the uncut receiver above, the floors below and the mean over cuts aside."""
    offsets, scale = _offsets(grid.rows), scale_of(grid)
    width, height = len(grid.cuts) + 1 + GAP, offsets[-1] + 1
    figure = Figure(
        figsize=(width * CELL_WIDTH + 3, height * CELL_HEIGHT + 1.2 + _slant_height(grid.cuts)), layout="constrained"
    )
    axes = figure.add_subplot()
    for row, top in zip(grid.rows, offsets, strict=True):
        for place, cut in enumerate(grid.cuts):
            # The uncut receiver has no cut, so its one value spans them all.
            if row.kind != UNCUT:
                _cell(axes, place, top, 1, row.entries.get(cut), scale)
        if row.kind == UNCUT:
            _cell(axes, 0, top, len(grid.cuts), row.mean, scale)
        else:
            _cell(axes, len(grid.cuts) + GAP, top, 1, row.mean, scale)
    places = [*range(len(grid.cuts)), len(grid.cuts) + GAP]
    _frame(axes, places, [*grid.cuts, "mean"], offsets, [row.label for row in grid.rows], width, height)
    axes.set_xlabel("cut")
    axes.set_ylabel("sender")
    axes.set_title(_title(grid), pad=10)
    _colour_bar(figure, scale, axes)
    return figure


def draw_panels(grid: Grid) -> Figure:
    """One matrix of sender cut by receiver cut per sender, trained senders first; the uncut receiver in the title."""
    panels = [(name, list(rows)) for name, rows in groupby(grid.rows, key=lambda row: row.sender) if name is not None]
    scale = scale_of(grid)
    uncut = next((row.mean.mean for row in grid.rows if row.kind == UNCUT), None)
    across = min(3, max(1, math.ceil(math.sqrt(len(panels)))))
    down = -(-len(panels) // across)
    tallest = max((len(rows) for _, rows in panels), default=1)
    size = (
        across * (len(grid.cuts) * CELL_WIDTH + 1.3) + 1,
        down * (tallest * CELL_HEIGHT + 1.3 + _slant_height(grid.cuts)) + 0.8,
    )
    figure = Figure(figsize=size, layout="constrained")
    every = figure.subplots(down, across, squeeze=False).flatten().tolist()
    for axes, (name, rows) in zip(every, panels, strict=False):
        for top, row in enumerate(rows):
            for place, cut in enumerate(grid.cuts):
                _cell(axes, place, top, 1, row.entries.get(cut), scale)
        labels = [str(row.sender_cut) for row in rows]
        _frame(axes, range(len(grid.cuts)), grid.cuts, range(len(rows)), labels, len(grid.cuts), len(rows))
        axes.set_xlabel("receiver cut")
        axes.set_ylabel("sender cut")
        axes.set_title(f"sender {name}" if rows[0].kind != FLOOR else f"floor: {name}", pad=8)
    for axes in every[len(panels) :]:
        axes.set_axis_off()
    shown = "" if uncut is None else f"; uncut receiver {grid.measure.short(uncut)}"
    figure.suptitle(_title(grid) + shown, fontsize=9)
    _colour_bar(figure, scale, *every)
    return figure


def _offsets(rows: Sequence[Row]) -> list[float]:
    """Top of each row, with a gap where the kind of row changes."""
    offsets: list[float] = []
    for before, row in zip([None, *rows], rows, strict=False):
        top = offsets[-1] + 1 if offsets else 0.0
        offsets.append(top + (GAP if before is not None and before.kind != row.kind else 0))
    return offsets


def _cell(axes: Axes, left: float, top: float, width: float, entry: Entry | None, scale: Scale) -> None:
    middle: dict[str, Any] = {"x": left + width / 2, "y": top + 0.5, "ha": "center", "va": "center"}
    if entry is None or entry.mean is None:
        axes.add_patch(Rectangle((left, top), width, 1, facecolor="0.95", edgecolor="0.75", hatch="////", linewidth=0))
        if entry is not None and entry.failed:
            box = {"facecolor": "0.95", "edgecolor": "none", "pad": 1}
            axes.text(s="failed", color="0.25", fontsize=8, bbox=box, **middle)
        return
    colour = scale.colour(entry.mean)
    luminance = 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]
    axes.add_patch(Rectangle((left, top), width, 1, facecolor=colour, edgecolor="white", linewidth=1))
    axes.text(
        s=scale.measure.short(entry.mean) + "*" * (entry.failed > 0),
        color="black" if luminance > 0.45 else "white",
        **middle,
    )


def _frame(
    axes: Axes,
    lefts: Sequence[float],
    columns: Sequence[str],
    tops: Sequence[float],
    rows: Sequence[str],
    width: float,
    height: float,
) -> None:
    axes.set(xlim=(0, width), ylim=(height, 0))
    slanted = _slant_height(columns) > 0
    axes.set_xticks([left + 0.5 for left in lefts], columns, rotation=35 if slanted else 0)
    if slanted:
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    axes.set_yticks([top + 0.5 for top in tops], rows)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _slant_height(columns: Sequence[str]) -> float:
    """Inches that the column labels need when the longest is too wide for a cell and they are slanted; else 0."""
    longest = max(map(len, columns), default=0)
    return 0.05 * longest if longest > LONGEST_LEVEL else 0.0


def _title(grid: Grid) -> str:
    partial = any(row.mean.failed and row.mean.mean is not None for row in grid.rows)
    return (
        f"Stitched into receiver {grid.receiver}\n"
        f"stitch fitted on {grid.fit_data}, evaluated on {grid.eval_data}: {grid.measure.title}"
        + ("\n*: some cells failed or diverged and are left out" if partial else "")
    )


def _colour_bar(figure: Figure, scale: Scale, *axes: Axes) -> None:
    bar = figure.colorbar(scale.bar(), ax=list(axes), label=scale.measure.title, shrink=0.9, aspect=25, pad=0.02)
    bar.outline.set_visible(False)
