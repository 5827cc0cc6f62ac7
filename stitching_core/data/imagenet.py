"""ImageNet (ILSVRC 2012) without its images: 1,000 classes of 3x224x224, for noise stitched into ImageNet networks."""

from __future__ import annotations

from pathlib import Path

from stitching_core.data.source import Source, source_without_images

CLASSES, SIZE = 1000, 224


def load_imagenet(root: Path | None, download: bool) -> Source:
    """The source; its images are never read, since they may not be passed on.

    A network's own normalisation belongs to its weights: see ``models/efficientnet.py`` for that of EfficientNet-Lite0.

    Args:
        root: not used.
        download: not used.
    """
    return source_without_images("imagenet", CLASSES, SIZE, "its licence lets nobody pass them on")
