"""How figures are written: the same results give the same files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "stitchability",  # the same table gives the same file
    "font.size": 9,
    "axes.titlesize": 9,
    "hatch.linewidth": 0.5,
}
# What to hand to matplotlib for each format: no dates, so that the same results give the same file.
FORMATS: dict[str, dict[str, Any]] = {
    "png": {"dpi": 150},
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None}},
}


def stem(*names: object) -> str:
    """A file's name, without its suffix, from what it shows."""
    return "_".join(re.sub(r"[^\w.-]+", "-", str(name)) for name in names)


def save(figure: Figure, folder: Path, name: str, formats: Sequence[str]) -> list[Path]:
    """Writes a figure in formats of ``FORMATS``."""
    paths = [folder / f"{name}.{suffix}" for suffix in formats]
    for path, suffix in zip(paths, formats, strict=True):
        figure.savefig(path, bbox_inches="tight", **FORMATS[suffix])
    return paths
