"""Pairing: counts by the written rule, splits that never mix, and maps that can't be meant."""

import numpy as np
import pytest

from stitching_core.data.pairing import hold_out, make_pairing, resampled
from stitching_core.data.sequence import Sequences, SequenceSource
from stitching_core.errors import InputError


def source(train: list[int], test: list[int]) -> SequenceSource:
    """With so many items of each class."""
    splits = []
    for counts in (train, test):
        labels = np.repeat(np.arange(len(counts)), counts)[::-1].copy()
        splits.append(Sequences(np.zeros((len(labels), 2, 3), np.float32), labels))
    return SequenceSource("made", *splits, tuple(f"class {i}" for i in range(len(train))))


def test_every_item_is_taken_equally_often_but_for_a_draw() -> None:
    members = np.array([3, 5, 8, 13])
    for wanted in (1, 3, 4, 11, 40):
        got = resampled(members, wanted, "a", 0)
        counts = np.array([(got == member).sum() for member in members])
        assert counts.sum() == wanted == len(got)
        assert counts.min() == wanted // 4
        assert counts.max() == -(-wanted // 4)
    assert any(resampled(members, 2, "a", s).tolist() != resampled(members, 2, "a", 0).tolist() for s in range(1, 9))
    assert resampled(members, 2, "a", 5).tolist() == resampled(members, 2, "a", 5).tolist()


def test_receiver_classes_have_the_receivers_counts() -> None:
    made = source([5, 2, 4], [3, 3, 9])
    pairing = make_pairing(made, {0: 7, 2: 1}, 10, (np.arange(10) * 2, np.arange(10) + 1), seed=0)
    for split, part in (("train", made.train), ("test", made.test)):
        pairs = pairing.split(split)
        wanted = {1: 2, 7: 14} if split == "train" else {1: 2, 7: 8}
        assert dict(zip(*np.unique(pairs.labels, return_counts=True), strict=True)) == wanted
        # the sender's class of every item is the one that is mapped to its label
        assert all({7: 0, 1: 2}[b] == part.labels[i] for i, b in zip(pairs.indices, pairs.labels, strict=True))
        assert pairs.indices.max() < len(part)


def test_without_images_counts_are_those_of_the_largest_class() -> None:
    pairing = make_pairing(source([5, 2, 4], [3, 3, 9]), {0: 100, 1: 900}, 1000, None, seed=0)
    assert np.unique(pairing.train.labels, return_counts=True)[1].tolist() == [5, 5]
    assert np.unique(pairing.test.labels, return_counts=True)[1].tolist() == [3, 3]


def test_the_map_is_the_identity_unless_given() -> None:
    counts = (np.full(2, 4), np.full(2, 4))
    assert make_pairing(source([5, 2, 4], [3, 3, 9]), None, 2, counts, 0).class_map == ((0, 0), (1, 1))


def test_the_fingerprint_follows_map_counts_and_seed() -> None:
    made, counts = source([5, 2], [3, 3]), (np.full(4, 4), np.full(4, 4))
    first = make_pairing(made, None, 4, counts, 0).fingerprint
    assert make_pairing(made, {1: 1, 0: 0}, 4, counts, 0).fingerprint == first
    others = [
        make_pairing(made, {0: 1, 1: 0}, 4, counts, 0),
        make_pairing(made, None, 4, (np.full(4, 5), np.full(4, 4)), 0),
        make_pairing(made, None, 4, counts, 1),
    ]
    assert len({first, *(one.fingerprint for one in others)}) == 4


@pytest.mark.parametrize(
    ("class_map", "said"),
    [
        ({0: 0, 3: 1}, "class of made 3; allowed: 0 to 2"),
        ({0: 0, 1: 10}, "receiver class 10; allowed: 0 to 9"),
        ({0: -1, 1: 1}, "receiver class -1; allowed: 0 to 9"),
        ({0: 4, 1: 4}, "receiver class 4 twice"),
        ({1: 4}, "maps 1 class; a stitch needs at least 2"),
        ({0: 9, 1: 1}, "receiver class 9, of which there is no train image"),
    ],
)
def test_a_map_that_can_not_be_meant(class_map: dict[int, int], said: str) -> None:
    counts = np.array([5] * 9 + [0])
    with pytest.raises(InputError, match=f"data.sequences.made.class_map .*{said}"):
        make_pairing(source([5, 2, 4], [3, 3, 9]), class_map, 10, (counts, counts), 0)


def test_no_item_is_held_out_and_kept() -> None:
    made = source([10, 4], [3, 3])
    pairs = make_pairing(made, None, 2, (np.array([33, 33]), np.array([3, 3])), 0).train
    kept, held = hold_out(pairs, made.train.labels, 0.2, "fit", 0)
    assert sorted([*kept, *held]) == list(range(66))
    assert not set(pairs.indices[kept]) & set(pairs.indices[held])
    out = np.unique(pairs.indices[held])
    assert np.bincount(made.train.labels[out]).tolist() == [2, 1]  # a fifth of 10, and of 4 at least one
