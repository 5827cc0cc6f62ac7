"""Sequence sources: the published counts, the split of a text by its hash, and one line for what is missing."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from stitching_core.data import fortunes, japanese_vowels
from stitching_core.data.sequence import Sequences, SequenceSource
from stitching_core.data.sequences import load_sequences
from stitching_core.data.ts import read_ts
from stitching_core.errors import InputError

needs_vowels = pytest.mark.skipif(
    not any(importlib.util.find_spec(name) for name in japanese_vowels.PACKAGES), reason="sktime or aeon"
)


@needs_vowels
def test_japanese_vowels_has_the_published_counts() -> None:
    source = load_sequences("japanese_vowels")
    # UCI 128: 30 utterances of each speaker for training, these for testing
    assert np.bincount(source.train.labels).tolist() == [30] * 9
    assert np.bincount(source.test.labels).tolist() == [31, 35, 88, 44, 29, 24, 40, 50, 29]
    assert source.shape == (12, 29)
    frames = (source.train.items != 0).any(1)
    lengths = frames.sum(1)
    assert (lengths.min(), lengths.max()) == (7, 26)  # the longest, 29 frames, is a test utterance
    assert (source.test.items != 0).any(1).sum(1).max() == 29
    for item, length in zip(frames, lengths, strict=True):  # zeros are at the end alone
        assert item[:length].all()
    values = source.train.items.transpose(1, 0, 2)[:, frames].astype(np.float64)
    np.testing.assert_allclose(values.mean(1), 0, atol=1e-6)
    np.testing.assert_allclose(values.std(1), 1, atol=1e-6)


def test_a_ts_file_is_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "tiny.ts"
    file.write_text("#comment\n@problemName tiny\n@data\n1,2,3:4,5,6.5:b\n\n7:8:a\n")
    series, labels = read_ts(file)
    assert [one.tolist() for one in series] == [[[1, 2, 3], [4, 5, 6.5]], [[7], [8]]]
    assert labels == ["b", "a"]
    with pytest.raises(InputError, match=r"has the SHA-256 .*, expected the published file's 00"):
        read_ts(file, "00")
    for text, said in (("no data", "no line @data"), ("@data\n1,x:a", "line 2 holds"), ("@data\n1,2:3:a", "differ")):
        file.write_text(text)
        with pytest.raises(InputError, match=said):
            read_ts(file)


def topics(folder: Path, copies: int = 30) -> Path:
    for number, topic in enumerate(fortunes.TOPICS):
        (folder / topic).write_text("\n%\n".join(f"saying {i} about {topic}\n\t-- {number}" for i in range(copies)))
    return folder


def test_fortunes_are_split_by_their_hash(tmp_path: Path) -> None:
    source = load_sequences("fortunes", topics(tmp_path))
    # counted by hand with sha256sum's rule: first byte below 51
    import hashlib

    texts = {f"saying {i} about {t} -- {n}" for n, t in enumerate(fortunes.TOPICS) for i in range(30)}
    tested = {text for text in texts if int(hashlib.sha256(text.encode()).hexdigest()[:2], 16) < 51}
    assert (len(source.train), len(source.test)) == (300 - len(tested), len(tested))

    def read(items: np.ndarray) -> set[str]:
        return {"".join(chr(31 + code) for code in item if code) for item in items}

    assert read(source.test.items) == tested
    assert read(source.train.items) == texts - tested
    assert source.shape == (96, 256)
    assert load_sequences("fortunes", tmp_path).fingerprint == source.fingerprint


def test_an_entry_in_two_topics_is_kept_once(tmp_path: Path) -> None:
    folder = topics(tmp_path)
    before = load_sequences("fortunes", folder)
    last = folder / fortunes.TOPICS[-1]
    last.write_text(last.read_text() + f"\n%\nsaying 0   about {fortunes.TOPICS[0]}\n-- 0\n%\n\n%\n")
    assert load_sequences("fortunes", folder).fingerprint == before.fingerprint


def test_tokens_are_characters() -> None:
    got = fortunes.tokens(" A~é" + "x" * 300)
    assert got[:4].tolist() == [1, 34, 95, 96]
    assert got.shape == (256,)
    assert fortunes.tokens("ab")[2:].tolist() == [0] * 254


def test_what_is_missing_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"no JapaneseVowels_TRAIN.ts and .*; pip install sktime, or set data.sequences"
    ):
        load_sequences("japanese_vowels", tmp_path)
    with pytest.raises(InputError, match=r"people is no readable text; apt-get install fortunes \(Debian\), or set"):
        load_sequences("fortunes", tmp_path)
    with pytest.raises(InputError, match=r"fortunes.root='.*absent' is no folder"):
        load_sequences("fortunes", tmp_path / "absent")
    with pytest.raises(InputError, match="'birds': unknown, expected one of japanese_vowels, fortunes"):
        load_sequences("birds")


def test_wrong_arrays_are_refused() -> None:
    series = Sequences(np.zeros((2, 3, 4), np.float32), np.array([0, 1]))
    assert SequenceSource("made", series, series, ("a", "b")).shape == (3, 4)
    for items, labels, said in (
        (np.zeros((2, 3, 4)), [0, 1], "float64"),
        (np.full((2, 3, 4), np.nan, np.float32), [0, 1], "not all finite"),
        (np.zeros((2, 3, 4), np.float32), [0, 2], "not all from 0 to 1"),
        (np.zeros((2, 3, 4), np.float32), [0, 0], "no item of the class 'b'"),
        (np.zeros((2, 3, 5), np.float32), [0, 1], "those of train are not"),
    ):
        with pytest.raises(InputError, match=said):
            SequenceSource("made", series, Sequences(items, np.array(labels)), ("a", "b"))
    text = Sequences(np.full((2, 4), 9, np.uint8), np.array([0, 1]))
    with pytest.raises(InputError, match="has the token 9, expected 0 to 8"):
        SequenceSource("made", text, text, ("a", "b"), tokens=8)
