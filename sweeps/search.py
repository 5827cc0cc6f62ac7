"""Optuna: what is searched, how candidates are drawn so that a killed search goes on as if nothing had happened."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial

from stitching_core import record
from stitching_core.seeding import stream
from stitching_core.spec import Protocol, SearchSpec
from sweeps.journal import TrialRecord, to_frozen

optuna.logging.set_verbosity(optuna.logging.WARNING)


def space(search: SearchSpec, fixed: Protocol) -> dict[str, BaseDistribution]:
    """The ranges searched, widened where the fixed protocol lies outside: it is always a candidate."""

    def around(low: float, value: float, high: float) -> tuple[float, float]:
        return min(low, value), max(high, value)

    inits = tuple(dict.fromkeys((fixed.init, *search.init)))
    low, high = around(search.epochs[0], fixed.epochs, search.epochs[1])
    return {
        "learning_rate": FloatDistribution(
            *around(search.learning_rate[0], fixed.learning_rate, search.learning_rate[1]), log=True
        ),
        "momentum": FloatDistribution(*around(search.momentum[0], fixed.momentum, search.momentum[1])),
        "weight_decay": FloatDistribution(
            *around(search.weight_decay[0], fixed.weight_decay, search.weight_decay[1]), log=True
        ),
        "epochs": IntDistribution(int(low), int(high)),
        "init": CategoricalDistribution(inits),
    }


def fixed_point(fixed: Protocol, names: Sequence[str]) -> dict[str, Any]:
    """The fixed protocol as a candidate."""
    return {name: getattr(fixed, name) for name in names}


def with_params(protocol: Protocol, params: dict[str, Any]) -> Protocol:
    """The protocol with a candidate's hyperparameters."""
    return dataclasses.replace(protocol, **params)


class TrialSeededSampler(BaseSampler):
    """TPE whose random numbers for a trial depend on (key, the trial's number) alone, not on what was drawn before.

    With it a study that is refilled from its finished trials proposes just what the undisturbed one would have.
    """

    def __init__(self, key: str, startup_trials: int) -> None:
        self.key, self.startup_trials = key, startup_trials

    def _of(self, trial: FrozenTrial, *parameter: str) -> TPESampler:
        seed = stream("sampler", self.key, trial.number, *parameter) % 2**32
        return TPESampler(n_startup_trials=self.startup_trials, seed=seed, multivariate=True)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._of(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._of(trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        # a stream for each parameter: two that are drawn independently must not be copies of each other
        sampler = self._of(trial, param_name)
        return sampler.sample_independent(study, trial, param_name, param_distribution)


def whole_rounds(trials: list[TrialRecord], search: SearchSpec) -> list[TrialRecord]:
    """The candidates of whole rounds: a round that was cut off is asked again, and gets the same candidates."""
    if len(trials) >= search.n_trials:
        return trials[: search.n_trials]
    return trials[: len(trials) - len(trials) % search.batch]


class CellSearch:
    """One cell's study, in memory, refilled from what the writer kept.

    Args:
        key: names the study; seeds its sampler.
        fixed: the fixed protocol, the first candidate.
        search: ranges, budget and round size.
        finished: candidates of an earlier, killed run.
    """

    def __init__(self, key: str, fixed: Protocol, search: SearchSpec, finished: list[TrialRecord]) -> None:
        self.key, self.fixed, self.search = key, fixed, search
        self.space = space(search, fixed)
        self.records = whole_rounds(finished, search)
        self.study = optuna.create_study(
            direction="maximize", sampler=TrialSeededSampler(key, search.startup_trials), study_name=key
        )
        for trial in self.records:
            self.study.add_trial(to_frozen(trial, self.space))
        if not self.records:
            self.study.enqueue_trial(fixed_point(fixed, list(self.space)))
        self.asked: list[optuna.trial.Trial] = []

    def ask(self) -> list[dict[str, Any]]:
        """The next round's candidates; none when the budget is spent."""
        count = min(self.search.batch, self.search.n_trials - len(self.records))
        self.asked = [self.study.ask(self.space) for _ in range(count)]
        return [trial.params for trial in self.asked]

    def tell(self, outcomes: list[tuple[float | None, float | None, str]]) -> list[TrialRecord]:
        """Takes the round's (validation accuracy, cross entropy, status) in the order in which they were asked."""
        told = []
        for trial, (value, cross_entropy, status) in zip(self.asked, outcomes, strict=True):
            state = optuna.trial.TrialState.FAIL if value is None else None
            self.study.tell(trial, value, state=state)
            told.append(TrialRecord(trial.number, trial.params, value, cross_entropy, status))
        self.records += told
        return told

    def winner(self) -> TrialRecord:
        """The best candidate, see ``best``; the fixed protocol if none of them trained."""
        fixed = TrialRecord(0, fixed_point(self.fixed, list(self.space)), None, None, record.FAILED)
        return best(self.records) or fixed


def best(trials: list[TrialRecord]) -> TrialRecord | None:
    """The highest validation accuracy; among equals (there are many at 100%) the lowest validation cross entropy."""
    scored = [trial for trial in trials if trial.value is not None]
    return max(scored, key=lambda one: (one.value, -(one.cross_entropy or 0.0), -one.number), default=None)
