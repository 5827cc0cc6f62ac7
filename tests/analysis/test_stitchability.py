from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from analysis.cli import run
from analysis.load import load
from analysis.stitchability import main
from analysis.tables import stitchability


def test_terminal_table(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, [str(results_folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Receiver digit, stitch fitted on mnist, evaluated on mnist: accuracy in %"
    assert lines[1].split() == ["sender", "maxpool", "layer1", "mean", "penalty"]
    assert lines[3].split() == ["uncut", "receiver", "-", "-", "96.00", "±1.41", "-"]
    # over cuts: run 0 has 0.85, run 1 its one ok cell, 0.94; penalties 0.10 and 0.03
    assert lines[5].split() == ["colour", "92.00", "±2.83", "80.00", "89.50", "±6.36", "6.50", "±4.95"]
    assert lines[9].split() == ["noise", "(on", "noise)", "13.00", "±1.41", "10.00", "±0.00", "11.50", "±0.71", "-"]
    assert lines[10] == "1 failed or diverged cell in no mean: colour at layer1 (1)."
    notes = " ".join(" ".join(lines[11:]).split())
    assert "standard deviation over runs (1 to 2)" in notes
    assert "negative: the stitched network is better than the receiver" in notes
    assert "compare with chance" in notes


def test_five_cuts_fit_the_terminal(
    tmp_path: Path,
    make_cell: Callable[..., dict[str, Any]],
    write: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    cuts = ["maxpool", "layer1", "layer2", "layer3", "layer4"]
    cells = [make_cell(0.9 - 0.1 * run, sender_cut=cut, run=run) for cut in cuts for run in (0, 1)]
    assert run(main, [str(write(tmp_path / "tiny", cells))]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 110


def test_markdown_has_one_width(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, [str(results_folder), "--format", "markdown"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 5
    assert {row.count("|") for row in rows} == {6}
    assert rows[1] == "| --- | ---: | ---: | ---: | ---: |"


def test_latex_has_booktabs_rules_and_escapes(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, [str(results_folder), "--format", "latex", "--by", "receiver,sender_kind"]) == 0
    assert "random\\_init" in capsys.readouterr().out
    assert run(main, [str(results_folder), "--format", "latex"]) == 0
    latex = capsys.readouterr().out
    assert [latex.count(rf"\{rule}rule") for rule in ("top", "mid", "bottom")] == [1, 3, 1]
    assert r"colour & 92.00 $\pm$2.83 & 80.00 & 89.50 $\pm$6.36 & 6.50 $\pm$4.95 \\" in latex
    assert r"accuracy in \%" in latex


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_long_forms_round_trip(kind: str, results_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / f"table.{kind}"
    assert run(main, [str(results_folder), "--format", kind, "--output", str(file)]) == 0
    expected = stitchability(load(results_folder))
    back = pl.read_parquet(file) if kind == "parquet" else pl.read_csv(file, schema=expected.schema)
    assert_frame_equal(back, expected)


def test_other_by_prints_the_long_form(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, [str(results_folder), "--by", "sender,run"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == ["sender", "run", "row", "accuracy", "penalty", "runs", "cells", "failed"]
    assert ["colour", "1", "stitched", "94.00", "3.00", "1", "1", "1"] in lines


def test_fit_and_eval_filter_and_keep_the_noise_floor(
    tmp_path: Path, make_cell: Callable[..., dict[str, Any]], write: Callable[..., Path]
) -> None:
    cells = [make_cell(eval_data=name) for name in ("mnist", "digit")]
    cells.append(make_cell(0.1, sender="noise", sender_kind="noise", fit_data="noise", eval_data="noise"))
    folder, file = write(tmp_path / "tiny", cells), tmp_path / "table.parquet"
    options = ["--eval", "digit", "--fit", "mnist", "--format", "parquet", "--output", str(file)]
    assert run(main, [str(folder), *options]) == 0
    assert pl.read_parquet(file).select("row", "eval_data").rows() == [
        ("uncut", "digit"),
        ("stitched", "digit"),
        ("floor", "noise"),
    ]


def test_unfinished_plan_and_averaged_settings_are_told(
    tmp_path: Path,
    make_cell: Callable[..., dict[str, Any]],
    write: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    cells = [make_cell(protocol=name) for name in ("bansal2021", "smith2025")]
    folder = write(tmp_path / "tiny", cells, plan=[*cells, make_cell(sender="later")])
    told = "Averaged over protocol (bansal2021, smith2025); --by protocol tells them apart."
    assert run(main, [str(folder)]) == 0
    out = capsys.readouterr().out
    assert told in out
    assert "1 planned cell without a result yet." in out
    assert run(main, [str(folder), "--format", "csv"]) == 0
    captured = capsys.readouterr()
    assert told in captured.err
    assert "note" not in captured.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--by", "receiver,colour"], "'colour' is not a column to group by; allowed: sweep, run"),
        (["--by", "sender,sender"], "names 'sender' twice"),
        (["--format", "parquet"], "--format parquet needs --output FILE"),
        (["--output", "{tmp}/none/table.txt"], "the folder {tmp}/none doesn't exist"),
        (["--output", "{tmp}"], "{tmp} is a folder; expected a file's name"),
        (["--fit", "kmnist"], "no cell has fit_data 'kmnist'; the results have mnist"),
        (["--eval", "kmnist"], "no cell has eval_data 'kmnist'; the results have mnist"),
    ],
)
def test_bad_options_are_one_line_and_status_2(
    options: list[str], message: str, results_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(main, [str(results_folder), *(option.format(tmp=tmp_path) for option in options)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert message.format(tmp=tmp_path) in captured.err


def test_no_folder_and_no_finished_cell(
    tmp_path: Path,
    make_cell: Callable[..., dict[str, Any]],
    write: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(main, [str(tmp_path / "nowhere")]) == 2
    assert "nowhere is not a folder" in capsys.readouterr().err
    folder = write(tmp_path / "tiny", [make_cell()], plan=[make_cell(sender="later")])
    assert run(main, [str(folder)]) == 2
    assert "has no finished cell of its plan yet" in capsys.readouterr().err
