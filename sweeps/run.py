"""One sweep from its checked configuration to its results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from sweeps.checks import check
from sweeps.level import Outcome, bring_level
from sweeps.members import refuse_unlearned
from sweeps.plan import make_plan
from sweeps.plugins import Plugin, activate, read_plugins
from sweeps.prepare import check_cuts, is_level, prepare
from sweeps.progress import say
from sweeps.schema import SweepConfig


@dataclass(frozen=True)
class Planned:
    """A configuration that has been checked, and its cells."""

    config: SweepConfig
    plan: pl.DataFrame
    plugins: tuple[Plugin, ...]


def planned(config: SweepConfig) -> Planned:
    """Checks a configuration and lists its cells; opens neither data nor weights.

    Raises:
        InputError: a value that can't be meant.
    """
    plugins = read_plugins(config.plugins)
    activate(plugins)
    check(config)
    return Planned(config, make_plan(config), plugins)


def run_sweep(asked: Planned) -> tuple[Path, Outcome | None]:
    """Trains what is not finished, and brings tables and MLflow level.

    Returns:
        The results' folder, and how the sweep ended (None if there was nothing to do).

    Raises:
        InputError: data, weights, cuts, a cluster or results that can't be used, or a base model that did not learn.
    """
    config, plan = asked.config, asked.plan
    sweep = prepare(config, plan, asked.plugins)
    if not config.zoo.allow_unlearned:
        refuse_unlearned(sweep.members)
    level = is_level(sweep)
    if not level:
        check_cuts(sweep)
        from sweeps import cluster, execute  # import ray, which a finished sweep does not need

        cluster.check_before(config.cluster)
    with sweep.ledger.lock():
        if level:
            say(f"all {plan.height} cells of {sweep.ledger.folder} are finished: nothing to train")
            outcome = bring_level(sweep)
        else:
            say(f"{plan.height} cells -> {sweep.ledger.folder}")
            sweep.ledger.clean()
            outcome = execute.execute(sweep)
    if outcome and outcome.problem:
        say(f"MLflow lacks {outcome.behind} runs ({outcome.problem}); the same command brings it level")
    return sweep.ledger.folder, outcome
