"""Named experiments run and judged by one command."""

import sys
from pathlib import Path

import polars as pl
import pytest

from analysis.load import load
from stitching_core.errors import InputError
from sweeps import console, reproduce
from tests.analysis.repetition import repeated, write_repetition
from tests.sweeps.conftest import SMALL, Place

TINY = [
    *(word for word in SMALL if not word.startswith("grid.")),
    "data=digits",
    "grid.cuts=[layer3,layer4]",
    "grid.runs=1",
]


def run(*arguments: str) -> int:
    sys.argv = ["reproduce.py", *arguments]
    return console.run(reproduce.main, reproduce.USAGE)


def test_all_at_full_size_is_every_experiment_with_published_numbers() -> None:
    asked = reproduce.plans(["experiment=all"])
    # the experiments of smith2025_accuracy.csv, counted by hand
    assert sorted(asked) == ["1f", "1g", "1m", "2e", "2e_b", "2j", "2m"]
    assert {one.config.scale for one in asked.values()} == {"full"}
    assert asked["2e"].plan.height == 6 * 6  # senders x cuts into digit, one run
    assert asked["2j"].plan.height == 6 * 5


def test_all_at_the_small_size_is_what_the_claims_are_about() -> None:
    asked = reproduce.plans(["experiment=all", "scale=small"])
    assert sorted(asked) == ["1f", "2e", "2m"]
    # per run 6 x 6 into digit; noise into six receivers at 6 cuts; random_init at 6 cuts; three runs
    assert [asked[name].plan.height for name in ("2e", "1f", "2m")] == [3 * 36, 3 * 36, 3 * 6]
    assert {one.config.name for one in asked.values()} == {f"smith2025_{name}_small" for name in asked}


@pytest.mark.parametrize("asked", ["2e", "smith2025_2e"])
def test_one_experiment_by_either_name(asked: str) -> None:
    assert list(reproduce.plans([f"experiment={asked}", "grid.runs=2"])) == ["2e"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["experiment has no value", "all", "2e"]),
        (["experiment=9z"], ["experiment=9z is unknown", "all", "2e", "4a"]),
        (["experiment=all", "name=mine"], ["name=mine", "all experiments"]),
        (["experiment=2e", "scale=tiny"], ["scale=tiny", "full, small"]),
        (["experiment=2e", "protocol.epochs=0"], ["protocol.epochs=0"]),
    ],
)
def test_bad_input_is_one_error(arguments: list[str], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        reproduce.plans(arguments)
    assert all(word in str(caught.value) for word in words)


def test_a_plan_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("experiment=all", "scale=small", "plan_only=true") == console.OK
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("smith2025_1f_small", "smith2025_2e_small", "smith2025_2m_small"))
    assert list(tmp_path.iterdir()) == []


def test_a_small_run_is_judged_on_the_claims(place: Place, capsys: pytest.CaptureFixture) -> None:
    arguments = ["experiment=2m", "scale=small", *TINY]
    assert run(*arguments) == console.OK
    kept = (place.folder / "results/claims_smith2025_small.txt").read_text()
    assert kept.strip() in capsys.readouterr().out
    # four claims are about 1f and 2e; a receiver that two epochs on 160 images taught nothing says nothing of the fifth
    assert "0 hold, 0 fail, 5 not measured" in kept
    assert "between networks that learnt their task" in kept
    assert pl.read_parquet(place.folder / "results/smith2025_2m_small/modules/*.parquet").height > 0  # ranks

    assert run(*arguments) == console.OK  # finished: judged at once, with the same words
    assert (place.folder / "results/claims_smith2025_small.txt").read_text() == kept
    assert "nothing to train" in capsys.readouterr().out


@pytest.mark.parametrize(("accuracy", "good"), [(0.97, True), (0.96, False)])
def test_a_claim_that_fails_is_told(accuracy: float, good: bool, tmp_path: Path) -> None:
    cell = repeated(
        "random_init", "layer3", accuracy, experiment="2m", sender_kind="random_init", receiver_accuracy=0.98
    )
    results = load(write_repetition(tmp_path / "2m", [cell]))
    assert reproduce.claimed({"2m": results}, tmp_path) is good


@pytest.mark.parametrize(("accuracy", "good"), [(0.987, True), (0.90, False)])
def test_a_cell_outside_the_published_runs_is_told(accuracy: float, good: bool, tmp_path: Path) -> None:
    # published for digit into itself at layer3: 0.98634 with an sd of 0.00079 over 5 runs
    results = load(write_repetition(tmp_path / "2e", [repeated("digit", "layer3", accuracy, experiment="2e")]))
    assert reproduce.judged(results, results.path) is good
    assert (results.path / "verdict.txt").exists()


def test_a_full_run_made_otherwise_than_published_is_shown_and_not_judged(
    place: Place, capsys: pytest.CaptureFixture
) -> None:
    assert run("experiment=2m", "measure.rank=false", *TINY) == console.OK
    verdict = (place.folder / "results/smith2025_2m/verdict.txt").read_text()
    assert verdict.strip() in capsys.readouterr().out
    assert "train_items" in verdict  # what it has otherwise than the published runs
    assert "resnet18_eighth" in verdict
