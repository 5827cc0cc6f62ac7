"""One study for the whole grid, through Tune's OptunaSearch: a Tune trial is one candidate for all cells.

A candidate is scored by its mean validation accuracy over a fixed stratified sample of cells. Candidates are asked and
told in whole batches, in the order of their numbers: what comes out does not depend on the number of workers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import ray
from ray import tune
from ray.tune.search import Searcher
from ray.tune.search.optuna import OptunaSearch

from stitching_core import record
from stitching_core.seeding import stream
from stitching_core.spec import Protocol, SearchSpec, digest
from sweeps.cells import Candidate, Planned
from sweeps.journal import TrialRecord
from sweeps.search import TrialSeededSampler, best, fixed_point, space, whole_rounds, with_params
from sweeps.trial import score
from sweeps.worker import Setting, prepare

VALUE, CROSS_ENTROPY, STATUS = "value", "cross_entropy", "status"


def sample(cells: list[Planned], count: int, seed: int) -> list[Planned]:
    """A fixed sample, spread evenly: senders take turns, and each goes through its cuts before it repeats one.

    Which cell stands for its stratum is drawn from the seed, by what the cell is called: not by its id, which depends
    on the search.
    """

    def rank(*parts: str | int | None) -> int:
        return stream("shared_sample", seed, *parts)

    strata: dict[str, dict[str, list[Planned]]] = {}
    for cell in cells:
        strata.setdefault(cell.spec.sender.name, {}).setdefault(cell.spec.receiver_cut, []).append(cell)
    queues = {}
    for sender, cuts in strata.items():
        queue = []
        for cut, members in cuts.items():
            members.sort(key=lambda c: rank(c.spec.sender_cut, c.spec.receiver.name, c.spec.seed))
            queue += [(turn, rank(sender, cut), cell) for turn, cell in enumerate(members)]
        queues[sender] = [cell for _, _, cell in sorted(queue, key=lambda item: item[:2])]
    turns = range(max(map(len, queues.values())))
    dealt = [queues[s][turn] for turn in turns for s in sorted(queues, key=rank) if turn < len(queues[s])]
    return dealt[:count]


class CandidateTrial(tune.Trainable):
    """Tune's view of a candidate: the sample's cells, trained with it and scored on their validation splits."""

    def setup(  # type: ignore[override]  # tune.with_parameters adds the rest
        self, config: dict[str, Any], setting: Setting, cells: list[Planned]
    ) -> None:
        self.setting, self.cells, self.params = setting, cells, config

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.params = new_config
        return True

    def step(self) -> dict[str, Any]:
        device = prepare(self.setting)
        groups: dict[Any, list[Candidate]] = {}
        for cell in self.cells:
            protocol = cell.spec.protocol
            key = (cell.spec.sender, cell.spec.fit_data, cell.spec.seed, protocol.batch_size, protocol.bn_mode)
            candidate = Candidate(cell.id, cell, with_params(protocol, self.params))
            groups.setdefault(key, []).append(candidate)
        outcomes = [outcome for group in groups.values() for outcome in score(self.setting, group, device).values()]
        bad = [status for _, _, status in outcomes if status != record.OK]
        if bad:  # a candidate that fails anywhere in the sample can't serve the grid
            return {VALUE: 0.0, CROSS_ENTROPY: None, STATUS: bad[0], "done": True}
        value = float(np.mean([accuracy for accuracy, _, _ in outcomes if accuracy is not None]))
        loss = float(np.mean([cross_entropy for _, cross_entropy, _ in outcomes if cross_entropy is not None]))
        return {VALUE: value, CROSS_ENTROPY: loss, STATUS: record.OK, "done": True}


class InOrder(Searcher):
    """Asks a batch of candidates, waits for all of it, and tells the inner searcher in the order of asking.

    Args:
        inner: the searcher that proposes.
        batch: size of a batch; the last one may be smaller.
        total: candidates still to be asked.
        keep: called with each told batch of (number in this run, parameters, result).
    """

    def __init__(self, inner: Searcher, batch: int, total: int, keep: Any) -> None:
        super().__init__(metric=VALUE, mode="max")
        self.inner, self.batch, self.left, self.keep = inner, batch, total, keep
        self.asked: list[str] = []
        self.params: dict[str, dict[str, Any]] = {}
        self.results: dict[str, dict[str, Any] | None] = {}

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        if len(self.asked) >= min(self.batch, self.left):
            return None  # "not now": the batch is out
        params = self.inner.suggest(trial_id)
        if isinstance(params, dict):
            self.asked.append(trial_id)
            self.params[trial_id] = params
        return params

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        self.results[trial_id] = None if error else result
        if len(self.results) < min(self.batch, self.left):
            return
        told = []
        for asked in self.asked:
            outcome = self.results[asked]
            self.inner.on_trial_complete(asked, outcome or {VALUE: 0.0})  # as a resumed study is told of a failure
            told.append((self.params[asked], outcome))
        self.left -= len(self.asked)
        self.asked, self.results = [], {}
        self.keep(told)

    def save(self, checkpoint_path: str) -> None:
        """Nothing: a killed search is resumed from the ledger's journal, not from Tune's files."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing, likewise."""


def shared_search(
    setting: Setting,
    cells: list[Planned],
    fixed: Protocol,
    search: SearchSpec,
    seed: int,
    run_tuner: Any,
) -> tuple[Protocol, float | None]:
    """The best hyperparameters for the grid, searching only what the journal does not have yet.

    Args:
        setting: of the sweep, with its writer.
        cells: the sample.
        fixed: the fixed protocol, the first candidate.
        search: ranges, budget and batch size.
        seed: of the sampler.
        run_tuner: runs a trainable class under Tune with a search algorithm and a number of samples.

    Returns:
        The winner's protocol and its mean validation score.
    """
    writer = setting.writer
    # the sample's ids hold protocol, models, data and the search itself: another search is another study
    study = "shared-" + digest([seed, [cell.id for cell in cells]])[:24]
    done: list[TrialRecord] = whole_rounds(ray.get(writer.trials.remote(study)), search)
    ranges = space(search, fixed)
    left = search.n_trials - len(done)
    if left > 0:
        inner = OptunaSearch(
            space=ranges,
            metric=VALUE,
            mode="max",
            sampler=TrialSeededSampler(study, search.startup_trials),
            points_to_evaluate=[one.params for one in done] or [fixed_point(fixed, list(ranges))],
            evaluated_rewards=[one.value or 0.0 for one in done] or None,
        )

        def keep(told: list[tuple[dict[str, Any], dict[str, Any] | None]]) -> None:
            first = len(done)
            for offset, (params, outcome) in enumerate(told):
                values = outcome or {VALUE: 0.0, STATUS: record.FAILED}
                done.append(
                    TrialRecord(first + offset, params, values[VALUE], values.get(CROSS_ENTROPY), values[STATUS])
                )
            ray.get(writer.add_trials.remote(study, done[first:], ranges))

        run_tuner(CandidateTrial, {"setting": setting, "cells": cells}, InOrder(inner, search.batch, left, keep), left)
    winner = best([one for one in done if one.status == record.OK])
    if winner is None:
        return fixed, None
    return with_params(fixed, winner.params), winner.value
