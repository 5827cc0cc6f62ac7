"""Fortunes: short English texts from Debian's package ``fortunes``; the class is the topic, one file each.

The ten topics are the files with the most entries, without the mixed ones (``cookie``, ``miscellaneous``). In
1:1.99.1-7.3: people 1,251, definitions 1,203, computers 1,051, songs-poems 720, politics 703, work 630, science 625,
men-women 581, zippy 548, knghtbrd 540 entries. Entries are separated by lines with a lone ``%``. White space is
collapsed to single blanks; an entry that occurs twice, in whatever files, is kept once, in the first of the order
above.

An entry is a test item when the first byte of its text's SHA-256 is below 51 (about a fifth): the split depends on
nothing but the text. A character is a token: 1 to 95 for blank to tilde in ASCII, 96 for any other; the first 256
characters count, shorter entries are padded with 0. The package's versions differ, so no checksum is asked for; the
content's fingerprint is part of every id.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from stitching_core.data.sequence import Sequences, SequenceSource
from stitching_core.errors import InputError

FOLDER = Path("/usr/share/games/fortunes")  # where Debian's package puts them
TOPICS = (
    *("people", "definitions", "computers", "songs-poems", "politics"),
    *("work", "science", "men-women", "zippy", "knghtbrd"),
)
LENGTH, TOKENS = 256, 96
TEST_BELOW = 51  # of 256


def load_fortunes(root: Path | None) -> SequenceSource:
    """The ten topics.

    Args:
        root: a folder with the topic files; None is Debian's.

    Raises:
        InputError: a topic's file is missing, can't be read or is not UTF-8.
    """
    folder = root or FOLDER
    texts: dict[str, int] = {}
    for label, topic in enumerate(TOPICS):
        try:
            content = (folder / topic).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise InputError(
                f"source 'fortunes': {folder / topic} is no readable text; apt-get install fortunes (Debian), "
                "or set data.sequences.fortunes.root to a folder with its topic files"
            ) from None
        for entry in entries(content):
            texts.setdefault(entry, label)
    split: dict[bool, list[str]] = {True: [], False: []}
    for text in texts:
        split[is_test(text)].append(text)
    train, test = (
        Sequences(
            np.stack([tokens(text) for text in split[tested]] or [np.zeros(LENGTH, np.uint8)]),
            np.array([texts[text] for text in split[tested]] or [0], dtype=np.int64),
        )
        for tested in (False, True)
    )
    return SequenceSource("fortunes", train, test, TOPICS, TOKENS)


def entries(content: str) -> list[str]:
    """The texts of a file, white space collapsed, empty ones left out."""
    found: list[list[str]] = [[]]
    for line in content.splitlines():
        if line.strip() == "%":
            found.append([])
        else:
            found[-1].append(line)
    joined = (" ".join(" ".join(lines).split()) for lines in found)
    return [text for text in joined if text]


def is_test(text: str) -> bool:
    """Whether a text is held out for testing: a function of the text alone."""
    return hashlib.sha256(text.encode()).digest()[0] < TEST_BELOW


def tokens(text: str) -> np.ndarray:
    """uint8 (256,): one number for each character."""
    codes = [ord(char) - 31 if " " <= char <= "~" else TOKENS for char in text[:LENGTH]]
    return np.array(codes + [0] * (LENGTH - len(codes)), dtype=np.uint8)
