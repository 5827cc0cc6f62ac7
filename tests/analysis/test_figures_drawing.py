from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.chart import RANGE, SD, Chart, Line, Panel, Point
from analysis.figures import charts
from analysis.linechart import FAILED_LABEL, draw_chart, limits
from analysis.load import load
from analysis.styles import UNCUT_STYLE, Style

LOOK = Style("#0072B2", "o")


def _chart(points: list[Point], percent: bool = True, band: str = RANGE, uncut: tuple[float, ...] = ()) -> Chart:
    ticks = ["a", "b", "c"]
    lines = [Line("digit", LOOK, points)]
    if uncut:
        every = [Point(place, (value,)) for place, value in enumerate(uncut)]
        lines.append(Line("uncut receiver", UNCUT_STYLE, every, baseline=True))
    return Chart("title", [Panel("", ticks, lines)], "cut", "value", band, percent)


def _lines(figure: Figure, marker: str) -> list[Line2D]:
    return [line for line in figure.axes[0].lines if line.get_marker() == marker]


def _legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_title_and_legend_of_a_sweep(results_folder: Path) -> None:
    ((_, chart),) = charts(load(results_folder))
    figure = draw_chart(chart)
    assert figure.get_suptitle().splitlines() == [
        "Accuracy: stitched into Digit",
        "stitch fitted and evaluated on mnist",
        "1 to 2 runs; line: mean, band: full range, small dot: one run",  # colour diverged once at layer1
    ]
    names = ["Digit", "Colour", "Noise (on noise)", "untrained"]
    assert _legend(figure) == [*names, "uncut receiver", FAILED_LABEL]


def test_means_in_percent_and_a_dot_for_each_run() -> None:
    figure = draw_chart(_chart([Point(0, (0.5, 0.7)), Point(1, (0.4,)), Point(2, (0.2, 0.4))]))
    means, dots = _lines(figure, "o")
    assert list(means.get_ydata()) == pytest.approx([60, 40, 30])
    assert list(dots.get_xdata()) == [0, 0, 2, 2]
    assert list(dots.get_ydata()) == pytest.approx([50, 70, 20, 40])
    assert len(figure.axes[0].collections) == 1


def test_one_run_has_no_band_and_no_dots_of_its_own() -> None:
    figure = draw_chart(_chart([Point(0, (0.5,)), Point(1, (0.4,))]))
    assert len(figure.axes[0].collections) == 0
    assert sum(len(line.get_xdata()) for line in figure.axes[0].lines) == 2


def test_a_line_does_not_run_through_what_was_not_measured() -> None:
    figure = draw_chart(_chart([Point(0, (0.5,)), Point(1, (), failed=2), Point(2, (0.4,))]))
    assert [list(line.get_xdata()) for line in _lines(figure, "o") if len(line.get_xdata())] == [[0], [2]]
    (cross,) = _lines(figure, "x")
    assert list(cross.get_xdata()) == [1]
    assert _legend(figure) == ["digit", FAILED_LABEL]


def test_a_baseline_is_level_or_follows_the_cuts() -> None:
    points = [Point(0, (0.5,)), Point(1, (0.4,))]
    for uncut, expected in (((0.9, 0.9, 0.9), [90, 90]), ((0.9, 0.8, 0.7), [90, 80, 70])):
        (baseline,) = _lines(draw_chart(_chart(points, uncut=uncut)), "None")
        assert list(baseline.get_ydata()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "uncut", "percent", "expected"),
    [
        ((0.5, 0.7), (), True, (49, 71)),  # span 20, a twentieth on either side
        ((0.5, 0.7), (0.3,) * 3, True, (28, 72)),  # the baseline counts
        ((1.0, 1.0), (), True, (98.9, 100.1)),  # 2 points at least, and not beyond 100 but for a dot
        ((10.0, 30.0), (), False, (-1.5, 31.5)),  # ranks start at 0
    ],
)
def test_limits(
    values: tuple[float, ...], uncut: tuple[float, ...], percent: bool, expected: tuple[float, float]
) -> None:
    assert limits(_chart([Point(0, values)], percent, RANGE, uncut)) == pytest.approx(expected)


def test_limits_hold_the_band_of_one_sd() -> None:
    low, high = limits(_chart([Point(0, (0.0, 30.0))], percent=False, band=SD))
    assert low < 15 - 450**0.5  # mean 15, sd sqrt(2 * 15**2)
    assert high > 15 + 450**0.5


def test_long_names_are_slanted() -> None:
    for ticks, turned in ((["maxpool", "layer1"], 0), (["maxpool", "blocks.10.attention"], 30)):
        panel = Panel("", ticks, [Line("digit", LOOK, [Point(0, (0.5,))])])
        axes = draw_chart(Chart("title", [panel], "cut", "value", RANGE, True)).axes[0]
        assert {text.get_rotation() for text in axes.get_xticklabels()} == {turned}


def test_panels_share_their_axis_and_their_labels() -> None:
    panel = _chart([Point(0, (0.5,))]).panels[0]
    figure = draw_chart(Chart("title", [panel] * 3, "cut", "value", RANGE, True))
    shown: list[Axes] = [axes for axes in figure.axes if axes.axison]
    assert len(shown) == 3
    assert len({axes.get_ylim() for axes in shown}) == 1
    assert [axes.get_xlabel() for axes in shown] == ["", "cut", "cut"]
    assert _legend(figure) == ["digit"]
