"""The registry of data sources.

A user adds one from outside of the package: ``SOURCES["mine"] = loader``, see `source_from_arrays`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stitching_core.data.digits import load_digits
from stitching_core.data.fashion_mnist import load_fashion_mnist
from stitching_core.data.imagenet import load_imagenet
from stitching_core.data.mnist import load_mnist
from stitching_core.data.source import Images, Source, fingerprint, source_from_arrays
from stitching_core.data.stratified import stratified_indices
from stitching_core.errors import InputError

__all__ = ["SOURCES", "Images", "Loader", "Source", "load_source", "source_from_arrays"]

Loader = Callable[[Path | None, bool], Source]

# name in the configs -> loader(root, download)
SOURCES: dict[str, Loader] = {
    "digits": load_digits,
    "mnist": load_mnist,
    "fashion_mnist": load_fashion_mnist,
    "imagenet": load_imagenet,
}


def load_source(
    name: str, root: Path | str | None = None, download: bool = False, train_items: int | None = None
) -> Source:
    """Load a source by its registered name.

    Args:
        name: a key of `SOURCES`.
        root: where the source's files are; `digits` needs none.
        download: let the loader download what isn't there; makes the root if need be.
        train_items: keep only that many training images, stratified by class and chosen by the source's name and
            labels alone. The fingerprint becomes that of the smaller set; grey mean and standard deviation stay.

    Raises:
        InputError: an unknown name, a root that doesn't exist, files that are missing or wrong, a loader that returns
            no `Source`, or train_items that aren't from 1 per class to all there are.
    """
    if name not in SOURCES:
        raise InputError(f"data source {name!r}: unknown, expected one of {', '.join(sorted(SOURCES))}")
    folder = None if root is None else Path(root).expanduser()
    try:
        absent = folder is not None and not folder.exists()
        if folder is not None and folder.is_dir():
            next(folder.iterdir(), None)
    except OSError as error:
        raise InputError(f"data root {str(folder)!r}: can't be read ({error.strerror})") from None
    if folder is not None and absent:
        if not download:
            raise InputError(f"data root {str(folder)!r}: no such folder, expected an existing one (or download=true)")
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise InputError(f"data root {str(folder)!r}: can't be made ({error.strerror})") from error
    source = SOURCES[name](folder, download)
    if not isinstance(source, Source):
        raise InputError(f"data source {name!r}: its loader returned {type(source).__name__}, expected Source")
    return source if train_items is None else _with_train_items(source, train_items)


def _with_train_items(source: Source, train_items: int) -> Source:
    if source.absent is not None:
        raise InputError(f"train_items {train_items!r}: source {source.name!r} has no images, {source.absent}")
    whole = isinstance(train_items, int) and not isinstance(train_items, bool)
    if not whole or not source.classes <= train_items <= len(source.train):
        raise InputError(
            f"train_items {train_items!r}: expected a whole number from {source.classes} (one per class) "
            f"to {len(source.train)} (all of source {source.name!r})"
        )
    kept = stratified_indices(source.train.labels, train_items, "train_items", source.name)
    train = Images(source.train.images[kept], source.train.labels[kept])
    rest = (source.test, source.classes, source.grey_mean, source.grey_std)
    return Source(source.name, train, *rest, fingerprint(source.name, train, *rest))
