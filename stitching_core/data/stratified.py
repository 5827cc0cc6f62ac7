"""A fixed subset of labelled items that keeps the shares of the classes."""

from __future__ import annotations

import numpy as np

from stitching_core.seeding import Part, stream


def class_quotas(counts: np.ndarray, items: int) -> np.ndarray:
    """How many items to take of each class: in proportion (largest remainders), but at least one of each.

    Args:
        counts: items that there are of each class, every one at least 1, shape (classes,).
        items: items to take, from the number of classes to ``counts.sum()``.

    Returns:
        int64 (classes,), at least 1 and at most ``counts``, with the sum ``items``.
    """
    quotas, remainders = np.divmod(items * counts.astype(np.int64), counts.sum())
    remainders[quotas == 0] = -1  # a class that is lifted to 1 has had its share of the rounding
    quotas = np.maximum(quotas, 1)
    left = items - quotas.sum()
    if left > 0:
        quotas[np.argsort(-remainders, kind="stable")[:left]] += 1
    for _ in range(-left):
        quotas[np.argmax(quotas)] -= 1
    return quotas


def stratified_indices(labels: np.ndarray, items: int, *parts: Part) -> np.ndarray:
    """The indices of a stratified subset, drawn without replacement from the stream named by the parts.

    The draw ranks the generator's raw 64-bit words, which no version of NumPy may change.

    Args:
        labels: int64 (n,), each of the classes 0..labels.max() at least once.
        items: size of the subset, from the number of classes to n.
        parts: what the subset is for, see `stitching_core.seeding.stream`.

    Returns:
        int64 (items,), ascending.
    """
    raw = np.random.Philox(key=stream(*parts)).random_raw(len(labels))
    quotas = class_quotas(np.bincount(labels), items)
    kept = []
    for label, quota in enumerate(quotas):
        members = np.flatnonzero(labels == label)
        kept.append(members[np.argsort(raw[members], kind="stable")[:quota]])
    return np.sort(np.concatenate(kept))
