"""The results folder: rows are never doubled, never half there, and belong to one process at a time."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from stitching_core.errors import InputError
from stitching_core.record import row
from sweeps.ledger import Ledger

HOLDS = """
import sys, time
from pathlib import Path
from sweeps.ledger import Ledger
held = Ledger(Path(sys.argv[1])).lock()
print("held", flush=True)
time.sleep(600)
"""


def cell(name: str, eval_data: str = "digit", when: str = "2030-01-01", **values: object) -> dict:
    known = {"cell_id": name, "eval_data": eval_data, "status": "ok", "accuracy": 0.5, "finished_at": when}
    return row("cells", **{**known, **values})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "sweep")
    made.write_text("config.yaml", "schema_version: 1\nname: sweep\n")
    return made


def test_an_empty_ledger(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "sweep")
    ledger.check_version()
    assert ledger.cells().is_empty()
    assert ledger.finished() == set()
    assert ledger.note("level.json") == {}
    assert not ledger.folder.exists()


def test_the_same_part_twice_is_there_once(ledger: Ledger) -> None:
    for _ in range(2):
        ledger.add("block", {"cells": [cell("a"), cell("b")], "predictions": []})
    assert sorted(ledger.cells()["cell_id"]) == ["a", "b"]
    assert [path.name for path in (ledger.folder / "cells").iterdir()] == ["part-block.parquet"]
    assert not (ledger.folder / "predictions").exists()


@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_the_newest_row_of_a_cell_counts_whichever_part_it_is_in(ledger: Ledger, order: tuple[str, str]) -> None:
    when = {"old": "2030-01-01T00:00:00.000+00:00", "new": "2030-01-01T00:00:00.001+00:00"}
    for part, which in zip("ab", order, strict=True):
        ledger.add(part, {"cells": [cell("one", when=when[which], reason=which)]})
    assert ledger.cells()["reason"].to_list() == ["new"]


def test_what_is_finished(ledger: Ledger) -> None:
    rows = [
        cell("good", "digit"),
        cell("good", "mix"),
        cell("diverged", status="diverged", accuracy=None),
        cell("failed", status="failed", accuracy=None),
    ]
    ledger.add("one", {"cells": rows})
    assert ledger.finished() == {("good", "digit"), ("good", "mix"), ("diverged", "digit")}
    # tried again, and with success
    ledger.add("two", {"cells": [cell("failed", when="2030-01-02")]})
    assert ("failed", "digit") in ledger.finished()


def test_predictions_are_on_disk_before_the_rows_that_finish_a_cell(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(Ledger, "write_rows", lambda self, name, table, rows: written.append(table))
    ledger.add("one", {"cells": [cell("a")], "predictions": [{}], "modules": [{}]})
    assert written[-1] == "cells"
    assert sorted(written) == ["cells", "modules", "predictions"]


def test_a_writer_that_is_killed_while_it_writes_leaves_the_old_part(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.add("one", {"cells": [cell("a")]})

    def killed(file: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", killed)
        with pytest.raises(KeyboardInterrupt):
            ledger.add("one", {"cells": [cell("a"), cell("b")]})
    left = list((ledger.folder / "cells").glob(".*"))
    assert len(left) == 1
    assert ledger.cells()["cell_id"].to_list() == ["a"]
    ledger.check_version()
    ledger.clean()
    assert [path.name for path in (ledger.folder / "cells").iterdir()] == ["part-one.parquet"]
    assert ledger.cells()["cell_id"].to_list() == ["a"]


def test_clean_removes_nothing_but_leftovers(ledger: Ledger) -> None:
    ledger.add("one", {"cells": [cell("a")]})
    mine = ledger.folder / "notes.tmp"
    mine.write_text("a user's own")
    with ledger.lock():
        for name in (".config.yaml.7.tmp", "cells/.part-two.parquet.7.tmp", "studies/.x.7.tmp"):
            (ledger.folder / name).parent.mkdir(exist_ok=True)
            (ledger.folder / name).write_text("half")
        ledger.clean()
    left = {str(path.relative_to(ledger.folder)) for path in ledger.folder.rglob("*") if path.is_file()}
    assert left == {"config.yaml", "cells/part-one.parquet", ".lock", "notes.tmp"}


def test_another_process_is_refused_and_named_and_its_death_frees_the_folder(ledger: Ledger) -> None:
    other = subprocess.Popen([sys.executable, "-c", HOLDS, ledger.folder], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match=rf"sweep is in use by process {other.pid} on "):
            ledger.lock()
    finally:
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert other.stdout is not None
        other.stdout.close()
    with ledger.lock():
        assert (ledger.folder / ".lock").read_text().startswith(f"process {os.getpid()} on ")


def test_the_lock_is_held_within_a_process_too(ledger: Ledger) -> None:
    with ledger.lock(), pytest.raises(InputError, match=f"in use by process {os.getpid()}"):
        ledger.lock()
    ledger.lock().close()


@pytest.mark.parametrize("names", [[".lock"], [".lock", ".config.yaml.7.tmp"], []])
def test_a_sweep_that_was_killed_before_its_first_file_may_begin_again(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    Ledger(tmp_path).check_version()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("config.yaml", "schema_version: 2\n", "schema version 2; this version reads 1"),
        ("config.yaml", "name: x\n", "names no schema_version"),
        ("data.csv", "", "holds something else"),
        ("cells/part-a.parquet", "", "holds something else"),
    ],
)
def test_a_folder_that_is_not_ours(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words):
        Ledger(tmp_path).check_version()


def test_a_damaged_part_is_found_before_anything_is_launched(ledger: Ledger) -> None:
    ledger.add("one", {"cells": [cell("a")]})
    part = ledger.folder / "cells/part-one.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"part-one\.parquet is not a readable parquet file"):
        ledger.check_version()


def test_rows_keep_their_values_and_types(ledger: Ledger) -> None:
    given = cell("a", learning_curve=[1.0, 0.5], run=3, penalty=-0.25)
    ledger.add("one", {"cells": [given], "predictions": [row("predictions", cell_id="a", target=[1, 2])]})
    assert ledger.cells().row(0, named=True) == given
    kept = pl.read_parquet(ledger.folder / "predictions/part-one.parquet")
    assert kept.select("cell_id", "target").rows() == [("a", [1, 2])]


def test_notes(ledger: Ledger) -> None:
    ledger.write_json("note.json", {"a": 1})
    assert ledger.note("note.json") == {"a": 1}
    (ledger.folder / "note.json").write_text('{"a": ')
    assert ledger.note("note.json") == {}


def test_a_cell_whose_ranks_are_asked_for_is_finished_when_they_are_there(ledger: Ledger) -> None:
    ledger.add("one", {"cells": [cell("ranked"), cell("bare"), cell("gone", status="diverged")]})
    assert ledger.finished(rank=True) == {("gone", "digit")}  # nothing is left of it to be measured

    def ranks(cell_id: str, wide: int | None) -> list[dict]:
        known = {"cell_id": cell_id, "eval_data": "digit"}
        return [
            row("modules", module="conv1", width=512, columns=wide, **known),
            row("modules", module="fc", width=12, **known),
        ]

    ledger.add("two", {"modules": ranks("ranked", None)})
    assert ledger.finished(rank=True) == {("gone", "digit"), ("ranked", "digit")}
    assert ledger.finished(rank=True, columns=512) == ledger.finished(rank=True)  # no layer is wider
    assert ledger.finished(rank=True, columns=100) == {("gone", "digit")}
    ledger.add("three", {"modules": ranks("bare", 100)})
    assert ledger.finished(rank=True, columns=100) == {("gone", "digit"), ("bare", "digit")}
    assert len(ledger.finished()) == 3
