"""Writing a table: terminal text, Markdown, LaTeX (booktabs), CSV or Parquet, to stdout or a file."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path

import polars as pl

from analysis.blocks import Block
from stitching_core.errors import InputError

NOTE_WIDTH = 110  # characters
_LATEX = {char: f"\\{char}" for char in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
}


def as_table(blocks: Sequence[Block], notes: Sequence[str] = ()) -> str:
    """Aligned text for a terminal; a rule between sections."""
    parts = []
    for block in blocks:
        widths = [max(map(len, column)) for column in zip(block.header, *chain(*block.sections), strict=True)]
        rule = "  ".join("-" * width for width in widths)
        lines = [block.title] if block.title else []
        lines.append(_aligned(block.header, widths, block.labels))
        for section in block.sections:
            lines += [rule, *(_aligned(row, widths, block.labels) for row in section)]
        parts.append("\n".join([*lines, *map(_wrapped, block.notes)]))
    if notes:
        parts.append("\n".join(map(_wrapped, notes)))
    return "\n\n".join(parts) + "\n"


def _wrapped(note: str) -> str:
    return textwrap.fill(note, NOTE_WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _aligned(row: Sequence[str], widths: Sequence[int], labels: int) -> str:
    cells = (
        cell.ljust(w) if i < labels else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()


def as_markdown(blocks: Sequence[Block], notes: Sequence[str] = ()) -> str:
    """GitHub tables; a title becomes a bold line and notes become paragraphs."""
    parts = []
    for block in blocks:
        lines = [_piped(block.header), _piped("---" if i < block.labels else "---:" for i in range(len(block.header)))]
        lines += [_piped(row) for section in block.sections for row in section]
        parts += [f"**{block.title}**"] if block.title else []
        parts += ["\n".join(lines), *block.notes]
    return "\n\n".join([*parts, *notes]) + "\n"


def _piped(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def as_latex(blocks: Sequence[Block], notes: Sequence[str] = ()) -> str:
    r"""A ``table`` per block with booktabs rules (needs ``\usepackage{booktabs}``); its notes stand below its rules."""
    parts = []
    for block in blocks:
        columns = "l" * block.labels + "r" * (len(block.header) - block.labels)
        lines = [r"\begin{table}", r"\centering", *([rf"\caption{{{_tex(block.title)}}}"] if block.title else [])]
        lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _tex_row(block.header)]
        for section in block.sections:
            lines += [r"\midrule", *(_tex_row(row) for row in section)]
        lines += [r"\bottomrule", r"\end{tabular}"]
        lines += [rf"\par\footnotesize {_tex(note)}" for note in [*block.notes, *notes]]
        parts.append("\n".join([*lines, r"\end{table}"]))
    return "\n\n".join(parts) + "\n"


def _tex_row(cells: Sequence[str]) -> str:
    return " & ".join(_tex(cell) for cell in cells) + r" \\"


def _tex(value: str) -> str:
    return "".join(_LATEX.get(char, char) for char in value)


TEXT: dict[str, Callable[[Sequence[Block], Sequence[str]], str]] = {
    "table": as_table,
    "markdown": as_markdown,
    "latex": as_latex,
}
FORMATS = (*TEXT, "csv", "parquet")


def write_text(content: str, output: Path | None) -> None:
    """Write to a file, or to stdout without one.

    Raises:
        InputError: the file's folder doesn't exist.
    """
    if output is None:
        sys.stdout.write(content)
    else:
        check_output(output).write_text(content, encoding="utf-8")


def write_frame(frame: pl.DataFrame, kind: str, output: Path | None) -> None:
    """Write a table as ``csv`` or ``parquet``: every column, unrounded.

    CSV has no lists: those become text, items separated by spaces.

    Raises:
        InputError: parquet to stdout, or the file's folder doesn't exist.
    """
    if kind == "csv":
        lists = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
        write_text(frame.with_columns(pl.col(lists).cast(pl.List(pl.String)).list.join(" ")).write_csv(), output)
    elif output is None:
        raise InputError("--format parquet needs --output FILE: it isn't text for a terminal")
    else:
        frame.write_parquet(check_output(output))


def check_output(output: Path) -> Path:
    """Raises InputError unless a file can stand there."""
    if output.is_dir():
        raise InputError(f"--output {output} is a folder; expected a file's name")
    if not output.parent.is_dir():
        raise InputError(f"--output {output}: the folder {output.parent} doesn't exist")
    return output
