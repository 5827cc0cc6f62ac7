from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis import query
from analysis.cli import run
from analysis.query import main

COUNT = "SELECT sender, COUNT(*) AS cells FROM cells WHERE status = 'ok' GROUP BY sender ORDER BY sender"


def test_table_and_markdown(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, [str(results_folder), COUNT]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["sender", "cells"]
    assert lines[2:] == [["colour", "3"], ["digit", "4"], ["noise", "4"], ["untrained", "4"]]
    assert run(main, [str(results_folder), COUNT, "--format", "markdown"]) == 0
    assert "| colour | 3 |" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files(kind: str, results_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / f"out.{kind}"
    assert run(main, [str(results_folder), COUNT, "--format", kind, "--output", str(file)]) == 0
    back = pl.read_csv(file) if kind == "csv" else pl.read_parquet(file)
    assert back["cells"].to_list() == [3, 4, 4, 4]


def test_lists_become_text_in_csv(
    tmp_path: Path,
    make_cell: Callable[..., dict[str, Any]],
    write: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = write(tmp_path / "tiny", [make_cell(learning_curve=[1.5, 0.25])])
    assert run(main, [str(folder), "SELECT learning_curve FROM cells", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "learning_curve\n1.5 0.25\n"


def test_all_columns_are_shown_and_a_cut_is_told(
    results_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "MAX_ROWS", 3)
    assert run(main, [str(results_folder), "SELECT * FROM cells"]) == 0
    captured = capsys.readouterr()
    assert {"cell_id", "worst_class_accuracy", "finished_at"} <= set(captured.out.splitlines()[0].split())
    assert len(captured.out.splitlines()) == 2 + 3
    assert captured.err == "note: 3 of 16 rows; --format csv writes them all\n"


def test_four_tables(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for table in ("models", "modules", "predictions"):
        assert run(main, [str(results_folder), f"SELECT COUNT(*) AS rows FROM {table}"]) == 0
        assert capsys.readouterr().out.split()[-1] == "0"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELEC sender FROM cells", "sql parser error"),
        ("SELECT * FROM stitches", "relation 'stitches' was not found"),
        ("SELECT acuracy FROM cells", "did you mean accuracy"),
        ("SELECT c.sendr FROM cells c", "did you mean sender"),
        ("SELECT zzz FROM cells", "known columns are cells: cell_id, sweep, run"),
        ("SELECT sender FROM cells WHERE sender > 3", "cannot compare string with numeric type"),
    ],
)
def test_bad_sql_is_one_line_and_lists_the_tables(
    sql: str, message: str, results_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(main, [str(results_folder), sql]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: SQL: ")
    assert error.endswith("(tables: cells, models, modules, predictions, outputs)\n")
    assert error.count("\n") == 1
    assert message in error


def test_parquet_needs_a_file(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, [str(results_folder), COUNT, "--format", "parquet"]) == 2
    assert "needs --output" in capsys.readouterr().err
