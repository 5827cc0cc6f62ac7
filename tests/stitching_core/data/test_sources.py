"""Sources: what is in them, that wrong ones are refused, and how a user's own is added."""

import hashlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision
from sklearn.datasets import load_digits as sklearn_digits

from stitching_core.data import mnist
from stitching_core.data.digits import enlarge
from stitching_core.data.pixels import mean_std
from stitching_core.data.sources import SOURCES, Images, Source, load_source, source_from_arrays
from stitching_core.data.variants import build_variant
from stitching_core.errors import InputError

needs_mnist = pytest.mark.skipif("STITCHING_MNIST" not in os.environ, reason="STITCHING_MNIST is not set")


def arrays(colour: bool = False) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shape = (3, 5, 4) if colour else (5, 4)
    train, test = (rng.integers(0, 256, (n, *shape), dtype=np.uint8) for n in (12, 6))
    return [train, np.arange(12) % 3, test, np.arange(6) % 3]


def idx_files(folder: Path) -> dict[str, str]:
    """Four tiny idx files, 4 train and 2 test images of 2x2; the checksum of each."""
    folder.mkdir(parents=True, exist_ok=True)
    checksums = {}
    for name, items in (("train", 4), ("t10k", 2)):
        images = struct.pack(">IIII", 0x803, items, 2, 2) + bytes(range(items * 4))
        labels = struct.pack(">II", 0x801, items) + bytes([0, 1] * (items // 2))
        for file, content in ((f"{name}-images-idx3-ubyte", images), (f"{name}-labels-idx1-ubyte", labels)):
            (folder / file).write_bytes(content)
            checksums[file] = hashlib.sha256(content).hexdigest()
    return checksums


def test_digits_are_split_once_and_for_all() -> None:
    source = load_source("digits")
    assert source.train.images.shape == (1437, 28, 28)
    assert source.test.images.shape == (360, 28, 28)
    assert source.classes == 10
    counts = np.bincount(sklearn_digits().target)
    train, test = np.bincount(source.train.labels), np.bincount(source.test.labels)
    assert (train + test == counts).all()
    assert np.abs(test - counts * 360 / 1797).max() < 1
    # a constant of the source: a change of it would silently make old and new results incomparable
    assert source.fingerprint == load_source("digits").fingerprint
    assert source.fingerprint == "dd95c4067856adb00aa998a93cec8efce6561c81899f8fe207067d9a10e2156b"


def test_digits_images_are_all_there_and_differ_between_train_and_test() -> None:
    source = load_source("digits")
    everything = np.concatenate([source.train.images, source.test.images]).reshape(1797, -1)
    expected = enlarge(sklearn_digits().images.astype(np.int64)).reshape(1797, -1)
    assert sorted(map(bytes, everything)) == sorted(map(bytes, expected))


def test_digits_are_enlarged_as_torch_does_and_the_halo_is_cut() -> None:
    small = sklearn_digits().images[:200]
    big = enlarge(small.astype(np.int64)).astype(np.float64)
    exact = torch.nn.functional.interpolate(
        torch.from_numpy(small)[:, None], size=(28, 28), mode="bilinear", align_corners=False
    )[:, 0].numpy()
    ink = exact > 16 * 3 / 8 + 1e-9
    assert np.abs(big[ink] - exact[ink] * 255 / 16).max() <= 0.5 + 1e-9
    assert (big[exact < 16 * 3 / 8 - 1e-9] == 0).all()
    assert 0.3 < (big > 0).mean() < 0.45
    # a full 8x8 picture stays full, an empty one empty
    flat = enlarge(np.array([[[16] * 8] * 8, [[0] * 8] * 8]))
    assert (flat[0] == 255).all()
    assert (flat[1] == 0).all()


@needs_mnist
def test_mnist_is_mnist() -> None:
    source = load_source("mnist", os.environ["STITCHING_MNIST"])
    assert source.train.images.shape == (60_000, 28, 28)
    assert source.test.images.shape == (10_000, 28, 28)
    # the counts that are published with the data
    assert np.bincount(source.train.labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(source.test.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert source.train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert (source.grey_mean, source.grey_std) == (0.1307, 0.3081)
    assert mean_std(source.train.images) == pytest.approx((0.1307, 0.3081), abs=5e-5)


@needs_mnist
def test_mnist_train_items_keep_the_shares() -> None:
    root = os.environ["STITCHING_MNIST"]
    source, whole = load_source("mnist", root, train_items=600), load_source("mnist", root)
    counts = np.bincount(whole.train.labels)
    assert np.abs(np.bincount(source.train.labels) - counts / 100).max() < 1.1
    assert len(source.test) == 10_000
    assert source.fingerprint != whole.fingerprint


@pytest.mark.parametrize("layout", ["", "MNIST/raw"])
def test_idx_source_in_both_layouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    monkeypatch.setattr(mnist, "CHECKSUMS", idx_files(tmp_path / layout))
    source = load_source("mnist", tmp_path)
    assert source.train.images[1].tolist() == [[4, 5], [6, 7]]
    assert source.test.labels.tolist() == [0, 1]
    assert source.classes == 2


def test_idx_source_reports_the_missing_and_the_wrong_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checksums = idx_files(tmp_path)
    with pytest.raises(InputError, match="wrong checksum") as caught:
        load_source("mnist", tmp_path)
    assert str(tmp_path / "train-images-idx3-ubyte") in str(caught.value)
    monkeypatch.setattr(mnist, "CHECKSUMS", checksums)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(InputError, match="no such file") as caught:
        load_source("mnist", tmp_path)
    assert str(tmp_path / "t10k-labels-idx1-ubyte") in str(caught.value)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_idx_source_needs_a_root_with_files(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"source '{name}' needs a data root"):
        load_source(name)
    with pytest.raises(InputError, match="no such file") as caught:
        load_source(name, tmp_path)
    assert str(tmp_path / "train-images-idx3-ubyte") in str(caught.value)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InputError, match="data root") as caught:
        load_source(name, file)
    assert str(file) in str(caught.value)


def test_a_root_that_does_not_exist_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder") as caught:
        load_source("mnist", tmp_path / "nowhere")
    assert str(tmp_path / "nowhere") in str(caught.value)
    assert not (tmp_path / "nowhere").exists()


def test_download_makes_the_root_fills_it_once_and_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mnist, "CHECKSUMS", idx_files(tmp_path / "elsewhere"))
    calls = []

    def fake(root: Path, train: bool, download: bool) -> None:
        print("100%")
        calls.append((root, download))
        idx_files(root / "MNIST" / "raw")

    monkeypatch.setattr(torchvision.datasets, "MNIST", fake)
    root = tmp_path / "new" / "root"
    for _ in range(2):
        assert len(load_source("mnist", root, download=True).train) == 4
    assert calls == [(root, True)]
    # an interrupted download is completed
    (root / "MNIST" / "raw" / "t10k-labels-idx1-ubyte").unlink()
    assert len(load_source("mnist", root, download=True).train) == 4
    assert len(calls) == 2
    assert capsys.readouterr() == ("", "")


def test_a_failed_download_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(root: Path, train: bool, download: bool) -> None:
        raise RuntimeError("Error downloading\nfrom all mirrors")

    monkeypatch.setattr(torchvision.datasets, "FashionMNIST", fake)
    with pytest.raises(InputError, match="'fashion_mnist' could not be downloaded into") as caught:
        load_source("fashion_mnist", tmp_path, download=True)
    assert "\n" not in str(caught.value)


def test_unknown_source_names_the_allowed_ones() -> None:
    with pytest.raises(InputError, match="'cifar': unknown, expected one of digits, fashion_mnist, imagenet, mnist"):
        load_source("cifar")


@pytest.mark.parametrize("colour", [False, True])
def test_a_users_source(colour: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def loader(root: Path | None, download: bool) -> Source:
        return source_from_arrays("mine", *arrays(colour))

    monkeypatch.setitem(SOURCES, "mine", loader)
    source = load_source("mine")
    assert source.classes == 3
    train = arrays(colour)[0]
    assert source.grey_mean == pytest.approx((train / 255.0).mean())
    assert source.grey_std == pytest.approx((train / 255.0).std())


def test_a_loader_must_return_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "mine", lambda root, download: None)
    with pytest.raises(InputError, match="'mine': its loader returned NoneType, expected Source"):
        load_source("mine")


def test_arrays_are_read_only_and_the_users_own_stay_writable() -> None:
    given = arrays()
    source = source_from_arrays("mine", *given)
    for part in (source.train, source.test):
        for array in (part.images, part.labels):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
    assert all(array.flags.writeable for array in given)
    for array in given:
        array.setflags(write=False)
    assert source_from_arrays("mine", *given).fingerprint == source.fingerprint


def test_fingerprint_follows_the_content() -> None:
    given = arrays()
    plain = source_from_arrays("mine", *given).fingerprint
    assert len(plain) == 64
    assert source_from_arrays("mine", *[array.copy() for array in given]).fingerprint == plain
    # neither the memory layout nor the width of the labels' type is content
    assert source_from_arrays("mine", np.asfortranarray(given[0]), *given[1:]).fingerprint == plain
    assert source_from_arrays("mine", given[0], given[1].astype(np.uint8), *given[2:]).fingerprint == plain
    others = {source_from_arrays("other", *given).fingerprint}
    others.add(source_from_arrays("mine", *given, grey_mean=0.1, grey_std=0.5).fingerprint)
    for i in range(4):
        changed = [array.copy() for array in given]
        changed[i].flat[:2] = changed[i].flat[1::-1]
        others.add(source_from_arrays("mine", *changed).fingerprint)
    reshaped = [given[0].reshape(12, 4, 5), given[1], given[2].reshape(6, 4, 5), given[3]]
    others.add(source_from_arrays("mine", *reshaped).fingerprint)
    assert len(others - {plain}) == 7


@pytest.mark.parametrize(
    ("position", "change", "words"),
    [
        (0, lambda a: a.astype(np.float32), r"train images are float32 \(12, 5, 4\), expected uint8"),
        (0, lambda a: a.reshape(12, 20), r"train images are uint8 \(12, 20\), expected uint8 \(n, h, w\)"),
        (2, lambda a: a[:, None], r"test images are uint8 \(6, 1, 5, 4\)"),
        (2, lambda a: a[:, :4], r"test images are \(4, 4\) each, expected \(5, 4\)"),
        (2, lambda a: a[:0], r"test images are uint8 \(0, 5, 4\)"),
        (1, lambda a: a[:-1], r"train labels are int64 \(11,\), expected integers \(12,\)"),
        (1, lambda a: a / 2, r"train labels are float64 \(12,\), expected integers"),
        (1, lambda a: a - 1, "train label -1, expected class numbers from 0"),
        (1, lambda a: a * 2, "no training image has the label 1, expected every class from 0 to 4"),
        (1, lambda a: a * 0, "labels of 1 class only, expected at least 2"),
        (3, lambda a: a + 1, "test label 3, expected class numbers from 0 to 2"),
    ],
)
def test_a_bad_source_is_refused(position: int, change, words: str) -> None:
    given = arrays()
    given[position] = change(given[position])
    with pytest.raises(InputError, match=f"source 'mine': .*{words}"):
        source_from_arrays("mine", *given)


def test_a_source_made_by_hand_is_checked_too() -> None:
    x, y, test_x, test_y = arrays()
    with pytest.raises(InputError, match="test label 2, expected class numbers from 0 to 1"):
        Source("mine", Images(x, y % 2), Images(test_x, test_y), 2, 0.5, 0.5, "")
    with pytest.raises(InputError, match=r"grey_std 0\.0"):
        Source("mine", Images(x, y), Images(test_x, test_y), 3, 0.5, 0.0, "")


def test_train_items_are_the_sources_own_choice() -> None:
    whole, part = load_source("digits"), load_source("digits", train_items=100)
    assert part.train.images.shape == (100, 28, 28)
    # 1,437 digits, 141 to 146 of each class
    assert np.bincount(part.train.labels).tolist() == [10] * 10
    assert part.fingerprint != whole.fingerprint
    assert part.fingerprint == load_source("digits", train_items=100).fingerprint
    assert (part.test.images == whole.test.images).all()
    known = set(map(bytes, whole.train.images))
    assert all(bytes(image) in known for image in part.train.images)
    assert load_source("digits", train_items=1437).fingerprint == whole.fingerprint
    assert sorted(load_source("digits", train_items=10).train.labels) == list(range(10))


@pytest.mark.parametrize("items", [0, -1, 9, 1438, 100.0, True, "100"])
def test_bad_train_items(items) -> None:
    with pytest.raises(InputError, match=r"train_items .*from 10 .* to 1437") as caught:
        load_source("digits", train_items=items)
    assert repr(items) in str(caught.value)


def test_imagenet_has_classes_and_no_images() -> None:
    source = load_source("imagenet")
    assert (source.classes, len(source.train), source.train.images.shape[1:]) == (1000, 0, (3, 224, 224))
    for variant in ("original", "digit"):
        with pytest.raises(InputError, match=rf"variant '{variant}': source 'imagenet' has no images, its licence"):
            build_variant(source, variant, "train", 0)
    with pytest.raises(InputError, match="train_items 2000: source 'imagenet' has no images"):
        load_source("imagenet", train_items=2000)
