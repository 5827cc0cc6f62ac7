"""A few reconstructed test images as rows of the results."""

from __future__ import annotations

from typing import Any

import numpy as np

from stitching_core import record
from stitching_core.measure.reconstruction import Reconstructions
from stitching_core.train.block import Evaluation
from sweeps.members import Member, Slot


def output_rows(found: dict[str, Evaluation], seed: int, cell_id: str) -> list[dict[str, Any]]:
    """Rows of ``outputs`` for a cell: what it makes of the pictured items of each evaluation."""
    return [
        row
        for name, evaluation in found.items()
        if isinstance(evaluation, Reconstructions)
        for row in _rows(evaluation, evaluation.outputs, record.STITCHED, eval_data=name, seed=seed, cell_id=cell_id)
    ]


def uncut_output_rows(members: dict[Slot, Member]) -> list[dict[str, Any]]:
    """Rows of ``outputs`` for uncut auto-encoders: what each is given, and what it makes of it."""
    return [
        row
        for (name, seed), member in members.items()
        for variant, uncut in member.uncut.items()
        if isinstance(uncut, Reconstructions)
        for kind, images in ((record.INPUT, uncut.inputs), (record.OWN, uncut.outputs))
        for row in _rows(uncut, images, kind, eval_data=variant, seed=seed, model=name)
    ]


def _rows(of: Reconstructions, images: np.ndarray, kind: str, **known: Any) -> list[dict[str, Any]]:
    height, width = images.shape[2:]
    return [
        record.row(
            "outputs",
            **known,
            kind=kind,
            item=int(item),
            label=int(label),
            height=height,
            width=width,
            pixels=image.transpose(1, 2, 0).reshape(-1).tolist(),
        )
        for item, label, image in zip(of.items, of.labels, images, strict=True)
    ]
