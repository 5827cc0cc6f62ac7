"""One stitch in training, against the update rule written out."""

import dataclasses

import pytest
import torch
from torch import nn

from stitching_core.spec import Protocol
from stitching_core.stitch.layers import build_stitch
from stitching_core.train.stitching import StitchRun

PROTOCOL = Protocol("p", "bn-conv1x1-bn", "default", "adapt", "cross_entropy", 0.1, 0.9, 0.01, 8, 2)


def make_run(seed: int = 0, **changes: object) -> StitchRun:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        tail = nn.Sequential(nn.ReLU(inplace=True), nn.BatchNorm2d(5), nn.Dropout(0.5), nn.Flatten(), nn.Linear(20, 4))
    tail.requires_grad_(False)
    stitch = build_stitch("bn-conv1x1-bn", "default", (3, 2, 2), (5, 2, 2), 2)
    protocol = dataclasses.replace(PROTOCOL, **changes)  # type: ignore[arg-type]
    run = StitchRun("key", "tap", stitch, tail, protocol, 4, seed=seed)
    run.train_mode(True)
    return run


def batch(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(number)
    return torch.randn(8, 3, 2, 2, generator=generator), torch.randint(4, (8,), generator=generator)


@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_a_step_is_momentum_sgd_with_weight_decay_on_every_stitch_parameter(l1: float) -> None:
    """v <- 0.9 v + g + l1 sign(p) + 0.01 p; p <- p - 0.1 v: also for batch norm and biases."""
    run, reference = make_run(l1=l1, bn_mode="frozen"), make_run(bn_mode="frozen")
    parameters = list(reference.stitch.parameters())
    velocity = [torch.zeros_like(p) for p in parameters]
    losses = []
    for number in range(3):
        x, y = batch(number)
        loss = nn.functional.cross_entropy(reference.tail(reference.stitch(x)), y)
        losses.append(float(loss.detach()) + l1 * sum(float(p.detach().abs().sum()) for p in parameters))
        with torch.no_grad():
            for p, v, g in zip(parameters, velocity, torch.autograd.grad(loss, parameters), strict=True):
                v.mul_(0.9).add_(g + l1 * p.sign() + 0.01 * p)
                p.sub_(0.1 * v)
        run.step(x, y, 0)
    for (name, ours), theirs in zip(run.stitch.named_parameters(), parameters, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6, msg=name)
    run.end_epoch()
    assert run.curve == [pytest.approx(sum(losses) / 3, rel=1e-5)]


def test_only_the_stitch_has_gradients() -> None:
    run = make_run()
    x, y = batch(0)
    loss = run.objective(run.tail(run.stitch(x)), y)
    leaves, nodes = set(), [loss.grad_fn]
    while nodes:
        node = nodes.pop()
        if hasattr(node, "variable"):
            leaves.add(id(node.variable))
        nodes += [parent for parent, _ in node.next_functions if parent is not None]
    assert leaves == {id(p) for p in run.stitch.parameters()}  # nothing is computed for a frozen weight
    run.step(x, y, 0)
    assert all(p.grad is None for p in run.tail.parameters())
    assert not x.requires_grad


@pytest.mark.parametrize(("bn_mode", "moves"), [("adapt", True), ("frozen", False)])
def test_the_tails_statistics_follow_the_mode(bn_mode: str, moves: bool) -> None:
    run = make_run(bn_mode=bn_mode)
    assert run.stitch.training
    assert [part.training for part in run.tail] == [moves] * 5
    run.step(*batch(0), 0)
    assert torch.equal(run.tail[1].running_mean, torch.zeros(5)) != moves
    assert not torch.equal(run.stitch.norm_in.running_mean, torch.zeros(3))  # the stitch itself always learns
    run.train_mode(False)
    assert not run.stitch.training
    assert not run.tail.training


def test_labels_are_shifted_around() -> None:
    labels = torch.tensor([0, 1, 2, 3])
    assert make_run(label_offset=3).targets(labels).tolist() == [3, 0, 1, 2]
    assert make_run().targets(labels).tolist() == [0, 1, 2, 3]


def test_what_the_tail_draws_depends_on_the_runs_seed_alone() -> None:
    weights = []
    for seed, noise in ((1, 0), (1, 5), (2, 0)):
        run = make_run(seed)
        with torch.random.fork_rng(devices=[]):
            for number in range(2):
                torch.rand(noise)
                run.step(*batch(number), 0)
        weights.append(run.stitch.map.weight.detach().clone())
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_a_tail_that_draws_in_its_forward_pass_is_seeded_as_dropout_is() -> None:
    class Draws(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.dropout(x, 0.5, self.training)

    weights = []
    for noise in (0, 5):
        run = make_run()
        run.tail[2] = Draws()
        run.train_mode(True)
        with torch.random.fork_rng(devices=[]):
            torch.rand(noise)
            run.step(*batch(0), 0)
        weights.append(run.stitch.map.weight.detach().clone())
    assert torch.equal(*weights)


def test_a_loss_that_is_not_finite_is_a_divergence_with_a_reason() -> None:
    run = make_run()
    run.step(torch.full((8, 3, 2, 2), torch.nan), batch(0)[1], 0)
    run.end_epoch()
    assert (run.status, run.reason) == ("diverged", "training loss was nan in epoch 1 of 2")


@pytest.mark.parametrize("where", ["weight", "stitch statistics", "tail statistics"])
def test_a_stitch_that_is_not_finite_is_one_too(where: str) -> None:
    run = make_run()
    run.step(*batch(0), 0)
    with torch.no_grad():
        {
            "weight": run.stitch.map.weight,
            "stitch statistics": run.stitch.norm_out.running_var,
            "tail statistics": run.tail[1].running_var,
        }[where].flatten()[0] = torch.inf
    run.end_epoch()
    assert run.status == "diverged"
    assert run.reason == "weights or batch-norm statistics were no longer finite after epoch 1 of 2"


def test_no_batch_is_a_failure_and_no_result() -> None:
    run = make_run()
    run.end_epoch()
    assert (run.status, run.curve) == ("failed", [])
    assert run.reason == "ValueError: the fit data are fewer than one batch of 8"


def test_a_failure_says_what_was_raised_in_one_line() -> None:
    for error, reason in (
        (IndexError("Target 9 is\nout"), "IndexError: Target 9 is"),
        (KeyError(), "KeyError: no message"),
    ):
        run = make_run()
        run.fail(error)
        assert (run.status, run.reason) == ("failed", reason)


def test_movement_by_hand() -> None:
    run = make_run()
    with torch.no_grad():
        flat = run.stitch.map.weight.flatten(1)
        flat[0, 0] += 4.0
        flat[1, 1] -= 3.0
        flat[2, 2] += 0.3  # less than a tenth of the largest move
        flat[3, 0] += 0.5
        run.stitch.map.bias[:2] += torch.tensor([3.0, 4.0])
    found = run.movement()
    assert found["weight_delta"] == pytest.approx((16 + 9 + 0.09 + 0.25) ** 0.5, rel=1e-5)
    assert found["bias_delta"] == pytest.approx(5, rel=1e-5)
    assert found["weight_moved"] == 3
    assert make_run().movement() == {"weight_delta": 0, "bias_delta": 0, "weight_moved": 0}
