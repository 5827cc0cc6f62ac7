"""Searches on a real Ray cluster: killed and gone on with, on one worker or two, the outcome is the same."""

import shutil
from pathlib import Path

import optuna
import polars as pl
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from polars.testing import assert_frame_equal

from sweeps.journal import Journal, TrialRecord
from tests.sweeps.conftest import Place

CLOCK = ["sweep", "train_seconds", "finished_at"]
SEARCH = [
    "grid.senders=[digit]",
    "grid.eval_data=[digit]",
    "search.n_trials=5",
    "search.batch=2",
    "search.startup_trials=2",
    "search.space.epochs=[1,3]",
]
PER_CELL = [*SEARCH, "search=per_cell"]
SHARED = [*SEARCH, "search=shared", "search.sample_cells=2"]


def studies(place: Place, name: str, keys: list[str]) -> dict[str, list[TrialRecord]]:
    journal = Journal(place.folder / f"results/{name}/studies")
    return {key: journal.trials(key) for key in keys}


def shared_studies(place: Place, name: str) -> list[str]:
    backend = JournalFileBackend(str(place.folder / f"results/{name}/studies/optuna.journal"))
    return sorted(optuna.get_all_study_names(JournalStorage(backend)))


def cut_off(place: Place, complete: str, name: str) -> None:
    """A results folder as a killed search leaves it: some rounds whole, one half told, and half a line at the end."""
    source, target = place.folder / "results" / complete, place.folder / "results" / name
    (target / "studies").mkdir(parents=True)
    shutil.copy(source / "config.yaml", target)
    lines = (source / "studies/optuna.journal").read_bytes().splitlines(keepends=True)
    (target / "studies/optuna.journal").write_bytes(b"".join(lines[:5]) + lines[5][:40])


def equal_cells(place: Place, one: str, other: str) -> None:
    assert_frame_equal(place.cells(one).drop(CLOCK), place.cells(other).drop(CLOCK), check_exact=True)


@pytest.fixture(scope="module")
def per_cell(place: Place) -> Place:
    assert place.run("name=per_cell", *PER_CELL) == 0
    return place


def test_the_winner_is_the_best_on_validation_and_the_first_candidate_the_fixed_protocol(per_cell: Place) -> None:
    cells = per_cell.cells("per_cell")
    assert cells.height == 2
    for row in cells.iter_rows(named=True):
        trials = studies(per_cell, "per_cell", [row["cell_id"]])[row["cell_id"]]
        assert [trial.number for trial in trials] == [0, 1, 2, 3, 4]
        fixed = {"learning_rate": 0.03, "momentum": 0.9, "weight_decay": 0.01, "epochs": 2, "init": "default"}
        assert trials[0].params == fixed
        assert row["validation_accuracy"] == max(trial.value for trial in trials if trial.value is not None)
        best = [trial.params for trial in trials if trial.value == row["validation_accuracy"]]
        assert {name: row[name] for name in fixed} in best
        assert (row["search"], row["search_trials"]) == ("per_cell", 5)


def test_a_killed_search_per_cell_goes_on_as_if_nothing_had_happened(per_cell: Place) -> None:
    cut_off(per_cell, "per_cell", "per_cell_killed")
    assert per_cell.run("name=per_cell_killed", "cluster.block_cells=1", *PER_CELL) == 0
    equal_cells(per_cell, "per_cell", "per_cell_killed")
    keys = per_cell.cells("per_cell")["cell_id"].to_list()
    assert studies(per_cell, "per_cell_killed", keys) == studies(per_cell, "per_cell", keys)


@pytest.fixture(scope="module")
def shared(place: Place) -> Place:
    assert place.run("name=shared", *SHARED) == 0
    return place


def test_a_shared_search_gives_every_cell_the_same_hyperparameters(shared: Place) -> None:
    searched = ["learning_rate", "momentum", "weight_decay", "epochs", "init"]
    assert shared.cells("shared").select(searched).unique().height == 1
    (trials,) = studies(shared, "shared", shared_studies(shared, "shared")).values()
    assert [trial.number for trial in trials] == [0, 1, 2, 3, 4]
    assert trials[0].params["learning_rate"] == 0.03  # the fixed protocol
    best = max(trial.value for trial in trials if trial.value is not None)
    row = shared.cells("shared").select(searched).row(0, named=True)
    assert row in [trial.params for trial in trials if trial.value == best]


@pytest.mark.parametrize("killed", [False, True], ids=["one worker", "killed and gone on with"])
def test_a_shared_search_does_not_depend_on_workers_or_kills(shared: Place, killed: bool) -> None:
    name = f"shared_{killed}"
    if killed:
        cut_off(shared, "shared", name)
    assert shared.run(f"name={name}", "cluster.cpus_per_block=2", *SHARED) == 0
    equal_cells(shared, "shared", name)
    (key,) = shared_studies(shared, "shared")
    assert studies(shared, name, [key]) == studies(shared, "shared", [key])


def test_another_shared_search_in_the_same_folder_is_another_study(shared: Place) -> None:
    assert shared.run("name=shared", "protocol.bn_mode=frozen", *SHARED) == 0
    keys = shared_studies(shared, "shared")
    assert len(keys) == 2
    assert [len(trials) for trials in studies(shared, "shared", keys).values()] == [5, 5]


DEADLY = """
import os, signal
from stitching_core.stitch.layers import STITCHES, NormConvNorm

class Deadly(NormConvNorm):
    def forward(self, x):
        if x.shape[1] == 32:  # the channels of layer3
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(x)

STITCHES["deadly"] = Deadly
"""


def test_a_cell_whose_worker_dies_is_a_row_that_says_so_and_the_rest_goes_on(place: Place, tmp_path: Path) -> None:
    plugin = tmp_path / "deadly.py"
    plugin.write_text(DEADLY)
    overrides = ["name=deadly", f"plugins=[{plugin}]", "protocol.stitch=deadly", "grid.senders=[digit]"]
    assert place.run(*overrides, "cluster.max_failures=0") == 1  # both cells in one block at first
    cells = place.cells("deadly")
    status = dict(cells.group_by("receiver_cut").agg(pl.col("status").unique()).iter_rows())
    assert status == {"layer3": ["failed"], "layer4": ["ok"]}
    reasons = cells.filter(status="failed")["reason"].unique().to_list()
    assert reasons == ["the worker died; tried 1 times alone"]
    assert place.run(*overrides[:2], "grid.senders=[digit]", "protocol.stitch=bn-conv1x1-bn") == 0  # a healthy one
