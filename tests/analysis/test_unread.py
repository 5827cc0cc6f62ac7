"""Data that receivers can't read: a note says what the uncut row is; shuffled labels are a floor of their own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from analysis.load import load
from analysis.names import in_order
from analysis.stitchability import notes_of
from analysis.tables import stitchability


def test_the_table_says_what_can_not_be_read(
    tmp_path: Path, make_cell: Callable[..., dict[str, Any]], write: Callable[..., Path]
) -> None:
    audio = {"fit_data": "vowels", "eval_data": "vowels", "penalty": None}
    rows = [
        make_cell(0.9, sender="audio", **audio),
        make_cell(0.8, sender="fresh", sender_kind="random_init", **audio),
        make_cell(0.1, sender="lost", sender_kind="shuffled", **audio),
        make_cell(0.7),
    ]
    results = load(write(tmp_path / "tiny", rows, plan=rows))
    table = stitchability(results)
    assert dict(table.filter(row="floor").select("sender", "floor").iter_rows()) == {
        "fresh": "random_init",
        "lost": "shuffled",
    }
    said = " ".join(notes_of(results, table))
    assert "vowels: of another modality" in said
    assert "mnist: of another modality" not in said
    assert "shuffled: the stitch was fitted to labels shuffled" in said


def test_without_them_nothing_is_said(results_folder: Path) -> None:
    results = load(results_folder)
    assert "modality" not in " ".join(notes_of(results, stitchability(results)))


def test_figures_put_the_floors_last() -> None:
    floors = {"a": "shuffled", "b": "random_init", "c": "noise"}
    assert in_order(["a", "b", "own", "c"], floors) == ["own", "c", "b", "a"]
