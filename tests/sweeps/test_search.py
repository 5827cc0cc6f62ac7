"""Searches: the fixed protocol first, the same proposals for the same key, and none lost or changed by a kill."""

import dataclasses
import itertools
import math
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from stitching_core.spec import Protocol, SearchSpec
from sweeps.journal import TrialRecord
from sweeps.search import CellSearch, best, fixed_point, space, whole_rounds, with_params

FIXED = Protocol("p", "bn-conv1x1-bn", "default", "adapt", "cross_entropy", 0.03, 0.9, 0.01, 128, 12)
SEARCH = SearchSpec(
    "per_cell",
    n_trials=11,
    batch=4,
    startup_trials=4,
    learning_rate=(1e-3, 1e-1),
    momentum=(0.0, 0.99),
    weight_decay=(1e-6, 1e-1),
    epochs=(5, 20),
    init=("default", "identity", "orthogonal"),
)


def outcome(params: dict[str, Any]) -> tuple[float | None, float | None, str]:
    """A made-up training: best at learning rate 0.02 and momentum 0.5; some of the candidates diverge."""
    if params["learning_rate"] > 0.04:
        return None, None, "diverged"
    loss = abs(math.log(params["learning_rate"] / 0.02)) + abs(params["momentum"] - 0.5)
    return math.exp(-loss), loss, "ok"


def rounds(study: CellSearch, stop: int | None = None) -> list[list[dict[str, Any]]]:
    """Runs a study to its end, or for so many rounds; the candidates of each."""
    asked = []
    while len(asked) < (100 if stop is None else stop) and (params := study.ask()):
        asked.append(params)
        study.tell([outcome(one) for one in params])
    return asked


def run(key: str = "cell", search: SearchSpec = SEARCH, finished: list[TrialRecord] | None = None) -> CellSearch:
    study = CellSearch(key, FIXED, search, finished or [])
    rounds(study)
    return study


def test_the_budget_is_spent_exactly_and_the_fixed_protocol_comes_first() -> None:
    study = CellSearch("cell", FIXED, SEARCH, [])
    asked = rounds(study)
    assert [len(one) for one in asked] == [4, 4, 3]
    assert asked[0][0] == {
        "learning_rate": 0.03,
        "momentum": 0.9,
        "weight_decay": 0.01,
        "epochs": 12,
        "init": "default",
    }
    assert with_params(FIXED, asked[0][0]) == FIXED
    assert [one.number for one in study.records] == list(range(11))
    assert study.ask() == []
    assert study.tell([]) == []


@pytest.mark.parametrize("n_trials", [1, 4, 5])
def test_small_budgets(n_trials: int) -> None:
    study = run(search=dataclasses.replace(SEARCH, n_trials=n_trials))
    assert len(study.records) == n_trials
    assert study.records[0].params == fixed_point(FIXED, list(study.space))


def test_every_candidate_is_within_the_ranges() -> None:
    for trial in run().records:
        assert 1e-3 <= trial.params["learning_rate"] <= 1e-1
        assert 0 <= trial.params["momentum"] <= 0.99
        assert 1e-6 <= trial.params["weight_decay"] <= 1e-1
        assert 5 <= trial.params["epochs"] <= 20
        assert trial.params["init"] in ("default", "identity", "orthogonal")


def test_ranges_are_widened_to_hold_the_fixed_protocol() -> None:
    far = dataclasses.replace(FIXED, learning_rate=1e-5, momentum=0.995, weight_decay=0.5, epochs=40, init="zero")
    assert space(SEARCH, far) == {
        "learning_rate": FloatDistribution(1e-5, 1e-1, log=True),
        "momentum": FloatDistribution(0.0, 0.995),
        "weight_decay": FloatDistribution(1e-6, 0.5, log=True),
        "epochs": IntDistribution(5, 40),
        "init": CategoricalDistribution(("zero", "default", "identity", "orthogonal")),
    }
    assert space(SEARCH, FIXED)["epochs"] == IntDistribution(5, 20)
    assert CellSearch("cell", far, SEARCH, []).ask()[0]["learning_rate"] == 1e-5


def test_the_key_decides_what_is_proposed() -> None:
    first, again, other = (rounds(CellSearch(key, FIXED, SEARCH, [])) for key in ("cell", "cell", "other"))
    assert first == again
    assert all(a != b for a, b in itertools.pairwise([first[0][1], other[0][1], first[0][2], other[0][2]]))


@pytest.mark.parametrize("kept", range(12))
def test_a_killed_study_goes_on_as_if_nothing_had_happened(kept: int) -> None:
    whole = run().records
    # what was told in a round that was cut off is asked again
    resumed = CellSearch("cell", FIXED, SEARCH, whole[:kept])
    assert len(resumed.records) == {11: 11}.get(kept, kept // 4 * 4)
    rounds(resumed)
    assert resumed.records == whole


def test_a_study_killed_twice() -> None:
    once = CellSearch("cell", FIXED, SEARCH, [])
    rounds(once, stop=1)
    twice = CellSearch("cell", FIXED, SEARCH, once.records)
    rounds(twice, stop=1)
    assert run(finished=twice.records).records == run().records


def test_whole_rounds() -> None:
    trials = [TrialRecord(number, {}, 0.5, 1.0, "ok") for number in range(13)]
    assert [len(whole_rounds(trials[:count], SEARCH)) for count in range(14)] == [0] * 4 + [4] * 4 + [8] * 3 + [11] * 3


def test_parameters_that_are_drawn_independently_are_not_copies_of_each_other() -> None:
    """Where in its range each parameter lies, over the random candidates of many studies: no two may agree."""
    random = dataclasses.replace(SEARCH, n_trials=8, batch=8, startup_trials=100)
    places: dict[str, list[float]] = {"learning_rate": [], "momentum": [], "weight_decay": []}
    for key in range(25):
        for params in CellSearch(str(key), FIXED, random, []).ask()[1:]:
            places["learning_rate"].append(math.log(params["learning_rate"] / 1e-3) / math.log(1e2))
            places["momentum"].append(params["momentum"] / 0.99)
            places["weight_decay"].append(math.log(params["weight_decay"] / 1e-6) / math.log(1e5))
    for values in places.values():
        assert len(set(values)) == 25 * 7
        assert sum(values) / len(values) == pytest.approx(0.5, abs=0.1)  # sd of a mean of 175 uniforms is 0.022
    for one, other in itertools.combinations(places.values(), 2):
        distance = sum(abs(a - b) for a, b in zip(one, other, strict=True)) / len(one)
        assert distance == pytest.approx(1 / 3, abs=0.09)  # of two independent uniforms; sd of the mean 0.018


def test_the_sampler_learns() -> None:
    long = dataclasses.replace(SEARCH, n_trials=48)
    values = [trial.value or 0.0 for trial in run(search=long).records]
    assert sum(values[24:]) > sum(values[:24])


def trial(number: int, value: float | None, cross_entropy: float | None = 1.0) -> TrialRecord:
    return TrialRecord(number, {}, value, cross_entropy, "ok" if value is not None else "failed")


@pytest.mark.parametrize(
    ("trials", "winner"),
    [
        ([trial(0, 0.5), trial(1, 0.75), trial(2, 0.5)], 1),
        ([trial(0, 1.0, 0.5), trial(1, 1.0, 0.25), trial(2, 0.5, 0.1)], 1),  # equal: the lower cross entropy
        ([trial(0, 1.0), trial(1, 1.0)], 0),  # equal throughout: the first, which is the fixed protocol
        ([trial(0, None), trial(1, 0.1), trial(2, None)], 1),
    ],
)
def test_the_best(trials: list[TrialRecord], winner: int) -> None:
    for order in itertools.permutations(trials):
        found = best(list(order))
        assert found is not None
        assert found.number == winner


def test_failed_candidates_are_passed_over() -> None:
    study = run()
    failed = [one for one in study.records if one.value is None]
    assert failed  # the made-up training has some
    assert all(one.params["learning_rate"] > 0.04 for one in failed)
    assert study.winner().value == max(one.value for one in study.records if one.value is not None)


def test_if_all_fail_the_fixed_protocol_is_left() -> None:
    study = CellSearch("cell", FIXED, SEARCH, [])
    while params := study.ask():
        study.tell([(None, None, "failed")] * len(params))
    assert best(study.records) is None
    assert with_params(FIXED, study.winner().params) == FIXED
    assert study.winner().value is None
