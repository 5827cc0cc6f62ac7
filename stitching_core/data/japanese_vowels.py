"""Japanese Vowels: nine men say "ae"; the class is the speaker (Kudo, Toyama and Shimbo 1999, UEA archive; UCI 128).

An utterance is a series of 12 LPC cepstrum coefficients, 7 to 29 frames long. The published split is kept: 270 train
(30 for each speaker) and 370 test utterances (31, 35, 88, 44, 29, 24, 40, 50, 29). Each coefficient is normalised by
mean and standard deviation over all frames of the training utterances, then every utterance is padded with zeros at its
end to 29 frames. The files are checked by their SHA-256; they are part of the packages ``sktime`` and ``aeon``, neither
of which is imported.
"""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np

from stitching_core.data.sequence import Sequences, SequenceSource
from stitching_core.data.ts import read_ts
from stitching_core.errors import InputError

PACKAGES = ("sktime", "aeon")
FOLDER = Path("datasets", "data", "JapaneseVowels")
CHECKSUMS = {
    "JapaneseVowels_TRAIN.ts": "68a430eabd919cc77f40b1f5f3bc0dcafacc1486bca9260785aeb7d262cc78cd",
    "JapaneseVowels_TEST.ts": "b3d41d6a0ca3bcad3afb9ca7d4365382aa51341e2e58bae2a574babdda5b9462",
}
SPEAKERS = tuple(str(speaker) for speaker in range(1, 10))
FRAMES = 29


def load_japanese_vowels(root: Path | None) -> SequenceSource:
    """The nine speakers.

    Args:
        root: a folder with the two .ts files; None looks into the installed ``sktime`` or ``aeon``.

    Raises:
        InputError: the files are nowhere to be found, or aren't the published ones.
    """
    folder = root or _installed()
    if folder is None or not all((folder / name).is_file() for name in CHECKSUMS):
        where = f"not in {folder}" if root else f"neither {' nor '.join(PACKAGES)} is installed"
        raise InputError(
            f"source 'japanese_vowels': no {' and '.join(CHECKSUMS)} ({where}); "
            "pip install sktime, or set data.sequences.japanese_vowels.root to their folder"
        )
    splits = [read_ts(folder / name, sha256) for name, sha256 in CHECKSUMS.items()]
    mean, deviation = _statistics(splits[0][0])
    train, test = (
        Sequences(_padded(series, mean, deviation), np.array([SPEAKERS.index(label) for label in labels]))
        for series, labels in splits
    )
    return SequenceSource("japanese_vowels", train, test, SPEAKERS)


def _installed() -> Path | None:
    for package in PACKAGES:
        found = importlib.util.find_spec(package)  # locates the package, runs none of it
        if found is not None and found.origin is not None:
            folder = Path(found.origin).parent / FOLDER
            if folder.is_dir():
                return folder
    return None


def _statistics(series: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each coefficient; sums are exact, so every machine gets the same bytes."""
    frames = np.concatenate(series, axis=1)
    mean = np.array([math.fsum(row) / len(row) for row in frames])
    variance = [math.fsum((row - m) ** 2) / len(row) for row, m in zip(frames, mean, strict=True)]
    return mean[:, None], np.sqrt(np.array(variance))[:, None]


def _padded(series: list[np.ndarray], mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    items = np.zeros((len(series), len(mean), FRAMES), dtype=np.float32)
    for item, one in zip(items, series, strict=True):
        item[:, : one.shape[1]] = (one - mean) / deviation
    return items
