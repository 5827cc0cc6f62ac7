from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.load import load, polars_schema
from stitching_core.errors import InputError
from stitching_core.record import row


def test_schema_maps_every_type() -> None:
    schema = polars_schema("cells")
    assert schema["cell_id"] == pl.String
    assert schema["run"] == pl.Int64
    assert schema["accuracy"] == pl.Float64
    assert schema["learning_curve"] == pl.List(pl.Float64)
    assert polars_schema("models")["learned"] == pl.Boolean
    assert polars_schema("predictions")["predicted"] == pl.List(pl.Int64)


def test_tables_are_read_and_absent_ones_are_empty_with_their_schema(results_folder: Path) -> None:
    results = load(results_folder)
    assert results.cells.collect().height == 16
    assert (results.planned, results.missing) == (16, 0)
    for name in ("modules", "predictions"):
        frame = getattr(results, name).collect()
        assert frame.is_empty()
        assert frame.schema == polars_schema(name)


def test_latest_of_two_rows_is_kept_whatever_the_parts_order(
    tmp_path: Path, make_cell: Callable[..., dict[str, Any]], write: Callable[..., Path]
) -> None:
    late = make_cell(0.7, cell_id="a", finished_at="2030-01-02T00:00:00Z")
    early = make_cell(0.2, cell_id="a", finished_at="2030-01-01T00:00:00Z")
    other_eval = make_cell(0.4, cell_id="a", eval_data="digit")
    frame = load(write(tmp_path / "tiny", [late], [early, other_eval])).cells.collect()
    assert sorted(zip(frame["eval_data"], frame["accuracy"], strict=True)) == [("digit", 0.4), ("mnist", 0.7)]


def test_cells_follow_the_plan_and_nothing_else(
    tmp_path: Path, make_cell: Callable[..., dict[str, Any]], write: Callable[..., Path]
) -> None:
    a, b, c, d = (make_cell(cell_id=name) for name in "abcd")
    results = load(write(tmp_path / "tiny", [a, b, c], plan=[c, d, a]))
    assert results.cells.collect()["cell_id"].to_list() == ["c", "a"]
    assert (results.planned, results.missing) == (3, 1)


def test_a_cell_lacking_an_evaluation_is_missing(
    tmp_path: Path, make_cell: Callable[..., dict[str, Any]], write: Callable[..., Path]
) -> None:
    folder = write(tmp_path / "tiny", [make_cell(cell_id="a"), make_cell(cell_id="b")])
    plan = {"cell_id": ["a", "b"], "eval_data": [["mnist", "digit"], ["mnist"]]}
    pl.DataFrame(plan).write_parquet(folder / "plan.parquet")
    assert load(folder).missing == 1


def test_modules_keep_uncut_models_and_drop_unplanned_cells(
    tmp_path: Path, make_cell: Callable[..., dict[str, Any]], write: Callable[..., Path]
) -> None:
    planned = make_cell(cell_id="a")
    folder = write(tmp_path / "tiny", [planned], plan=[planned])
    (folder / "modules").mkdir()
    rows = [
        row("modules", cell_id=one, model="digit", module="layer1", feature_rank=5) for one in ("a", "z", None, None)
    ]
    pl.DataFrame(rows, schema=polars_schema("modules")).write_parquet(folder / "modules/part-00000.parquet")
    assert load(folder).modules.collect()["cell_id"].to_list() == ["a", None]


def test_older_part_without_a_column_reads_as_null(results_folder: Path) -> None:
    part = results_folder / "cells/part-00000.parquet"
    pl.read_parquet(part).drop("l1").write_parquet(part)
    assert load(results_folder).cells.collect()["l1"].null_count() == 16


def _no_folder(folder: Path) -> Path:
    return folder / "nowhere"


def _no_config(folder: Path) -> Path:
    (folder / "config.yaml").unlink()
    return folder


def _no_cells(folder: Path) -> Path:
    (folder / "cells").rename(folder / "cell")
    return folder


def _other_version(folder: Path) -> Path:
    (folder / "config.yaml").write_text("sweep:\n  schema_version: 1\nschema_version: 7  # newer\n")
    return folder


def _no_version(folder: Path) -> Path:
    (folder / "config.yaml").write_text("sweep:\n  schema_version: 1\n")
    return folder


def _corrupt(folder: Path) -> Path:
    (folder / "cells/part-00001.parquet").write_bytes(b"PAR1 and then the disk was full")
    return folder


def _wrong_type(folder: Path) -> Path:
    pl.DataFrame({"cell_id": ["a"], "accuracy": ["high"]}).write_parquet(folder / "cells/part-00001.parquet")
    return folder


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_no_folder, "nowhere is not a folder"),
        (_no_config, "config.yaml is missing"),
        (_no_cells, "has no cells/ folder"),
        (_other_version, "written by schema version 7; this version reads 1"),
        (_no_version, "names no schema_version"),
        (_corrupt, "part-00001.parquet is not a readable parquet file"),
        (_wrong_type, "part-00001.parquet: column accuracy is String; expected Float64"),
    ],
)
def test_bad_folder_is_one_line(results_folder: Path, spoil: Callable[[Path], Path], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load(spoil(results_folder))
    assert "\n" not in str(caught.value)
