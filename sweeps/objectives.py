"""What an objective asks of a grid, and what it makes of an evaluation: accuracies, or errors of images."""

from __future__ import annotations

from typing import Any

from stitching_core import record
from stitching_core.errors import InputError
from stitching_core.measure.reconstruction import Reconstructions
from stitching_core.models.architectures import architecture
from stitching_core.spec import ModelRecipe, Protocol
from stitching_core.train.block import Evaluation
from sweeps.schema import SweepConfig


def reconstructs(recipe: ModelRecipe) -> bool:
    """Whether a model is an auto-encoder."""
    return recipe.arch is not None and architecture(recipe.arch).reconstructs


def check_objective(config: SweepConfig, senders: list[str], receivers: list[str]) -> None:
    """The objective is the receiver's: cross entropy of a classifier, mse of an auto-encoder.

    Raises:
        InputError: another one is asked of a receiver, or mse of a noise sender or with a label offset.
    """
    asked = config.grid.vary.get("objective", [config.protocol.objective])
    for name in receivers:
        arch = config.zoo.models[name].arch or config.zoo.arch
        images = architecture(arch).reconstructs
        own = record.MSE if images else record.CROSS_ENTROPY
        for objective in asked:
            if objective != own:
                raise InputError(
                    f"protocol.objective={objective} can't train a stitch into the receiver {name!r}: its tail "
                    f"({arch}) gives {'images' if images else 'classes'}; allowed: {own}"
                )
    if record.MSE not in asked:
        return
    for name in senders:
        if config.zoo.models[name].kind == record.NOISE:
            raise InputError(
                f"grid.senders: {name!r} is a noise source, whose points belong to no image that a receiver could "
                "reconstruct; with protocol.objective=mse leave it out"
            )
        if config.zoo.models[name].source is not None or config.zoo.models[name].kind == record.SHUFFLED:
            raise InputError(
                f"grid.senders: {name!r} is paired with the receiver by class; protocol.objective=mse has no classes"
            )
    if any([config.protocol.label_offset, *config.grid.vary.get("label_offset", [])]):
        raise InputError("protocol.label_offset moves labels, and protocol.objective=mse has none; it must be 0")


def score_of(evaluation: Evaluation) -> tuple[float, float]:
    """What a search makes large, above 0 (what a failed candidate is worth), and its loss.

    Accuracy; of reconstructions 1 / (1 + error), in (0, 1] as an accuracy is, and falling with the error.
    """
    if isinstance(evaluation, Reconstructions):
        return 1 / (1 + evaluation.error), evaluation.error
    return evaluation.accuracy, evaluation.cross_entropy


def score_text(protocol: Protocol, score: float | None) -> str:
    """A search's best score as people read it."""
    if score is None:
        return "every candidate failed; the fixed protocol is used"
    mse = protocol.objective == record.MSE
    return f"error {1 / score - 1:.4g} on validation" if mse else f"{score:.2%} on validation"


def validation_columns(protocol: Protocol, score: float | None) -> dict[str, float | None]:
    """A winner's score on the validation split, in the column that is its own."""
    if protocol.objective != record.MSE:
        return {"validation_accuracy": score}
    return {"validation_error": None if score is None else 1 / score - 1}


def compared(ours: Evaluation | None, receiver: Evaluation | None, sender: Evaluation | None) -> dict[str, Any]:
    """Columns of reconstruction errors: of the cell (None if it is not ok) and of its ends uncut, on the same data."""
    values: dict[str, Any] = {}
    if isinstance(sender, Reconstructions):
        values["sender_error"] = sender.error
    if isinstance(receiver, Reconstructions):
        values["receiver_error"] = receiver.error
    if isinstance(ours, Reconstructions):
        values["reconstruction_error"] = ours.error
        if isinstance(receiver, Reconstructions) and receiver.error > 0:
            values["error_ratio"] = ours.error / receiver.error
    return values
