"""SQL over a sweep's tables: cells, models, modules, predictions and outputs.

python analysis/query.py results/<sweep> "SELECT sender, avg(accuracy) FROM cells GROUP BY sender" [--format markdown]
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from analysis.blocks import frame_block
from analysis.cli import first_line, run
from analysis.formats import TEXT, check_output, write_frame, write_text
from analysis.load import Results, load
from stitching_core.errors import InputError
from stitching_core.record import TABLES

MAX_ROWS = 1000  # of a table on the terminal or in Markdown; csv and parquet have them all
FORMATS = ("table", "markdown", "csv", "parquet")


def main(argv: Sequence[str] | None = None) -> None:
    """Run one statement and print or write what it returns."""
    parser = argparse.ArgumentParser(
        description="SQL over a sweep's tables: cells, models, modules, predictions, outputs."
    )
    parser.add_argument("results", help="results/<sweep>")
    parser.add_argument("sql", help="one SELECT statement, in Polars' SQL")
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument("--output", type=Path, help="file to write instead of stdout")
    args = parser.parse_args(argv)
    if args.output is not None:
        check_output(args.output)

    frame = query(load(args.results), args.sql)
    if args.format in TEXT:
        write_text(TEXT[args.format]([frame_block(frame.head(MAX_ROWS))], []), args.output)
        if frame.height > MAX_ROWS:
            print(f"note: {MAX_ROWS} of {frame.height} rows; --format csv writes them all", file=sys.stderr)
    else:
        write_frame(frame, args.format, args.output)


def query(results: Results, sql: str) -> pl.DataFrame:
    """The result of one SQL statement over the tables, deduplicated and limited to the plan as everywhere.

    Raises:
        InputError: Polars can't parse or run the statement.
    """
    context = pl.SQLContext({name: getattr(results, name) for name in TABLES})
    try:
        return context.execute(sql, eager=True)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"SQL: {_explained(error)} (tables: {', '.join(TABLES)})") from None


def _explained(error: pl.exceptions.PolarsError) -> str:
    """Polars' first line; where it names an unknown column, the record's most similar columns too."""
    message = first_line(error).split("; valid columns")[0]
    unknown = re.search(r"""(?:unable to find column|no column named) ["'](\w+)["']""", message)
    if unknown is None:
        return message
    known = {name: table for table, columns in TABLES.items() for name in columns}
    close = difflib.get_close_matches(unknown.group(1), known, n=3, cutoff=0.5)
    if close:
        return f"{message}; did you mean {' or '.join(close)}?"
    columns = "; ".join(f"{table}: {', '.join(names)}" for table, names in TABLES.items())
    return f"{message}; known columns are {columns}"


if __name__ == "__main__":
    sys.exit(run(main))
