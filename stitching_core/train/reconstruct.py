"""What differs where a network gives images back instead of classes: what it is told, what counts as learnt."""

from __future__ import annotations

import torch
from torch import nn

from stitching_core.measure.reconstruction import PixelTally, Reconstructions
from stitching_core.train.images import ImageTensors, eval_batches

LEAST_GAIN = 0.5  # of the error of the mean image, that an auto-encoder must have done away with


def tally_of(data: ImageTensors) -> PixelTally:
    """An empty tally of reconstructions of these images."""
    return PixelTally(data.labels, data.mean, data.std)


@torch.no_grad()
def reconstruct(model: nn.Module, data: ImageTensors) -> Reconstructions:
    """What an uncut auto-encoder makes of a test split, in eval mode.

    Args:
        model: the auto-encoder.
        data: in its own units (see ``ImageTensors.in_units``): the images are both its input and its target.
    """
    model.eval()
    tally = tally_of(data)
    for indices in eval_batches(len(data)):
        images = data.batch(indices.to(data.labels.device))
        tally.add(model(images), images)
    return tally.result()


def mean_image_error(data: ImageTensors) -> float:
    """The error of naming the mean image whatever is shown: the variance around it, of pixels as fractions of 255.

    This is the best that a network can do that looks at nothing.
    """
    total = torch.zeros(data.images.shape[1:], dtype=torch.float64, device=data.images.device)
    squares = torch.zeros_like(total)
    for indices in eval_batches(len(data)):
        pixels = data.images[indices.to(data.images.device)].double() / 255
        total += pixels.sum(0)
        squares += pixels.square().sum(0)
    return float((squares / len(data) - (total / len(data)).square()).mean())


def learned_to_reconstruct(train_error: float, data: ImageTensors) -> bool:
    """Whether an auto-encoder learnt: at least half of the way from the mean training image to no error.

    Measured on training data: test data must not decide which models take part.
    """
    return train_error <= (1 - LEAST_GAIN) * mean_image_error(data)
