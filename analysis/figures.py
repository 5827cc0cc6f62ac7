"""The figures of a sweep: heatmaps of its stitchability table, accuracy and ranks against cut, ranks of every layer.

python analysis/figures.py results/<sweep> [--output FOLDER]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from matplotlib import rc_context

from analysis.by_cut import RANK, STITCH_RANK, by_cut, quantity_of
from analysis.by_module import by_module
from analysis.chart import Chart
from analysis.cli import run
from analysis.groups import SENDER, Group, groups
from analysis.heatmap import draw, draw_panels
from analysis.linechart import draw_chart
from analysis.load import Results, load
from analysis.measured import RECEIVER, STITCH, module_ranks, networks, outcomes, ranks
from analysis.measures import measure_of
from analysis.pictures import pictures
from analysis.saving import FORMATS, STYLE, save, stem
from analysis.settings import by_setting, side_by_side
from analysis.styles import Style, styles
from analysis.tables import stitchability
from analysis.wide import mean_by, wide
from stitching_core.errors import InputError


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

    ``heatmap_<receiver>_<fit_data>_<eval_data>``; ``accuracy_...``: accuracy against cut (of auto-encoders
    ``error_...`` and ``pictures_...``: input, own and stitched reconstructions); where the sweep measured
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
    for name, chart in charts(results):
        with rc_context(STYLE):
            paths += save(draw_chart(chart), folder, name, tuple(FORMATS))
    return paths + pictures(results, folder, tuple(FORMATS))


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
            paths += save(figure, folder, stem("heatmap", grid.receiver, grid.fit_data, grid.eval_data), formats)
    return paths


def charts(results: Results) -> Iterator[tuple[str, Chart]]:
    """The line charts of a sweep, and the names of their files without the suffix."""
    looks = styles(networks(outcomes(results).stitched))
    parts, notes = by_setting(results)
    found: dict[str, list[tuple[str, Chart]]] = {}
    for setting, part in parts.items():
        for name, chart in _charts(part, looks, notes):
            found.setdefault(name, []).append((setting, chart))
    for name, same in found.items():
        yield name, side_by_side(same)


def _charts(results: Results, looks: Mapping[str, Style], notes: Sequence[str]) -> Iterator[tuple[str, Chart]]:
    measure = measure_of(results.cells)
    outcome = outcomes(results)
    archs = dict(results.cells.select("receiver", "receiver_arch").unique(maintain_order=True).collect().rows())
    quantities = [("error" if measure.lower_is_better else "accuracy", quantity_of(measure), outcome)]
    for kind, quantity, part in (("rank", RANK, RECEIVER), ("rank_stitch", STITCH_RANK, STITCH)):
        measured = ranks(results, outcome.stitched, part)
        if measured is not None:
            quantities.append((kind, quantity, measured))
    for kind, quantity, measured in quantities:
        for group in groups(measured):
            chart = by_cut(group, quantity, looks, archs, notes)
            if chart is not None:
                yield _stem_of(kind, group), chart
    stitched, uncut = module_ranks(results)
    for group in groups(outcome):
        chart = by_module(group, stitched, uncut, notes)
        if chart is not None:
            yield _stem_of("ranks", group), chart


def _stem_of(kind: str, group: Group) -> str:
    of_sender = () if group.hue == SENDER else ("from",)
    return stem(kind, *of_sender, group.fixed, group.fit_data, group.eval_data)


if __name__ == "__main__":
    sys.exit(run(main))
