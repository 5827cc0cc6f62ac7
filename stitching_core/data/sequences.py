"""The registry of sequence sources: other modalities than images. To add one: a loader and a line of ``SEQUENCES``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stitching_core.data.fortunes import load_fortunes
from stitching_core.data.japanese_vowels import load_japanese_vowels
from stitching_core.data.sequence import Sequences, SequenceSource
from stitching_core.errors import InputError

__all__ = ["SEQUENCES", "SequenceSource", "Sequences", "load_sequences"]

# name in the configs -> loader(root)
SEQUENCES: dict[str, Callable[[Path | None], SequenceSource]] = {
    "japanese_vowels": load_japanese_vowels,
    "fortunes": load_fortunes,
}


def load_sequences(name: str, root: Path | str | None = None) -> SequenceSource:
    """Load a sequence source by its registered name.

    Args:
        name: a key of `SEQUENCES`.
        root: the folder of its files; None is where the source looks by itself.

    Raises:
        InputError: an unknown name, a root that is no folder, or files that are missing or wrong.
    """
    if name not in SEQUENCES:
        raise InputError(f"sequence source {name!r}: unknown, expected one of {', '.join(SEQUENCES)}")
    folder = None if root is None else Path(root).expanduser()
    if folder is not None and not folder.is_dir():
        raise InputError(f"data.sequences.{name}.root={str(folder)!r} is no folder; expected the one with its files")
    return SEQUENCES[name](folder)
