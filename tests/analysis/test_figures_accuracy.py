"""The series of accuracy charts, against values that were counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.chart import RANGE, SD, Chart, Line, Point
from analysis.figures import charts
from analysis.load import load
from stitching_core.record import row

Cell = Callable[..., dict[str, Any]]
Write = Callable[..., Path]


def _lines(chart: Chart, panel: int = 0) -> dict[str, list[tuple[float, tuple[float, ...], int]]]:
    lines = chart.panels[panel].lines
    return {line.label: [(point.place, point.values, point.failed) for point in line.points] for line in lines}


def _only(folder: Path) -> Chart:
    ((_, chart),) = charts(load(folder))
    return chart


def test_every_run_at_every_cut(results_folder: Path) -> None:
    chart = _only(results_folder)
    assert _lines(chart) == {
        "uncut receiver": [(0, (0.95, 0.97), 0), (1, (0.95, 0.97), 0)],
        "Digit": [(0, (0.96, 0.98), 0), (1, (0.94, 0.96), 0)],
        "Colour": [(0, (0.90, 0.94), 0), (1, (0.80,), 1)],
        "Noise (on noise)": [(0, (0.12, 0.14), 0), (1, (0.10, 0.10), 0)],
        "untrained": [(0, (0.30, 0.50), 0), (1, (0.20, 0.20), 0)],
    }
    assert chart.panels[0].ticks == ["maxpool", "layer1"]
    assert (chart.runs, chart.failed, chart.band, chart.percent) == ((1, 2), 1, RANGE, True)


def test_bands() -> None:
    point = Point(0, (1.0, 2.0, 6.0))  # mean 3, squares 4 + 1 + 9 = 14, sd sqrt(14 / 2)
    assert point.band(RANGE) == (1.0, 6.0)
    assert point.band(SD) == pytest.approx((3 - 7**0.5, 3 + 7**0.5))
    assert Point(0, (4.0,)).band(SD) == (4.0, 4.0)


def test_one_run_says_so(tmp_path: Path, make_cell: Cell, write: Write) -> None:
    chart = _only(write(tmp_path / "tiny", [make_cell()]))
    assert chart.reading() == "1 run: no spread, so no band"


def test_a_line_for_each_receiver_of_a_single_sender(tmp_path: Path, make_cell: Cell, write: Write) -> None:
    cells = [
        make_cell(accuracy, sender="digit", receiver=receiver, receiver_arch="resnet18", receiver_accuracy=uncut)
        for receiver, accuracy, uncut in (("mix", 0.9, 0.6), ("digit", 0.8, 0.7))
    ]
    chart = _only(write(tmp_path / "tiny", cells))
    assert [(line.label, line.points[0].values) for line in chart.panels[0].lines if not line.baseline] == [
        ("Digit", (0.8,)),
        ("Mix", (0.9,)),
    ]
    baselines = [line for line in chart.panels[0].lines if line.baseline]
    looks = {line.label: line.style.colour for line in chart.panels[0].lines if not line.baseline}
    assert {line.style.colour: line.points[0].values for line in baselines} == {
        looks["Mix"]: (0.6,),
        looks["Digit"]: (0.7,),
    }
    assert chart.panels[0].ticks == ["Res Block 1\n(maxpool)"]
    assert (chart.hue, chart.title.splitlines()[0]) == (
        "receiver",
        "Accuracy: sender Digit, stitched into each receiver",
    )


def test_noise_is_compared_with_the_receiver_on_its_own_data(tmp_path: Path, make_cell: Cell, write: Write) -> None:
    noise = {"sender": "noise", "sender_kind": "noise", "sender_cut": None, "fit_data": "noise", "eval_data": "noise"}
    cells = [
        make_cell(0.99, receiver_cut="layer1", receiver_variant="digit", receiver_accuracy=None, run=run, **noise)
        for run in (0, 1)
    ]
    models = [
        row("models", model="digit", variant="digit", hash=f"hash-{run}", eval_data=data, accuracy=accuracy)
        for run, data, accuracy in ((0, "digit", 0.91), (1, "digit", 0.93), (0, "mix", 0.5), (1, "mix", 0.5))
    ]
    chart = _only(write(tmp_path / "tiny", cells, models=models))
    assert _lines(chart) == {
        "uncut receiver, on its own data": [(0, (0.91, 0.93), 0)],
        "Noise": [(0, (0.99, 0.99), 0)],
    }


def test_senders_fitted_on_their_own_data_share_a_figure(tmp_path: Path, make_cell: Cell, write: Write) -> None:
    cells = [
        make_cell(accuracy, sender=name, fit_data=name, eval_data=evaluated, receiver_accuracy=uncut)
        for name, evaluated, accuracy, uncut in (
            ("digit", "digit", 0.98, 0.97),
            ("colour", "colour", 0.99, 0.10),
            ("colour", "digit", 0.20, 0.97),
        )
    ]
    models = [row("models", variant="digit", hash="hash-0", eval_data="digit", accuracy=0.97)]
    for one in cells:
        one["receiver_variant"] = "digit"
    found = dict(charts(load(write(tmp_path / "tiny", cells, models=models))))
    assert {stem: _lines(chart) for stem, chart in found.items()} == {
        "accuracy_digit_own_own": {
            "uncut receiver, on its own data": [(0, (0.97,), 0)],
            "Digit": [(0, (0.98,), 0)],
            "Colour": [(0, (0.99,), 0)],
        },
        "accuracy_digit_own_digit": {
            "uncut receiver": [(0, (0.97,), 0)],
            "Digit": [(0, (0.98,), 0)],
            "Colour": [(0, (0.20,), 0)],
        },
    }


def test_all_cuts_have_a_panel_for_each_sender(tmp_path: Path, make_cell: Cell, write: Write) -> None:
    accuracies = {("layer1", "layer1"): 0.1, ("layer1", "layer2"): 0.2, ("layer2", "layer1"): 0.3}
    cells = [
        make_cell(accuracy + extra, sender=sender, sender_cut=a, receiver_cut=b)
        for sender, extra in (("mix", 0.5), ("digit", 0.0))
        for (a, b), accuracy in accuracies.items()
    ]
    chart = _only(write(tmp_path / "tiny", cells))
    assert [panel.title for panel in chart.panels] == ["Digit", "Mix"]
    lines = _lines(chart)
    assert lines["layer1"] == [(0, (0.1,), 0), (1, (0.2,), 0)]
    assert lines["layer2"] == [(0, (0.3,), 0)]
    styles: list[dict[str, Line]] = [{line.label: line for line in panel.lines} for panel in chart.panels]
    assert styles[0]["layer1"].style == styles[1]["layer1"].style != styles[0]["layer2"].style


def test_what_falls_on_the_same_layer_is_said(tmp_path: Path, make_cell: Cell, write: Write) -> None:
    cells = [make_cell(sender_cut=cut, receiver_arch="resnet18") for cut in ("layer4", "avgpool")]
    chart = _only(write(tmp_path / "tiny", cells))
    assert chart.panels[0].ticks == ["Linear\n(layer4)"]
    assert chart.notes == ["avgpool is not drawn: it falls on the same layer as layer4"]


def test_what_a_sweep_varies_has_panels(tmp_path: Path, make_cell: Cell, write: Write) -> None:
    cells = [
        make_cell(accuracy, bn_mode=mode, l1=l1, cell_id=f"{mode}-{l1}")
        for mode, l1, accuracy in (("frozen", 0.0, 0.1), ("adapt", 0.01, 0.2), ("adapt", 0.0, 0.3))
    ]
    chart = _only(write(tmp_path / "tiny", cells))
    found = {panel.title: _lines(chart, place)["Colour"] for place, panel in enumerate(chart.panels)}
    assert found == {
        "l1 0.0, bn_mode adapt": [(0, (0.3,), 0)],
        "l1 0.0, bn_mode frozen": [(0, (0.1,), 0)],
        "l1 0.01, bn_mode adapt": [(0, (0.2,), 0)],
    }
    assert chart.notes == []


def test_too_many_settings_are_averaged_over_and_said(tmp_path: Path, make_cell: Cell, write: Write) -> None:
    cells = [make_cell(0.5 + offset / 100, label_offset=offset, cell_id=str(offset)) for offset in range(13)]
    chart = _only(write(tmp_path / "tiny", cells))
    assert _lines(chart)["Colour"] == [(0, (pytest.approx(0.56),), 0)]
    assert chart.notes == [f"averaged over label_offset ({', '.join(map(str, range(13)))})"]


def test_a_figure_without_any_value_is_not_drawn(tmp_path: Path, make_cell: Cell, write: Write) -> None:
    assert list(charts(load(write(tmp_path / "tiny", [make_cell(None)])))) == []
