"""The one schema that leaves the core: the columns of every table under ``results/<sweep>/``.

No torch here: ``analysis`` reads this file and must start fast. A type is one of ``str``, ``int``, ``float``, ``bool``,
``list[int]`` and ``list[float]``; every column may be null. Accuracies are fractions, times are seconds.
"""

from __future__ import annotations

from typing import Any

# Raised whenever a column changes its meaning or a cell id its definition: a folder of another version is refused.
SCHEMA_VERSION = 1

OK, DIVERGED, FAILED = "ok", "diverged", "failed"

# kinds of model; a `noise` sender has no network at all
TRAINED, RANDOM_INIT, NOISE, WEIGHTS = "trained", "random_init", "noise", "weights"
SHUFFLED = "shuffled"  # a sender whose stitches are fitted to shuffled labels
FLOORS = (RANDOM_INIT, NOISE, SHUFFLED)

# One row per cell and eval_data.
CELLS: dict[str, str] = {
    "cell_id": "str",
    "sweep": "str",
    "run": "int",  # the seed from which this run's base models and stitches were made
    "experiment": "str",  # bare id ("2e"), null outside the named experiments
    "sender": "str",
    "sender_kind": "str",
    "sender_arch": "str",
    "sender_variant": "str",
    "sender_seed": "int",
    "sender_hash": "str",  # content hash of the sender's weights
    "sender_cut": "str",
    "receiver": "str",
    "receiver_kind": "str",
    "receiver_arch": "str",
    "receiver_variant": "str",
    "receiver_seed": "int",
    "receiver_hash": "str",
    "receiver_cut": "str",
    "data_source": "str",
    "data_seed": "int",
    "data_hash": "str",  # content hash of the source's images and labels
    "fit_data": "str",
    "eval_data": "str",
    "label_offset": "int",
    "noise_sigma": "float",
    "classes": "int",  # of the networks; chance is 1 / classes
    "l1": "float",
    "protocol": "str",
    "objective": "str",
    "stitch": "str",
    "init": "str",
    "bn_mode": "str",
    "search": "str",
    "search_trials": "int",
    "device": "str",
    "seed": "int",  # of the stitch: its init, its batch order
    "learning_rate": "float",
    "momentum": "float",
    "weight_decay": "float",
    "batch_size": "int",
    "epochs": "int",
    "status": "str",  # ok, diverged or failed
    "reason": "str",  # null when ok
    "accuracy": "float",
    "cross_entropy": "float",
    "receiver_accuracy": "float",  # the uncut receiver on eval_data; null for noise; with sequences on its own images
    "sender_accuracy": "float",
    "penalty": "float",  # receiver_accuracy - accuracy, same data; null where the receiver can't read eval_data
    "agreement_receiver": "float",  # share of items predicted as the uncut receiver predicts them
    "agreement_sender": "float",
    "worst_class_accuracy": "float",
    "validation_accuracy": "float",  # of the search's winner, on the validation split; null without a search
    "weight_delta": "float",  # Frobenius norm of the change of the stitch convolution's weight
    "bias_delta": "float",
    "weight_moved": "int",  # entries that moved by more than 10% of the largest move
    "learning_curve": "list[float]",  # mean training loss of each epoch
    "train_seconds": "float",  # of the whole block, divided by its cells
    "finished_at": "str",  # UTC, ISO 8601
}

# One row per base model and data variant that it was measured on.
MODELS: dict[str, str] = {
    "sweep": "str",
    "model": "str",
    "kind": "str",
    "arch": "str",
    "variant": "str",  # what it was trained on; null for random_init and noise
    "seed": "int",
    "hash": "str",
    "parameters": "int",
    "learned": "bool",  # null for models that nobody trained
    "train_accuracy": "float",  # on its own training data, after the last epoch
    "eval_data": "str",
    "accuracy": "float",
    "cross_entropy": "float",
    "train_seconds": "float",
    "reason": "str",  # why there is no accuracy; null where there is one, and for noise
}

# One row per measured module of a stitched or uncut model.
MODULES: dict[str, str] = {
    "cell_id": "str",  # null for an uncut model
    "model": "str",
    "seed": "int",
    "eval_data": "str",
    "part": "str",  # sender, stitch or receiver; null for an uncut model
    "module": "str",  # its path inside its network
    "position": "int",  # in the order of execution
    "width": "int",  # features of a sample
    "columns": "int",  # how many of them were looked at; null is all
    "feature_rank": "int",  # eigenvalues of the covariance above a thousandth of the largest
    "normalised_rank": "float",  # feature_rank / min(width, samples)
    "weight_rank": "int",
}

# One row per (cell, eval_data), and per (uncut model, eval_data) with a null cell_id.
PREDICTIONS: dict[str, str] = {
    "cell_id": "str",
    "model": "str",
    "seed": "int",
    "eval_data": "str",
    "target": "list[int]",  # per test item, in the test set's own order
    "predicted": "list[int]",
}

TABLES: dict[str, dict[str, str]] = {
    "cells": CELLS,
    "models": MODELS,
    "modules": MODULES,
    "predictions": PREDICTIONS,
}


def row(table: str, **values: Any) -> dict[str, Any]:
    """One row of a table with every column present, null where no value was given.

    Raises:
        KeyError: a value's name is no column of the table.
    """
    columns = TABLES[table]
    unknown = sorted(set(values) - set(columns))
    if unknown:
        raise KeyError(f"{unknown[0]!r} is not a column of {table}")
    return {name: values.get(name) for name in columns}
