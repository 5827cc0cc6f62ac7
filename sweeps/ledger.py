"""The single writer of results: parts that are either there and whole, or not there.

A part is written under a temporary name, flushed to disk and renamed. The cells' part comes last: its rows are what
makes a cell finished, and predictions without them are only never read.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from math import inf
from pathlib import Path
from typing import IO, Any

import polars as pl

from analysis.load import check_version, load, polars_schema
from stitching_core import record
from stitching_core.errors import InputError
from stitching_core.models.store import write_atomically

Rows = dict[str, list[dict[str, Any]]]
_TEMPORARY = ".*.tmp"  # what write_atomically calls a file before it is whole


class Ledger:
    """The results folder of one sweep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check_version(self) -> None:
        """Raises InputError if the folder was written by another schema version, is damaged, or is something else."""
        if not self.folder.exists():
            return
        if not self.folder.is_dir():
            raise InputError(f"{self.folder} is no folder; choose another name= or results_dir=")
        if (self.folder / "config.yaml").exists():
            check_version(self.folder / "config.yaml")
            if (self.folder / "cells").is_dir():
                load(self.folder, planned_only=False)  # reads no more than the footers: a damaged part is found now
        elif any(not path.match(".lock") and not path.match(_TEMPORARY) for path in self.folder.iterdir()):
            raise InputError(f"{self.folder} holds something else than a sweep's results; choose another name=")

    def lock(self) -> IO[str]:
        """Makes this process the only one that runs the sweep; held until the returned file is closed.

        Raises:
            InputError: another process runs it, or the folder can't be made.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = (self.folder / ".lock").open("a+")
        except OSError as error:
            raise InputError(f"{self.folder} can't be written: {error.strerror}; choose another results_dir=") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise InputError(f"{self.folder} is in use by {file.read().strip() or 'another process'}") from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        return file

    def write_text(self, name: str, text: str) -> None:
        """A text file of the folder, replaced as a whole."""
        write_atomically(self.folder / name, lambda path: path.write_text(text))

    def write_frame(self, name: str, frame: pl.DataFrame) -> None:
        """A parquet file of the folder, replaced as a whole."""
        write_atomically(self.folder / name, lambda path: frame.write_parquet(path))

    def write_rows(self, name: str, table: str, rows: list[dict[str, Any]]) -> None:
        """Rows of a table of the record, as a parquet file."""
        self.write_frame(name, pl.DataFrame(rows, schema=polars_schema(table), orient="row"))

    def add(self, part: str, rows: Rows) -> None:
        """Writes a block's rows. Adding the same part again replaces it: no row is doubled by a retry."""
        for table in ("predictions", "outputs", "modules", "cells"):
            if rows.get(table):
                self.write_rows(f"{table}/part-{part}.parquet", table, rows[table])

    def cells(self) -> pl.DataFrame:
        """Every cell's newest rows, of any plan."""
        if not (self.folder / "cells").is_dir():
            return pl.DataFrame(schema=polars_schema("cells"))
        return load(self.folder, planned_only=False).cells.collect()

    def finished(self, rank: bool = False, columns: int | None = None) -> set[tuple[str, str]]:
        """(cell_id, eval_data) of every row that stands. One that diverged is a result; one that failed is not.

        Args:
            rank: only those of which the ranks of all modules are there too.
            columns: as many features of a module as were looked at for them.
        """
        cells = self.cells().filter(pl.col("status") != record.FAILED)
        if rank and not cells.is_empty():
            modules = load(self.folder, planned_only=False).modules
            same = pl.col("columns").eq_missing(pl.when(pl.col("width") > (columns or inf)).then(columns))
            key = ["cell_id", "eval_data"]
            ranked = modules.group_by(key).agg(same.all()).filter("columns").collect()
            diverged = cells.filter(pl.col("status") == record.DIVERGED)
            cells = pl.concat([diverged, cells.filter(pl.col("status") == record.OK).join(ranked, on=key, how="semi")])
        return set(cells.select("cell_id", "eval_data").iter_rows())

    def clean(self) -> None:
        """Removes what a killed writer left half-written."""
        for path in self.folder.rglob(_TEMPORARY):
            path.unlink(missing_ok=True)

    def note(self, name: str) -> dict[str, Any]:
        """A small JSON file of the folder, empty if there is none."""
        try:
            return json.loads((self.folder / name).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return {}

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        """A small JSON file of the folder, replaced as a whole."""
        self.write_text(name, json.dumps(value, indent=2, sort_keys=True))
