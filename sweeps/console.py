"""How a script of this folder starts and fails: one line for bad input, status 2, no traceback."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

from stitching_core.errors import InputError

OK, CELLS_FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def run(main: Callable[[list[str]], int], usage: str) -> int:
    """Runs a script's ``main`` on the command line's arguments and returns its exit status."""
    arguments = sys.argv[1:]
    if any(argument in ("-h", "--help") for argument in arguments):
        print(usage)
        return OK
    warnings.filterwarnings("ignore", category=FutureWarning)  # of the libraries, to their own callers
    try:
        return main(arguments)
    except InputError as error:
        print("error: " + " ".join(str(error).splitlines()), file=sys.stderr)  # a value may have a line break in it
        return BAD_INPUT
    except KeyboardInterrupt:
        print("\ninterrupted; finished cells are saved, the same command goes on where it was", file=sys.stderr)
        return INTERRUPTED
