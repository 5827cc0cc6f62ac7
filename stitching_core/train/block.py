"""A block of stitches trained in lock-step: each batch goes through the sender's front once, for all of them.

What a stitch goes through here depends on its own definition alone. The batches are a function of (fit data, seed), the
front's statistics of the batches seen so far, and nothing is shared between the stitches of a block: so a stitch comes
out the same alone or in any block, in any order. On a CPU with a fixed number of threads, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from stitching_core import record
from stitching_core.measure.accuracy import Predictions
from stitching_core.measure.reconstruction import Reconstructions
from stitching_core.seeding import Part, reseed
from stitching_core.train.fronts import Front
from stitching_core.train.images import batch_order, eval_batches
from stitching_core.train.stitching import StitchRun

Evaluation = Predictions | Reconstructions  # by the receiver: of classes or of images
Results = dict[str, dict[str, Evaluation]]  # by run key, then by split
Leaving = Callable[[Front, list[StitchRun]], None]


def nothing_more(front: Front, runs: list[StitchRun]) -> None:
    """Leaves runs that have been evaluated alone."""


def train_block(
    front: Front,
    runs: list[StitchRun],
    order_key: tuple[Part, ...],
    evaluate_on: Callable[[StitchRun], tuple[str, ...]],
    on_epoch: Callable[[int], None] = lambda stitches: None,
    on_leave: Leaving = nothing_more,
) -> Results:
    """Trains every run to its own number of epochs and evaluates it when it leaves.

    Args:
        front: gives the activations; has a split named ``fit``.
        runs: share batch size and bn_mode, each with a key of its own. Diverged and failed ones leave early, and say so
            themselves.
        order_key: what the order of the batches depends on.
        evaluate_on: which of the front's splits a run is evaluated on.
        on_epoch: called after each epoch with the number of stitches that took part in it.
        on_leave: called with the front and the runs that have just been evaluated, before the front goes on to learn
            more statistics for those that stay: whatever else is measured on them is measured now.

    Returns:
        Predictions (or reconstructions) of every run that is ok.

    Raises:
        ValueError: the runs do not share batch size and bn_mode, or two have one key.
    """
    settings = {(run.protocol.batch_size, run.protocol.bn_mode) for run in runs}
    if not runs:
        return {}
    if len({run.key for run in runs}) < len(runs):
        raise ValueError("two runs of a block have the same key")
    if len(settings) > 1:
        raise ValueError(f"a block has one batch size and one bn_mode, not {sorted(settings)}")
    ((batch_size, bn_mode),) = settings
    results: Results = {}
    labels = front.labels("fit")
    active = list(runs)
    epoch = 0
    with torch.random.fork_rng(devices=[labels.device] if labels.is_cuda else []):
        while active:
            if front.module is not None:
                front.module.train(bn_mode == "adapt")
            for run in active:
                run.train_mode(True)
            batches = batch_order(len(labels), batch_size, front.drop_last("fit"), *order_key, epoch)
            for number, indices in enumerate(batches):
                reseed(labels.device, "front_dropout", *order_key, epoch, number)
                indices = indices.to(labels.device)
                activations = front.activations("fit", indices)
                target = labels[indices]
                for run in active:
                    if run.status == record.OK:
                        try:
                            run.step(activations[run.tap], run.truth("fit", indices, target), epoch)
                        except Exception as error:  # whatever it is, it is this run's alone
                            run.fail(error)
            epoch += 1
            on_epoch(len(active))
            for run in active:
                if run.status == record.OK:
                    run.end_epoch()
            leaving = [run for run in active if run.status == record.OK and run.protocol.epochs <= epoch]
            if leaving:
                results |= evaluate(front, leaving, evaluate_on)
                on_leave(front, [run for run in leaving if run.status == record.OK])
            active = [run for run in active if run.status == record.OK and run.protocol.epochs > epoch]
    return results


@torch.no_grad()
def evaluate(front: Front, runs: list[StitchRun], evaluate_on: Callable[[StitchRun], tuple[str, ...]]) -> Results:
    """Predictions (or reconstructions) of stitched networks in eval mode, one pass of the front for all of them.

    A run that raises has failed, one whose outputs are not finite has diverged; neither is among the results.
    """
    if front.module is not None:
        front.module.eval()
    tallies = {run.key: {split: run.tally(split) for split in evaluate_on(run)} for run in runs}
    for run in runs:
        run.train_mode(False)
    for split in dict.fromkeys(split for run in runs for split in evaluate_on(run)):
        labels = front.labels(split)
        asked = [run for run in runs if split in tallies[run.key]]
        for indices in eval_batches(len(labels)):
            indices = indices.to(labels.device)
            activations = front.activations(split, indices)
            for run in asked:
                if run.status == record.OK:
                    try:
                        output = run.tail(run.stitch(activations[run.tap]))
                        truth = run.truth(split, indices, labels[indices])
                        tallies[run.key][split].add(output, run.targets(truth))
                    except Exception as error:
                        run.fail(error)
    results: Results = {}
    for run in runs:
        if run.status == record.OK:
            found = {split: tally.result() for split, tally in tallies[run.key].items()}
            what = "cross entropy" if run.images is None else "reconstruction error"
            for split, evaluation in found.items():
                if not math.isfinite(evaluation.loss):
                    run.diverge(f"{what} on {split} was {evaluation.loss}")
            if run.status == record.OK:
                results[run.key] = found
    return results
