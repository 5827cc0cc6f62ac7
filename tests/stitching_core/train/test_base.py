"""Base models: the published schedule, what counts as learnt, and a training that is a function of its seed."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from stitching_core.data.variants import VariantData
from stitching_core.spec import TrainingRecipe
from stitching_core.train.base import SCHEDULES, evaluate, learned, train_base
from stitching_core.train.images import ImageTensors, batch_order

CPU = torch.device("cpu")


def data(items: int = 100) -> ImageTensors:
    """Two classes, dark and bright."""
    rng = np.random.default_rng(0)
    labels = np.arange(items) % 2
    images = rng.integers(0, 100, (items, 3, 4, 4)) + 150 * labels[:, None, None, None]
    return ImageTensors(VariantData("made", images.astype(np.uint8), labels, (0.5,) * 3, (0.5,) * 3, False), 4, CPU)


def network(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(dropout), nn.Flatten(), nn.Linear(16, 2)
    )


def recipe(**changes: float) -> TrainingRecipe:
    settings = {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-2, "batch_size": 16, "epochs": 3}
    return TrainingRecipe(**(settings | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        ("none", {0: 0.01, 99: 0.01, 100: 0.01, 150: 0.01, 999: 0.01}),
        ("smith2025_vgg19", {0: 0.01, 99: 0.01, 100: 1e-3, 149: 1e-3, 150: 1e-4, 999: 1e-4}),
    ],
)
def test_the_learning_rate_of_a_batch(name: str, rates: dict[int, float]) -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.01)
    schedule = SCHEDULES[name](optimizer)
    for batch in range(1000):
        if batch in rates:
            assert optimizer.param_groups[0]["lr"] == pytest.approx(rates[batch], rel=1e-9), batch
        optimizer.step()
        schedule.step()


def test_training_is_momentum_sgd_with_weight_decay_on_everything() -> None:
    """Against the update rule written out: v <- 0.9 v + g + 0.01 p; p <- p - 0.1 v."""
    model, reference, images = network(), network(), data()
    result = train_base(model, images, recipe(), seed=5)
    velocity = [torch.zeros_like(p) for p in reference.parameters()]
    right = 0
    for epoch in range(3):
        right = 0
        for indices in batch_order(100, 16, False, "base", 5, epoch):
            logits = reference(images.batch(indices))
            right += int((logits.argmax(1) == images.labels[indices]).sum())
            loss = nn.functional.cross_entropy(logits, images.labels[indices])
            gradients = torch.autograd.grad(loss, list(reference.parameters()))
            with torch.no_grad():
                for p, v, g in zip(reference.parameters(), velocity, gradients, strict=True):
                    v.mul_(0.9).add_(g + 0.01 * p)
                    p.sub_(0.1 * v)
    for (name, ours), theirs in zip(model.state_dict().items(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6, msg=name)
    assert result.train_accuracy == pytest.approx(right / 100)
    assert not model.training


def test_training_is_a_function_of_its_seed() -> None:
    states = []
    for seed in (1, 1, 2):
        model = network(dropout=0.3)
        torch.rand(seed)  # what was drawn before does not matter
        before = torch.get_rng_state()
        train_base(model, data(), recipe(), seed)
        assert torch.equal(torch.get_rng_state(), before)
        states.append(torch.cat([value.flatten().float() for value in model.state_dict().values()]))
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


def test_it_learns_two_classes_and_says_so() -> None:
    model, images = network(), data()
    result = train_base(model, images, recipe(epochs=5), 0)
    assert learned(result.train_accuracy, images.labels)
    found = evaluate(model.train(), images)
    assert found.accuracy == 1
    assert found.target.tolist() == images.labels.tolist()
    assert not model.training


def test_a_training_that_diverges_has_not_learnt() -> None:
    model, images = network(), data()
    result = train_base(model, images, recipe(learning_rate=1e30), 0)
    assert result.train_accuracy == 0
    assert not learned(result.train_accuracy, images.labels)


@pytest.mark.parametrize(
    ("labels", "threshold"),
    [
        ([0, 1] * 5, 0.75),
        ([0, 0, 0, 1], 0.875),
        (list(range(10)), 0.55),
    ],
)
def test_half_of_the_way_from_chance_counts_as_learnt(labels: list[int], threshold: float) -> None:
    targets = torch.tensor(labels)
    assert learned(threshold + 1e-9, targets)
    assert not learned(threshold - 1e-9, targets)


def test_evaluation_uses_the_running_statistics() -> None:
    model, images = network(), data(10)
    found = evaluate(model, images)
    x, norm = images.batch(torch.arange(10)), model[1]
    hidden = nn.functional.conv2d(x, model[0].weight, model[0].bias)
    hidden = (hidden - norm.running_mean.view(1, -1, 1, 1)) / (norm.running_var.view(1, -1, 1, 1) + 1e-5).sqrt()
    logits = (hidden.clamp_min(0).flatten(1) @ model[5].weight.T + model[5].bias).detach().double()
    loss = -sum(math.log(float(row.softmax(0)[label])) for row, label in zip(logits, images.labels, strict=True)) / 10
    assert found.cross_entropy == pytest.approx(loss, rel=1e-5)
    assert found.predicted.tolist() == logits.argmax(1).tolist()
