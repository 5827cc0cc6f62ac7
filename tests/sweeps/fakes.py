"""Sweeps that nobody trained: real configurations, plans and ids, made-up models and results."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np

from stitching_core import record
from stitching_core.measure.accuracy import Predictions
from stitching_core.models.store import Card
from sweeps.config import load_config
from sweeps.plan import make_plan
from sweeps.plugins import Plugin
from sweeps.prepare import Sweep, planned_cells, prepare
from sweeps.schema import SweepConfig

# one sender with a network, one without, two cuts, one run: 4 cells
TINY = ["zoo.arch=resnet18_eighth", "data.train_items=20", "grid.receivers=[digit]", "grid.cuts=[layer3,layer4]"]
TINY += ["grid.senders=[digit,noise]", "grid.runs=1", "cluster=local"]


@cache
def _configured(arguments: tuple[str, ...]) -> SweepConfig:
    return load_config(list(arguments))


def configured(*arguments: str) -> SweepConfig:
    """A configuration of one's own, composed once for all tests: that takes a third of a second."""
    return copy.deepcopy(_configured(arguments))


def predictions(right: int, of: int = 10) -> Predictions:
    """Predictions of which so many are right."""
    target = np.arange(of)
    return Predictions(np.where(np.arange(of) < right, target, (target + 1) % of), target, 0.5)


def make_sweep(*arguments: str, plugins: tuple[Plugin, ...] = ()) -> Sweep:
    """A sweep in the current folder whose models are there: each has made-up weights of its own and is 90% right."""
    config = configured(*TINY, *arguments)
    sweep = prepare(config, make_plan(config), plugins)
    for (name, seed), member in sweep.members.items():
        if member.recipe.kind != record.NOISE:
            member.card = Card(f"weights of {name} {seed}", {}, 1000, True, 0.99, 1.0)
            member.uncut = {variant: predictions(9) for variant in ("correlated", "digit")}
    return sweep


def finish(sweep: Sweep, part: str = "one", when: str = "2030-01-01", **values: object) -> None:
    """Writes a row for every evaluation of every planned cell."""
    rows = []
    for cell in planned_cells(sweep):
        spec = cell.spec
        for name in spec.eval_data:
            known = {
                "cell_id": cell.id, "sweep": sweep.config.name, "run": spec.seed, "sender": spec.sender.name,
                "sender_kind": spec.sender.kind, "sender_cut": spec.sender_cut, "receiver": spec.receiver.name,
                "receiver_kind": spec.receiver.kind, "receiver_cut": spec.receiver_cut, "fit_data": spec.fit_data,
                "eval_data": name, "protocol": spec.protocol.name, "seed": spec.seed, "status": "ok", "accuracy": 0.8,
                "receiver_accuracy": 0.9, "penalty": 0.1, "finished_at": when,
            }  # fmt: skip
            rows.append(record.row("cells", **{**known, **values}))
    sweep.ledger.add(part, {"cells": rows})
