"""The writer of a running sweep: it alone writes the results and the tracking store. On Ray it is an actor."""

from __future__ import annotations

import queue
import threading
import traceback
from pathlib import Path
from typing import Any

import polars as pl

from stitching_core import record
from sweeps.journal import Journal, TrialRecord
from sweeps.ledger import Ledger, Rows

_REFUSALS = 3  # calls in a row, after which the tracking store is given up


class Writer:
    """Takes each block's rows, writes them and tells how far the sweep is.

    MLflow is served by a thread of its own from a queue: it trails behind, never delays a block, and whatever it could
    not log is brought level by the next run of the sweep, since the ledger has every row.

    Args:
        folder: the results folder.
        tracking: arguments of ``Tracker``, or None.
        planned: ids of the sweep's cells: what else an old ledger holds is not logged.
        since: when the sweep was started, as ``finished_at`` is written: a writer that was killed counts on from there.
    """

    def __init__(
        self, folder: Path, tracking: dict[str, Any] | None, planned: list[str], since: str | None = None
    ) -> None:
        self.ledger = Ledger(folder)
        self.journal = Journal(folder / "studies")
        self.planned = set(planned)
        self.done = self._done_since(since) if since else {}  # status by cell
        self.work = 0.0
        self.problem: str | None = None
        self.behind = 0
        self.refused = 0  # calls in a row that raised
        self.queue: queue.Queue[tuple[str, Any] | None] = queue.Queue()
        self.thread: threading.Thread | None = None
        if tracking is not None:
            self.thread = threading.Thread(target=self._track, args=(tracking,), daemon=True)
            self.thread.start()

    def _done_since(self, since: str) -> dict[str, str]:
        rows = self.ledger.cells().filter(pl.col("finished_at") >= since, pl.col("cell_id").is_in(list(self.planned)))
        return dict(rows.select("cell_id", "status").iter_rows())

    def add(self, part: str, rows: Rows) -> None:
        """Returns when the rows are on disk."""
        self.ledger.add(part, rows)
        cells: dict[str, list[dict[str, Any]]] = {}
        for row in rows.get("cells", []):
            cells.setdefault(row["cell_id"], []).append(row)
        for cell, its_rows in cells.items():
            self.done[cell] = its_rows[0]["status"]
            if self.thread is not None:  # without tracking nobody would ever take them from the queue
                self.queue.put(("log_cell", its_rows))

    def progress(self, amount: float) -> None:
        """Adds to the work done, in stitch epochs."""
        self.work += amount

    def reset_work(self) -> None:
        """Begins to count anew: a search is over and the grid begins."""
        self.work = 0.0

    def status(self) -> dict[str, Any]:
        counts = dict.fromkeys((record.OK, record.DIVERGED, record.FAILED), 0)
        for status in self.done.values():
            counts[status] += 1
        return {"done": len(self.done), "work": self.work, **counts}

    def trials(self, study: str) -> list[TrialRecord]:
        """A study's finished candidates, in the order in which they were asked."""
        return self.journal.trials(study)

    def kept(self, studies: list[str]) -> int:
        """How many candidates of these studies are finished."""
        return sum(len(self.journal.trials(study)) for study in studies)

    def add_trials(self, study: str, trials: list[TrialRecord], space: dict[str, Any]) -> None:
        """Keeps a round of candidates; those of the same number that are there already are left alone."""
        self.journal.add(study, trials, space)

    def missing(self, cells: list[str]) -> list[str]:
        """Those of the cells that have no row since the sweep was started."""
        return [cell for cell in cells if cell not in self.done]

    def log_models(self, rows: list[dict[str, Any]]) -> None:
        """Queues the base models' runs."""
        if self.thread is not None:
            self.queue.put(("log_models", (rows,)))

    def finish(
        self, models: list[dict[str, Any]], files: list[Path], description: str, failed: int
    ) -> tuple[int, str | None]:
        """Waits until MLflow is level, and closes the sweep's run. All in one call: it can be asked again.

        Returns:
            The number of things that could not be logged and the first error's message.
        """
        if self.thread is not None:
            self.queue.put(("log_models", (models,)))
            self.queue.put(("log_files", (files, description)))
            self.queue.put(("end", (failed,)))
            self.queue.put(None)
            self.thread.join()
        return self.behind, self.problem

    def _track(self, tracking: dict[str, Any]) -> None:
        tracker = None
        try:
            from sweeps.tracking import Tracker  # mlflow takes seconds to import: not on the way of the first block

            tracker = Tracker(**tracking)
            for rows in self._unlogged(tracker):
                self._try(tracker.log_cell, rows)
        except Exception as error:
            self._note(error)
        while (item := self.queue.get()) is not None:
            method, argument = item
            if tracker is None:
                self.behind += 1
            elif method == "log_cell":
                self._try(tracker.log_cell, argument)
            else:
                self._try(getattr(tracker, method), *argument)

    def _unlogged(self, tracker: Any) -> list[list[dict[str, Any]]]:
        cells: dict[str, list[dict[str, Any]]] = {}
        for row in self.ledger.cells().iter_rows(named=True):
            if row["cell_id"] in self.planned:
                cells.setdefault(row["cell_id"], []).append(row)
        return [rows for cell, rows in cells.items() if tracker.logged.get(cell, ("", ""))[1] < rows[0]["finished_at"]]

    def _try(self, call: Any, *arguments: Any) -> None:
        if self.refused >= _REFUSALS:  # a server that is gone costs seconds a run; the next sweep logs them all
            self.behind += 1
            return
        try:
            call(*arguments)
            self.refused = 0
        except Exception as error:
            self.refused += 1
            self._note(error)

    def _note(self, error: Exception) -> None:
        self.behind += 1
        if self.problem is None:
            line = str(error).strip().splitlines()[0] if str(error).strip() else ""
            self.problem = f"{type(error).__name__}: {line}"[:160]
            traceback.clear_frames(error.__traceback__)
