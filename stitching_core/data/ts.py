"""Reads the .ts text format of the UEA/UCR time series archive, as far as multivariate series without time stamps need.

The loaders of ``sktime`` and ``aeon`` read it too, but importing one costs seconds and a hundred modules for what is a
split at colons and commas, and would tie the data to one of the two packages.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from stitching_core.errors import InputError


def read_ts(path: Path, sha256: str | None = None) -> tuple[list[np.ndarray], list[str]]:
    """The series of a file and their labels.

    Args:
        path: a file whose lines after ``@data`` are ``dimension:dimension:...:label``, a dimension being numbers with
            commas.
        sha256: what the file must hash to; None takes any.

    Returns:
        One float64 array (dimensions, length) for each line, and the labels as text.

    Raises:
        InputError: the file can't be read, isn't the expected one, or a line isn't as above.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror})") from None
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256:
        raise InputError(f"{path} has the SHA-256 {found}, expected the published file's {sha256}")
    lines = content.decode(errors="replace").splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip().lower() == "@data"), None)
    if start is None:
        raise InputError(f"{path} has no line @data; expected a time series file (.ts)")
    series, labels = [], []
    for number, line in enumerate(lines[start + 1 :], start + 2):
        if not line.strip():
            continue
        *dimensions, label = line.strip().split(":")
        try:
            rows = [[float(value) for value in dimension.split(",")] for dimension in dimensions]
        except ValueError:
            raise InputError(f"{path} line {number} holds something that is no number") from None
        if not rows or len({len(row) for row in rows}) != 1:
            raise InputError(f"{path} line {number}: its dimensions differ in length, or there are none")
        series.append(np.array(rows))
        labels.append(label)
    return series, labels
