"""Variants: which pictures, which targets, which normalisation."""

import os

import numpy as np
import pytest

from stitching_core.data.colour import PALETTE
from stitching_core.data.sources import Source, load_source, source_from_arrays
from stitching_core.data.variants import VARIANTS, build_variant
from stitching_core.errors import InputError

HALF = (0.5, 0.5, 0.5)
LIMIT = 26  # 0.1 * 255 and the truncation


@pytest.fixture(scope="module")
def source() -> Source:
    rng = np.random.default_rng(1)
    # the corner is never ink, one pixel always is; every grey value stands for itself
    images = rng.integers(0, 3, (1300, 6, 5), dtype=np.uint8) * rng.integers(1, 80, (1300, 1, 1), dtype=np.uint8)
    images[:, 0, 0] = 0
    images[:, 5, 4] = 77
    labels = np.concatenate([rng.permutation(np.arange(n) % 10) for n in (1000, 300)])
    return source_from_arrays("made", images[:1000], labels[:1000], images[1000:], labels[1000:])


def corner(images: np.ndarray) -> np.ndarray:
    """The background colour of each image, (n, 3)."""
    return images[:, :, 0, 0].astype(int)


def on_palette(images: np.ndarray, classes: np.ndarray) -> bool:
    return bool((np.abs(corner(images) - PALETTE[classes]) <= LIMIT).all())


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_shapes_and_reproducibility(source: Source, variant: str, split: str) -> None:
    part = source.train if split == "train" else source.test
    data = build_variant(source, variant, split, 3)
    assert data.name == variant
    assert data.images.shape == (len(part), 3, 6, 5)
    assert data.images.dtype == np.uint8
    assert data.images.flags.c_contiguous
    assert data.images.flags.writeable
    assert data.labels.shape == (len(part),)
    assert data.labels.dtype == np.int64
    assert data.labels.flags.writeable
    assert data.drop_last == (variant == "greyscale")
    again = build_variant(source, variant, split, 3)
    assert (data.images == again.images).all()
    assert (data.labels == again.labels).all()
    other = build_variant(source, variant, split, 4)
    assert (data.images == other.images).all() == (variant in ("greyscale", "original"))


def test_digit_and_colour_are_the_same_images_with_other_targets(source: Source) -> None:
    digit, colour = (build_variant(source, name, "train", 0) for name in ("digit", "colour"))
    assert (digit.images == colour.images).all()
    assert (digit.labels == source.train.labels).all()
    assert on_palette(colour.images, colour.labels)
    # 100 of each class: 10 in the own colour and 10 in every other
    table = np.zeros((10, 10), dtype=int)
    np.add.at(table, (digit.labels, colour.labels), 1)
    assert (table == 10).all()
    ink = np.broadcast_to(source.train.images[:, None] > 0, digit.images.shape)
    assert (digit.images[ink] == 255).all()
    background = np.broadcast_to(digit.images[:, :, :1, :1], digit.images.shape)
    assert (digit.images[~ink] == background[~ink]).all()
    assert digit.mean == digit.std == HALF


def test_correlated_shows_the_class_twice(source: Source) -> None:
    data = build_variant(source, "correlated", "train", 0)
    assert (data.labels == source.train.labels).all()
    assert on_palette(data.images, data.labels)
    assert (data.images[:, :, 5, 4] == 255).all()
    assert data.mean == data.std == HALF


def test_colour_only_has_no_digit(source: Source) -> None:
    data = build_variant(source, "colour_only", "test", 0)
    assert (data.labels == source.test.labels).all()
    assert on_palette(data.images, data.labels)
    assert (data.images == data.images[:, :, :1, :1]).all()
    assert data.mean == data.std == HALF


def test_splits_and_variants_have_noise_of_their_own(source: Source) -> None:
    train, test = (corner(build_variant(source, "correlated", split, 0).images) for split in ("train", "test"))
    labels = source.train.labels, source.test.labels
    grey = [images[own == 9] - 128 for images, own in zip((train, test), labels, strict=True)]
    assert not (grey[0][: len(grey[1])] == grey[1]).all(axis=1).any()
    flat = corner(build_variant(source, "colour_only", "train", 0).images)
    assert (flat != train).any(axis=1).mean() > 0.5


def test_background_noise_can_be_switched_off(source: Source) -> None:
    data = build_variant(source, "correlated", "train", 0, background_noise=0.0)
    assert (corner(data.images) == PALETTE[data.labels]).all()
    with pytest.raises(InputError, match="background_noise -1"):
        build_variant(source, "correlated", "train", 0, background_noise=-1)


def test_greyscale_keeps_the_grey_values(source: Source) -> None:
    data = build_variant(source, "greyscale", "train", 0)
    for channel in range(3):
        assert (data.images[:, channel] == source.train.images).all()
    assert data.mean == (source.grey_mean,) * 3
    assert data.std == (source.grey_std,) * 3


@pytest.mark.parametrize(("split", "grey", "third"), [("train", 334, 333), ("test", 100, 100)])
def test_mix_is_in_thirds(source: Source, split: str, grey: int, third: int) -> None:
    part = source.train if split == "train" else source.test
    data = build_variant(source, "mix", split, 0)
    assert len(data.images) == grey + 2 * third
    assert data.mean == data.std == HALF
    assert not data.drop_last
    parts = np.split(np.arange(len(data.images)), [grey, grey + third])
    greys, painted, flat = (data.images[p] for p in parts)
    labels = [data.labels[p] for p in parts]
    # each grey image is one of the source's with its label, none twice; three equal channels
    assert (greys == greys[:, :1]).all()
    assert (greys[:, 0, 5, 4] == 77).all()
    known = sorted((bytes(image), label) for image, label in zip(part.images, part.labels.tolist(), strict=True))
    found = {(bytes(image), label) for image, label in zip(greys[:, 0], labels[0].tolist(), strict=True)}
    assert found <= set(known)
    # the painted ones are taken from the variant `correlated`, the flat ones from `colour_only`
    for name, images, own in (("correlated", painted, labels[1]), ("colour_only", flat, labels[2])):
        copy = build_variant(source, name, split, 0)
        pairs = {(bytes(image), label) for image, label in zip(copy.images, copy.labels.tolist(), strict=True)}
        drawn = [(bytes(image), label) for image, label in zip(images, own.tolist(), strict=True)]
        assert set(drawn) <= pairs
        # in another order than theirs
        assert [label for _, label in drawn] != copy.labels[:third].tolist()
    # permuted independently: the labels of the parts don't run alike (one in ten does by chance)
    assert (labels[1] == labels[2]).mean() < 0.3


def test_original_grey_and_rgb(source: Source) -> None:
    data = build_variant(source, "original", "test", 0)
    assert (data.images == source.test.images[:, None]).all()
    assert data.mean == pytest.approx(((source.train.images / 255.0).mean(),) * 3)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (2500, 3, 4, 4), dtype=np.uint8)
    x[:, 1] //= 2
    x[:, 2] = 51
    y = np.arange(2500) % 20
    rgb = source_from_arrays("birds", x[:2000], y[:2000], x[2000:], y[2000:])
    data = build_variant(rgb, "original", "test", 0)
    assert (data.images == x[2000:]).all()
    scaled = x[:2000] / 255.0
    assert data.mean == pytest.approx(scaled.mean(axis=(0, 2, 3)))
    # a constant channel is not divided by zero
    assert data.std == pytest.approx((*scaled[:, :2].std(axis=(0, 2, 3)), 1.0))
    for variant in set(VARIANTS) - {"original"}:
        with pytest.raises(InputError, match=f"'{variant}' needs grey images, source 'birds' is in RGB"):
            build_variant(rgb, variant, "train", 0)


def test_more_than_ten_classes_have_no_colours() -> None:
    x, y = np.ones((24, 2, 2), dtype=np.uint8), np.arange(24) % 12
    source = source_from_arrays("twelve", x, y, x, y)
    for variant in ("digit", "colour", "correlated", "colour_only", "mix"):
        with pytest.raises(InputError, match="12 classes: colour variants have 10 colours"):
            build_variant(source, variant, "train", 0)
    assert len(build_variant(source, "greyscale", "train", 0).labels) == 24


def test_fewer_than_ten_classes_use_the_first_colours() -> None:
    x, y = np.zeros((48, 2, 2), dtype=np.uint8), np.arange(48) % 4
    data = build_variant(source_from_arrays("four", x, y, x, y), "colour", "train", 0)
    # 12 per class: a quarter of them own, the 9 others in chunks of 3
    assert np.bincount(data.labels).tolist() == [12] * 4


def test_unknown_names() -> None:
    source = load_source("digits", train_items=10)
    with pytest.raises(
        InputError,
        match="variant 'bias': unknown, expected one of digit, correlated, colour, colour_only, greyscale, mix, orig",
    ):
        build_variant(source, "bias", "train", 0)
    with pytest.raises(InputError, match="split 'validation': unknown, expected train or test"):
        build_variant(source, "digit", "validation", 0)


@pytest.mark.skipif("STITCHING_MNIST" not in os.environ, reason="STITCHING_MNIST is not set")
def test_mnist_sizes() -> None:
    source = load_source("mnist", os.environ["STITCHING_MNIST"])
    mix = build_variant(source, "mix", "test", 0)
    grey = (mix.images[:, 0] == mix.images[:, 1]) & (mix.images[:, 0] == mix.images[:, 2])
    flat = (mix.images == mix.images[:, :, :1, :1]).all(axis=(1, 2, 3))
    assert grey.all(axis=(1, 2))[:3334].all()
    assert not flat[:6667].any()
    assert flat[6667:].all()
    assert flat[6667:].size == 3333
    colour = build_variant(source, "colour", "train", 0)
    for digit, n in enumerate([5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]):
        assert (colour.labels[source.train.labels == digit] == digit).sum() == n // 10
    greyscale = build_variant(source, "greyscale", "test", 0)
    assert greyscale.mean == (0.1307,) * 3
    assert greyscale.std == (0.3081,) * 3


@pytest.mark.parametrize("classes", [2, 4, 10])
def test_in_digit_the_colour_tells_nothing_whatever_the_number_of_classes(classes: int) -> None:
    labels = np.arange(400 * classes) % classes
    images = np.zeros((len(labels), 6, 5), dtype=np.uint8)
    source = source_from_arrays("made", images + 9, labels, images, labels, grey_mean=0.5, grey_std=0.5)
    colours = build_variant(source, "colour", "test", 0).labels
    seen = np.array(
        [[(colours[labels == label] == other).sum() for other in range(classes)] for label in range(classes)]
    )
    assert (seen == 400 / classes).all()
