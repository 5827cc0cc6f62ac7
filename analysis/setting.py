"""Whether a sweep was made as the published runs were: at their size, with their protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from analysis.load import Results
from analysis.published import accuracies, setting
from stitching_core.errors import InputError
from stitching_core.record import TRAINED

OWN = "own"  # fit_data of stitches that are trained on what their sender was trained on


def experiment_of(results: Results, reference: str) -> str:
    """The published experiment that a sweep repeats.

    Raises:
        InputError: its cells belong to none of those with published numbers, or there are no cells.
    """
    found = results.cells.select(pl.col("experiment").unique()).collect()["experiment"].to_list()
    published = accuracies(reference)["experiment"].unique(maintain_order=True).to_list()
    if not found:
        raise InputError(f"{results.path} has no finished cell to compare with {reference}")
    if len(found) > 1 or found[0] not in published:
        names = ", ".join(sorted(map(str, found)))
        raise InputError(f"{results.path} is of experiment {names}; {reference} has numbers of {', '.join(published)}")
    return str(found[0])


def differences(results: Results, reference: str, experiment: str) -> list[str]:
    """What was made otherwise than the published runs were, one text for each; none for a repetition at full size."""
    wanted = setting(reference, experiment)
    if wanted is None:
        return [f"how {experiment} was made is not recorded here"]
    cells, config = wanted["cells"], _config(results.path / "config.yaml")
    return [
        *_of_cells(results.cells.select(*cells, "sender_kind", "sender", "sender_variant").collect(), cells),
        *_of_config(config, wanted["config"]),
        *_of_models(config, results.models.select("model", "kind", "variant").unique(maintain_order=True).collect()),
    ]


def _of_cells(cells: pl.DataFrame, wanted: dict[str, Any]) -> Iterator[str]:
    for name, value in wanted.items():
        column = cells[name].drop_nulls()  # null is what a cell has none of, such as the noise of a trained sender
        if value == OWN:
            column = cells.filter(pl.col(name).ne_missing(pl.col("sender_variant")))[name]
        others = [other for other in column.unique().sort().to_list() if other != value]
        if others:
            yield _otherwise(name, others, value)


def _of_config(config: dict[str, Any], wanted: dict[str, Any]) -> Iterator[str]:
    for key, value in wanted.items():
        found: Any = config
        for part in key.split("."):
            found = found.get(part, "not recorded") if isinstance(found, dict) else "not recorded"
        if found != value:
            yield _otherwise(key, [found], value)


def _of_models(config: dict[str, Any], models: pl.DataFrame) -> Iterator[str]:
    """Published models are called by what they were trained on, and all were trained alike."""
    for name, kind, variant in models.rows():
        own = ((config.get("zoo", {}).get("models") or {}).get(name) or {}).get("training") or {}
        changed = sorted(key for key, value in own.items() if value is not None)
        if changed:
            yield f"model {name} has training of its own ({', '.join(changed)})"
        if kind == TRAINED and variant != name:
            yield f"model {name} was trained on {variant}"


def _otherwise(name: str, found: list[Any], published: Any) -> str:
    values = ", ".join("all" if value is None else f"{value}" for value in found)
    return f"{name} {values} (published: {'all' if published is None else published})"


def _config(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise InputError(f"{file} is not readable YAML: {str(error).splitlines()[0]}") from None
    return content if isinstance(content, dict) else {}
