"""Training a base model of the zoo (Smith et al. 2025, Section 3: SGD, cross entropy, no augmentation).

An auto-encoder is trained likewise, by the mean squared error of its own normalised images.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, MultiStepLR

from stitching_core.measure.accuracy import Predictions, Tally
from stitching_core.measure.reconstruction import pixel_errors
from stitching_core.seeding import reseed
from stitching_core.spec import TrainingRecipe
from stitching_core.train.images import as_images, batch_order, eval_batches
from stitching_core.train.items import Items

# Each is stepped after every *batch*. `smith2025_vgg19` reproduces the published run, whose milestones were meant as
# epochs: from batch 150 on, nearly all of the training, the learning rate is a hundredth of the stated one.
SCHEDULES: dict[str, Callable[[torch.optim.Optimizer], LRScheduler]] = {
    "none": lambda optimizer: LambdaLR(optimizer, lambda step: 1.0),
    "smith2025_vgg19": lambda optimizer: MultiStepLR(optimizer, milestones=[100, 150], gamma=0.1),
}


@dataclass(frozen=True)
class BaseResult:
    """How the training went, over the last epoch's training batches (as they were seen), and its time.

    Attributes:
        train_accuracy: None of an auto-encoder.
        seconds: of the training.
        train_error: of an auto-encoder, mean squared error of pixels as fractions of 255; infinite if it diverged.
    """

    train_accuracy: float | None
    seconds: float
    train_error: float | None = None


def train_base(
    model: nn.Module, data: Items, recipe: TrainingRecipe, seed: int, reconstructs: bool = False
) -> BaseResult:
    """Trains ``model`` in place on the data's device.

    The order of the batches and any dropout are functions of ``seed``. A loss that is no longer finite ends the
    training early; the model then has not learnt.

    Args:
        model: in any mode; left in eval mode.
        data: the training split.
        recipe: optimiser settings, batch size, epochs and schedule.
        seed: of the run.
        reconstructs: the model is an auto-encoder: its targets are its inputs.
    """
    started = time.perf_counter()
    model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=recipe.learning_rate, momentum=recipe.momentum, weight_decay=recipe.weight_decay
    )
    schedule = SCHEDULES[recipe.schedule](optimizer)
    hits, seen, error = 0, 0, math.inf
    device = data.labels.device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        reseed(device, "base_dropout", seed)
        model.train()
        for epoch in range(recipe.epochs):
            correct = torch.zeros((), device=device)
            total = torch.zeros((), device=device)
            squares = torch.zeros((), dtype=torch.float64, device=device)
            seen = 0
            for indices in batch_order(len(data), recipe.batch_size, data.drop_last, "base", seed, epoch):
                indices = indices.to(device)
                images = data.batch(indices)
                target = images if reconstructs else data.labels[indices]
                output = model(images)
                loss = F.mse_loss(output, target) if reconstructs else F.cross_entropy(output, target)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                schedule.step()
                if reconstructs:
                    squares += pixel_errors(output.detach(), images, as_images(data).std).mean((1, 2, 3)).double().sum()
                else:
                    correct += (output.argmax(1) == target).sum()
                total += loss.detach()
                seen += len(indices)
            hits, error = int(correct), float(squares) / max(seen, 1)
            if not math.isfinite(float(total)):
                hits, error = 0, math.inf
                break
    model.eval()
    seconds = time.perf_counter() - started
    return BaseResult(None, seconds, error) if reconstructs else BaseResult(hits / max(seen, 1), seconds)


def learned(train_accuracy: float, labels: torch.Tensor) -> bool:
    """Whether a model learnt: at least half of the way from always naming the commonest class to being always right.

    Measured on training data: test data must not decide which models take part.
    """
    chance = float(labels.bincount().max()) / len(labels)
    return train_accuracy >= chance + 0.5 * (1 - chance)


@torch.no_grad()
def evaluate(model: nn.Module, data: Items) -> Predictions:
    """The uncut model's predictions on a test split, in eval mode."""
    model.eval()
    tally = Tally()
    for indices in eval_batches(len(data)):
        indices = indices.to(data.labels.device)
        tally.add(model(data.batch(indices)), data.labels[indices])
    return tally.predictions()
