"""Read idx files, the format in which MNIST and its relatives are published, plain or compressed with gzip."""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from pathlib import Path

import numpy as np

from stitching_core.errors import InputError

UNSIGNED_BYTE = 0x08


def read_idx(path: Path, dimensions: int, sha256: str | None = None) -> np.ndarray:
    """The array in an idx file of unsigned bytes.

    Args:
        path: the file; its content is decompressed first when the name ends in ``.gz``.
        dimensions: 1 for labels, 3 for images.
        sha256: expected checksum (hex) of the *uncompressed* content, so that it doesn't matter who compressed the
            file; not checked when None.

    Returns:
        uint8, read-only: (n,) for labels, (n, h, w) for images.

    Raises:
        InputError: the file is missing, truncated, malformed, or has another checksum.
    """
    content = _content(path)
    header = 4 + 4 * dimensions
    magic = bytes([0, 0, UNSIGNED_BYTE, dimensions])
    if content[:4] != magic:
        raise InputError(
            f"{path}: malformed idx file, it starts with {content[:4].hex() or 'nothing'}, "
            f"expected {magic.hex()} ({dimensions}-dimensional, unsigned bytes)"
        )
    if len(content) < header:
        raise InputError(f"{path}: truncated idx file, {len(content)} bytes, expected a header of {header}")
    shape = tuple(int(size) for size in np.frombuffer(content, dtype=">u4", count=dimensions, offset=4))
    expected = header + math.prod(shape)
    if len(content) != expected:
        fault = "truncated" if len(content) < expected else "malformed"
        raise InputError(f"{path}: {fault} idx file, {len(content)} bytes, expected {expected} for the shape {shape}")
    if sha256 is not None:
        found = hashlib.sha256(content).hexdigest()
        if found != sha256:
            raise InputError(f"{path}: wrong checksum, SHA-256 of the content is {found}, expected {sha256}")
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)


def find_idx(folder: Path, name: str) -> Path:
    """The file of that name in a folder, plain or else with ``.gz`` appended.

    Raises:
        InputError: there is neither.
    """
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise InputError(f"{folder / name}: no such file, expected it there, plain or as .gz")


def _content(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except FileNotFoundError:
        raise InputError(f"{path}: no such file, expected an idx file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: truncated or malformed gzip file ({error}), expected an idx file") from error
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror}), expected an idx file") from error
