"""One line that says how far the sweep is: rewritten in place on a terminal, printed now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any


def clock(seconds: float) -> str:
    """1h02m, 3m07s or 41s."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 60}m{whole % 60:02d}s" if whole >= 60 else f"{whole}s"


def progress_line(
    done: int, total: int, todo: int, work: float, total_work: float, elapsed: float, problems: int
) -> str:
    """Cells done of all, the rate and the time left.

    Args:
        done: cells with a result.
        total: cells of the plan.
        todo: cells of the plan that were to do at the start; the rate is theirs.
        work: stitch epochs done, of ``total_work``. They tell the pace long before the first cells are done.
        total_work: stitch epochs of all cells that were to do.
        elapsed: seconds.
        problems: cells that diverged or failed.
    """
    share = min(work / total_work, 1.0) if total_work else 1.0
    rate = share * todo / elapsed * 60 if elapsed > 0 else 0.0
    left = clock(elapsed * (1 - share) / share) if share > 0 else "?"
    trouble = f" | {problems} diverged or failed" if problems else ""
    return f"cells {done}/{total} | {rate:.1f} cells/min | {clock(elapsed)} gone, {left} left{trouble}"


class Progress:
    """Shows a line while a ``with`` block runs, from a thread that asks for the state every second.

    Args:
        line: makes the line; called from the thread.
        every: seconds between lines where the output is no terminal.
    """

    def __init__(self, line: Callable[[], str], every: float = 15.0) -> None:
        self.line = line
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._show, daemon=True)
        self.terminal = sys.stdout.isatty()
        self.every = 1.0 if self.terminal else every

    def __enter__(self) -> Progress:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        self.thread.join(timeout=5)
        if kind is None:
            self._print()
        if self.terminal:
            print(flush=True)

    def _show(self) -> None:
        last = time.monotonic()
        while not self.stop.wait(1.0):
            if time.monotonic() - last >= self.every:
                last = time.monotonic()
                self._print()

    def _print(self) -> None:
        try:
            text = self.line()
        except Exception as error:  # a line that can't be made must not end the sweep that it is about
            text = f"(no progress: {type(error).__name__})"
        print(f"\r\x1b[K{text}" if self.terminal else text, end="" if self.terminal else "\n", flush=True)


def say(message: Any) -> None:
    """A line of its own."""
    print(message, flush=True)
