"""Cells that differ in their settings, side by side: a figure has panels for each value of what a sweep varies."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import polars as pl

from analysis.chart import Chart
from analysis.load import Results
from analysis.tables import DEFAULT_BY, averaged_over

MOST = 12  # combinations that have panels of their own; more are averaged over, and the figure says so


def by_setting(results: Results) -> tuple[dict[str, Results], list[str]]:
    """The results for each combination of the settings that differ between otherwise equal cells.

    Returns:
        Results by a text like "bn_mode adapt, l1 0.01" (empty where nothing differs), and lines that say what is
        averaged over instead where there are more combinations than ``MOST``.
    """
    varied = averaged_over(results.cells, DEFAULT_BY)
    if not varied:
        return {"": results}, []
    values = results.cells.select(list(varied)).unique(maintain_order=True).collect()
    if values.height > MOST:
        return {"": results}, [f"averaged over {name} ({', '.join(of)})" for name, of in varied.items()]
    found = {}
    for combination in values.sort(values.columns, nulls_last=False).iter_rows(named=True):
        same = [pl.col(name).eq_missing(pl.lit(value)) for name, value in combination.items()]
        text = ", ".join(f"{name} {value}" for name, value in combination.items())
        found[text] = dataclasses.replace(results, cells=results.cells.filter(same))
    return found, []


def side_by_side(charts: Iterable[tuple[str, Chart]]) -> Chart:
    """One chart with the panels of all, each titled with its setting.

    Args:
        charts: of the same quantity, with their settings.
    """
    given = list(charts)
    panels = [
        dataclasses.replace(panel, title=": ".join(part for part in (setting, panel.title) if part))
        for setting, chart in given
        for panel in chart.panels
    ]
    first = given[0][1]
    notes = list(dict.fromkeys(note for _, chart in given for note in chart.notes))
    return dataclasses.replace(first, panels=panels, notes=notes)
