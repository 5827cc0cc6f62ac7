"""Every study's candidates in one Optuna journal, which optuna-dashboard can open: ``studies/optuna.journal``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, create_trial

FILE = "optuna.journal"
optuna.logging.set_verbosity(optuna.logging.WARNING)


@dataclass(frozen=True)
class TrialRecord:
    """One finished candidate: its number in the study, its hyperparameters and how it did on the validation split.

    ``value`` is the validation accuracy; a candidate that diverged or failed has None.
    """

    number: int
    params: dict[str, Any]
    value: float | None
    cross_entropy: float | None
    status: str


class Journal:
    """The studies of a sweep. Used by the writer's process alone.

    Args:
        folder: made when the first candidate is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE
        self.studies: dict[str, optuna.Study] = {}
        self._storage: JournalStorage | None = None

    @property
    def storage(self) -> JournalStorage:
        if self._storage is None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            _mend(self.file)
            self._storage = JournalStorage(JournalFileBackend(str(self.file)))
        return self._storage

    def _study(self, name: str, make: bool) -> optuna.Study | None:
        if name not in self.studies:
            try:
                self.studies[name] = optuna.load_study(storage=self.storage, study_name=name)
            except KeyError:
                if not make:
                    return None
                self.studies[name] = optuna.create_study(storage=self.storage, study_name=name, direction="maximize")
        return self.studies[name]

    def trials(self, study: str) -> list[TrialRecord]:
        """Finished candidates of a study, by number; none if there is no such study, which is not made for asking."""
        if not self.file.exists():
            return []
        known = self._study(study, make=False)
        return [from_frozen(trial) for trial in known.get_trials(deepcopy=False)] if known else []

    def add(self, study: str, trials: list[TrialRecord], space: dict[str, BaseDistribution]) -> None:
        """Appends candidates whose number the study does not have yet."""
        known = self._study(study, make=True)
        assert known is not None
        have = len(self.trials(study))
        for trial in sorted(trials, key=lambda one: one.number):
            if trial.number == have:
                known.add_trial(to_frozen(trial, space))
                have += 1


def to_frozen(trial: TrialRecord, space: dict[str, BaseDistribution]) -> FrozenTrial:
    """As Optuna keeps it. A candidate without a value is told as one that failed: the sampler passes over it."""
    attributes = {"status": trial.status, "cross_entropy": trial.cross_entropy, "number": trial.number}
    within = {name: space[name] for name in trial.params}
    if trial.value is None:
        state = optuna.trial.TrialState.FAIL
        return create_trial(state=state, params=trial.params, distributions=within, user_attrs=attributes)
    return create_trial(value=trial.value, params=trial.params, distributions=within, user_attrs=attributes)


def from_frozen(trial: FrozenTrial) -> TrialRecord:
    """The other way round."""
    failed = trial.state == optuna.trial.TrialState.FAIL
    attributes = trial.user_attrs
    value = None if failed else trial.value
    return TrialRecord(
        attributes["number"], dict(trial.params), value, attributes["cross_entropy"], attributes["status"]
    )


def _mend(file: Path) -> None:
    """Makes a journal usable that a killed writer left: no half-written last line, no lock without an owner."""
    for lock in file.parent.glob(f"{file.name}*.lock*"):
        lock.unlink(missing_ok=True)
    if file.exists():
        content = file.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.splitlines(keepends=True)
        while lines and not _is_json(lines[-1]):
            lines.pop()
        mended = b"".join(lines)
        if mended != content:
            with file.open("r+b") as handle:
                handle.truncate(len(mended))


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
