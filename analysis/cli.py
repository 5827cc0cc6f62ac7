"""How a script of this folder starts, fails and ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

import polars as pl

from stitching_core.errors import InputError

BAD_INPUT = 2
_SIGPIPE = 141  # what a shell reports for a program that SIGPIPE ended


def run(main: Callable[[Sequence[str] | None], int | None], argv: Sequence[str] | None = None) -> int:
    """Run a script's ``main`` and return its exit status: what it returns, 0 for None.

    Bad input, an unreadable file and a data page that Polars can't decode become one line, ``error: ...``, on stderr
    and status 2. A reader that closes the pipe early (``| head``) is no error worth a message.
    """
    try:
        status = main(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout once more at exit, which would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SIGPIPE
    except (InputError, OSError, pl.exceptions.ComputeError) as error:
        print(f"error: {first_line(error)}", file=sys.stderr)
        return BAD_INPUT
    return status or 0


def first_line(error: BaseException) -> str:
    """The message without Polars' dump of the query plan."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
