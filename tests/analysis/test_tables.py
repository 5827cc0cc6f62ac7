from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.load import load, polars_schema
from analysis.order import network_order
from analysis.tables import averaged_over, stitchability
from analysis.wide import mean_by, wide
from stitching_core.errors import InputError
from stitching_core.record import row


def _one(table: pl.DataFrame, **values: Any) -> dict[str, Any]:
    return table.filter(*(pl.col(name).eq_missing(pl.lit(value)) for name, value in values.items())).to_dicts()[0]


def _frame(*cells: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(cells), schema=polars_schema("cells"))


def test_mean_sd_and_penalty_over_runs(results_folder: Path) -> None:
    cell = _one(stitchability(load(results_folder)), sender="colour", receiver_cut="maxpool")
    # accuracies 0.90, 0.94: mean 0.92, sd 0.04 / sqrt(2); penalties 0.95 - 0.90 = 0.05 and 0.97 - 0.94 = 0.03
    assert cell["accuracy"] == pytest.approx(0.92)
    assert cell["accuracy_sd"] == pytest.approx(0.0282842712)
    assert cell["penalty"] == pytest.approx(0.04)
    assert cell["penalty_sd"] == pytest.approx(0.0141421356)
    assert (cell["row"], cell["n"], cell["cells"], cell["failed"]) == ("stitched", 2, 2, 0)


def test_diverged_cell_is_counted_and_not_averaged(results_folder: Path) -> None:
    cell = _one(stitchability(load(results_folder)), sender="colour", receiver_cut="layer1")
    assert cell["accuracy"] == pytest.approx(0.80)
    assert cell["accuracy_sd"] is None
    assert (cell["n"], cell["cells"], cell["failed"]) == (1, 1, 1)


def test_negative_penalty_is_better_than_the_receiver(results_folder: Path) -> None:
    cell = _one(stitchability(load(results_folder)), sender="digit", receiver_cut="maxpool", row="stitched")
    assert cell["penalty"] == pytest.approx(-0.01)


def test_uncut_and_floor_rows(results_folder: Path) -> None:
    table = stitchability(load(results_folder))
    uncut = _one(table, row="uncut")
    assert uncut["accuracy"] == pytest.approx(0.96)
    assert (uncut["sender"], uncut["sender_cut"], uncut["receiver_cut"]) == (None, None, None)
    assert (uncut["n"], uncut["cells"]) == (2, 0)
    assert table.filter(pl.col("row") == "uncut").height == 1
    noise = _one(table, floor="noise", receiver_cut="maxpool")
    assert (noise["row"], noise["eval_data"], noise["penalty"]) == ("floor", "noise", None)
    assert noise["accuracy"] == pytest.approx(0.13)
    assert _one(table, floor="random_init", receiver_cut="maxpool")["accuracy"] == pytest.approx(0.40)


def test_averaging_over_cuts_keeps_the_sd_over_runs(results_folder: Path) -> None:
    table = stitchability(load(results_folder), by=["receiver", "sender"])
    # run 0: (0.96 + 0.94) / 2 = 0.95, run 1: 0.97; over runs 0.96 with sd 0.02 / sqrt(2)
    own = _one(table, sender="digit", row="stitched")
    assert own["accuracy"] == pytest.approx(0.96)
    assert own["accuracy_sd"] == pytest.approx(0.0141421356)
    assert (own["n"], own["cells"]) == (2, 4)
    # colour lacks a cell in run 1: run 0 is 0.85, run 1 is 0.94; not the mean of three cells, 0.88
    assert _one(table, sender="colour")["accuracy"] == pytest.approx(0.895)


def test_the_two_floors_are_never_averaged_together(results_folder: Path) -> None:
    table = stitchability(load(results_folder), by=["receiver"])
    assert table.select("row", "floor").rows() == [
        ("uncut", None),
        ("stitched", None),
        ("floor", "random_init"),
        ("floor", "noise"),
    ]
    assert _one(table, floor="random_init")["accuracy"] == pytest.approx(0.30)


def test_group_with_failed_cells_only_stays(make_cell: Callable[..., dict[str, Any]]) -> None:
    failed = make_cell(None, status="failed", receiver_accuracy=None)
    models = [row("models", model="digit", hash="hash-0", eval_data="mnist", accuracy=0.91)]
    table = stitchability(_frame(failed), pl.DataFrame(models, schema=polars_schema("models")))
    assert table.select("row", "accuracy", "n", "failed").rows() == [("uncut", 0.91, 1, 0), ("stitched", None, 0, 1)]


def test_nan_accuracy_is_a_failure(make_cell: Callable[..., dict[str, Any]]) -> None:
    table = stitchability(_frame(make_cell(float("nan"), run=0), make_cell(0.5, run=1)))
    assert table.filter(pl.col("row") == "stitched").select("accuracy", "failed").row(0) == (0.5, 1)


@pytest.mark.parametrize("name", ["colour", "accuracy", "cell_id", ""])
def test_unknown_by_names_the_allowed(name: str, results_folder: Path) -> None:
    with pytest.raises(InputError, match=rf"'{name}' is not a column to group by; allowed: sweep, run, .*receiver_cut"):
        stitchability(load(results_folder), by=["receiver", name])


def test_settings_that_are_averaged_over_are_found(make_cell: Callable[..., dict[str, Any]]) -> None:
    cells = _frame(make_cell(protocol="bansal2021"), make_cell(protocol="smith2025"), make_cell(sender="b", l1=0.1))
    assert averaged_over(cells.lazy(), ["receiver"]) == {"protocol": ["bansal2021", "smith2025"]}
    assert averaged_over(cells.lazy(), ["receiver", "protocol"]) == {}


def test_cuts_follow_the_plan_and_else_the_network(
    tmp_path: Path, make_cell: Callable[..., dict[str, Any]], write: Callable[..., Path]
) -> None:
    finished = ["layer2", "maxpool", "layer10", "layer1"]
    cells = [make_cell(sender_cut=cut) for cut in finished]
    for planned, expected in [
        ([3, 0, 1, 2], ["layer1", "layer2", "maxpool", "layer10"]),
        (None, ["maxpool", "layer1", "layer2", "layer10"]),
    ]:
        plan = None if planned is None else [cells[i] for i in planned]
        results = load(write(tmp_path / f"tiny-{planned is None}", cells, plan=plan))
        assert stitchability(results)["receiver_cut"].drop_nulls().to_list() == expected
        assert wide(stitchability(results))[0].cuts == expected


def test_network_order_is_by_number_between_stem_and_head() -> None:
    cuts = ["classifier.1", "features.17", "features.3", "maxpool", "conv1", "avgpool"]
    assert sorted(cuts, key=network_order) == [
        "conv1",
        "maxpool",
        "features.3",
        "features.17",
        "avgpool",
        "classifier.1",
    ]


def test_wide_rows_and_means(results_folder: Path) -> None:
    results = load(results_folder)
    table = stitchability(results)
    (grid,) = wide(table, stitchability(results, by=mean_by(table)))
    assert (grid.receiver, grid.fit_data, grid.eval_data, grid.all_cuts) == ("digit", "mnist", "mnist", False)
    assert grid.cuts == ["maxpool", "layer1"]
    assert [row.label for row in grid.rows] == ["uncut receiver", "colour", "digit", "untrained", "noise (on noise)"]
    own = grid.rows[2]
    assert own.mean.mean == pytest.approx(0.96)
    assert own.mean.sd == pytest.approx(0.0141421356)
    assert own.penalty.mean == pytest.approx(0.0)
    assert grid.rows[1].entries["layer1"].failed == 1
    assert grid.rows[4].penalty.mean is None
    (without,) = wide(table)
    assert (without.rows[2].mean.mean, without.rows[2].mean.sd) == (pytest.approx(0.96), None)


def test_noise_floor_stands_in_every_grid_of_its_receiver_and_fit_data(
    make_cell: Callable[..., dict[str, Any]],
) -> None:
    noise = {"sender": "noise", "sender_kind": "noise", "eval_data": "noise", "receiver_accuracy": None}
    cells = _frame(
        make_cell(eval_data="mnist"),
        make_cell(eval_data="digit"),
        make_cell(eval_data="mnist", fit_data="digit"),
        make_cell(0.1, fit_data="digit", **noise),
        make_cell(0.1, receiver="lonely", fit_data=None, **noise),
    )
    shown = {
        (grid.receiver, grid.fit_data, grid.eval_data): [row.kind for row in grid.rows]
        for grid in wide(stitchability(cells))
    }
    assert shown == {
        ("digit", "mnist", "mnist"): ["uncut", "stitched"],
        ("digit", "mnist", "digit"): ["uncut", "stitched"],
        ("digit", "digit", "mnist"): ["uncut", "stitched", "floor"],
        ("lonely", None, "noise"): ["floor"],
    }


def test_all_cuts_has_a_row_per_sender_cut(make_cell: Callable[..., dict[str, Any]]) -> None:
    cuts = ("layer1", "layer2")
    cells = _frame(*(make_cell(sender_cut=a, receiver_cut=b) for a in cuts for b in cuts))
    (grid,) = wide(stitchability(cells))
    assert grid.all_cuts
    assert [(row.label, list(row.entries)) for row in grid.rows[1:]] == [
        ("colour layer1", ["layer1", "layer2"]),
        ("colour layer2", ["layer1", "layer2"]),
    ]
