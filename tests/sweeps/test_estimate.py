"""Estimates: what can be counted by hand, and in which direction they must move. No time is promised."""

import pytest
from torch import nn

from stitching_core.models.architectures import ARCHITECTURES, Architecture
from stitching_core.models.divide import cuts_of
from sweeps.estimate import ITEMS, base_seconds, core_seconds, describe, forward_cost, items_of
from sweeps.plan import make_blocks, make_plan
from tests.sweeps.fakes import configured


def seconds(*arguments: str) -> float:
    config = configured(*arguments)
    return core_seconds(config, make_blocks(make_plan(config), 64, 1), 1437)


def test_flops_of_a_network_are_its_parts() -> None:
    whole, _ = forward_cost("resnet18_eighth", 10, None, "whole")
    for cut in ("maxpool", "layer2", "layer4"):
        front, tail = (forward_cost("resnet18_eighth", 10, cut, part)[0] for part in ("front", "tail"))
        assert front + tail == whole
    # the last linear layer: 64 features to 10 classes, a multiplication and an addition each
    assert forward_cost("resnet18_eighth", 10, "avgpool", "tail")[0] == 2 * 64 * 10


def test_base_models_are_counted() -> None:
    config = configured()
    names = set(config.zoo.models)
    assert base_seconds(config, names, 2, 1437)[0] == 4 * 2  # random_init and noise are not trained
    assert base_seconds(config, {"noise", "random_init"}, 2, 1437) == (0, 0.0)
    once, twice = (base_seconds(config, names, runs, 1437)[1] for runs in (1, 2))
    assert twice == pytest.approx(2 * once)


def test_twice_the_epochs_are_twice_the_work() -> None:
    assert seconds("protocol.epochs=24") == pytest.approx(2 * seconds("protocol.epochs=12"))
    short, long = (
        base_seconds(configured(f"zoo.training.epochs={epochs}"), {"digit"}, 1, 1437)[1] for epochs in (5, 10)
    )
    assert long == pytest.approx(2 * short)


def test_runs_senders_and_searches_add_up() -> None:
    one = seconds("grid.runs=1")
    assert seconds("grid.runs=2") == pytest.approx(2 * one)
    parts = [seconds("grid.runs=1", f"grid.senders=[{name}]") for name in configured().zoo.models]
    assert sum(parts) == pytest.approx(one)
    # 12 candidates on four fifths of the data, and the winner on all of it
    assert seconds("grid.runs=1", "search=per_cell") == pytest.approx(one * (1 + 12 * 0.8))


def test_a_wider_network_is_not_cheaper() -> None:
    costs = [seconds(f"zoo.arch={arch}") for arch in ("resnet18_eighth", "resnet18_quarter", "resnet18")]
    assert costs == sorted(costs)
    assert costs[2] > costs[0]


def test_the_description() -> None:
    config = configured("cluster.cpus=3", "cluster.gpus=0")
    lines = describe(config, make_plan(config)).splitlines()
    assert lines[0].split(maxsplit=1)[1] == "digits: 120 cells = 6 senders, 2 receivers, 2 runs, same_cut"
    assert lines[1].split(maxsplit=1)[1] == "12, 3 at a time here"
    assert lines[2].split(maxsplit=1)[1].startswith("8 base models to train if none is there yet")
    assert [line.split()[0] for line in lines] == ["sweep", "blocks", "zoo", "stitches", "estimate"]


def test_the_size_of_the_data() -> None:
    assert ITEMS == {"digits": 1437, "mnist": 60_000, "fashion_mnist": 60_000, "imagenet": 0}
    assert items_of(configured("data.train_items=100")) == 100
    assert items_of(configured("experiment=2e")) == 60_000


def test_a_noise_senders_points_are_counted() -> None:
    only = ["grid.runs=1", "grid.senders=[noise]"]
    assert seconds(*only, "data.noise_train_items=14370") == pytest.approx(10 * seconds(*only), rel=0.02)
    digit = ["grid.runs=1", "grid.senders=[digit]"]
    assert seconds(*digit, "data.noise_train_items=14370") == seconds(*digit)
    config = configured("experiment=1m", "cluster.cpus=2", "cluster.gpus=0")
    # 1.2 million points, 3 epochs; forward and back; two to six whole ResNet-50s of 4.09e9 multiply-adds
    cells = make_blocks(make_plan(config), 64, 1)
    whole = 2 * 4.09e9
    assert core_seconds(config, cells, 0) * 30e9 < 3 * 1_200_000 * 2 * 6 * whole
    assert core_seconds(config, cells, 0) * 30e9 > 3 * 1_200_000 * 2 * 2 * whole


def test_nothing_is_estimated_for_a_source_of_unknown_size() -> None:
    config = configured("data.source=birds", "cluster.cpus=2")
    lines = describe(config, make_plan(config)).splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("estimate  none: the size of 'birds'")


class LooksAtItsData(nn.Module):
    """Can neither be traced nor run without data."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.last = nn.Linear(4, classes)

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = self.first(x)
        if y.isnan().any():
            y = y * 0
        return self.last(y.mean((2, 3)))


def test_a_network_that_looks_at_its_data_has_a_cost_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ARCHITECTURES, "looks", Architecture(LooksAtItsData, size=8))
    cuts_of.cache_clear()
    # 6x6 positions x 4 channels x (3x3x3) weights, and the linear layer, two FLOPs each
    assert forward_cost("looks", 10, None, "whole")[0] == 2 * (36 * 4 * 27 + 4 * 10)
    cuts_of.cache_clear()
