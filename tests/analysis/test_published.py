from __future__ import annotations

import dataclasses

import polars as pl
import pytest

from analysis.published import accuracies, ranks, setting
from stitching_core.errors import InputError
from sweeps.config import load_config

ACCURACIES, RANKS = accuracies("smith2025"), ranks("smith2025")


@pytest.mark.parametrize(
    ("experiment", "sender", "cut", "receiver", "expected"),
    [
        ("2e", "colour_only", "layer3", "digit", (0.99994, 0.00009, 5)),
        ("2e", "colour_only", "layer4", "digit", (0.99962, 0.00047, 5)),
        ("2e", "digit", "layer3", "digit", (0.98634, 0.00079, 5)),
        ("2e", "digit", "layer4", "digit", (0.98538, 0.00123, 5)),
        ("2e", None, None, "digit", (0.9799, 0.00389, 5)),
        ("2m", "random_init", "maxpool", "digit", (0.9896, 0.00014, 2)),
        ("2m", "random_init", "avgpool", "digit", (0.99225, 0.00078, 2)),
        ("1g", "noise", "features.1", "colour", (0.95, 0.1, 4)),
        ("2j", "greyscale", "features.35", "digit", (0.91613, 0.14609, 4)),
        ("1m", "noise", "layer1", "imagenet", (0.5254, None, 1)),
    ],
)
def test_accuracies_stand_under_our_names(
    experiment: str, sender: str | None, cut: str | None, receiver: str, expected: tuple[float | None, ...]
) -> None:
    same = [pl.col(k).eq_missing(pl.lit(v)) for k, v in (("sender", sender), ("cut", cut), ("receiver", receiver))]
    found = ACCURACIES.filter(pl.col("experiment") == experiment, *same)
    assert found.select("mean", "sd", "n").rows() == [expected]


def test_every_published_cell_is_there_once() -> None:
    assert ACCURACIES.height == 209
    counts = ACCURACIES.group_by("experiment").agg(cells=pl.col("sender").count(), models=pl.col("sender").null_count())
    assert dict(counts.select("experiment", pl.struct("cells", "models")).rows()) == {
        "1f": {"cells": 36, "models": 6},
        "1g": {"cells": 30, "models": 6},
        "1m": {"cells": 3, "models": 0},
        "2e": {"cells": 36, "models": 6},
        "2e_b": {"cells": 36, "models": 6},
        "2j": {"cells": 30, "models": 6},
        "2m": {"cells": 6, "models": 2},
    }
    assert not ACCURACIES.select("experiment", "sender", "cut", "receiver", "eval_data").is_duplicated().any()


def test_modules_stand_under_our_names() -> None:
    found = RANKS.filter(experiment="2e", sender="digit", cut="layer3")
    names = [" ".join(names) for names in found.select("part", "module").rows()]
    assert len(names) == 22
    assert names[:3] == ["sender conv1", "sender layer1.0.conv1", "sender layer1.0.conv2"]
    assert names[12] == "sender layer3.0.downsample.0"
    assert names[14:17] == ["sender layer3.1.conv2", "stitch map", "receiver layer4.0.conv1"]
    assert names[-1] == "receiver fc"
    assert found.filter(part="stitch").select("width", "mean", "sd", "n").rows() == [(1024, 56.4, 15.95, 5)]
    noise = RANKS.filter(experiment="1f", sender="noise", receiver="colour", cut="maxpool")
    assert [" ".join(names) for names in noise.select("part", "module").rows()][:2] == [
        "stitch map",
        "receiver layer1.0.conv1",
    ]
    uncut = RANKS.filter(pl.col("sender").is_null(), experiment="1f", receiver="colour")
    assert uncut.select("part", "module", "width", "mean").row(0) == (None, "conv1", 12544, 28.4)
    assert uncut.height == 21


def test_an_unknown_reference() -> None:
    with pytest.raises(InputError, match="'smith2024' is unknown; allowed: smith2025"):
        accuracies("smith2024")


@pytest.mark.parametrize("experiment", ["1f", "1g", "2e", "2e_b", "2j", "2m"])
def test_the_experiments_of_the_package_are_set_up_as_published(experiment: str) -> None:
    wanted = setting("smith2025", experiment)
    assert wanted is not None
    config = dataclasses.asdict(load_config([f"experiment={experiment}"]))
    for key, value in wanted["config"].items():
        found = config
        for part in key.split("."):
            found = found[part]
        assert found == value, key
    protocol = {**config["protocol"], "fit_data": config["grid"]["fit_data"]}
    for column, value in wanted["cells"].items():
        if column in protocol and not (column == "fit_data" and value == "noise"):
            assert protocol[column] == value, column
    assert wanted["cells"]["receiver_arch"] == config["zoo"]["arch"]
    assert wanted["cells"]["data_source"] == config["data"]["source"]


def test_the_setting_of_a_single_run_is_not_recorded() -> None:
    assert setting("smith2025", "1m") is None
