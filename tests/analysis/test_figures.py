from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.cli import run
from analysis.figures import charts, figures, heatmaps, main
from analysis.load import load


def _texts(svg: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg.read_text())


def test_every_figure_is_written_in_three_formats(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, [str(results_folder)]) == 0
    names = [
        f"{kind}_digit_mnist_mnist.{suffix}" for kind in ("heatmap", "accuracy") for suffix in ("png", "svg", "pdf")
    ]
    paths = [results_folder / "figures" / name for name in names]
    assert capsys.readouterr().out.splitlines() == [str(path) for path in paths]
    assert sorted(paths) == sorted((results_folder / "figures").iterdir())
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert all(path.read_bytes().startswith(starts[path.suffix]) for path in paths)


def test_heatmap_with_the_means(results_folder: Path, tmp_path: Path) -> None:
    _, svg = heatmaps(load(results_folder), tmp_path / "figures")
    texts = _texts(svg)
    # by row: uncut; colour, digit, untrained, noise at maxpool, at layer1, and the mean over cuts
    shown = ["96.0", "92.0", "80.0*", "89.5*", "97.0", "95.0", "96.0", "40.0", "20.0", "30.0", "13.0", "10.0", "11.5"]
    assert [text for text in texts if re.fullmatch(r"\d+\.\d\*?", text)] == shown
    assert {"uncut receiver", "colour", "digit", "untrained", "noise (on noise)", "maxpool", "layer1"} <= set(texts)
    assert "Stitched into receiver digit" in " ".join(texts)


def test_files_are_the_same_every_time(results_folder: Path, tmp_path: Path) -> None:
    results = load(results_folder)
    first, second = ([path.read_bytes() for path in figures(results, tmp_path / name)] for name in ("first", "second"))
    assert first == second
    assert not any(b"dc:date" in content or b"CreationDate" in content for content in first)


def test_one_sender_into_many_receivers_is_named_by_the_sender(
    tmp_path: Path, make_cell: Callable[..., dict[str, Any]], write: Callable[..., Path]
) -> None:
    folder = write(tmp_path / "tiny", [make_cell(receiver=name, sender="a/b") for name in ("digit", "mix")])
    assert [stem for stem, _ in charts(load(folder))] == ["accuracy_from_a-b_mnist_mnist"]


def test_all_cuts_is_one_matrix_per_sender(
    tmp_path: Path, make_cell: Callable[..., dict[str, Any]], write: Callable[..., Path]
) -> None:
    cuts = ("layer1", "layer2")
    accuracies = iter([0.91, 0.82, None, 0.94, 0.45, 0.36, 0.27, 0.18])
    cells = [
        make_cell(next(accuracies), sender=sender, sender_kind=kind, sender_cut=a, receiver_cut=b)
        for sender, kind in (("colour/only", "trained"), ("untrained", "random_init"))
        for a in cuts
        for b in cuts
    ]
    results = load(write(tmp_path / "tiny", cells))
    _, svg = heatmaps(results, tmp_path / "figures")
    texts = _texts(svg)
    shown = [text for text in texts if re.fullmatch(r"\d+\.\d|failed", text)]
    assert shown == ["91.0", "82.0", "failed", "94.0", "45.0", "36.0", "27.0", "18.0"]
    assert {"sender colour/only", "floor: untrained", "receiver cut", "sender cut"} <= set(texts)
    assert any("uncut receiver 95.0" in text for text in texts)


def test_file_names_are_plain(
    tmp_path: Path, make_cell: Callable[..., dict[str, Any]], write: Callable[..., Path]
) -> None:
    folder = write(tmp_path / "tiny", [make_cell(receiver="resnet18/colour only")])
    assert heatmaps(load(folder), tmp_path / "figures")[0].name == "heatmap_resnet18-colour-only_mnist_mnist.png"


def test_folder_that_cannot_be_made(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, [str(results_folder), "--output", str(results_folder / "none/figures")]) == 2
    assert "none doesn't exist" in capsys.readouterr().err
    assert run(main, [str(results_folder), "--output", str(results_folder / "config.yaml")]) == 2
    assert "config.yaml is a file; expected a folder" in capsys.readouterr().err
