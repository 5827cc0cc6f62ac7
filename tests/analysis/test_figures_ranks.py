"""The series of rank charts: a network of four layers and its cuts, with ranks written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.chart import SD, Chart
from analysis.figures import charts
from analysis.load import load, polars_schema
from stitching_core.record import row

LAYERS = ["conv1", "layer1.0.conv1", "layer2.0.conv1", "fc"]
BEFORE = {"maxpool": 1, "layer1": 2}  # layers of the sender
UNCUT = {0: [8, 7, 6, 5], 1: [8, 9, 8, 7]}  # by run
STITCHED = {  # by cut and run: the sender's layers, the stitch, the receiver's layers
    ("maxpool", 0): [20, 30, 40, 50, 10],
    ("maxpool", 1): [20, 32, 44, 56, 10],
    ("layer1", 0): [20, 21, 31, 51, 10],
    ("layer1", 1): [20, 23, 33, 53, 10],
}

Lines = dict[str, list[tuple[float, tuple[float, ...], int]]]


def _stitched(cell: dict[str, Any], ranks: list[int]) -> list[dict[str, Any]]:
    before = 0 if cell["sender_cut"] is None else BEFORE[cell["receiver_cut"]]
    names = [*LAYERS[:before], "map", *LAYERS[BEFORE[cell["receiver_cut"]] :]]
    parts = ["sender"] * before + ["stitch"] + ["receiver"] * (len(names) - before - 1)
    return [
        row(
            "modules",
            cell_id=cell["cell_id"],
            seed=cell["run"],
            eval_data=cell["eval_data"],
            part=part,
            module=module,
            position=position,
            feature_rank=rank,
        )
        for position, (part, module, rank) in enumerate(zip(parts, names, ranks, strict=True))
    ]


def _uncut(data: str = "mnist") -> list[dict[str, Any]]:
    return [
        row("modules", model="digit", seed=run, eval_data=data, module=name, position=position, feature_rank=rank)
        for run, ranks in UNCUT.items()
        for position, (name, rank) in enumerate(zip(LAYERS, ranks, strict=True))
    ]


def _charts(folder: Path, modules: list[dict[str, Any]]) -> dict[str, Chart]:
    (folder / "modules").mkdir()
    pl.DataFrame(modules, schema=polars_schema("modules")).write_parquet(folder / "modules/part-00000.parquet")
    return dict(charts(load(folder)))


def _lines(chart: Chart, panel: int = 0) -> Lines:
    lines = chart.panels[panel].lines
    return {line.label: [(point.place, point.values, point.failed) for point in line.points] for line in lines}


@pytest.fixture
def measured(tmp_path: Path, make_cell: Callable[..., dict[str, Any]], write: Callable[..., Path]) -> dict[str, Chart]:
    cells, modules = [], _uncut()
    for (cut, run), ranks in STITCHED.items():
        cells.append(make_cell(sender_cut=cut, run=run, receiver_seed=run, receiver_arch="resnet18"))
        modules += _stitched(cells[-1], ranks)
    failed = make_cell(None, sender_cut="layer1", run=2, receiver_seed=2, receiver_arch="resnet18")
    return _charts(write(tmp_path / "tiny", [*cells, failed]), modules)


def test_files(measured: dict[str, Chart]) -> None:
    assert list(measured) == [f"{kind}_digit_mnist_mnist" for kind in ("accuracy", "rank", "rank_stitch", "ranks")]
    assert {chart.band for name, chart in measured.items() if name.startswith("rank")} == {SD}


def test_rank_at_the_first_layer_after_the_stitch(measured: dict[str, Chart]) -> None:
    chart = measured["rank_digit_mnist_mnist"]
    assert _lines(chart) == {
        # of the same layers: layer1.0.conv1 after maxpool, layer2.0.conv1 after layer1
        "uncut receiver": [(0, (7, 9), 0), (1, (6, 8), 0)],
        "Colour": [(0, (40, 44), 0), (1, (51, 53), 1)],
    }
    assert [label.splitlines()[0] for label in chart.panels[0].ticks] == ["Res Block 1", "Res Block 2"]


def test_rank_of_the_stitch_has_no_baseline(measured: dict[str, Chart]) -> None:
    assert _lines(measured["rank_stitch_digit_mnist_mnist"]) == {"Colour": [(0, (30, 32), 0), (1, (31, 33), 1)]}


def test_rank_of_every_layer(measured: dict[str, Chart]) -> None:
    chart = measured["ranks_digit_mnist_mnist"]
    (panel,) = chart.panels
    assert (panel.title, panel.ticks) == ("Colour", LAYERS)
    assert _lines(chart) == {
        "uncut receiver": [(0, (8, 8), 0), (1, (7, 9), 0), (2, (6, 8), 0), (3, (5, 7), 0)],
        "maxpool": [(0, (20, 20), 0), (0.5, (30, 32), 0), (1, (40, 44), 0), (2, (50, 56), 0), (3, (10, 10), 0)],
        "layer1": [(0, (20, 20), 0), (1, (21, 23), 0), (1.5, (31, 33), 0), (2, (51, 53), 0), (3, (10, 10), 0)],
    }


def test_noise_has_no_layers_and_the_receiver_its_own_data(
    tmp_path: Path, make_cell: Callable[..., dict[str, Any]], write: Callable[..., Path]
) -> None:
    noise = make_cell(
        sender="noise", sender_kind="noise", sender_cut=None, receiver_cut="layer1", fit_data="noise",
        eval_data="noise", receiver_accuracy=None, receiver_seed=0, receiver_variant="digit",
    )  # fmt: skip
    found = _charts(write(tmp_path / "tiny", [noise]), [*_uncut("digit"), *_stitched(noise, [90, 60, 10])])
    own = "uncut receiver, on its own data"
    assert _lines(found["rank_digit_noise_noise"]) == {own: [(0, (6,), 0)], "Noise": [(0, (60,), 0)]}
    lines = _lines(found["ranks_digit_noise_noise"])
    assert lines["layer1"] == [(1.5, (90,), 0), (2, (60,), 0), (3, (10,), 0)]
    assert lines[own] == [(0, (8,), 0), (1, (7,), 0), (2, (6,), 0), (3, (5,), 0)]


def test_layers_of_another_architecture_are_left_out_and_said(
    tmp_path: Path, make_cell: Callable[..., dict[str, Any]], write: Callable[..., Path]
) -> None:
    cell = make_cell(sender_cut="layer1", receiver_seed=0)
    modules = _stitched(cell, STITCHED["layer1", 0])
    for one in modules:
        if one["part"] == "sender":
            one["module"] = f"features.{one['position']}"
    chart = _charts(write(tmp_path / "tiny", [cell]), [*_uncut(), *modules])["ranks_digit_mnist_mnist"]
    assert [place for place, _, _ in _lines(chart)["layer1"]] == [1.5, 2, 3]
    assert chart.notes == ["a sender's layers that the receiver does not have are not drawn"]
