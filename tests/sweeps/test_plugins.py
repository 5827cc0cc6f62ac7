"""Plugins: what they register can be used, their text is in every id, and an error says where it is."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stitching_core.data.sources import SOURCES
from stitching_core.errors import InputError
from stitching_core.models.architectures import ARCHITECTURES, architecture
from stitching_core.models.divide import cuts_of
from sweeps.checks import check
from sweeps.plan import make_plan
from sweeps.plugins import Plugin, activate, data_hash, read_plugins
from sweeps.prepare import planned_cells
from tests.sweeps.fakes import configured, make_sweep

TEXT = """
from torch import nn
import numpy as np
from stitching_core.data.sources import SOURCES, source_from_arrays
from stitching_core.models.architectures import ARCHITECTURES, Architecture


class Small(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, stride=2)
        self.second = nn.Conv2d(4, 5, 3, stride=2)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, classes))

    def forward(self, x):
        return self.head(self.second(self.first(x).relu()))


def load(root, download):
    images = np.arange(6 * 28 * 28).astype(np.uint8).reshape(6, 28, 28)
    labels = np.array([0, 1, 2, 0, 1, 2])
    return source_from_arrays("mine", images, labels, images, labels)


ARCHITECTURES["small"] = Architecture(Small, size=16)
SOURCES["mine"] = load
"""
MINE = ["data.source=mine", "data.train_items=null", "zoo.arch=small", "grid.cuts=[first,second]"]


@pytest.fixture(autouse=True)
def _left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    kept = [(registry, dict(registry)) for registry in (ARCHITECTURES, SOURCES)]
    modules = set(sys.modules)
    cuts_of.cache_clear()
    yield
    cuts_of.cache_clear()
    for registry, before in kept:
        registry.clear()  # type: ignore[attr-defined]
        registry.update(before)  # type: ignore[attr-defined]
    for name in set(sys.modules) - modules:
        if name.startswith("stitching_plugin_"):
            del sys.modules[name]


def activated(text: str) -> tuple[Plugin, ...]:
    plugins = (Plugin("mine.py", text),)
    activate(plugins)
    return plugins


def test_a_sweep_over_ones_own_architecture_and_data() -> None:
    plugins = activated(TEXT)
    sweep = make_sweep(*MINE, plugins=plugins)
    check(sweep.config)
    assert sweep.setting.classes == 3
    assert sweep.plan.filter(sender="digit")["receiver_cut"].to_list() == ["first", "second"]
    assert len(planned_cells(sweep)) == 4


def test_without_the_plugin_its_names_are_unknown() -> None:
    with pytest.raises(InputError, match=r"data\.source=mine is unknown; allowed: digits"):
        check(configured("data.source=mine"))
    with pytest.raises(InputError, match=r"zoo\.arch=small is unknown; allowed: resnet18"):
        check(configured("zoo.arch=small"))
    with pytest.raises(InputError, match="unknown architecture 'small'"):
        make_plan(configured("zoo.arch=small"))


def test_an_edited_plugin_changes_every_id_and_the_same_text_none() -> None:
    def ids(text: str) -> set[str]:
        return {cell.id for cell in planned_cells(make_sweep(*MINE, plugins=activated(text)))}

    first = ids(TEXT)
    assert ids(TEXT) == first
    assert ids(TEXT + "# a word more\n").isdisjoint(first)


def test_the_text_is_the_version_of_what_it_registers() -> None:
    own = ARCHITECTURES["resnet18"].version
    activated(TEXT)
    first = architecture("small").version
    activated(TEXT)  # the same text is run once
    assert architecture("small").version == first
    activated(TEXT + "# a word more\n")
    assert architecture("small").version != first
    assert ARCHITECTURES["resnet18"].version == own


def test_a_plugin_may_replace_what_is_there() -> None:
    activated(TEXT.replace('"small"', '"resnet18"'))
    assert architecture("resnet18").size == 16
    assert architecture("resnet18").version != "1"


def test_the_hash_of_the_data_has_the_plugins_in_it() -> None:
    one, two = Plugin("a.py", "x = 1"), Plugin("b.py", "x = 2")
    assert data_hash("print", ()) == "print"
    hashes = [data_hash("print", plugins) for plugins in ((one,), (two,), (one, two), (two, one))]
    assert len({*hashes, "print"}) == 5
    assert data_hash("print", (Plugin("elsewhere.py", "x = 1"),)) == hashes[0]  # where the file lies decides nothing


def test_files_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TEXT)
    assert read_plugins(["mine.py"]) == (Plugin("mine.py", TEXT),)
    for path in ("nowhere.py", str(tmp_path)):
        with pytest.raises(InputError, match=r"plugins: .* can't be read") as caught:
            read_plugins([path])
        assert repr(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "error"),
    [
        ("x = 1\n\n1 / 0\n", 3, "ZeroDivisionError: division by zero"),
        ("def f():\n    raise KeyError('a')\n\n\nf()\n", 2, "KeyError: 'a'"),
        ("import json\njson.loads('{')\n", 2, "JSONDecodeError"),  # raised in another file
        ("x = 1\nclass\n", 2, "SyntaxError: invalid syntax"),
        ("import nowhere_at_all\n", 1, "ModuleNotFoundError"),
        ("raise SystemExit('no')\n", 1, "SystemExit: no"),
    ],
)
def test_an_error_says_where_it_is_and_the_file_can_be_tried_again(text: str, line: int, error: str) -> None:
    for _ in range(2):
        with pytest.raises(InputError, match=error) as caught:
            activated(text)
        assert str(caught.value).startswith(f"plugins: 'mine.py', line {line}: ")


def test_a_plugin_is_compiled_on_its_own_terms() -> None:
    """The future imports of the file that runs it must not be those of the plugin."""
    activated("def f(x: int): ...\nassert f.__annotations__ == {'x': int}\n")


def test_dataclasses_work_in_a_plugin() -> None:
    activated("from __future__ import annotations\nimport dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int\n")
