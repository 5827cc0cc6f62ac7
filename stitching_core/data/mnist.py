"""MNIST (LeCun, Cortes and Burges): 60,000 train and 10,000 test digits, 28x28, grey, 10 classes."""

from __future__ import annotations

from pathlib import Path

from stitching_core.data.idx_source import TEST_IMAGES, TEST_LABELS, TRAIN_IMAGES, TRAIN_LABELS, load_idx_source
from stitching_core.data.source import Source

# SHA-256 of the uncompressed files.
CHECKSUMS = {
    TRAIN_IMAGES: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    TRAIN_LABELS: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    TEST_IMAGES: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    TEST_LABELS: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
GREY_MEAN, GREY_STD = 0.1307, 0.3081


def load_mnist(root: Path | None, download: bool) -> Source:
    """MNIST from its four idx files.

    Args:
        root: the folder with the files, plain or as .gz, or torchvision's root (``root/MNIST/raw``).
        download: let torchvision download into the root what isn't there.

    Raises:
        InputError: no root, no such folder, a file is missing or isn't the published one, or the download failed.
    """
    return load_idx_source("mnist", "MNIST", CHECKSUMS, GREY_MEAN, GREY_STD, root, download)
