"""Feature rank of every layer of stitched networks: one panel for each sender or receiver, one line for each cut."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from analysis.by_cut import cut_order, label, title, uncut_label
from analysis.chart import SD, Chart, Line, Panel, Point
from analysis.groups import SENDER, Group
from analysis.measured import BY, STITCH
from analysis.names import in_order
from analysis.styles import UNCUT_STYLE, sequence


def by_module(group: Group, stitched: pl.DataFrame, uncut: pl.DataFrame, notes: Sequence[str]) -> Chart | None:
    """The chart of a group; None where no ranks were measured.

    An axis holds the layers of the receiver in their order. A stitched network runs along it: through the sender's
    layers up to the cut (where they are layers of those names too), the stitch, halfway before the first layer that
    follows it, and the receiver's.

    Args:
        group: whose networks.
        stitched: ranks of stitched networks, see ``measured.module_ranks``.
        uncut: ranks of uncut receivers.
        notes: lines below the title.
    """
    measured = stitched.join(group.stitched.select(BY), on=BY, how="semi", nulls_equal=True)
    rows = measured.filter((pl.col("sender_cut") == pl.col("receiver_cut")).fill_null(True))
    if rows.is_empty():
        return None
    cuts = cut_order(group.stitched.join(rows.select(BY).unique(), on=BY, how="semi", nulls_equal=True))
    floors = dict(group.stitched.select("sender", "floor").rows()) if group.hue == SENDER else {}
    foreign, panels = False, []
    for name in in_order(rows[group.hue], floors):
        its = rows.filter(pl.col(group.hue) == name)
        bare = uncut.filter(pl.col("receiver") == its["receiver"][0])
        axis = _axis(its, bare)
        known = pl.col("module").is_in(axis) | (pl.col("part") == STITCH)
        foreign = foreign or not its.select(known.all()).item()
        lines = [
            Line(cut, look, _points(its.filter(pl.col("receiver_cut") == cut, known), axis))
            for cut, look in zip(cuts, sequence(len(cuts)), strict=True)
        ]
        points = _points(_on_data(bare, group).with_columns(part=pl.lit("")), axis)
        if points:
            lines.insert(0, Line(uncut_label(group), UNCUT_STYLE, points, baseline=True))
        panels.append(Panel(label(name, floors, rows), axis, lines))
    more = ["equal cuts of sender and receiver only"] if measured.height > rows.height else []
    more += ["a sender's layers that the receiver does not have are not drawn"] if foreign else []
    x_label = "layer (the stitch: halfway before the layer that follows it)"
    what = "Feature rank of every layer"
    return Chart(title(what, group), panels, x_label, "feature rank", SD, False, "cut", [*notes, *more], dense=True)


def _on_data(uncut: pl.DataFrame, group: Group) -> pl.DataFrame:
    on = pl.col("receiver_variant") if group.own_baseline else pl.lit(group.eval_data)
    return uncut.filter(pl.col("eval_data") == on)


def _axis(stitched: pl.DataFrame, uncut: pl.DataFrame) -> list[str]:
    """The receiver's layers; where it was not measured uncut, those behind the earliest cut."""
    rows = uncut if uncut.height else stitched.filter(pl.col("part") == "receiver")
    modules = rows.group_by("module").agg(pl.col("position").max())
    return modules.sort("position", "module")["module"].to_list()


def _points(rows: pl.DataFrame, axis: Sequence[str]) -> list[Point]:
    """In the order of the axis; a stitch of several layers is shown by the last of them."""
    after = rows.filter(pl.col("part") == "receiver")["module"].unique()
    first = min((axis.index(module) for module in after), default=len(axis))
    stitch = rows.filter(pl.col("part") == STITCH)
    last = stitch.filter(pl.col("position") == pl.col("position").max())
    values: dict[float, list[float]] = {}
    for row in pl.concat([rows.filter(pl.col("part") != STITCH), last]).sort("run").iter_rows(named=True):
        place = first - 0.5 if row["part"] == STITCH else float(axis.index(row["module"]))
        values.setdefault(place, []).append(float(row["value"]))
    return [Point(place, tuple(values[place])) for place in sorted(values)]
