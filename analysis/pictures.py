"""Pictures of a sweep of auto-encoders: test images, the receiver's own reconstructions, and the stitched ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.load import Results
from analysis.names import shown
from analysis.saving import STYLE, save, stem
from stitching_core.record import FLOORS, INPUT, OK, OWN

SIDE = 0.62  # inches of a picture
GAP = 0.12  # inches between what is set apart


@dataclass(frozen=True)
class Strip:
    """A row of pictures: its label, which group of rows it belongs to, and an image (h, w, 3) or None for each item."""

    label: str
    group: str
    images: list[np.ndarray | None]


@dataclass(frozen=True)
class Sheet:
    """The pictures of one receiver, fit data and evaluation data."""

    receiver: str
    fit_data: str
    eval_data: str
    run: int
    strips: list[Strip]
    note: str


def pictures(results: Results, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Write ``pictures_<receiver>_<fit_data>_<eval_data>`` in formats of ``saving.FORMATS``; none without pictures.

    Args:
        results: of the sweep.
        folder: must exist if there are pictures.
        formats: suffixes.
    """
    paths = []
    for sheet in sheets(results):
        with rc_context(STYLE):
            name = stem("pictures", sheet.receiver, sheet.fit_data, sheet.eval_data)
            paths += save(draw_sheet(sheet), folder, name, formats)
    return paths


def sheets(results: Results) -> Iterator[Sheet]:
    """The pictures of every receiver and data, of the first run; senders and cuts in the table's order, floors last.

    Where cells differ in other settings too, the first of them is shown, and the sheet's note says so.
    """
    outputs = results.outputs.collect()
    if outputs.is_empty():
        return
    cells = results.cells.collect()
    uncut = outputs.filter(pl.col("cell_id").is_null())
    keys = ["receiver", "fit_data", "eval_data"]
    for (receiver, fit_data, eval_data), rows in cells.group_by(keys, maintain_order=True):
        run: int = rows["run"].sort()[0]
        rows = rows.filter(pl.col("run") == run)
        seed = rows["receiver_seed"][0]
        its = uncut.filter(pl.col("model") == receiver, pl.col("seed") == seed, pl.col("eval_data") == eval_data)
        items = its.filter(pl.col("kind") == INPUT)["item"].to_list()
        if not items:
            continue
        strips = [
            Strip(label, "uncut", _images(its.filter(pl.col("kind") == kind), items))
            for kind, label in ((INPUT, "input"), (OWN, f"uncut {shown(str(receiver))}"))
        ]
        ends = ["sender", "sender_cut", "receiver_cut"]
        first = rows.unique(ends, keep="first", maintain_order=True)
        is_floor = pl.col("sender_kind").is_in(FLOORS)
        for row in first.sort(is_floor, maintain_order=True).iter_rows(named=True):
            of = outputs.filter(pl.col("cell_id") == row["cell_id"], pl.col("eval_data") == eval_data)
            cut = row["receiver_cut"]
            place = cut if row["sender_cut"] == cut else f"{row['sender_cut']} to {cut}"
            state = "" if row["status"] == OK else f" ({row['status']})"
            strips.append(Strip(f"{shown(row['sender'])}{state}", f"stitched at {place}", _images(of, items)))
        order = list(dict.fromkeys(strip.group for strip in strips))
        strips.sort(key=lambda strip: order.index(strip.group))
        note = "of cells that differ in other settings, the first" if first.height < rows.height else ""
        yield Sheet(str(receiver), str(fit_data), str(eval_data), run, strips, note)


def _images(rows: pl.DataFrame, items: Sequence[int]) -> list[np.ndarray | None]:
    found: dict[int, np.ndarray] = {}
    for row in rows.iter_rows(named=True):
        found[row["item"]] = np.array(row["pixels"], dtype=np.uint8).reshape(row["height"], row["width"], 3)
    return [found.get(item) for item in items]


def draw_sheet(sheet: Sheet) -> Figure:
    """Items across, networks down; rows of a cut stand together, below the input and the uncut receiver."""
    across = len(sheet.strips[0].images)
    groups = list(dict.fromkeys(strip.group for strip in sheet.strips))
    head = 0.62 + 0.16 * bool(sheet.note)
    label = 0.085 * max(len(strip.label) for strip in sheet.strips) + 0.2
    width = label + across * SIDE
    height = head + len(sheet.strips) * SIDE + (len(groups) - 1) * (GAP + 0.18)
    figure = Figure(figsize=(max(width, 4.5), height))
    total, left = figure.get_size_inches()[0], label
    top = height - head
    before = sheet.strips[0].group
    for strip in sheet.strips:
        if strip.group != before:
            top -= GAP + 0.18
            figure.text(left / total, (top + 0.05) / height, strip.group, fontsize=9, color="0.3")
            before = strip.group
        top -= SIDE
        figure.text((left - 0.08) / total, (top + SIDE / 2) / height, strip.label, ha="right", va="center", fontsize=9)
        for place, image in enumerate(strip.images):
            box = ((left + place * SIDE) / total, top / height, 0.95 * SIDE / total, 0.95 * SIDE / height)
            _picture(figure.add_axes(box), image)
    lines = [
        f"Reconstructions: stitched into receiver {shown(sheet.receiver)}, run {sheet.run}",
        f"stitch fitted on {shown(sheet.fit_data)}, test images of {shown(sheet.eval_data)}",
    ]
    figure.text(
        0.02, 1 - 0.1 / height, "\n".join([*lines, *([sheet.note] if sheet.note else [])]), va="top", fontsize=9
    )
    return figure


def _picture(axes: Axes, image: np.ndarray | None) -> None:
    axes.set_axis_off()
    options: dict[str, Any] = {"interpolation": "nearest"}
    if image is None:
        axes.text(0.5, 0.5, "-", ha="center", va="center", transform=axes.transAxes)
    else:
        axes.imshow(image, **options)
