"""Items of one modality paired with the labels of another, class by class: what a stitch between them is trained on.

After Smith et al. 2025, who stitch senders of other modalities (bird song) into image receivers: sender classes and
receiver classes are paired by a class map, and the stitch learns the receiver's labels.

The counts of the two differ, so the sender's items are resampled. **The rule**: let a class have m items at the
sender's side and be wanted n times (as often as its receiver class occurs in the receiver's own split; without images
of the receiver, as often as the sender's largest mapped class of the split). Every item is taken floor(n / m) times,
and the rest, n mod m, is a seeded draw of distinct items. So no item is taken more than once more often than another of
its class. Pairs are in the order of receiver classes, then items. Train pairs come from train items only, test pairs
from test items only. Items of classes that are not in the map are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stitching_core.data.sequence import SequenceSource
from stitching_core.errors import InputError
from stitching_core.seeding import Part, stream
from stitching_core.spec import digest


@dataclass(frozen=True, eq=False)
class Pairs:
    """One split of a pairing.

    Attributes:
        indices: int64 (pairs,), the sender's item of each pair.
        labels: int64 (pairs,), the receiver's class of each pair.
    """

    indices: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True, eq=False)
class Pairing:
    """A sequence source whose items stand for a receiver's classes.

    Attributes:
        source: the sender's data.
        class_map: (sender class, receiver class) pairs, in the order of the sender's classes.
        train: pairs of train items.
        test: pairs of test items.
    """

    source: SequenceSource
    class_map: tuple[tuple[int, int], ...]
    train: Pairs
    test: Pairs

    def split(self, name: str) -> Pairs:
        return self.train if name == "train" else self.test

    @property
    def fingerprint(self) -> str:
        """Of everything that a stitch between the two can depend on."""
        state = hashlib.sha256(digest([self.source.fingerprint, self.class_map]).encode())
        for array in (self.train.indices, self.train.labels, self.test.indices, self.test.labels):
            state.update(np.ascontiguousarray(array, dtype="<i8").data)
        return state.hexdigest()


def make_pairing(
    source: SequenceSource,
    class_map: Mapping[int, int] | None,
    classes: int,
    counts: tuple[np.ndarray, np.ndarray] | None,
    seed: int,
) -> Pairing:
    """Pairs a source's items with a receiver's classes.

    Args:
        source: the sender's data.
        class_map: receiver class of each sender class; None is i -> i for as many as both have.
        classes: of the receiver.
        counts: items of each class of the receiver's train and test split, int64 (classes,) each; None without images.
        seed: the data seed.

    Raises:
        InputError: a class that does not exist, two sender classes on one receiver class, fewer than two pairs of
            classes, or a receiver class without images.
    """
    if class_map is None:
        class_map = {i: i for i in range(min(source.classes, classes))}
    mapped = tuple(sorted(class_map.items()))
    key = f"data.sequences.{source.name}.class_map"
    for end, values, limit in (
        (f"class of {source.name}", [a for a, _ in mapped], source.classes),
        ("receiver class", [b for _, b in mapped], classes),
    ):
        for value in values:
            if not 0 <= value < limit:
                raise InputError(f"{key} has the {end} {value}; allowed: 0 to {limit - 1}")
        if len(set(values)) < len(values):
            twice = next(value for value in values if values.count(value) > 1)
            raise InputError(f"{key} has the {end} {twice} twice; each may be there once")
    if len(mapped) < 2:
        raise InputError(f"{key} maps {len(mapped)} class; a stitch needs at least 2")
    splits = []
    for position, (split, part) in enumerate((("train", source.train), ("test", source.test))):
        own = np.bincount(part.labels, minlength=source.classes)
        most = max(int(own[sender]) for sender, _ in mapped)
        indices, labels = [], []
        for sender, receiver in sorted(mapped, key=lambda pair: pair[1]):
            wanted = most if counts is None else int(counts[position][receiver])
            if wanted == 0:
                raise InputError(f"{key} has the receiver class {receiver}, of which there is no {split} image")
            chosen = resampled(np.flatnonzero(part.labels == sender), wanted, source.name, split, sender, seed)
            indices.append(chosen)
            labels.append(np.full(wanted, receiver, dtype=np.int64))
        splits.append(Pairs(np.concatenate(indices), np.concatenate(labels)))
    return Pairing(source, mapped, *splits)


def resampled(members: np.ndarray, wanted: int, *parts: Part) -> np.ndarray:
    """``wanted`` of the members, ascending: each floor(wanted / m) times, the rest drawn without replacement.

    The draw ranks a generator's raw 64-bit words, which no version of NumPy may change.
    """
    whole, rest = divmod(wanted, len(members))
    raw = np.random.Philox(key=stream("pairing", *parts)).random_raw(len(members))
    drawn = members[np.argsort(raw, kind="stable")[:rest]]
    return np.sort(np.concatenate([np.repeat(members, whole), drawn])).astype(np.int64)


def hold_out(pairs: Pairs, item_labels: np.ndarray, fraction: float, *parts: Part) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the pairs to train on and to score on. An item is on one side only, however often it was taken.

    Args:
        pairs: of the train split.
        item_labels: classes of the sender's items, by item.
        fraction: of the items of each class to hold out, at least one item; one at least is kept.
        parts: what the draw is for.

    Raises:
        InputError: a class has a single item.
    """
    items = np.unique(pairs.indices)
    raw = np.random.Philox(key=stream("validation", *parts)).random_raw(len(items))
    held = []
    for label in np.unique(item_labels[items]):
        members = np.flatnonzero(item_labels[items] == label)
        if len(members) < 2:
            raise InputError(f"class {label} of a paired source has one item: a search needs two, to hold one out")
        count = min(max(1, round(fraction * len(members))), len(members) - 1)
        held.append(items[members[np.argsort(raw[members], kind="stable")[:count]]])
    out = np.isin(pairs.indices, np.concatenate(held))
    return np.flatnonzero(~out), np.flatnonzero(out)
