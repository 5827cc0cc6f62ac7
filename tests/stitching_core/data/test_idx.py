"""idx files: what is read, and one line for every way in which a file can be wrong."""

import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest

from stitching_core.data.idx import find_idx, read_idx
from stitching_core.errors import InputError

# two images of 2x3, written out by hand
IMAGES = bytes.fromhex("00000803 00000002 00000002 00000003") + bytes(range(12))


def test_images_are_read_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(IMAGES)
    array = read_idx(path, 3)
    assert array.dtype == np.uint8
    assert array.tolist() == [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]]


def test_labels_gz_and_checksum_of_the_uncompressed_content(tmp_path: Path) -> None:
    content = struct.pack(">II", 0x801, 3) + bytes([7, 0, 9])
    digest = hashlib.sha256(content).hexdigest()
    for level in (1, 9):
        path = tmp_path / f"labels{level}.gz"
        path.write_bytes(gzip.compress(content, level))
        assert read_idx(path, 1, digest).tolist() == [7, 0, 9]


@pytest.mark.parametrize(
    ("content", "dimensions", "words"),
    [
        (IMAGES[:-1], 3, "truncated idx file, 27 bytes, expected 28 for the shape (2, 2, 3)"),
        (IMAGES + b"!", 3, "malformed idx file, 29 bytes, expected 28"),
        (IMAGES[:9], 3, "truncated idx file, 9 bytes, expected a header of 16"),
        (b"", 3, "starts with nothing, expected 00000803"),
        (b"GIF89a and so on", 3, "starts with 47494638, expected 00000803"),
        (IMAGES, 1, "starts with 00000803, expected 00000801"),
        # sizes whose product overflows 64 bits
        (struct.pack(">IIII", 0x803, *[2**32 - 1] * 3), 3, "truncated idx file, 16 bytes, expected 7922816"),
    ],
)
def test_a_bad_file_is_named_with_what_was_expected(
    tmp_path: Path, content: bytes, dimensions: int, words: str
) -> None:
    path = tmp_path / "bad-idx"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_idx(path, dimensions)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message


def test_wrong_checksum(tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(IMAGES)
    with pytest.raises(InputError) as caught:
        read_idx(path, 3, "ab" * 32)
    message = str(caught.value)
    assert str(path) in message
    assert hashlib.sha256(IMAGES).hexdigest() in message
    assert "expected " + "ab" * 32 in message


@pytest.mark.parametrize(
    "content",
    [gzip.compress(IMAGES)[:-10], b"not gzip at all", gzip.compress(IMAGES)[:12] + b"\0" * 9],
    ids=["cut short", "not gzip", "broken inside"],  # not the bytes: they hold the time
)
def test_broken_gzip(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="truncated or malformed gzip file") as caught:
        read_idx(path, 3)
    assert str(path) in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file") as caught:
        read_idx(tmp_path / "absent", 3)
    assert str(tmp_path / "absent") in str(caught.value)
    with pytest.raises(InputError, match=r"plain or as \.gz") as caught:
        find_idx(tmp_path, "absent")
    assert str(tmp_path / "absent") in str(caught.value)


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        read_idx(tmp_path, 3)


def test_plain_is_found_before_gz(tmp_path: Path) -> None:
    (tmp_path / "x.gz").touch()
    assert find_idx(tmp_path, "x") == tmp_path / "x.gz"
    (tmp_path / "x").touch()
    assert find_idx(tmp_path, "x") == tmp_path / "x"
