"""A sweep's results folder as lazy Polars tables: checked, deduplicated and limited to the plan."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stitching_core.errors import InputError
from stitching_core.record import FAILED, SCHEMA_VERSION, TABLES

_DTYPES: dict[str, pl.DataType] = {
    "str": pl.String(),
    "int": pl.Int64(),
    "float": pl.Float64(),
    "bool": pl.Boolean(),
    "list[int]": pl.List(pl.Int64()),
    "list[float]": pl.List(pl.Float64()),
}

# What tells one row of a table from another: a retrain after a crash may write the same row into a second part.
_KEYS: dict[str, list[str]] = {
    "cells": ["cell_id", "eval_data"],
    "modules": ["cell_id", "model", "seed", "eval_data", "part", "module"],
    "predictions": ["cell_id", "model", "seed", "eval_data"],
    "outputs": ["cell_id", "model", "seed", "eval_data", "kind", "item"],
}

# What the plan calls things that a cell's id knows by their content.
_NAMES = ("run", "sender", "receiver")


@dataclass(frozen=True)
class Results:
    """The tables of one sweep.

    Attributes:
        path: the folder.
        cells: one row per cell and eval_data; in the plan's order where there is a plan.
        models: one row per base model and data variant.
        modules: one row per measured module.
        predictions: one row per cell (or uncut model) and eval_data.
        outputs: one row per picture of a reconstructed test image.
        planned: number of cells in the plan, or None without one.
        missing: number of planned cells that lack the row of an evaluation asked of them; 0 without a plan.
    """

    path: Path
    cells: pl.LazyFrame
    models: pl.LazyFrame
    modules: pl.LazyFrame
    predictions: pl.LazyFrame
    outputs: pl.LazyFrame
    planned: int | None
    missing: int


def polars_schema(table: str) -> pl.Schema:
    """Column names and Polars types of a table of the record.

    Raises:
        KeyError: no table of that name.
    """
    return pl.Schema({name: _DTYPES[kind] for name, kind in TABLES[table].items()})


def load(path: str | Path, planned_only: bool = True) -> Results:
    """Open ``results/<sweep>``. Nothing but file footers and the plan is read until a table is collected.

    Args:
        path: the folder.
        planned_only: leave out cells that an earlier configuration planned and the present one does not.

    Raises:
        InputError: not a results folder, one of another schema version, or one with an unreadable file.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; expected a sweep's results, results/<sweep>")
    check_version(folder / "config.yaml")
    if not (folder / "cells").is_dir():
        raise InputError(f"{folder} has no cells/ folder; expected a sweep's results with cells/part-*.parquet")

    cells = _latest(_parts(folder, "cells"), "cells")
    modules = _latest(_parts(folder, "modules"), "modules")
    predictions = _latest(_parts(folder, "predictions"), "predictions")
    outputs = _latest(_parts(folder, "outputs"), "outputs")
    models_file = folder / "models.parquet"
    models = _scan([models_file] if models_file.is_file() else [], "models")

    planned, missing = None, 0
    plan = _plan(folder / "plan.parquet")
    if plan is not None and planned_only:
        planned, missing = plan["cell_id"].n_unique(), _missing(plan, cells)
        # an id knows no names: the plan does, also where a model was renamed or has two of them
        named = plan.drop("eval_data", strict=False).unique(maintain_order=True).with_row_index("position")
        cells = (
            named.lazy()
            .join(cells.drop([name for name in named.columns if name in _NAMES]), on="cell_id")
            .sort("position", maintain_order=True)
            .select(polars_schema("cells").names())
        )
        in_plan = pl.col("cell_id").is_null() | pl.col("cell_id").is_in(plan["cell_id"].unique().implode())
        modules, predictions, outputs = (table.filter(in_plan) for table in (modules, predictions, outputs))
    return Results(folder, cells, models, modules, predictions, outputs, planned, missing)


def check_version(config: Path) -> None:
    # One first-level key of plain YAML: not worth a YAML parser.
    if not config.is_file():
        raise InputError(f"{config} is missing; expected a sweep's results, results/<sweep>")
    text = config.read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^schema_version\s*:\s*([^\s#]+)", text, flags=re.MULTILINE)
    if found is None:
        raise InputError(f"{config} names no schema_version; this version reads {SCHEMA_VERSION}")
    version = found.group(1).strip("'\"")
    if version != str(SCHEMA_VERSION):
        raise InputError(f"{config} was written by schema version {version}; this version reads {SCHEMA_VERSION}")


def _parts(folder: Path, table: str) -> pl.LazyFrame:
    return _scan(sorted((folder / table).glob("part-*.parquet")), table)


def _scan(files: list[Path], table: str) -> pl.LazyFrame:
    schema = polars_schema(table)
    if not files:
        return pl.LazyFrame(schema=schema)
    for file in files:
        for name, dtype in _footer(file).items():
            if name in schema and dtype != schema[name]:
                raise InputError(f"{file}: column {name} is {dtype}; expected {schema[name]}")
    return pl.scan_parquet(
        files, schema=schema, missing_columns="insert", extra_columns="ignore", glob=False, hive_partitioning=False
    )


def _footer(file: Path) -> pl.Schema:
    try:
        return pl.Schema(pl.read_parquet_schema(file))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{file} is not a readable parquet file: {str(error).splitlines()[0]}") from None


def _latest(frame: pl.LazyFrame, table: str) -> pl.LazyFrame:
    """One row per key: the last finished where the table knows it, else that of the last part.

    A failure hides no result: the same id is the same result, whatever went wrong later.
    """
    if table == "cells":
        stands = (pl.col("status") != FAILED).fill_null(True)
        frame = frame.sort(stands, "finished_at", nulls_last=False, maintain_order=True)
    return frame.unique(_KEYS[table], keep="last", maintain_order=True)


def _plan(file: Path) -> pl.DataFrame | None:
    if not file.is_file():
        return None
    schema = _footer(file)
    if schema.get("cell_id") != pl.String():
        raise InputError(f"{file} has no cell_id column of strings; expected one row per planned cell")
    wanted = ("cell_id", "eval_data", *_NAMES)
    return pl.read_parquet(file, columns=[name for name in wanted if name in schema], glob=False)


def _missing(plan: pl.DataFrame, cells: pl.LazyFrame) -> int:
    """Number of planned cells that lack the row of an evaluation asked of them (or any row, if none is named)."""
    keys = ["cell_id"]
    if isinstance(plan.schema.get("eval_data"), pl.List):
        plan = plan.explode("eval_data", empty_as_null=False)
        keys = ["cell_id", "eval_data"]
    done = cells.select(keys).unique()
    return int(plan.lazy().join(done, on=keys, how="anti").select(pl.col("cell_id").n_unique()).collect().item())
