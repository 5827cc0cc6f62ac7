"""Lock-step training: the notebook's stitched network, once per cell, whatever else is in the block."""

import copy
import dataclasses
import hashlib
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn

from stitching_core.data.noise import NoisePoints
from stitching_core.data.sources import load_source
from stitching_core.data.variants import VariantData, build_variant
from stitching_core.models.architectures import architecture
from stitching_core.models.divide import DividedModel
from stitching_core.spec import Protocol, TrainingRecipe
from stitching_core.stitch.layers import build_stitch
from stitching_core.train.base import evaluate, train_base
from stitching_core.train.block import Results, train_block
from stitching_core.train.fronts import ModelFront, NoiseFront
from stitching_core.train.images import ImageTensors, batch_order
from stitching_core.train.stitching import StitchRun

CPU = torch.device("cpu")
PROTOCOL = Protocol("p", "bn-conv1x1-bn", "default", "adapt", "cross_entropy", 0.05, 0.9, 0.01, 32, 2)
ORDER = ("digit", 3)


class Dropping(nn.Module):
    """A small network with batch norm, in-place operations and dropout on both sides of every cut used here."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 4, 4, stride=4), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(0.2)
        )
        self.mid = nn.Sequential(
            nn.Conv2d(4, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.Dropout2d(0.2)
        )
        self.deep = nn.Sequential(
            nn.Conv2d(6, 6, 3, stride=2), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.Dropout(0.2)
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(54, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.deep(self.mid(self.stem(x))))


class Hooked(Dropping):
    """The same, but torch.fx can't follow it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x * 1.0 if self.training else x)


CUTS = {
    "dropping": ("stem", "mid", "deep"),
    "hooked": ("stem", "mid", "deep"),
    "resnet": ("maxpool", "layer1", "layer3"),
}


@cache
def model(kind: str, seed: int) -> DividedModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "resnet":
            return DividedModel(architecture("resnet18_eighth").build(10), 28)
        return DividedModel({"dropping": Dropping, "hooked": Hooked}[kind](), 28)


@cache
def splits() -> dict[str, ImageTensors]:
    source = load_source("digits", train_items=100)
    kept = {"fit": build_variant(source, "correlated", "train", 0), "digit": build_variant(source, "digit", "test", 0)}
    return {name: ImageTensors(cut_off(data, 100), 28, CPU) for name, data in kept.items()}


def cut_off(data: VariantData, items: int) -> VariantData:
    return dataclasses.replace(data, images=data.images[:items], labels=data.labels[:items])


def make_run(kind: str, cut: str, key: str, receiver_cut: str | None = None, **changes: Any) -> StitchRun:
    sender, receiver = model(kind, 1), model(kind, 2)
    into = receiver_cut or cut
    seed = int(hashlib.sha256(key.encode()).hexdigest()[:8], 16)
    stitch = build_stitch("bn-conv1x1-bn", "default", sender.cut(cut).shape, receiver.cut(into).shape, seed)
    return StitchRun(key, cut, stitch, receiver.tail(into), dataclasses.replace(PROTOCOL, **changes), 10, seed=seed)


def train(kind: str, runs: list[StitchRun], cuts: tuple[str, ...] | None = None) -> Results:
    front = ModelFront(model(kind, 1), list(cuts or dict.fromkeys(run.tap for run in runs)), splits())
    return train_block(front, runs, ORDER, lambda run: ("digit", "fit"))


def outcome(run: StitchRun, results: Results) -> dict[str, Any]:
    """Every bit that a cell's training leaves behind."""
    bits = {f"stitch.{name}": value.numpy().tobytes() for name, value in run.stitch.state_dict().items()}
    bits |= {f"tail.{name}": value.contiguous().numpy().tobytes() for name, value in run.tail.named_buffers()}
    bits |= {f"loss.{split}": found.cross_entropy for split, found in results[run.key].items()}
    bits |= {f"predicted.{split}": found.predicted.tobytes() for split, found in results[run.key].items()}
    return bits | {"status": run.status, "curve": run.curve, **run.movement()}


@pytest.mark.parametrize("bn_mode", ["adapt", "frozen"])
@pytest.mark.parametrize("kind", ["dropping", "hooked", "resnet"])
def test_a_cell_is_the_same_alone_and_in_any_block(kind: str, bn_mode: str) -> None:
    first, second, third = CUTS[kind]

    def cell() -> StitchRun:
        return make_run(kind, second, "the cell", bn_mode=bn_mode)

    def others() -> list[StitchRun]:
        return [
            make_run(kind, third, "deeper and longer", bn_mode=bn_mode, epochs=3),
            make_run(kind, first, "shallower and shorter", bn_mode=bn_mode, epochs=1),
            make_run(kind, second, "the same cuts", bn_mode=bn_mode, l1=0.01, learning_rate=0.1),
            make_run(kind, first, "into another cut", third, bn_mode=bn_mode, label_offset=3),
            make_run(kind, second, "bad", bn_mode=bn_mode, learning_rate=1e30),
        ]

    alone = cell()
    expected = outcome(alone, train(kind, [alone]))
    assert expected["status"] == "ok"
    assert expected["weight_delta"] > 0.01
    blocks = [(lambda c: [c, *others()]), (lambda c: [*others(), c]), (lambda c: [*others()[:1:-1], c, *others()[:2]])]
    for number, arrange in enumerate(blocks):
        again = cell()
        runs = arrange(again)
        torch.rand(number)
        found = outcome(again, train(kind, runs))
        assert [name for name in expected if found[name] != expected[name]] == [], number
    tapped = cell()
    found = outcome(tapped, train(kind, [tapped], (third, second, first)))  # deeper taps that nobody reads
    assert [name for name in expected if found[name] != expected[name]] == []


@pytest.mark.parametrize("bn_mode", ["adapt", "frozen"])
def test_lock_step_is_the_notebooks_stitched_network(bn_mode: str) -> None:
    """One plain nn.Sequential for a single cell: forward, backward and SGD over all of it, notebook style."""
    cuts = CUTS["resnet"]
    runs = [make_run("resnet", cut, cut, bn_mode=bn_mode) for cut in cuts]
    starts = [copy.deepcopy(run.stitch) for run in runs]
    results = train("resnet", runs)
    children = ["conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4", "avgpool"]
    data, test = splits()["fit"], splits()["digit"]
    for run, cut, start in zip(runs, cuts, starts, strict=True):
        sender, receiver = (copy.deepcopy(model("resnet", seed).model) for seed in (1, 2))
        at = children.index(cut) + 1
        front = nn.Sequential(*[getattr(sender, name) for name in children[:at]])
        tail = nn.Sequential(*[getattr(receiver, name) for name in children[at:]], nn.Flatten(), receiver.fc)
        stitched = nn.Sequential(front, start, tail)
        optimizer = torch.optim.SGD(start.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)
        for epoch in range(2):
            stitched.train()
            if bn_mode == "frozen":
                front.eval()
                tail.eval()
            for indices in batch_order(len(data), 32, False, *ORDER, epoch):
                loss = nn.functional.cross_entropy(stitched(data.batch(indices)), data.labels[indices])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        stitched.eval()
        with torch.no_grad():
            logits = stitched(test.batch(torch.arange(len(test))))
        for name, value in start.state_dict().items():
            torch.testing.assert_close(run.stitch.state_dict()[name], value, rtol=1e-5, atol=1e-6, msg=f"{cut} {name}")
        ours = dict(run.tail.named_buffers())
        for name in ("layer4.1.bn2.running_mean", "layer4.1.bn2.running_var"):
            torch.testing.assert_close(ours[name], receiver.get_buffer(name), rtol=1e-5, atol=1e-6)
        assert (results[cut]["digit"].predicted == logits.argmax(1).numpy()).all()
        expected = float(nn.functional.cross_entropy(logits, test.labels))
        assert results[cut]["digit"].cross_entropy == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("bn_mode", "moves"), [("adapt", True), ("frozen", False)])
@pytest.mark.parametrize("kind", ["resnet", "hooked"])
def test_stored_models_stay_and_own_copies_move_in_adapt_only(kind: str, bn_mode: str, moves: bool) -> None:
    def state() -> list[bytes]:
        stored = [value for seed in (1, 2) for value in model(kind, seed).model.state_dict().values()]
        return [value.contiguous().numpy().tobytes() for value in stored]

    before = state()
    run = make_run(kind, CUTS[kind][1], "x", bn_mode=bn_mode, epochs=1)
    front = ModelFront(model(kind, 1), [run.tap], splits())
    assert front.module is not None
    statistics = [
        (part, {name: value.clone() for name, value in part.named_buffers() if "running" in name})
        for part in (front.module, run.tail)
    ]
    train_block(front, [run], ORDER, lambda run: ("digit",))
    assert state() == before
    for part, kept in statistics:
        now = dict(part.named_buffers())
        used = [name for name in kept if not torch.equal(now[name], kept[name])]
        assert bool(used) == moves


def test_the_fronts_statistics_are_those_of_the_batches_seen() -> None:
    """After one epoch of three full batches and four items: momentum 0.1 on mean and unbiased variance, by hand."""
    run = make_run("resnet", "maxpool", "x", epochs=1)
    front = ModelFront(model("resnet", 1), ["maxpool"], splits())
    train_block(front, [run], ORDER, lambda run: ())
    data, sender = splits()["fit"], model("resnet", 1).model
    mean, variance = torch.zeros(8), torch.ones(8)
    with torch.no_grad():
        for indices in batch_order(len(data), 32, False, *ORDER, 0):
            rows = sender.conv1(data.batch(indices)).permute(1, 0, 2, 3).flatten(1)
            mean, variance = 0.9 * mean + 0.1 * rows.mean(1), 0.9 * variance + 0.1 * rows.var(1)
    assert isinstance(front.module, nn.Module)
    torch.testing.assert_close(front.module.get_buffer("bn1.running_mean"), mean, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(front.module.get_buffer("bn1.running_var"), variance, rtol=1e-4, atol=1e-5)


def test_a_divergence_and_a_failure_are_their_runs_own() -> None:
    class Broken(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise IndexError("Target 9 is out of bounds.")

    class BrokenLater(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not self.training:
                raise AssertionError("evaluated")
            return x.mean((2, 3)) @ torch.ones(4, 10)

    alone = make_run("dropping", "stem", "good")
    expected = outcome(alone, train("dropping", [alone]))
    runs = [make_run("dropping", "stem", key) for key in ("broken", "broken later", "good")]
    runs[0].tail, runs[1].tail = Broken(), BrokenLater()
    runs.insert(0, make_run("dropping", "stem", "diverging", learning_rate=1e30))
    counts: list[int] = []
    front = ModelFront(model("dropping", 1), ["stem"], splits())
    results = train_block(front, runs, ORDER, lambda run: ("digit", "fit"), counts.append)
    assert set(results) == {"good"}
    assert outcome(runs[3], results) == expected
    assert [run.status for run in runs] == ["diverged", "failed", "failed", "ok"]
    assert runs[0].reason is not None
    assert "epoch 1 of 2" in runs[0].reason
    assert [run.reason for run in runs[1:]] == [
        "IndexError: Target 9 is out of bounds.",
        "AssertionError: evaluated",
        None,
    ]
    assert counts == [4, 2]


def test_logits_that_are_not_finite_are_no_result() -> None:
    class Explodes(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mean((2, 3)) @ torch.ones(4, 10) * (1 if self.training else torch.nan)

    run = make_run("dropping", "stem", "x", epochs=1)
    run.tail = Explodes()
    assert train("dropping", [run]) == {}
    assert (run.status, run.reason) == ("diverged", "cross entropy on fit was nan")


def test_runs_leave_after_their_own_epochs() -> None:
    runs = [make_run("dropping", "stem", str(epochs), epochs=epochs) for epochs in (3, 1, 2)]
    train("dropping", runs)
    assert [len(run.curve) for run in runs] == [3, 1, 2]


def test_what_was_drawn_before_is_left_alone() -> None:
    state = torch.get_rng_state()
    train("dropping", [make_run("dropping", "mid", "x", epochs=1)])
    assert torch.equal(torch.get_rng_state(), state)


def test_a_block_has_one_batch_size_one_mode_and_different_keys() -> None:
    front = ModelFront(model("dropping", 1), ["stem"], splits())
    for changes, words in (({"batch_size": 16}, "one batch size"), ({"bn_mode": "frozen"}, "one bn_mode")):
        runs = [make_run("dropping", "stem", "a"), make_run("dropping", "stem", "b", **changes)]
        with pytest.raises(ValueError, match=words):
            train_block(front, runs, ORDER, lambda run: ())
    with pytest.raises(ValueError, match="the same key"):
        train_block(front, [make_run("dropping", "stem", "a") for _ in range(2)], ORDER, lambda run: ())
    assert train_block(front, [], ORDER, lambda run: ()) == {}


def test_less_than_a_batch_is_a_failure() -> None:
    front = ModelFront(model("dropping", 1), ["stem"], splits())
    front.splits["fit"].drop_last = True
    try:
        run = make_run("dropping", "stem", "x", batch_size=101)
        assert train_block(front, [run], ORDER, lambda run: ("digit",)) == {}
    finally:
        front.splits["fit"].drop_last = False
    assert run.status == "failed"
    assert run.reason == "ValueError: the fit data are fewer than one batch of 101"


@cache
def more() -> ImageTensors:
    return ImageTensors(build_variant(load_source("digits", train_items=320), "correlated", "train", 0), 28, CPU)


@pytest.fixture(scope="module")
def learnt() -> DividedModel:
    """A network that learnt `correlated`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        network = architecture("resnet18_eighth").build(10)
    train_base(network, more(), TrainingRecipe(0.05, 0.9, 1e-4, 32, 8), 0)
    assert evaluate(network, more()).accuracy > 0.9
    return DividedModel(network, 28)


def stitch_into(receiver: DividedModel, cut: str) -> StitchRun:
    shape = receiver.cut(cut).shape
    stitch = build_stitch("bn-conv1x1-bn", "default", shape, shape, 0)
    return StitchRun("x", cut, stitch, receiver.tail(cut), dataclasses.replace(PROTOCOL, epochs=8), 10)


def test_a_self_stitch_learns_the_task_again(learnt: DividedModel) -> None:
    run = stitch_into(learnt, "layer1")
    front = ModelFront(learnt, ["layer1"], {"fit": more()})
    results = train_block(front, [run], ORDER, lambda run: ("fit",))
    assert run.curve[-1] < run.curve[0]
    assert results["x"]["fit"].accuracy > 0.8


def test_clustered_noise_is_stitched_into_a_network(learnt: DividedModel) -> None:
    """One point per class is enough for high accuracy on unseen noise; and the same bits come out twice."""
    shape = learnt.cut("layer1").shape
    outcomes = []
    for _ in range(2):
        train_points = NoisePoints(shape, 10, 0.1, 320, 0, "train", ("r", "layer1"))
        test_points = dataclasses.replace(train_points, items=100, split="test")
        front = NoiseFront({"fit": ({"layer1": train_points}, None), "noise": ({"layer1": test_points}, None)}, CPU)
        run = stitch_into(learnt, "layer1")
        results = train_block(front, [run], ("noise", 0), lambda run: ("noise",))
        assert results["x"]["noise"].accuracy > 0.8
        outcomes.append(outcome(run, results))
    assert outcomes[0] == outcomes[1]
