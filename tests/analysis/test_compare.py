from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.cli import run
from analysis.compare import main
from tests.analysis.repetition import repeated, write_repetition


def test_difference_per_eval_data_and_over_all(
    tmp_path: Path,
    make_cell: Callable[..., dict[str, Any]],
    write: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def sweep(name: str, accuracies: dict[str, list[float | None]]) -> str:
        rows = [make_cell(x, run=i, eval_data=data) for data, xs in accuracies.items() for i, x in enumerate(xs)]
        return str(write(tmp_path / name, rows))

    a = sweep("a", {"mnist": [0.90, 0.80, 0.70], "digit": [0.60]})
    b = sweep("b", {"mnist": [0.80, 0.60, None], "digit": [0.90]})
    assert run(main, [a, b]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    # 10 and 20 points: mean 15, half width 12.706 * (7.071 / sqrt 2) = 63.53
    assert ["mnist", "+15.00", "-48.53", "+78.53", "2", "1", "0"] in lines
    assert ["digit", "-30.00", "-", "-", "1", "0", "0"] in lines
    assert ["all", "+0.00", "-65.72", "+65.72", "3", "1", "0"] in lines


def test_cells_that_share_a_key_are_averaged_and_told(
    tmp_path: Path,
    make_cell: Callable[..., dict[str, Any]],
    write: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    a = write(tmp_path / "a", [make_cell(0.9, protocol="smith2025"), make_cell(0.7, protocol="bansal2021")])
    b = write(tmp_path / "b", [make_cell(0.5)])
    assert run(main, [str(a), str(b), "--unit", "run"]) == 0
    out = capsys.readouterr().out
    assert "+30.00" in out
    assert "A: 1 matched key is the mean of several cells" in out


def test_sweeps_without_a_common_cell(
    tmp_path: Path,
    make_cell: Callable[..., dict[str, Any]],
    write: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    a, b = (str(write(tmp_path / name, [make_cell(sender=name)])) for name in "ab")
    assert run(main, [a, b]) == 2
    assert "matches one of" in capsys.readouterr().err


@pytest.mark.parametrize(("accuracy", "status", "verdict"), [(0.9863, 0, "as published"), (0.9, 1, "NOT as published")])
def test_a_sweep_and_its_reference(
    tmp_path: Path, accuracy: float, status: int, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [repeated("digit", "layer3", accuracy), repeated("greyscale", "layer3", accuracy + 0.005)]
    cells.append(repeated("colour", "layer3", 1.0))
    sweep = write_repetition(tmp_path / "sweep", cells)
    assert run(main, [str(sweep), "--reference", "smith2025"]) == status
    out = capsys.readouterr().out
    assert f"Verdict: {verdict}." in out
    assert "Claims: 1 hold, 0 fail, 0 not measured." in out


@pytest.mark.parametrize(("accuracy", "status"), [(0.97, 0), (0.96, 1)])
def test_a_small_sweep_is_taken_at_the_papers_claims(tmp_path: Path, accuracy: float, status: int) -> None:
    sweep = write_repetition(tmp_path / "sweep", [repeated("colour", "layer3", accuracy)], data__train_items=3000)
    assert run(main, [str(sweep), "--reference", "smith2025"]) == status


def test_a_comparison_that_can_say_nothing_is_no_success(tmp_path: Path) -> None:
    sweep = write_repetition(tmp_path / "sweep", [repeated("mix", "layer3", 1.0)], data__train_items=3000)
    assert run(main, [str(sweep), "--reference", "smith2025"]) == 1


@pytest.mark.parametrize("arguments", [["a"], ["a", "b", "--reference", "smith2025"]])
def test_either_a_second_sweep_or_a_reference(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, arguments) == 2
    assert "expected exactly one of them" in capsys.readouterr().err


def test_an_unknown_reference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = write_repetition(tmp_path / "sweep", [repeated("digit", "layer3", 1.0)])
    assert run(main, [str(sweep), "--reference", "smith"]) == 2
    assert capsys.readouterr().err == "error: --reference 'smith' is unknown; allowed: smith2025\n"
