"""Tables and comparisons of reconstruction errors, from cells written by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis import compare
from analysis.blocks import grid_block, reading_notes
from analysis.heatmap import scale_of
from analysis.load import load, polars_schema
from analysis.measured import outcomes
from analysis.measures import ERROR, measure_of
from analysis.tables import stitchability
from analysis.wide import mean_by, wide
from stitching_core.errors import InputError

Write, Make = Callable[..., Path], Callable[..., dict[str, Any]]


def errors(make_cell: Make, scale: float = 1.0) -> list[dict[str, Any]]:
    """Two senders, one cut, two runs; the uncut receiver's error is 0.01."""
    found = {("colour", 0): 0.02, ("colour", 1): 0.04, ("digit", 0): 0.01, ("digit", 1): None}
    return [
        {
            **make_cell(None, sender=sender, run=run, objective="mse", receiver_accuracy=None),
            "status": "ok" if error is not None else "diverged",
            "reconstruction_error": None if error is None else error * scale,
            "receiver_error": 0.01,
            "error_ratio": None if error is None else error * scale / 0.01,
        }
        for (sender, run), error in found.items()
    ]


def test_the_table_shows_errors_and_ratios(tmp_path: Path, make_cell: Make, write: Write) -> None:
    results = load(write(tmp_path / "one", errors(make_cell)))
    assert measure_of(results.cells) is ERROR
    table = stitchability(results)
    assert "accuracy" not in table.columns
    colour = table.filter(pl.col("sender") == "colour").row(0, named=True)
    # means of 0.02 and 0.04, and of 2 and 4; their sds are half of the difference times the root of 2
    assert colour["reconstruction_error"] == pytest.approx(0.03)
    assert colour["reconstruction_error_sd"] == pytest.approx(0.01 * 2**0.5)
    assert colour["error_ratio"] == pytest.approx(3)
    digit = table.filter(pl.col("sender") == "digit").row(0, named=True)
    assert (digit["n"], digit["failed"], digit["error_ratio"]) == (1, 1, 1.0)
    (grid,) = wide(table, stitchability(results, by=mean_by(table)))
    block = grid_block(grid)
    assert block.title.endswith("evaluated on mnist: reconstruction error")
    assert block.header == ["sender", "maxpool", "mean", "ratio"]
    assert block.sections[0][0][2] == "0.0100 ±0.0000"
    assert block.sections[1][0][1:] == ["0.0300 ±0.0141", "0.0300 ±0.0141", "3.00 ±1.41"]
    assert any("below 1" in note for note in reading_notes(table))
    measured = outcomes(results)
    assert measured.stitched["value"].to_list() == [0.02, 0.01, 0.04, None]  # run by run
    assert measured.uncut["value"].to_list() == [0.01, 0.01]


def test_light_is_good_in_a_heatmap_of_errors_too(tmp_path: Path, make_cell: Make, write: Write) -> None:
    table = stitchability(load(write(tmp_path / "one", errors(make_cell))))
    scale = scale_of(wide(table)[0])
    low, high = scale.colour(0.0), scale.colour(0.03)
    assert scale.highest == pytest.approx(0.03)
    assert sum(low[:3]) > sum(high[:3])


def test_two_sweeps_are_compared_by_their_errors(
    tmp_path: Path, make_cell: Make, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write(tmp_path / "one", errors(make_cell, 2.0))
    other = write(tmp_path / "other", errors(make_cell))
    compare.main([str(one), str(other)])
    out = capsys.readouterr().out
    # differences 0.02, 0.04 and 0.01
    assert "reconstruction error, A minus B" in out
    assert "+0.0233" in out
    accuracies = write(tmp_path / "accuracies", [make_cell(0.9)])
    with pytest.raises(InputError, match="accuracy: they can't be compared"):
        compare.main([str(one), str(accuracies)])


def test_two_objectives_have_no_table_in_common(make_cell: Make) -> None:
    rows = [*errors(make_cell), make_cell(0.9, objective="cross_entropy")]
    with pytest.raises(InputError, match="objectives cross_entropy, mse"):
        measure_of(pl.DataFrame(rows, schema=polars_schema("cells")))
