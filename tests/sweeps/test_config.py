"""Every configuration file composes and is checked; whatever can't be composed is one line that says where it is."""

import dataclasses
import re
import shutil
from pathlib import Path

import pytest
import yaml

from stitching_core.errors import InputError
from sweeps import config as module
from sweeps.checks import check
from sweeps.config import CONFIGS, GROUPS, load_config, options, to_yaml

FILES = sorted(CONFIGS.rglob("*.yaml"))
CHOICES = [(group, option) for group in GROUPS for option in options(group)]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def copied(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the configuration files that a test may spoil."""
    copy = tmp_path_factory.mktemp("configs") / "tune_configs"
    shutil.copytree(CONFIGS, copy)
    monkeypatch.setattr(module, "CONFIGS", copy)
    return copy


def test_the_groups() -> None:
    assert GROUPS == ("cluster", "data", "experiment", "grid", "protocol", "scale", "search", "tracking", "zoo")


@pytest.mark.parametrize(("group", "option"), CHOICES)
def test_every_option_of_every_group_composes(group: str, option: str, tmp_path: Path) -> None:
    of_a_named_experiment = ["experiment=2e"] if (group, option) == ("scale", "small") else []
    check(load_config([f"{group}={option}", *of_a_named_experiment]))
    assert list(tmp_path.iterdir()) == []  # neither Hydra's output folder nor a log


@pytest.mark.parametrize("experiment", options("experiment"))
@pytest.mark.parametrize("also", ["grid=all_cuts", "search=per_cell", "search=shared", "tracking=none"])
def test_every_experiment_composes_with_the_other_groups(experiment: str, also: str) -> None:
    config = load_config([f"experiment={experiment}", also])
    check(config)
    assert config.name == experiment
    assert config.grid.senders == load_config([f"experiment={experiment}"]).grid.senders


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CONFIGS)))
def test_every_file_begins_with_what_it_is_for(file: Path) -> None:
    first, *rest = [line for line in file.read_text().splitlines() if not line.startswith("# @package")]
    assert re.match(r"# \w.{20,}", first)
    if file.parent.name == "experiment":
        header = " ".join([first, *rest])
        for part in ("Question:", "Command:", "Cost:", "Expected:"):
            assert part in header


def test_an_experiment_by_its_bare_id() -> None:
    assert load_config(["experiment=2e"]) == load_config(["experiment=smith2025_2e"])
    two_e = load_config(["experiment=2e"])
    assert (two_e.experiment_id, two_e.name, two_e.data.source) == ("2e", "smith2025_2e", "mnist")
    # Smith et al. 2025, appendix: SGD at 1e-4, momentum 0.9, weight decay 0.01, 10 epochs
    assert dataclasses.astuple(two_e.protocol)[5:10] == (1e-4, 0.9, 0.01, 128, 10)


def leaves(config: object, path: str = "") -> dict[str, object]:
    if not isinstance(config, dict) or not config:
        return {path: config}
    return {key: value for name, inner in config.items() for key, value in leaves(inner, f"{path}.{name}").items()}


def test_the_small_scale_differs_from_the_paper_in_what_its_file_says() -> None:
    full, small = (leaves(dataclasses.asdict(load_config(["experiment=1f", f"scale={s}"]))) for s in ("full", "small"))
    changed = {key[1:]: value for key, value in small.items() if value != full[key]}
    assert changed.pop("scale") == "small"
    assert changed.pop("name") == "smith2025_1f_small"
    assert set(changed) == {
        "data.train_items", "data.noise_train_items", "zoo.arch", "zoo.training.learning_rate",
        "zoo.training.batch_size", "zoo.training.epochs", "protocol.learning_rate", "protocol.weight_decay",
        "zoo.models.random_init.arch", "grid.eval_data", "grid.runs",
    }  # fmt: skip
    # learning rate x weight decay x steps is the paper's; there are a tenth of the steps
    assert changed["protocol.learning_rate"] * changed["protocol.weight_decay"] / 10 == pytest.approx(
        1e-4 * 0.01, rel=0.02
    )
    assert changed["data.train_items"] == changed["data.noise_train_items"] == 60_000 / 10


def test_the_command_line_wins_over_a_scale_and_a_scale_over_an_experiment() -> None:
    assert load_config(["experiment=2e", "scale=small"]).grid.eval_data == ["fit", "digit"]
    assert load_config(["experiment=2e", "grid.runs=1", "scale=small", "name=mine"]).grid.runs == 1


def test_the_command_line_wins_over_an_experiment_and_an_experiment_over_a_group() -> None:
    assert load_config([]).grid.runs == 2
    assert load_config(["experiment=2e"]).grid.runs == 1
    assert load_config(["grid.runs=3", "experiment=2e"]).grid.runs == 3


def test_the_yaml_that_is_kept_says_it_all() -> None:
    config = load_config(["name=kept", "grid.cuts=[layer1]", "search=per_cell"])
    assert yaml.safe_load(to_yaml(config)) == dataclasses.asdict(config)


def test_values_that_the_files_do_not_mention() -> None:
    assert load_config(["search.space.epochs=[1,3]"]).search.space.epochs == [1, 3]
    assert load_config(["+zoo.models.noise.training.epochs=3"]).zoo.models["noise"].training is not None
    assert load_config(["grid.cuts={vgg19: [features.8]}"]).grid.cuts == {"vgg19": ["features.8"]}
    assert list(load_config(["~zoo.models.noise"]).zoo.models) == [
        "digit",
        "correlated",
        "colour_only",
        "greyscale",
        "random_init",
    ]


@pytest.mark.parametrize(
    ("argument", "key", "siblings"),
    [
        ("protocol.lr=1", "'protocol.lr'", "protocol allows name, stitch, init"),
        ("+protocol.lr=1", "'protocol.lr'", "protocol allows name, stitch, init"),
        ("colour=red", "'colour'", "the top level allows name, seed"),
        ("grid.cuts_of.a=1", "'grid.cuts_of'", "grid allows mode, senders, receivers, pairs, vary, cuts"),
        ("search.space.lr=[1,2]", "'search.space.lr'", "search.space allows learning_rate, momentum"),
        ("+zoo.models.digit.size=1", "'zoo.models.digit.size'", "zoo.models.digit allows kind, arch, variant"),
        ("+zoo.models.new={variant: mix, size: 1}", "'zoo.models.new.size'", "zoo.models.new allows kind, arch"),
        (
            "+zoo.models.digit.training.lr=1",
            "'zoo.models.digit.training.lr'",
            "zoo.models.digit.training allows learning_rate",
        ),
    ],
)
def test_an_unknown_key_on_the_command_line(argument: str, key: str, siblings: str) -> None:
    with pytest.raises(InputError) as caught:
        load_config([argument])
    for words in (f"unknown key {key}", "the command line", siblings):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("file", "old", "new", "key", "arguments"),
    [
        ("protocol/smith2025_small.yaml", "epochs: 12", "epoch: 12", "protocol.epoch", []),
        # a file that the chosen one starts from
        ("protocol/smith2025.yaml", "momentum: 0.9", "momentun: 0.9", "protocol.momentun", []),
        ("grid/same_cut.yaml", "runs: 2", "run: 2", "grid.run", ["grid=all_cuts"]),
        ("full_grid.yaml", "seed: 0", "seeds: 0", "seeds", []),
        ("experiment/smith2025_2e.yaml", "  runs: 1", "  runes: 1", "grid.runes", ["experiment=2e"]),
        ("zoo/digits_slim.yaml", "{variant: digit}", "{variety: digit}", "zoo.models.digit.variety", []),
    ],
)
def test_an_unknown_key_in_a_file(copied: Path, file: str, old: str, new: str, key: str, arguments: list[str]) -> None:
    text = (copied / file).read_text()
    assert old in text
    (copied / file).write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_config(arguments)
    assert f"unknown key {key!r} (from tune_configs/{file})" in str(caught.value)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("protocol.epochs=many", "protocol.epochs: Value 'many'"),
        ("protocol.epochs=2.5", "protocol.epochs: Value '2.5'"),
        ("protocol.learning_rate=fast", "protocol.learning_rate: Value 'fast'"),
        ("plan_only=maybe", "plan_only"),
        ("name=null", "name: "),
        ("grid.senders=digit", "grid.senders: "),
        ("search.space.epochs=[1.5,2]", "search.space.epochs[0]: Value '1.5'"),
        ("protocol.epochs.first=1", "protocol.epochs: "),
        ("zoo.models.digit=null", "zoo.models.digit: "),
    ],
)
def test_a_wrong_type(argument: str, words: str) -> None:
    with pytest.raises(InputError, match="command line") as caught:
        load_config([argument])
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_type_in_a_file(copied: Path) -> None:
    file = copied / "protocol/smith2025_small.yaml"
    file.write_text(file.read_text().replace("epochs: 12", "epochs: twelve"))
    with pytest.raises(InputError, match=r"protocol\.epochs: .*'twelve'.*\(tune_configs/protocol/smith2025_small\."):
        load_config([])


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("hydra.run.dir=elsewhere", "Hydra's own settings"),
        ("+hydra.verbose=true", "Hydra's own settings"),
        ("hydra/job_logging=default", "Hydra's own settings"),
        ("--multirun", "can't read the argument '--multirun'"),
        ("grid", "can't read the argument 'grid'"),
        ("=1", "can't read the argument '=1'"),
        ("protocol.epochs=1,2", "several values"),
        ("grid=same_cut,all_cuts", "several values"),
        (
            "grid=null",
            "grid=null is unknown; grid may be all_cuts, modalities, modalities_imagenet, modalities_imagenet_text, "
            "same_cut",
        ),
        ("~tracking", "~tracking is unknown; tracking may be mlflow, none"),
        ("protocol=[smith2025]", r"protocol=[smith2025] is unknown"),
        ("zoo.models.digt.variant=mix", "write +zoo.models.digt.variant=mix to add it"),
        ("name=${nowhere}", "nowhere"),
    ],
)
def test_an_argument_that_cannot_be_meant(argument: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_config([argument])
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
