"""A source that is published as four idx files: where they may lie, how they are downloaded and checked."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from pathlib import Path

import torchvision

from stitching_core.data.idx import find_idx, read_idx
from stitching_core.data.source import Source, source_from_arrays
from stitching_core.errors import InputError

TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
FILES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)


def load_idx_source(
    name: str,
    torchvision_name: str,
    checksums: Mapping[str, str],
    grey_mean: float,
    grey_std: float,
    root: Path | None,
    download: bool,
) -> Source:
    """The source in a folder that holds the four files, plain or as .gz, or that torchvision has downloaded into.

    Args:
        name: the source's name.
        torchvision_name: the class in ``torchvision.datasets``, also the folder that it makes under the root.
        checksums: SHA-256 of each file's uncompressed content, by file name.
        grey_mean: mean of the training pixels, as a fraction of 255.
        grey_std: their standard deviation.
        root: the folder, either with the files themselves or with ``<torchvision_name>/raw``.
        download: let torchvision download into the root what isn't there.

    Raises:
        InputError: no root, no such folder, a file is missing or isn't the published one, or the download failed.
    """
    if root is None:
        raise InputError(f"source {name!r} needs a data root: None, expected the folder with {TRAIN_IMAGES} etc.")
    folder = _folder(root, torchvision_name)
    if download and (folder is None or not all(_present(folder))):
        _download(name, torchvision_name, root)
    if not root.is_dir():
        raise InputError(f"data root {str(root)!r}: no such folder, expected the one with {TRAIN_IMAGES} etc.")
    folder = _folder(root, torchvision_name) or root
    arrays = {file: read_idx(find_idx(folder, file), 3 if "images" in file else 1, checksums[file]) for file in FILES}
    return source_from_arrays(
        name,
        arrays[TRAIN_IMAGES],
        arrays[TRAIN_LABELS],
        arrays[TEST_IMAGES],
        arrays[TEST_LABELS],
        grey_mean=grey_mean,
        grey_std=grey_std,
    )


def _folder(root: Path, torchvision_name: str) -> Path | None:
    """The first folder with all of the files, or else with any: then the missing one is reported by its path."""
    folders = (root, root / torchvision_name / "raw")
    for enough in (all, any):
        for folder in folders:
            if enough(_present(folder)):
                return folder
    return None


def _present(folder: Path) -> list[bool]:
    return [any((folder / f"{file}{ending}").is_file() for ending in ("", ".gz")) for file in FILES]


def _download(name: str, torchvision_name: str, root: Path) -> None:
    dataset = getattr(torchvision.datasets, torchvision_name)
    silence = io.StringIO()  # torchvision draws progress bars
    try:
        with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
            dataset(root, train=True, download=True)
    except (OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"source {name!r} could not be downloaded into {str(root)!r}: {reason}") from error
