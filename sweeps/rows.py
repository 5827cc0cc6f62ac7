"""What became of a cell, as rows of the results."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import torch

from stitching_core import record
from stitching_core.measure.accuracy import Predictions
from stitching_core.spec import Protocol
from stitching_core.train.block import Evaluation
from stitching_core.train.stitching import StitchRun
from sweeps.cells import Planned
from sweeps.objectives import compared, validation_columns
from sweeps.sequences import on_mapped_images, paired_predictions
from sweeps.worker import Setting, uncut


def rows_of(
    setting: Setting,
    cell: Planned,
    protocol: Protocol,
    device: torch.device | str,
    run: StitchRun | None,
    found: Mapping[str, Evaluation],
    seconds: float | None,
    *,
    failure: str | None = None,
    validation_accuracy: float | None = None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A cell's rows of ``cells`` and ``predictions``: one for each evaluation asked, whatever became of it.

    ``validation_accuracy`` is the score of a search's winner, see ``score_of``.
    """
    spec = cell.spec
    status = record.FAILED if run is None else run.status
    reason = failure if run is None else run.reason
    kind = record.SHUFFLED if spec.sender.shuffled else spec.sender.kind
    common = {
        "cell_id": cell.id, "sweep": setting.sweep, "run": spec.seed, "experiment": setting.experiment,
        "sender": spec.sender.name, "sender_kind": kind, "sender_arch": spec.sender.arch,
        "sender_variant": spec.sender.variant, "sender_seed": spec.sender.seed, "sender_hash": cell.sender_hash,
        "sender_cut": spec.sender_cut, "receiver": spec.receiver.name, "receiver_kind": spec.receiver.kind,
        "receiver_arch": spec.receiver.arch, "receiver_variant": spec.receiver.variant,
        "receiver_seed": spec.receiver.seed, "receiver_hash": cell.receiver_hash, "receiver_cut": spec.receiver_cut,
        "data_source": setting.data.source, "data_seed": setting.data.seed, "data_hash": setting.data_hash,
        "fit_data": spec.fit_data, "label_offset": protocol.label_offset, "noise_sigma": spec.sender.sigma,
        "classes": setting.classes, "l1": protocol.l1, "protocol": protocol.name, "objective": protocol.objective,
        "stitch": protocol.stitch, "init": protocol.init, "bn_mode": protocol.bn_mode,
        "search": setting.search.mode, "search_trials": setting.search.n_trials, "device": str(device),
        "seed": spec.seed, "learning_rate": protocol.learning_rate, "momentum": protocol.momentum,
        "weight_decay": protocol.weight_decay, "batch_size": protocol.batch_size, "epochs": protocol.epochs,
        "status": status, "reason": reason, "train_seconds": seconds,
        "learning_curve": run.curve if run else None,
        "finished_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
        **validation_columns(protocol, validation_accuracy),
    }  # fmt: skip
    if run is not None and status == record.OK:
        common |= run.movement()
    rows, predictions = [], []
    for name in spec.eval_data:
        values: dict[str, Any] = common | {"eval_data": name}
        got = found[name] if status == record.OK else None
        if isinstance(got, Predictions):
            values |= {
                "accuracy": got.accuracy,
                "cross_entropy": got.cross_entropy,
                "worst_class_accuracy": got.worst_class_accuracy,
            }
            predictions.append(
                record.row("predictions", cell_id=cell.id, eval_data=name, target=got.target, predicted=got.predicted)
            )
        # the same items in the same order, with their true labels
        alone = {
            "receiver": uncut(setting, cell.receiver_hash).get(name),
            "sender": uncut(setting, cell.sender_hash).get(name),
        }
        for end, its in alone.items():
            if isinstance(its, Predictions):
                in_pairs = paired_predictions(setting, name, its) if name in setting.sequences else its
                values[f"{end}_accuracy"] = in_pairs.accuracy
                if isinstance(got, Predictions):
                    values[f"agreement_{end}"] = got.agreement(in_pairs, protocol.label_offset, setting.classes)
        values |= compared(got, **alone)
        if isinstance(got, Predictions) and values.get("receiver_accuracy") is not None:
            values["penalty"] = values["receiver_accuracy"] - values["accuracy"]
        if name in setting.sequences:  # the receiver can't read them: what it does on its own images, and no penalty
            own = {key: its for key, its in uncut(setting, cell.receiver_hash).items() if isinstance(its, Predictions)}
            values["receiver_accuracy"] = on_mapped_images(setting, spec.receiver, own, name)
        rows.append(record.row("cells", **values))
    return rows, predictions
