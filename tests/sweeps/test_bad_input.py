"""Bad input ends with status 2 and one line that names it and what is allowed; nothing is launched or written."""

import gzip
import hashlib
import pickle
import struct
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import sweeps
from stitching_core.data import mnist
from sweeps import console, full_grid

ROOT = Path(__file__).parents[2]
SEARCH = "search=per_cell"
WEIGHTS = "+zoo.models.mine={kind: weights, weights: mine.safetensors}"
OF_MINE = [WEIGHTS, "grid.senders=[mine]", "grid.receivers=[mine]"]
IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the script in an empty folder (or one with files of the test's own) and returns its one line."""
    monkeypatch.chdir(tmp_path)
    launched = types.ModuleType("sweeps.execute")
    launched.execute = lambda sweep: pytest.fail("launched")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sweeps.execute", launched)
    monkeypatch.setattr(sweeps, "execute", launched, raising=False)  # there if an earlier test ran a sweep

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["full_grid.py", *arguments])
        before = tree(tmp_path)
        status = console.run(full_grid.main, full_grid.USAGE)
        out, err = capsys.readouterr()
        assert (status, out) == (2, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert err.endswith("\n")
        assert "Traceback" not in err
        assert tree(tmp_path) == before
        return err

    return run


def idx_files(folder: Path) -> dict[str, str]:
    """Four small idx files, compressed; the checksum of each one's content."""
    folder.mkdir()
    checksums = {}
    for name in IDX:
        items = 4 if name.startswith("train") else 2
        images = struct.pack(">IIII", 0x803, items, 2, 2) + bytes(range(items * 4))
        labels = struct.pack(">II", 0x801, items) + bytes([0, 1] * (items // 2))
        content = images if "images" in name else labels
        (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        checksums[name] = hashlib.sha256(content).hexdigest()
    return checksums


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        # unknown names
        (["grid.senders=[nobody]"], ["grid.senders=nobody", "random_init", "colour_only"]),
        (["grid.receivers=[noise]"], ["grid.receivers", "'noise'", "no network"]),
        (["grid.senders=[digit,digit]"], ["grid.senders=['digit', 'digit']", "twice"]),
        (["grid.cuts=[layer9]"], ["'layer9'", "resnet18_quarter", "layer1", "maxpool"]),
        (["grid.cuts={vgg19: [features.8]}"], ["grid.cuts", "resnet18_quarter", "vgg19"]),
        (["grid.fit_data=purple"], ["grid.fit_data=purple", "own", "correlated"]),
        (["scale=small"], ["scale=small", "experiment=2e"]),
        (["scale=tiny", "experiment=2e"], ["scale=tiny", "full, small"]),
        (["experiment=2j", "scale=small"], ["features.1", "resnet18_quarter"]),
        (["grid.eval_data=[purple]"], ["grid.eval_data=purple", "fit", "greyscale"]),
        (["grid.eval_data=[]"], ["grid.eval_data=[]", "fit", "greyscale"]),
        (["zoo.models.digit.variant=purple"], ["zoo.models.digit.variant=purple", "colour_only"]),
        (["+zoo.models.digit.kind=magic"], ["zoo.models.digit.kind=magic", "trained, random_init, noise, weights"]),
        (["zoo.arch=lenet"], ["zoo.arch=lenet", "resnet18_quarter", "vgg19"]),
        (["zoo.classes=5"], ["zoo.classes=5", "10 classes of digits"]),
        (["data.source=cifar"], ["cifar", "digits, mnist, fashion_mnist"]),
        (["data.train_items=5"], ["5", "from 10", "1437"]),
        (["protocol=unheard_of"], ["protocol=unheard_of", "smith2025, smith2025_small"]),
        (["protocol.bn_mode=maybe"], ["protocol.bn_mode=maybe", "adapt, frozen"]),
        (["experiment=9z"], ["experiment=9z", "smith2025_2e"]),
        # numbers
        (["protocol.learning_rate=-0.1"], ["protocol.learning_rate=-0.1", "above 0"]),
        (["protocol.learning_rate=nan"], ["protocol.learning_rate=nan", "above 0"]),
        (["protocol.epochs=0"], ["protocol.epochs=0", "at least 1"]),
        (["protocol.epochs=1.5"], ["protocol.epochs", "1.5", "Integer"]),
        (["cluster.cpus_per_block=0"], ["cluster.cpus_per_block=0", "at least 0.0001"]),
        # nothing to do
        (["grid.cuts=[]"], ["grid is empty", "cuts []"]),
        (["grid.senders=[]"], ["grid is empty", "0 senders"]),
        (["grid.receivers=[]"], ["grid is empty", "0 receivers"]),
        # names that would leave the results folder
        (["name=a/b"], ["name='a/b'", "letters"]),
        (["name=.."], ["name='..'", "letters"]),
        # searches
        ([SEARCH, "protocol.weight_decay=0"], ["protocol.weight_decay=0", "above 0"]),
        ([SEARCH, "search.space.learning_rate=[0.1,0.001]"], ["learning_rate=[0.1, 0.001]", "[low, high]"]),
        ([SEARCH, "search.n_trials=0"], ["search.n_trials=0", "at least 1"]),
        # data
        (["data=mnist"], ["'mnist'", "data root", "None"]),
        (["data=mnist", "data.root=/no/such/folder"], ["/no/such/folder", "no such folder", "download=true"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_it_is_refused(arguments: list[str], words: list[str], refused: Callable[..., str]) -> None:
    line = refused(*arguments)
    assert [word for word in words if word not in line] == []


def test_a_value_with_a_line_break_makes_no_second_line(refused: Callable[..., str]) -> None:
    assert "grid.senders=no body is unknown" in refused('grid.senders=["no\nbody"]')


def test_a_missing_idx_file(refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist, "CHECKSUMS", idx_files(tmp_path / "data"))
    (tmp_path / "data" / f"{IDX[2]}.gz").unlink()
    line = refused("data=mnist", "data.root=data")
    assert f"data/{IDX[2]}" in line
    assert ".gz" in line


@pytest.mark.parametrize("name", [IDX[0], IDX[3]])
def test_a_corrupt_idx_file(
    name: str, refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checksums = idx_files(tmp_path / "data")
    monkeypatch.setattr(mnist, "CHECKSUMS", checksums)
    content = bytearray(gzip.decompress((tmp_path / "data" / f"{name}.gz").read_bytes()))
    content[-1] ^= 1
    (tmp_path / "data" / f"{name}.gz").write_bytes(gzip.compress(bytes(content)))
    line = refused("data=mnist", "data.root=data")
    assert f"data/{name}.gz" in line
    assert "wrong checksum" in line
    assert checksums[name] in line


def test_a_truncated_idx_file(refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist, "CHECKSUMS", idx_files(tmp_path / "data"))
    file = tmp_path / "data" / f"{IDX[1]}.gz"
    file.write_bytes(file.read_bytes()[:-9])
    assert f"data/{IDX[1]}.gz: truncated" in refused("data=mnist", "data.root=data")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"config.yaml": "schema_version: 99\n"}, ["results/digits/config.yaml", "version 99", "reads 1"]),
        ({"config.yaml": "name: digits\n"}, ["results/digits/config.yaml", "names no schema_version"]),
        ({"thesis.tex": "\\title{}"}, ["results/digits", "something else", "name="]),
        (
            {"config.yaml": "schema_version: 1\n", "cells/part-one.parquet": "PAR1"},
            ["results/digits/cells/part-one.parquet", "not a readable parquet file"],
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_a_results_folder_that_is_none(
    files: dict[str, str], words: list[str], refused: Callable[..., str], tmp_path: Path
) -> None:
    for name, text in files.items():
        path = tmp_path / "results/digits" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    line = refused()
    assert [word for word in words if word not in line] == []


@pytest.mark.parametrize(
    ("file", "words"), [("results/digits", "is no folder"), ("results", "can't be written"), ("zoo", "is no folder")]
)
def test_a_file_where_a_folder_should_be(
    file: str, words: str, refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    line = refused()
    assert file in line
    assert words in line


def test_weights_that_cannot_be_used(refused: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "mine.safetensors"
    assert "'mine.safetensors' can't be read: No such file" in refused(*OF_MINE)
    file.write_bytes(pickle.dumps({"fc.weight": [0.0]}))
    assert "'mine.safetensors' is no readable safetensors file" in refused(*OF_MINE)
    save_file({"fc.weight": np.zeros((10, 128), np.float32)}, file)
    assert "weights do not fit resnet18_quarter with 10 classes" in refused(*OF_MINE)
    assert "zoo.models.mine.weights has no value" in refused("+zoo.models.mine={kind: weights}")
    for name, words in (
        ("package:none", "allowed: package:efficientnet_lite0"),
        ("torchvision:None", "unknown to torch"),
    ):
        assert words in refused(f"+zoo.models.mine={{kind: weights, weights: '{name}'}}")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["'mine.py' can't be read", "No such file"]),
        (b"name = '\xff'", ["'mine.py' can't be read", "0xff"]),
        (b"x = 1\n\nraise RuntimeError('two\\nlines')", ["'mine.py', line 3: RuntimeError: two lines"]),
        (b"x = 1\ndef f(:\n    pass", ["'mine.py', line 2: SyntaxError"]),
        (b"import sys\nsys.exit(0)", ["'mine.py', line 2: SystemExit"]),
    ],
    ids=["missing", "not UTF-8", "raises", "can't be parsed", "exits"],
)
def test_a_plugin_that_cannot_be_used(
    content: bytes | None, words: list[str], refused: Callable[..., str], tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "mine.py").write_bytes(content)
    line = refused("plugins=[mine.py]")
    assert [word for word in words if word not in line] == []


def test_a_source_in_colour_cannot_be_coloured(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "from stitching_core.data.sources import SOURCES, source_from_arrays\n"
        "x, y = np.arange(4 * 3 * 8 * 8, dtype=np.uint8).reshape(4, 3, 8, 8), np.array([0, 1, 0, 1])\n"
        "SOURCES['bad_input_rgb'] = lambda root, download: source_from_arrays('bad_input_rgb', x, y, x, y)\n"
    )
    of_mine = ["plugins=[mine.py]", "data.source=bad_input_rgb", "grid.senders=[digit]", "grid.receivers=[digit]"]
    allowed = "can't be made of source 'bad_input_rgb'; allowed: original"
    assert f"variant 'correlated' {allowed}" in refused(*of_mine)  # what stitches are fitted on
    fitted = ["zoo.models.digit.variant=original", "grid.eval_data=[original]", "grid.fit_data=mix"]
    assert f"variant 'mix' {allowed}" in refused(*of_mine, *fitted)


def test_the_guard_of_these_tests_would_notice_a_launch(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["full_grid.py", "grid.runs=1"])
    with pytest.raises(pytest.fail.Exception, match="launched"):
        console.run(full_grid.main, full_grid.USAGE)


@pytest.mark.parametrize(
    ("arguments", "status", "err"),
    [
        (["--help"], 0, ""),
        (["protocol.epochs=0"], 2, "error: protocol.epochs=0 is out of range; it must be at least 1\n"),
    ],
)
def test_the_script_itself(arguments: list[str], status: int, err: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "sweeps/full_grid.py"), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (status, err)
    assert list(tmp_path.iterdir()) == []
    if status == 0:
        for words in ("sweeps/full_grid.py", "digits_slim, imagenet", "plan_only", "Exit status"):
            assert words in done.stdout


IMAGENET = ["experiment=imagenet_noise", "grid.cuts=[blocks]"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["experiment=1m", "scale=small"], "scale=small is a size of the ResNet-18 experiments, not of 1m"),
        (
            [*IMAGENET, "grid.senders=[imagenet]", "grid.fit_data=digit"],
            "variant 'digit': source 'imagenet' has no images",
        ),
        ([*IMAGENET, "data.noise_train_items=null"], "data.noise_train_items has no value; imagenet has no images"),
        (
            [*IMAGENET, "data.noise_test_items=999"],
            "data.noise_test_items=999 is out of range; it must be at least 1000",
        ),
        ([*IMAGENET, "data.train_items=2000"], "train_items 2000: source 'imagenet' has no images"),
        ([*IMAGENET, "zoo.classes=999"], "zoo.classes=999 is fewer than the 1000 classes of imagenet"),
        ([*IMAGENET, "zoo.models.imagenet.weights=package:x"], "'package:x': unknown package"),
    ],
)
def test_imagenet_has_no_images(refused: Callable[..., str], arguments: list[str], words: str) -> None:
    assert words in refused(*arguments)
