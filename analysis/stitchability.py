"""Which senders' fronts fit which receivers' tails: the stitchability table of a sweep.

python analysis/stitchability.py results/<sweep> [--by receiver,sender] [--format markdown] [--output FILE]
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from analysis.blocks import Block, grid_block, long_block, reading_notes
from analysis.cli import run
from analysis.convergence import convergence_notes
from analysis.formats import FORMATS, TEXT, check_output, write_frame, write_text
from analysis.load import Results, load
from analysis.tables import DEFAULT_BY, averaged_over, check_by, stitchability
from analysis.unread import unread_notes
from analysis.wide import mean_by, wide
from stitching_core.errors import InputError
from stitching_core.record import NOISE


def main(argv: Sequence[str] | None = None) -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description="The stitchability table of a sweep.")
    parser.add_argument("results", help="results/<sweep>")
    parser.add_argument("--by", default=",".join(DEFAULT_BY), help="columns to group by, with commas (%(default)s)")
    parser.add_argument("--format", choices=FORMATS, default="table", help="csv and parquet are in long form")
    parser.add_argument("--output", type=Path, help="file to write instead of stdout")
    parser.add_argument("--fit", help="only this fit_data; the noise floor stays")
    parser.add_argument("--eval", help="only this eval_data; the noise floor stays")
    args = parser.parse_args(argv)
    by = [name.strip() for name in args.by.split(",")]
    check_by(by)
    if args.output is not None:
        check_output(args.output)

    results = load(args.results)
    for column, value in (("fit_data", args.fit), ("eval_data", args.eval)):
        if value is not None:
            results = only(results, column, value)
    table = stitchability(results, by=by)
    if table.is_empty():
        raise InputError(
            f"{results.path} has no finished cell{' of its plan' if results.planned is not None else ''} yet"
        )
    notes = notes_of(results, table, by)
    if args.format in TEXT:
        write_text(TEXT[args.format](people_blocks(results, table, by), notes), args.output)
    else:
        write_frame(table, args.format, args.output)
        for note in notes[2:]:
            print(f"note: {note}", file=sys.stderr)


def people_blocks(results: Results, table: pl.DataFrame, by: Sequence[str] = DEFAULT_BY) -> list[Block]:
    """The wide view of a table with the default ``by``, else its long form, as blocks for a text format."""
    if set(by) != set(DEFAULT_BY):
        return [long_block(table, list(by))]
    return [grid_block(grid) for grid in wide(table, stitchability(results, by=mean_by(table)))]


def notes_of(results: Results, table: pl.DataFrame, by: Sequence[str] = DEFAULT_BY) -> list[str]:
    """The lines below the table: how to read it, and which of its cells have not converged."""
    classes = results.cells.select(pl.col("classes").drop_nulls().unique().sort()).collect()["classes"].to_list()
    notes = reading_notes(table, averaged_over(results.cells, by), results.missing, classes)
    return notes + unread_notes(results.cells) + convergence_notes(results.cells)


def only(results: Results, column: str, value: str) -> Results:
    """Results with just the cells of one fit_data or eval_data, and the noise floor, which has data of its own.

    Raises:
        InputError: no cell has that value.
    """
    is_noise = pl.col("sender_kind").eq_missing(NOISE)
    names = results.cells.filter(~is_noise).select(pl.col(column).unique(maintain_order=True)).collect()[column]
    if value not in names:
        raise InputError(f"no cell has {column} {value!r}; the results have {', '.join(names.drop_nulls())}")
    keep = (pl.col(column) == value) | (is_noise & ~pl.col(column).is_in(names.implode(), nulls_equal=True))
    return dataclasses.replace(results, cells=results.cells.filter(keep))


if __name__ == "__main__":
    sys.exit(run(main))
