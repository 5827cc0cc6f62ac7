"""Accuracy and rank against cut: one line for each sender or receiver, as in Smith et al. 2025."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from analysis.chart import RANGE, SD, Chart, Line, Panel, Point
from analysis.groups import SENDER, Group
from analysis.measures import Measure
from analysis.names import OWN, CutAxis, cut_axis, in_order, shown
from analysis.styles import UNCUT_STYLE, Style, sequence
from stitching_core.record import NOISE


@dataclass(frozen=True)
class Quantity:
    """What a chart shows: its title's beginning, the label of its axis, its band and whether it is a percentage."""

    title: str
    y_label: str
    band: str
    percent: bool
    least_span: float = 2.0  # of its axis, in percentage points or units of the quantity


ACCURACY = Quantity("Accuracy", "accuracy in %", RANGE, True)
ERROR = Quantity("Reconstruction error", "mean squared error per pixel and channel", RANGE, False, least_span=1e-3)
RANK = Quantity("Feature rank at the first receiver layer after the stitch", "feature rank", SD, False)
STITCH_RANK = Quantity("Feature rank of the stitch", "feature rank", SD, False)


def quantity_of(measure: Measure) -> Quantity:
    """How a sweep's measure is drawn."""
    return ERROR if measure.lower_is_better else ACCURACY


def by_cut(
    group: Group, quantity: Quantity, looks: Mapping[str, Style], archs: Mapping[str, str | None], notes: Sequence[str]
) -> Chart | None:
    """The chart of a group; None where it has no value.

    Where a sender's cut differs from the receiver's there is a panel for each sender, and a line for each of its cuts.

    Args:
        group: of the quantity.
        quantity: what it is.
        looks: a style for each network.
        archs: the receivers' architectures.
        notes: lines below the title.
    """
    rows = group.stitched
    if rows["value"].drop_nulls().is_empty():
        return None
    receivers = rows["receiver"].unique(maintain_order=True)
    axis = cut_axis(cut_order(rows), [archs.get(name) for name in receivers])
    floors = dict(rows.select(group.hue, "floor").rows()) if group.hue == SENDER else {}
    names = in_order(rows[group.hue], floors)
    baselines = _baselines(group, axis, looks)
    if rows.filter(pl.col("sender_cut") != pl.col("receiver_cut")).height:
        cuts = [cut for cut in rows["sender_cut"].unique(maintain_order=True) if cut is not None]
        panels = []
        for name in names:
            lines = _by_sender_cut(rows.filter(pl.col(group.hue) == name), cuts, axis, looks[name])
            panels.append(Panel(label(name, floors, rows), axis.labels, [*baselines, *lines]))
        hue = "cut of the sender"
    else:
        lines = [
            Line(label(name, floors, rows), looks[name], _points(rows.filter(pl.col(group.hue) == name), axis))
            for name in names
        ]
        panels = [Panel("", axis.labels, [*baselines, *lines])]
        hue = group.hue
    left_out = [f"{cut} is not drawn: it falls on the same layer as {other}" for cut, other in axis.left_out.items()]
    x_label = "first receiver layer after the stitch (cut)" if axis.labels != axis.cuts else "cut"
    return Chart(
        title(quantity.title, group),
        panels,
        x_label,
        quantity.y_label,
        quantity.band,
        quantity.percent,
        hue,
        [*notes, *left_out],
        least_span=quantity.least_span,
    )


def title(what: str, group: Group) -> str:
    """What was measured, into or out of which network, and on which data."""
    name, fit, evaluated = shown(group.fixed), _data(group.fit_data), _data(group.eval_data)
    where = f"stitched into {name}" if group.hue == SENDER else f"sender {name}, stitched into each receiver"
    data = f"and evaluated on {fit}" if fit == evaluated else f"on {fit}, evaluated on {evaluated}"
    return f"{what}: {where}\nstitch fitted {data}"


def uncut_label(group: Group) -> str:
    """Of the baseline, in the legend."""
    return "uncut receiver, on its own data" if group.own_baseline else "uncut receiver"


def _data(name: str) -> str:
    return "each sender's own data" if name == OWN else shown(name)


def label(name: str, floors: Mapping[str, str | None], rows: pl.DataFrame) -> str:
    """A network's name; a noise sender among others says what it was evaluated on."""
    if floors.get(name) == NOISE and rows["eval_data"].n_unique() > 1:
        return f"{shown(name)} (on noise)"
    return shown(name)


def cut_order(rows: pl.DataFrame) -> list[str]:
    """The receiver cuts of all lines in one order, though a line may lack some."""
    order: list[str] = []
    for _, line in rows.group_by("sender", "receiver", "run", maintain_order=True):
        place = 0
        for cut in line["receiver_cut"]:
            if cut not in order:
                order.insert(place, cut)
            place = order.index(cut) + 1
    return order


def _points(rows: pl.DataFrame, axis: CutAxis) -> list[Point]:
    points = []
    for place, cut in enumerate(axis.cuts):
        here = rows.filter(pl.col("receiver_cut") == cut)
        values = here.drop_nulls("value").sort("run")["value"].to_list()
        if here.height:
            points.append(Point(place, tuple(values), int(here["failed"].sum())))
    return points


def _by_sender_cut(rows: pl.DataFrame, cuts: Sequence[str], axis: CutAxis, whole: Style) -> list[Line]:
    looks = dict(zip(cuts, sequence(len(cuts)), strict=True))
    lines = []
    for (cut,), line in rows.group_by("sender_cut", maintain_order=True):
        look = whole if cut is None else looks[str(cut)]
        lines.append(Line("no cut (noise)" if cut is None else str(cut), look, _points(line, axis)))
    return lines


def _baselines(group: Group, axis: CutAxis, looks: Mapping[str, Style]) -> list[Line]:
    """One black dashed line for the uncut receiver; for several receivers one in each one's colour."""
    names = group.uncut["receiver"].unique(maintain_order=True).to_list()
    lines = []
    for name in names:
        points = []
        for place, cut in enumerate(axis.cuts):
            here = group.uncut.filter(
                pl.col("receiver") == name, pl.col("receiver_cut").is_null() | (pl.col("receiver_cut") == cut)
            )
            if here.height:
                points.append(Point(place, tuple(here.sort("run")["value"].to_list())))
        style = UNCUT_STYLE if group.hue == SENDER else Style(looks[name].colour, dashes=UNCUT_STYLE.dashes)
        lines.append(Line(uncut_label(group), style, points, baseline=True))
    return lines
