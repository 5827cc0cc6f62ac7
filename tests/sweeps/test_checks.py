"""Values of the right type that can't be meant, by key; what is allowed passes."""

import pytest
import yaml
from omegaconf import OmegaConf

from stitching_core.errors import InputError
from sweeps.checks import check, within
from tests.sweeps.fakes import configured

PER_CELL = ["search=per_cell"]


def check_with(arguments: list[str]) -> None:
    """Checks the default configuration (or that of a group's option) with these values in it."""
    chosen = [argument for argument in arguments if argument in PER_CELL]
    config = OmegaConf.structured(configured(*chosen))
    for argument in arguments[len(chosen) :]:
        key, _, value = argument.partition("=")
        OmegaConf.update(config, key, yaml.safe_load(value))
    check(OmegaConf.to_object(config))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        ["name=a.b_c-9"],
        [f"name={'x' * 100}"],
        ["seed=2147483648"],
        ["protocol.weight_decay=0"],
        ["protocol.momentum=0"],
        ["data.background_noise=0"],
        ["cluster.gpus_per_block=2"],
        ["cluster.cpus=4", "cluster.cpus_per_block=4"],
        ["cluster.max_failures=0"],
        [*PER_CELL, "search.startup_trials=0"],
        [*PER_CELL, "search.space.epochs=[3,3]"],
        [*PER_CELL, "search.n_trials=1"],
        ["search.n_trials=-3"],  # nobody reads it
    ],
)
def test_allowed(arguments: list[str]) -> None:
    check_with(arguments)


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ([f"name={'x' * 101}"], "name="),
        (["name=.hidden"], "name="),
        (["name='a b'"], "name="),
        (["seed=2147483649"], "seed=2.14748e"),
        (["data.seed=-1"], "data.seed=-1"),
        (["data.background_noise=1.1"], "data.background_noise=1.1"),
        (["data.train_items=0"], "data.train_items=0"),
        (["data.noise_test_items=0"], "data.noise_test_items=0"),
        (["zoo.classes=1"], "zoo.classes=1"),
        (["zoo.training.batch_size=1"], "zoo.training.batch_size=1"),
        (["zoo.training.schedule=cosine"], "zoo.training.schedule=cosine"),
        (["zoo.models.digit.arch=lenet"], "zoo.models.digit.arch=lenet"),
        (["zoo.models.digit.kind=weights"], "zoo.models.digit.weights"),
        (["zoo.models.noise.sigma=-1"], "zoo.models.noise.sigma=-1"),
        (["zoo.models.noise.sigma=null"], "zoo.models.noise.sigma"),
        (["zoo.models={a b: {variant: mix}}"], "zoo.models key='a b'"),
        (["protocol.momentum=1.1"], "protocol.momentum=1.1"),
        (["protocol.batch_size=1"], "protocol.batch_size=1"),
        (["protocol.l1=-1"], "protocol.l1=-1"),
        (["protocol.label_offset=-1"], "protocol.label_offset=-1"),
        (["grid.mode=diagonal"], "grid.mode=diagonal"),
        (["cluster.mode=slurm"], "cluster.mode=slurm"),
        (["cluster.device=tpu"], "cluster.device=tpu"),
        (["cluster.block_cells=0"], "cluster.block_cells=0"),
        (["cluster.threads=0"], "cluster.threads=0"),
        (["cluster.object_store_mib=75"], "cluster.object_store_mib=75"),
        (["cluster.cpus=1", "cluster.cpus_per_block=2"], "cluster.cpus=1"),
        (["cluster.gpus=-1"], "cluster.gpus=-1"),
        (["cluster.gpus_per_block=1.5"], "cluster.gpus_per_block=1.5"),
        (["cluster.max_failures=-1"], "cluster.max_failures=-1"),
        ([*PER_CELL, "search.mode=random"], "search.mode=random"),
        ([*PER_CELL, "search.batch=0"], "search.batch=0"),
        ([*PER_CELL, "search.startup_trials=-1"], "search.startup_trials=-1"),
        ([*PER_CELL, "search.validation_fraction=0"], "search.validation_fraction=0"),
        ([*PER_CELL, "search.validation_fraction=0.95"], "search.validation_fraction=0.95"),
        ([*PER_CELL, "search.space.learning_rate=[0,1]"], "search.space.learning_rate=0"),
        ([*PER_CELL, "search.space.weight_decay=[1e-3]"], "search.space.weight_decay=[0.001]"),
        ([*PER_CELL, "search.space.momentum=[0,1.5]"], "search.space.momentum=1.5"),
        ([*PER_CELL, "search.space.learning_rate=[nan,1]"], "search.space.learning_rate=[nan, 1.0]"),
        ([*PER_CELL, "search.space.init=[]"], "search.space.init=[]"),
    ],
)
def test_refused(arguments: list[str], key: str) -> None:
    with pytest.raises(InputError) as caught:
        check_with(arguments)
    assert str(caught.value).startswith(key)


@pytest.mark.parametrize(
    ("value", "fits"), [(1.0, True), (2.0, True), (0.999, False), (2.001, False), (float("nan"), False)]
)
def test_bounds_are_inside(value: float, fits: bool) -> None:
    if fits:
        within("key", value, 1, 2)
    else:
        with pytest.raises(InputError, match="must be at least 1 and at most 2"):
            within("key", value, 1, 2)
    with pytest.raises(InputError, match="above 1"):
        within("key", 1.0, 1, 2, open_low=True)


def test_a_models_own_training_is_checked_too() -> None:
    with pytest.raises(InputError, match=r"zoo\.models\.digit\.training\.momentum=1\.5 is out of range"):
        check(configured("+zoo.models.digit.training.momentum=1.5"))
