"""The journal of candidates: what is put in comes out, once, also after a kill in the middle of a line."""

import json
import os
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from sweeps.journal import FILE, Journal, TrialRecord

SPACE = {
    "learning_rate": FloatDistribution(1e-4, 1, log=True),
    "init": CategoricalDistribution(["default", "identity"]),
}
TRIALS = [
    TrialRecord(0, {"learning_rate": 0.1, "init": "default"}, 0.5, 1.25, "ok"),
    TrialRecord(1, {"learning_rate": 1.0, "init": "identity"}, None, None, "diverged"),
    TrialRecord(2, {"learning_rate": 0.01, "init": "identity"}, 0.75, 0.5, "ok"),
    TrialRecord(3, {"learning_rate": 0.02, "init": "default"}, 0.0, None, "failed"),
]


def test_nothing_is_made_by_looking(tmp_path: Path) -> None:
    assert Journal(tmp_path / "studies").trials("cell") == []
    assert not (tmp_path / "studies").exists()


def test_candidates_come_back_as_they_went_in(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.add("cell", TRIALS, SPACE)
    journal.add("other", TRIALS[:1], SPACE)
    for reader in (journal, Journal(tmp_path)):
        assert reader.trials("cell") == TRIALS
        assert reader.trials("other") == TRIALS[:1]
        assert reader.trials("a third") == []
    names = optuna.get_all_study_names(JournalStorage(JournalFileBackend(str(tmp_path / FILE))))
    assert sorted(names) == ["cell", "other"]  # asking for the third has not made it


def test_adding_again_adds_nothing(tmp_path: Path) -> None:
    Journal(tmp_path).add("cell", TRIALS[:2], SPACE)
    # a writer that was killed is asked again, and the round that follows comes with the one before
    journal = Journal(tmp_path)
    for part in (TRIALS[:2], TRIALS, TRIALS[1:3], [TRIALS[3], TRIALS[0]]):
        journal.add("cell", part, SPACE)
    assert Journal(tmp_path).trials("cell") == TRIALS


def test_the_order_in_which_a_round_comes_does_not_matter(tmp_path: Path) -> None:
    Journal(tmp_path).add("cell", TRIALS[::-1], SPACE)
    assert Journal(tmp_path).trials("cell") == TRIALS


def test_optuna_opens_it_without_us(tmp_path: Path) -> None:
    Journal(tmp_path).add("cell", TRIALS, SPACE)
    storage = JournalStorage(JournalFileBackend(str(tmp_path / FILE)))
    study = optuna.load_study(study_name="cell", storage=storage)
    assert study.best_value == 0.75
    assert study.best_params == {"learning_rate": 0.01, "init": "identity"}
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]
    assert study.trials[1].user_attrs["status"] == "diverged"
    assert study.trials[2].distributions["learning_rate"] == SPACE["learning_rate"]


@pytest.mark.parametrize("cut", [1, 20])
def test_a_last_line_that_was_cut_off_is_dropped(tmp_path: Path, cut: int) -> None:
    Journal(tmp_path).add("cell", TRIALS[:2], SPACE)
    Journal(tmp_path).add("cell", TRIALS[:3], SPACE)
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-cut])
    journal = Journal(tmp_path)
    assert journal.trials("cell") == TRIALS[:2]
    assert all(json.loads(line) for line in (tmp_path / FILE).read_text().splitlines())
    journal.add("cell", TRIALS, SPACE)
    assert Journal(tmp_path).trials("cell") == TRIALS


def test_a_last_line_of_rubbish_is_dropped(tmp_path: Path) -> None:
    Journal(tmp_path).add("cell", TRIALS, SPACE)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'\x00\x00{"op_co\n')
    assert Journal(tmp_path).trials("cell") == TRIALS


def test_a_lock_without_an_owner_is_no_obstacle(tmp_path: Path) -> None:
    Journal(tmp_path).add("cell", TRIALS[:1], SPACE)
    lock = tmp_path / f"{FILE}.lock"
    os.symlink(tmp_path / FILE, lock)  # what Optuna locks with
    journal = Journal(tmp_path)
    assert journal.trials("cell") == TRIALS[:1]
    assert not lock.is_symlink()  # Optuna itself would wait half a minute for its owner
    journal.add("cell", TRIALS, SPACE)
    assert Journal(tmp_path).trials("cell") == TRIALS
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
