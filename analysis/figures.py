"""The figures of a sweep: heatmaps of its stitchability table, accuracy and ranks against cut, ranks of every layer.

python analysis/figures.py results/<sweep> [--output FOLDER]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from analysis.by_cut import ACCURACY, RANK, STITCH_RANK, by_cut
from analysis.by_module import by_module
from analysis.chart import Chart
from analysis.cli import run
from analysis.groups import SENDER, Group, groups
from analysis.heatmap import draw, draw_panels
from analysis.linechart import draw_chart
from analysis.load import Results, load
from analysis.measured import RECEIVER, STITCH, accuracies, module_ranks, networks, ranks
from analysis.settings import by_setting, side_by_side
from analysis.styles import Style, styles
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
# What to hand to matplotlib for each format: no dates, so that the same results give the same file.
FORMATS: dict[str, dict[str, Any]] = {
    "png": {"dpi": 150},
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None}},
}


def main(argv: Sequence[str] | None = None) -> None:
    """Draw the figures and print their names."""
    parser = argparse.ArgumentParser(description="The figures of a sweep, as PNG, SVG and PDF.")
    parser.add_argument("results", help="results/<sweep>")
    parser.add_argument("--output", type=Path, help="folder to write to (results/<sweep>/figures)")
    args = parser.parse_args(argv)
    results = load(args.results)
    folder = args.output or results.path / "figures"
    if not folder.parent.is_dir():
        raise InputError(f"--output {folder}: the folder {folder.parent} doesn't exist")
    for path in figures(results, folder):
        print(path)


def figures(results: Results, folder: Path) -> list[Path]:
    """Write every figure as PNG (150 dpi), SVG and PDF; the folder is made if need be.

    ``heatmap_<receiver>_<fit_data>_<eval_data>``; ``accuracy_...``: accuracy against cut; where the sweep measured
    ranks, ``rank_...`` and ``rank_stitch_...``: feature rank at the first receiver layer after the stitch and of the
    stitch, against cut; and ``ranks_...``: of every layer. In a sweep of one sender into several receivers all but the
    heatmaps have ``from_<sender>`` in place of the receiver's name. Settings that a sweep varies have panels of their
    own.

    Returns:
        The files.

    Raises:
        InputError: no cell has finished, or the folder can't be made.
    """
    paths = heatmaps(results, folder, tuple(FORMATS))
    for stem, chart in charts(results):
        with rc_context(STYLE):
            paths += _save(draw_chart(chart), folder, stem, tuple(FORMATS))
    return paths


def heatmaps(results: Results, folder: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write ``heatmap_<receiver>_<fit_data>_<eval_data>`` in formats of ``FORMATS``; the folder is made if need be.

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
        with rc_context(STYLE):
            figure = draw_panels(grid) if grid.all_cuts else draw(grid)
            paths += _save(figure, folder, _stem("heatmap", grid.receiver, grid.fit_data, grid.eval_data), formats)
    return paths


def charts(results: Results) -> Iterator[tuple[str, Chart]]:
    """The line charts of a sweep, and the names of their files without the suffix."""
    looks = styles(networks(accuracies(results).stitched))
    parts, notes = by_setting(results)
    found: dict[str, list[tuple[str, Chart]]] = {}
    for setting, part in parts.items():
        for stem, chart in _charts(part, looks, notes):
            found.setdefault(stem, []).append((setting, chart))
    for stem, same in found.items():
        yield stem, side_by_side(same)


def _charts(results: Results, looks: Mapping[str, Style], notes: Sequence[str]) -> Iterator[tuple[str, Chart]]:
    accuracy = accuracies(results)
    archs = dict(results.cells.select("receiver", "receiver_arch").unique(maintain_order=True).collect().rows())
    quantities = [("accuracy", ACCURACY, accuracy)]
    for kind, quantity, part in (("rank", RANK, RECEIVER), ("rank_stitch", STITCH_RANK, STITCH)):
        measured = ranks(results, accuracy.stitched, part)
        if measured is not None:
            quantities.append((kind, quantity, measured))
    for kind, quantity, measured in quantities:
        for group in groups(measured):
            chart = by_cut(group, quantity, looks, archs, notes)
            if chart is not None:
                yield _stem_of(kind, group), chart
    stitched, uncut = module_ranks(results)
    for group in groups(accuracy):
        chart = by_module(group, stitched, uncut, notes)
        if chart is not None:
            yield _stem_of("ranks", group), chart


def _stem_of(kind: str, group: Group) -> str:
    of_sender = () if group.hue == SENDER else ("from",)
    return _stem(kind, *of_sender, group.fixed, group.fit_data, group.eval_data)


def _stem(*names: object) -> str:
    return "_".join(re.sub(r"[^\w.-]+", "-", str(name)) for name in names)


def _save(figure: Figure, folder: Path, stem: str, formats: Sequence[str]) -> list[Path]:
    paths = [folder / f"{stem}.{name}" for name in formats]
    for path, name in zip(paths, formats, strict=True):
        figure.savefig(path, bbox_inches="tight", **FORMATS[name])
    return paths


if __name__ == "__main__":
    sys.exit(run(main))
