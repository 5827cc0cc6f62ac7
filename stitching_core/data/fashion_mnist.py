"""Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017): 60,000 train and 10,000 test garments, 28x28, grey, 10 classes."""

from __future__ import annotations

from pathlib import Path

from stitching_core.data.idx_source import TEST_IMAGES, TEST_LABELS, TRAIN_IMAGES, TRAIN_LABELS, load_idx_source
from stitching_core.data.source import Source

# SHA-256 of the uncompressed files: the same for the published .gz files (those with the MD5s that torchvision
# checks) and for the ones that Debian's package `dataset-fashion-mnist` compresses anew.
CHECKSUMS = {
    TRAIN_IMAGES: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    TRAIN_LABELS: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    TEST_IMAGES: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    TEST_LABELS: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}
GREY_MEAN, GREY_STD = 0.2860, 0.3530


def load_fashion_mnist(root: Path | None, download: bool) -> Source:
    """Fashion-MNIST from its four idx files.

    Args:
        root: the folder with the files, plain or as .gz (Debian's package ``dataset-fashion-mnist`` has one), or
            torchvision's root (``root/FashionMNIST/raw``).
        download: let torchvision download into the root what isn't there.

    Raises:
        InputError: no root, no such folder, a file is missing or isn't the published one, or the download failed.
    """
    return load_idx_source("fashion_mnist", "FashionMNIST", CHECKSUMS, GREY_MEAN, GREY_STD, root, download)
