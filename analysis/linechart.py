"""Draws line charts: means, bands, every run as a dot, dashed baselines, and crosses where cells failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.chart import Chart, Line, Panel, Point

ACROSS = 2  # panels side by side
DODGE = 0.32  # what the lines of a place spread over, in places
LEAST_SPAN = 2.0  # percentage points (or ranks) that an axis shows at least
FAILED_AT = 0.025  # height of the crosses, of the axes
FAILED_LABEL = "failed or diverged"


def draw_chart(chart: Chart) -> Figure:
    """The chart as a figure, with its legend outside of the axes."""
    across = min(ACROSS, len(chart.panels))
    down = -(-len(chart.panels) // across)
    places = max(len(panel.ticks) for panel in chart.panels)
    width = max(3.4, places * (0.24 if chart.dense else 0.95))
    figure = Figure(
        figsize=(across * width + 2.6, down * (3.0 if chart.dense else 3.1) + 0.9 + (0.7 if chart.dense else 0)),
        layout="constrained",
    )
    every = figure.subplots(down, across, squeeze=False, sharey=True).flatten().tolist()
    for axes, panel in zip(every, chart.panels, strict=False):
        _panel(axes, panel, chart)
    for axes in every[len(chart.panels) :]:
        axes.set_axis_off()
    every[0].set_ylim(limits(chart))
    for row in range(down):
        every[row * across].set_ylabel(chart.y_label)
    for axes in (
        every[:: len(every)]
        if len(chart.panels) == 1
        else every[max(0, len(chart.panels) - across) : len(chart.panels)]
    ):
        axes.set_xlabel(chart.x_label)
    figure.suptitle("\n".join([chart.title, chart.reading(), *chart.notes]), fontsize=9)
    _legend(figure, chart)
    return figure


def limits(chart: Chart) -> tuple[float, float]:
    """Of the vertical axis: nothing drawn lies outside; ranks start at 0."""
    scale = _scale(chart)
    shown = [
        scale * value
        for panel in chart.panels
        for line in panel.lines
        for point in line.points
        if point.values
        for value in (*point.values, *(() if line.baseline else point.band(chart.band)))
    ]
    low, high = (min(shown), max(shown)) if chart.percent else (0.0, max(shown))
    middle, span = (low + high) / 2, max(high - low, LEAST_SPAN)
    low, high = middle - 0.55 * span, middle + 0.55 * span
    if chart.percent and high > 100:
        high = 100 + 0.05 * span  # room for a dot, none for what can't be
    return low - 0.05 * span * (chart.failed > 0), high


def _panel(axes: Axes, panel: Panel, chart: Chart) -> None:
    hues = [line for line in panel.lines if not line.baseline]
    step = 0.0 if chart.dense or len(hues) < 2 else min(0.07, DODGE / (len(hues) - 1))
    for line in panel.lines:
        if line.baseline:
            _baseline(axes, line, len(panel.ticks), _scale(chart))
        else:
            _line(axes, line, step * (hues.index(line) - (len(hues) - 1) / 2), chart)
    axes.set_xlim(-0.5, len(panel.ticks) - 0.5)
    size = 6.5 if chart.dense else 8
    axes.set_xticks(range(len(panel.ticks)), panel.ticks, rotation=90 if chart.dense else 0, fontsize=size)
    if panel.title:
        axes.set_title(panel.title)
    axes.grid(axis="y", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _line(axes: Axes, line: Line, shift: float, chart: Chart) -> None:
    scale, look = _scale(chart), line.style
    dashes = "-" if look.dashes is None else (0, look.dashes)
    for piece in _pieces(line.points):
        x = [point.place + shift for point in piece]
        bands = [point.band(chart.band) for point in piece]
        if any(len(point.values) > 1 for point in piece):
            low, high = ([scale * band[side] for band in bands] for side in (0, 1))
            axes.fill_between(x, low, high, color=look.colour, alpha=0.15, linewidth=0)
        means = [scale * point.mean for point in piece]
        axes.plot(
            x, means, color=look.colour, linestyle=dashes, linewidth=1.3, marker=look.marker,
            markersize=2.5 if chart.dense else 5, markeredgewidth=0,
        )  # fmt: skip
        for place, point in zip(x, piece, strict=True):
            if len(point.values) > 1:
                size = 1.5 if chart.dense else 3
                axes.plot(
                    [place] * len(point.values), [scale * value for value in point.values], linestyle="", marker="o",
                    markersize=size, markerfacecolor="white", markeredgecolor=look.colour, markeredgewidth=0.7, zorder=3,
                )  # fmt: skip
    for point in line.points:
        if point.failed:
            axes.plot(
                point.place + shift, FAILED_AT, marker="x", color=look.colour, markersize=5, markeredgewidth=1.3,
                transform=axes.get_xaxis_transform(), clip_on=False,
            )  # fmt: skip


def _baseline(axes: Axes, line: Line, places: int, scale: float) -> None:
    look = line.style
    options = {"color": look.colour, "linestyle": (0, look.dashes or ()), "linewidth": 1.1, "zorder": 1.5}
    means = [scale * point.mean for point in line.points]
    if len(means) == places and math.isclose(min(means), max(means)):
        axes.axhline(means[0], **options)
        return
    for piece in _pieces(line.points):
        if len(piece) > 1:
            axes.plot([point.place for point in piece], [scale * point.mean for point in piece], **options)
        else:
            axes.hlines(scale * piece[0].mean, piece[0].place - 0.3, piece[0].place + 0.3, **options)


def _pieces(points: Sequence[Point]) -> list[list[Point]]:
    """Runs of neighbouring points with values: a line does not run through what was not measured."""
    pieces: list[list[Point]] = []
    for before, point in pairwise([None, *points]):
        if point is None or not point.values:
            continue
        if before is None or not before.values or point.place - before.place > 1 + 1e-9:
            pieces.append([])
        pieces[-1].append(point)
    return pieces


def _legend(figure: Figure, chart: Chart) -> None:
    handles: dict[str, Line2D] = {}
    several = len({line.style.colour for panel in chart.panels for line in panel.lines if line.baseline}) > 1
    for line in sorted((line for panel in chart.panels for line in panel.lines), key=lambda line: line.baseline):
        look = line.style
        colour = "0.4" if line.baseline and several else look.colour
        dashes = "-" if look.dashes is None else (0, look.dashes)
        label = f"{line.label},\nin each one's colour" if line.baseline and several else line.label
        handles.setdefault(
            label,
            Line2D(
                [],
                [],
                color=colour,
                linestyle=dashes,
                marker=look.marker,
                linewidth=1.3,
                markersize=5,
                markeredgewidth=0,
            ),
        )
    if chart.failed:
        handles[FAILED_LABEL] = Line2D([], [], color="0.4", linestyle="", marker="x", markersize=5, markeredgewidth=1.3)
    figure.legend(
        list(handles.values()), list(handles), loc="outside right upper", title=chart.hue, frameon=False,
        fontsize=8, title_fontsize=8, alignment="left", handlelength=3,
    )  # fmt: skip


def _scale(chart: Chart) -> float:
    return 100.0 if chart.percent else 1.0
