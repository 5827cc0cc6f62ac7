"""Draws line charts: means, bands, every run as a dot, dashed baselines, and crosses where cells failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.chart import Chart, Line, Panel, Point
from analysis.styles import Style

ACROSS = 2  # panels side by side
DODGE = 0.32  # what the lines of a place spread over, in places
LONGEST_LEVEL = 14  # characters of a label that fit below a place without a slant
FAILED_AT = 0.025  # height of the crosses, of the axes
FAILED_LABEL = "failed or diverged"


def draw_chart(chart: Chart) -> Figure:
    """The chart as a figure, with its legend outside of the axes."""
    handles = _handles(chart)
    across = min(ACROSS, len(chart.panels))
    down = -(-len(chart.panels) // across)
    places = max(len(panel.ticks) for panel in chart.panels)
    if chart.dense:
        size = (across * max(4.0, places * 0.24) + 2, down * 2.2 + 2.2)
    else:
        size = (across * max(3.6, places * 0.95) + 2.2, down * 3.0 + 1.2)
    figure = Figure(figsize=(size[0], max(size[1], 0.17 * len(handles) + 1.5)), layout="constrained")
    every: list[Axes] = figure.subplots(down, across, squeeze=False, sharey=True).flatten().tolist()
    used, spare = every[: len(chart.panels)], every[len(chart.panels) :]
    alike = len({tuple(panel.ticks) for panel in chart.panels}) == 1
    for place, (axes, panel) in enumerate(zip(used, chart.panels, strict=True)):
        _panel(axes, panel, chart)
        if place % across == 0:
            axes.set_ylabel(chart.y_label)
        lowest = place + across >= len(used)
        if lowest:
            axes.set_xlabel(chart.x_label)
        if alike and not lowest:
            axes.tick_params(labelbottom=False)
    for axes in spare:
        axes.set_axis_off()
    used[0].set_ylim(limits(chart))
    figure.suptitle("\n".join([chart.title, chart.reading(), *chart.notes]), fontsize=9)
    figure.legend(
        list(handles.values()), list(handles), loc="outside right center", title=chart.hue, frameon=False,
        fontsize=8, title_fontsize=8, alignment="left", handlelength=3,
    )  # fmt: skip
    return figure


def limits(chart: Chart) -> tuple[float, float]:
    """Of the vertical axis: nothing drawn lies outside; ranks and errors start at 0."""
    scale = _scale(chart)
    shown = [
        scale * value
        for panel in chart.panels
        for line in panel.lines
        for point in line.points
        if point.values
        for value in (*point.values, *(() if line.baseline else point.band(chart.band)))
    ]
    low, high = (min(shown), max(shown)) if chart.percent else (min(0.0, *shown), max(shown))
    middle, span = (low + high) / 2, max(high - low, chart.least_span)
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
    slanted = not chart.dense and max(len(line) for tick in panel.ticks for line in tick.splitlines()) > LONGEST_LEVEL
    turned = 90 if chart.dense else 30 if slanted else 0
    axes.set_xticks(range(len(panel.ticks)), panel.ticks, rotation=turned, fontsize=6.5 if chart.dense else 8)
    if slanted:
        for text in axes.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
    if panel.title:
        axes.set_title(panel.title)
    axes.grid(axis="y", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _line(axes: Axes, line: Line, shift: float, chart: Chart) -> None:
    scale, look = _scale(chart), line.style
    for piece in _pieces(line.points):
        x = [point.place + shift for point in piece]
        bands = [point.band(chart.band) for point in piece]
        if any(len(point.values) > 1 for point in piece):
            low, high = ([scale * band[side] for band in bands] for side in (0, 1))
            axes.fill_between(x, low, high, color=look.colour, alpha=0.15, linewidth=0)
        means = [scale * point.mean for point in piece]
        axes.plot(
            x, means, color=look.colour, linestyle=_dashes(look), linewidth=1.3, marker=look.marker,
            markersize=2.5 if chart.dense else 5, markeredgewidth=0,
        )  # fmt: skip
    # One run is its own mean.
    runs = [(point.place + shift, scale * value) for point in line.points if point.values[1:] for value in point.values]
    axes.plot(
        [place for place, _ in runs], [value for _, value in runs], linestyle="", marker="o", zorder=3,
        markersize=1.5 if chart.dense else 3, markerfacecolor="white", markeredgecolor=look.colour, markeredgewidth=0.7,
    )  # fmt: skip
    for point in line.points:
        if point.failed:
            axes.plot(
                point.place + shift, FAILED_AT, marker="x", color=look.colour, markersize=5, markeredgewidth=1.3,
                transform=axes.get_xaxis_transform(), clip_on=False,
            )  # fmt: skip


def _baseline(axes: Axes, line: Line, places: int, scale: float) -> None:
    look = line.style
    options: dict[str, Any] = {"color": look.colour, "linestyle": _dashes(look), "linewidth": 1.1, "zorder": 1.5}
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


def _handles(chart: Chart) -> dict[str, Line2D]:
    """What stands in the legend, by label: the lines, then baselines and what failed."""
    lines = [line for panel in chart.panels for line in panel.lines]
    several = len({line.style.colour for line in lines if line.baseline}) > 1
    handles: dict[str, Line2D] = {}
    for line in sorted(lines, key=lambda line: line.baseline):
        own = line.baseline and several
        colour = "0.4" if own else line.style.colour
        label = f"{line.label},\nin each one's colour" if own else line.label
        handles.setdefault(label, _handle(colour, _dashes(line.style), line.style.marker))
    if chart.failed:
        handles[FAILED_LABEL] = _handle("0.4", "", "x", edge=1.3)
    return handles


def _handle(colour: str, linestyle: Any, marker: str, edge: float = 0) -> Line2D:
    return Line2D(
        [], [], color=colour, linestyle=linestyle, marker=marker, linewidth=1.3, markersize=5, markeredgewidth=edge
    )


def _dashes(style: Style) -> Any:
    return "-" if style.dashes is None else (0, style.dashes)


def _scale(chart: Chart) -> float:
    return 100.0 if chart.percent else 1.0
