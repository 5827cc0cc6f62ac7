"""Keys of the protocol that take several values in one grid: `grid.vary`."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from typing import Any

import polars as pl

from stitching_core.errors import InputError
from sweeps.checks import check_protocol
from sweeps.schema import ProtocolConfig, SweepConfig

VARIED = tuple(field.name for field in fields(ProtocolConfig) if field.name != "name")
SEARCHED = ("learning_rate", "momentum", "weight_decay", "epochs", "init")  # what a search finds
TOGETHER = ("batch_size", "bn_mode")  # what the cells of a block share
_TYPES = {"float": float, "int": int, "str": str}


def variations(config: SweepConfig) -> pl.DataFrame:
    """One row for each combination of the values of `grid.vary`, one column for each of its keys.

    Raises:
        InputError: a key that the protocol does not have or that is searched, a value that it can't take.
    """
    hints = {field.name: _TYPES[str(field.type)] for field in fields(ProtocolConfig)}
    lists: dict[str, list[Any]] = {}
    for key, values in config.grid.vary.items():
        if key not in VARIED:
            raise InputError(f"grid.vary.{key} is no key of the protocol; allowed: {', '.join(VARIED)}")
        if config.search.mode != "none" and key in SEARCHED:
            raise InputError(f"grid.vary.{key} is what the search finds; with search.mode=none it can be varied")
        if not isinstance(values, list) or not values:
            raise InputError(f"grid.vary.{key}={values!r} is no list of values; write [a,b]")
        lists[key] = [_cast(key, value, hints[key]) for value in values]
        for value in lists[key]:
            check_protocol(replace(config.protocol, **{key: value}), "grid.vary.{}", key)
        if len(set(lists[key])) < len(lists[key]):
            raise InputError(f"grid.vary.{key}={values} names a value twice")
    rows = list(itertools.product(*lists.values()))
    types = {float: pl.Float64(), int: pl.Int64(), str: pl.String()}
    return pl.DataFrame(rows, schema={key: types[hints[key]] for key in lists}, orient="row")


def _cast(key: str, value: Any, kind: type) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if kind is str and isinstance(value, str):
        return value
    if kind is int and whole:
        return value
    if kind is float and (whole or isinstance(value, float)):
        return float(value)
    raise InputError(f"grid.vary.{key} holds {value!r}, which is no {'number' if kind is float else kind.__name__}")
