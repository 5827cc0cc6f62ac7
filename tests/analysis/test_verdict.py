from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.load import load
from analysis.verdict import Verdict, judge
from analysis.verdict_text import verdict_text
from stitching_core.errors import InputError
from tests.analysis.repetition import repeated, stitch_rank, uncut, write_repetition

CUTS = {"3": "maxpool", "4": "layer1", "5": "layer2", "6": "layer3", "7": "layer4", "8": "avgpool"}
REFERENCE = Path(__file__).parents[2] / "analysis/reference"
T4 = 2.776445  # 97.5% quantile of Student's t with 4 degrees of freedom, from a table


def lines(kind: str) -> list[dict[str, str]]:
    """The published lines of 2e, read without the code under test."""
    with (REFERENCE / f"smith2025_{kind}.csv").open() as file:
        return [line for line in csv.DictReader(file) if line["experiment"] == "2e"]


def of_digit(tmp_path: Path, *accuracies: float | None, **config: Any) -> Verdict:
    """2e with digit into itself at layer3 alone: a run for each accuracy."""
    cells = [repeated("digit", "layer3", accuracy, run) for run, accuracy in enumerate(accuracies)]
    return judge(load(write_repetition(tmp_path / "sweep", cells, **config)), "smith2025")


def test_the_published_means_are_as_published(tmp_path: Path) -> None:
    cells, models, modules = [], [], []
    for line in lines("accuracy"):
        mean = float(line["accuracy_mean"])
        if line["stitched"] == "true":
            cells.append(repeated(line["sender"], CUTS[line["cut_index"]], mean))
        else:
            models.append(uncut(line["receiver"], mean))
    for line in lines("rank"):
        if line["module"] == "stitch.s_conv1":
            names = (line["sender"], CUTS[line["cut_index"]])
            cell = next(cell for cell in cells if (cell["sender"], cell["receiver_cut"]) == names)
            modules.append(stitch_rank(cell, round(float(line["rank_mean"]))))
    verdict = judge(load(write_repetition(tmp_path / "sweep", cells, models, modules)), "smith2025")
    assert verdict.differs == []
    assert (verdict.accuracy.judged, verdict.accuracy.outside, verdict.accuracy.allowed) == (42, 0, 5)
    assert verdict.accuracy.table["difference"].abs().max() == 0
    assert verdict.ranks is not None
    assert (verdict.ranks.judged, verdict.ranks.outside) == (36, 0)
    assert (verdict.absent, verdict.missing, verdict.passed) == (0, 0, True)
    text = verdict_text(verdict)
    assert "Accuracy: 0 of 42 judged cells outside; chance allows 5." in text
    assert text.endswith("Verdict: as published.\n")


def test_an_interval_with_the_spread_of_a_count(tmp_path: Path) -> None:
    # own sd 0.00079; of a count sqrt(0.98634 * 0.01366 / 10,000) = 0.0011608, the largest
    row = of_digit(tmp_path, 0.9829).accuracy.table.row(0, named=True)
    assert row["sd"] == pytest.approx(0.0011608, abs=1e-7)
    half = T4 * 0.0011608 * math.sqrt(1 + 1 / 5)
    assert (row["low"], row["high"]) == pytest.approx((0.98634 - half, 0.98634 + half), abs=1e-6)
    assert (row["published"], row["published_sd"], row["published_n"]) == (0.98634, 0.00079, 5)
    assert (row["ours"], row["ours_sd"], row["ours_n"], row["lost"]) == (0.9829, None, 1, 0)
    assert row["difference"] == pytest.approx(-0.00344)
    assert row["verdict"] == "within"


def test_more_runs_narrow_the_interval(tmp_path: Path) -> None:
    row = of_digit(tmp_path, 0.9829, 0.9825).accuracy.table.row(0, named=True)
    assert row["ours"] == pytest.approx(0.9827)
    assert row["ours_sd"] == pytest.approx(0.0004 / math.sqrt(2))
    assert row["low"] == pytest.approx(0.98634 - T4 * 0.0011608 * math.sqrt(1 / 2 + 1 / 5), abs=1e-6)
    assert row["verdict"] == "outside"


def test_a_cell_without_spread_has_the_pooled_one(tmp_path: Path) -> None:
    # colour at layer3: 1.0 five times; all cells have n = 5, so the pooled variance is the plain mean
    sds = [float(line["accuracy_sd"]) for line in lines("accuracy") if line["stitched"] == "true"]
    pooled = math.sqrt(sum(sd**2 for sd in sds) / len(sds))
    cells = [repeated("colour", "layer3", 0.9975)]
    models = [uncut("colour_only", 0.5), uncut("colour", 0.9975)]
    table = judge(load(write_repetition(tmp_path / "sweep", cells, models)), "smith2025").accuracy.table
    by = {(row["receiver"], row["sender"]): row for row in table.iter_rows(named=True)}
    assert by["digit", "colour"]["sd"] == pytest.approx(pooled)
    assert by["colour", None]["sd"] == pytest.approx(pooled)  # 1.0 five times as well
    assert by["colour_only", None]["sd"] == 0.16329  # its own
    assert by["colour", None]["cut"] is None


def test_ranks_are_judged_by_their_relative_spread(tmp_path: Path) -> None:
    published = [line for line in lines("rank") if line["module"] == "stitch.s_conv1"]
    relative = [float(line["rank_sd"]) / float(line["rank_mean"]) for line in published]
    pooled = math.sqrt(sum(one**2 for one in relative) / len(relative))
    cell = repeated("colour_only", "layer3", 0.9999)
    verdict = judge(load(write_repetition(tmp_path / "sweep", [cell], modules=[stitch_rank(cell, 40)])), "smith2025")
    assert verdict.ranks is not None
    row = verdict.ranks.table.row(0, named=True)
    assert (row["published"], row["published_sd"], row["ours"]) == (13.4, 1.14, 40.0)
    assert row["sd"] == pytest.approx(13.4 * pooled)
    assert row["verdict"] == "outside"
    assert verdict.accuracy.passed
    assert verdict.passed is False  # chance leaves none of one outside


@pytest.mark.parametrize(("wrong", "passed"), [(5, True), (6, False)])
def test_no_more_outside_than_chance_allows(tmp_path: Path, wrong: int, passed: bool) -> None:
    cells, models = [], []
    for line in lines("accuracy"):
        mean = float(line["accuracy_mean"])
        if line["stitched"] == "true":
            lowered = mean - 0.1 if len(cells) < wrong else mean
            cells.append(repeated(line["sender"], CUTS[line["cut_index"]], lowered))
        else:
            models.append(uncut(line["receiver"], mean))
    verdict = judge(load(write_repetition(tmp_path / "sweep", cells, models)), "smith2025")
    assert (verdict.accuracy.outside, verdict.passed) == (wrong, passed)


def test_a_cell_that_never_ended_well_is_outside(tmp_path: Path) -> None:
    verdict = of_digit(tmp_path, None)
    row = verdict.accuracy.table.row(0, named=True)
    assert (row["ours"], row["ours_n"], row["lost"], row["verdict"]) == (None, 0, 1, "outside")
    assert "1 cell failed or diverged" in verdict_text(verdict)
    assert verdict.absent == 41


def test_two_published_runs_judge_nothing(tmp_path: Path) -> None:
    cell = repeated("random_init", "layer3", 0.5, experiment="2m", sender_kind="random_init")
    verdict = judge(load(write_repetition(tmp_path / "sweep", [cell])), "smith2025")
    row = verdict.accuracy.table.row(0, named=True)
    assert (row["published"], row["published_n"], row["low"], row["verdict"]) == (0.99455, 2, None, "not judged")
    assert verdict.passed is None
    assert "Verdict: nothing was judged." in verdict_text(verdict)


@pytest.mark.parametrize(
    ("cell", "config", "differs"),
    [
        ({}, {"data__train_items": 3000}, ["data.train_items 3000 (published: all)"]),
        ({}, {"zoo__training__epochs": 6}, ["zoo.training.epochs 6 (published: 4)"]),
        ({"epochs": 3}, {}, ["epochs 3 (published: 10)"]),
        ({"data_source": "digits"}, {}, ["data_source digits (published: mnist)"]),
        ({"bn_mode": "frozen"}, {}, ["bn_mode frozen (published: adapt)"]),
        (
            {},
            {"zoo__models": {"digit": {"training": {"epochs": 9, "schedule": None}}}},
            ["model digit has training of its own (epochs)"],
        ),
        ({}, {"data": {}}, 4 * [None]),
    ],
)
def test_a_sweep_of_another_size_is_shown_and_not_judged(
    tmp_path: Path, cell: dict[str, Any], config: dict[str, Any], differs: list[str | None]
) -> None:
    rows = [repeated("digit", "layer3", 0.5, **cell)]
    verdict = judge(load(write_repetition(tmp_path / "sweep", rows, [uncut("digit", 0.9)], **config)), "smith2025")
    assert len(verdict.differs) == len(differs)
    assert all(wanted in (None, found) for wanted, found in zip(differs, verdict.differs, strict=True))
    assert verdict.accuracy.table["verdict"].to_list() == ["not judged"] * 2
    assert verdict.accuracy.table["difference"].round(5).to_list() == [-0.0799, -0.48634]
    assert verdict.passed is None
    assert "NOT THE PUBLISHED SETTING, so nothing is judged" in verdict_text(verdict)


def test_a_model_of_another_name_is_no_published_one(tmp_path: Path) -> None:
    models = [uncut("digit", 0.9, variant="greyscale")]
    verdict = judge(load(write_repetition(tmp_path / "sweep", [repeated("digit", "layer3", 0.9)], models)), "smith2025")
    assert verdict.differs == ["model digit was trained on greyscale"]


def test_own_data_are_those_of_the_sender(tmp_path: Path) -> None:
    def verdict(fit_data: str) -> Verdict:
        cell = repeated("mix", "layer3", 0.993, experiment="2e_b", fit_data=fit_data, eval_data="mix")
        return judge(load(write_repetition(tmp_path / fit_data, [cell])), "smith2025")

    own = verdict("mix")
    assert own.differs == []
    assert own.accuracy.table.select("published", "verdict").rows() == [(0.99332, "within")]
    assert verdict("correlated").differs == ["fit_data correlated (published: own)"]


def test_noise_needs_no_cut_of_its_own(tmp_path: Path) -> None:
    noise = {"sender_kind": "noise", "sender_arch": None, "noise_sigma": 0.1, "receiver_accuracy": None}
    data = {"fit_data": "noise", "eval_data": "noise", "batch_size": 64, "epochs": 4}
    cell = repeated("noise", "layer1", 0.9990, experiment="1f", receiver="colour_only", **noise, **data)
    verdict = judge(load(write_repetition(tmp_path / "sweep", [cell])), "smith2025")
    assert verdict.differs == []
    assert verdict.accuracy.table.select("cut", "published", "verdict").rows() == [("layer1", 0.99892, "within")]


def test_other_cuts_and_evaluations_are_left_out(tmp_path: Path) -> None:
    cells = [
        repeated("digit", "layer3", 0.9863),
        repeated("digit", "layer3", 0.2, eval_data="digit"),
        repeated("digit", "layer3", 0.3, sender_cut="layer2", cell_id="across"),
    ]
    table = judge(load(write_repetition(tmp_path / "sweep", cells)), "smith2025").accuracy.table
    assert table.select(pl.col("eval_data"), pl.col("ours").round(6)).rows() == [("correlated", 0.9863)]


@pytest.mark.parametrize("experiment", [None, "2k"])
def test_results_of_no_published_experiment(tmp_path: Path, experiment: str | None) -> None:
    folder = write_repetition(tmp_path / "sweep", [repeated("digit", "layer3", 0.9, experiment=experiment)])
    with pytest.raises(InputError, match=f"is of experiment {experiment}; smith2025 has numbers of 1f, 1g, 1m, 2e"):
        judge(load(folder), "smith2025")
