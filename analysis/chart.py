"""A line chart before it is drawn: panels of lines, and at each place of a line one value per run."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean, stdev

from analysis.styles import Style

RANGE, SD = "range", "sd"


@dataclass(frozen=True)
class Point:
    """What was measured at one place.

    Attributes:
        place: on the horizontal axis; labels stand at 0, 1, 2, ...
        values: one per run; may be empty.
        failed: failed and diverged cells, which have no value.
    """

    place: float
    values: tuple[float, ...]
    failed: int = 0

    @property
    def mean(self) -> float:
        """Over runs; there must be one."""
        return fmean(self.values)

    def band(self, kind: str) -> tuple[float, float]:
        """Lowest and highest value ("range"), or mean minus and plus one standard deviation ("sd", ddof 1)."""
        if kind == RANGE:
            return min(self.values), max(self.values)
        spread = stdev(self.values) if len(self.values) > 1 else 0.0
        return self.mean - spread, self.mean + spread


@dataclass(frozen=True)
class Line:
    """Points that belong together.

    Attributes:
        label: in the legend.
        style: how it looks.
        points: by place.
        baseline: drawn as a bare line, without dots and band.
    """

    label: str
    style: Style
    points: list[Point]
    baseline: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes: its title (may be empty), the labels below it and its lines."""

    title: str
    ticks: list[str]
    lines: list[Line]


@dataclass(frozen=True)
class Chart:
    """A figure of panels side by side.

    Attributes:
        title: says what was measured on what.
        panels: with the same vertical axis.
        x_label: of the horizontal axes.
        y_label: of the vertical axis.
        band: "range" or "sd".
        percent: values are fractions, shown as percentages.
        hue: heading of the legend.
        notes: lines below the title.
        dense: many places: small labels, upright.
        least_span: what the vertical axis shows at least: percentage points, or units of the value.
    """

    title: str
    panels: list[Panel]
    x_label: str
    y_label: str
    band: str
    percent: bool = False
    hue: str = ""
    notes: list[str] = field(default_factory=list)
    dense: bool = False
    least_span: float = 2.0

    @property
    def runs(self) -> tuple[int, int]:
        """Fewest and most values at any place of a line, baselines aside; (0, 0) without a value."""
        lines = [line for panel in self.panels for line in panel.lines if not line.baseline]
        counts = [len(point.values) for line in lines for point in line.points if point.values]
        return (min(counts), max(counts)) if counts else (0, 0)

    @property
    def failed(self) -> int:
        """Cells without a value."""
        return sum(point.failed for panel in self.panels for line in panel.lines for point in line.points)

    def reading(self) -> str:
        """How many runs there are, and what stands for them."""
        low, high = self.runs
        if high <= 1:
            return "1 run: no spread, so no band"
        band = "full range" if self.band == RANGE else "1 sd"
        return f"{high if low == high else f'{low} to {high}'} runs; line: mean, band: {band}, small dot: one run"
