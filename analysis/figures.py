"""Heatmaps of the stitchability table: one figure per receiver, fit data and evaluation data.

python analysis/figures.py results/<sweep> [--output FOLDER]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context

from analysis.cli import run
from analysis.heatmap import draw, draw_panels
from analysis.load import Results, load
from analysis.tables import stitchability
from analysis.wide import mean_by, wide
from stitching_core.errors import InputError

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "stitchability",  # the same table gives the same file
    "font.size": 9,
    "axes.titlesize": 9,
    "hatch.linewidth": 0.5,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Draw the figures and print their names."""
    parser = argparse.ArgumentParser(description="Heatmaps of a sweep's stitchability table, as PNG and SVG.")
    parser.add_argument("results", help="results/<sweep>")
    parser.add_argument("--output", type=Path, help="folder to write to (results/<sweep>/figures)")
    args = parser.parse_args(argv)
    results = load(args.results)
    folder = args.output or results.path / "figures"
    if not folder.parent.is_dir():
        raise InputError(f"--output {folder}: the folder {folder.parent} doesn't exist")
    for path in heatmaps(results, folder):
        print(path)


def heatmaps(results: Results, folder: Path) -> list[Path]:
    """Write ``heatmap_<receiver>_<fit_data>_<eval_data>`` as PNG (150 dpi) and SVG; the folder is made if need be.

    Raises:
        InputError: no cell has finished, or the folder can't be made.
    """
    table = stitchability(results)
    if table.is_empty():
        raise InputError(f"{results.path} has no finished cell to draw")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; expected a folder for the figures")
    folder.mkdir(exist_ok=True)
    paths = []
    for grid in wide(table, stitchability(results, by=mean_by(table))):
        names = (grid.receiver, grid.fit_data, grid.eval_data)
        stem = "_".join(["heatmap", *(re.sub(r"[^\w.-]+", "-", str(name)) for name in names)])
        with rc_context(STYLE):
            figure = draw_panels(grid) if grid.all_cuts else draw(grid)
            for suffix, options in ((".png", {"dpi": 150}), (".svg", {"metadata": {"Date": None}})):
                paths.append(folder / (stem + suffix))
                figure.savefig(paths[-1], bbox_inches="tight", **options)
    return paths


if __name__ == "__main__":
    sys.exit(run(main))
