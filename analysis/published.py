"""Published numbers, in this project's names.

They are files of the package, ``analysis/reference/``, whose README says where they come from.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import yaml

from stitching_core.errors import InputError

FOLDER = Path(__file__).with_name("reference")
REFERENCES = ("smith2025",)
ITEMS = 10_000  # test items behind every published accuracy

# cut_index of the notebooks -> name of the cut (torchvision's children, truncated); VGG19 counts inside `features`
_RESNET_CUTS = {3: "maxpool", 4: "layer1", 5: "layer2", 6: "layer3", 7: "layer4", 8: "avgpool"}


def accuracies(reference: str) -> pl.DataFrame:
    """Accuracy of every published cell and uncut model, as fractions.

    Returns:
        ``experiment``, ``arch``, ``sender`` and ``cut`` (both null for an uncut model), ``receiver`` (or the uncut
        model), ``eval_data``, ``mean``, ``sd`` (over runs, null for one run), ``n`` (runs), ``low`` and ``high`` (the
        smallest and the largest of the runs).

    Raises:
        InputError: no reference of that name.
    """
    table = _read(reference, "accuracy")
    index = pl.col("cut_index")
    vgg = pl.col("arch") == "vgg19"
    cut = pl.when(vgg).then(pl.format("features.{}", index)).otherwise(_resnet_cut())
    return table.with_columns(cut=cut).select(
        pl.col("experiment", "arch", "sender", "cut", "receiver"),
        pl.col("eval_dataset").alias("eval_data"),
        pl.col("accuracy_mean").alias("mean"),
        pl.col("accuracy_sd").alias("sd"),
        pl.col("n_runs").alias("n"),
        pl.col("accuracy_min").alias("low"),
        pl.col("accuracy_max").alias("high"),
    )


def ranks(reference: str) -> pl.DataFrame:
    """Feature rank at every module of every published stitched and uncut ResNet-18.

    Returns:
        ``experiment``, ``sender``, ``cut``, ``receiver``, ``eval_data`` as in ``accuracies``, ``part`` (sender, stitch
        or receiver; null for an uncut model), ``module`` (its path there, as in the table ``modules``), ``width``
        (features of a sample), ``mean``, ``sd`` and ``n`` (runs).

    Raises:
        InputError: no reference of that name.
    """
    table = _read(reference, "rank")
    names = table["module"].unique()
    stitched = pl.col("stitched")
    parts = pl.col("module").replace_strict(names, [part_of(name) for name in names], return_dtype=pl.String)
    return table.with_columns(cut=_resnet_cut(), part=pl.when(stitched).then(parts)).select(
        pl.col("experiment", "sender", "cut", "receiver"),
        pl.col("eval_dataset").alias("eval_data"),
        "part",
        pl.col("module").replace_strict(names, [module_of(name) for name in names], return_dtype=pl.String),
        pl.col("features_dim").cast(pl.Int64).alias("width"),
        pl.col("rank_mean").alias("mean"),
        pl.col("rank_sd").alias("sd"),
        pl.col("n_runs").alias("n"),
    )


def setting(reference: str, experiment: str) -> dict[str, dict[str, Any]] | None:
    """What the published runs of an experiment were made with; None where that isn't recorded.

    Returns:
        ``cells``: values of columns of the table ``cells``; ``config``: values of dotted keys of a ``config.yaml``.
    """
    known = yaml.safe_load((FOLDER / f"{_checked(reference)}_setting.yaml").read_text(encoding="utf-8"))
    own = known["experiment"].get(experiment)
    if own is None:
        return None
    layers = (known["every"], known["arch"][own["arch"]], own)
    return {kind: {k: v for layer in layers for k, v in layer.get(kind, {}).items()} for kind in ("cells", "config")}


def part_of(module: str) -> str:
    """Which part of a stitched network the notebooks mean by a module's name."""
    if module.startswith("stitch."):
        return "stitch"
    return "sender" if module.startswith("send_") else "receiver"  # a noise sender has no modules: no prefixes in 1f


def module_of(module: str) -> str:
    """This project's path of a module that the notebooks name (torchvision's, of which they number the children)."""
    if module == "stitch.s_conv1":
        return "map"
    if module in ("originalfc", "original_rcv_fc"):
        return "fc"
    _, child, *rest = module.removeprefix("send_").removeprefix("rcv_").split(".")
    return ".".join([{"0": "conv1"}.get(child) or _RESNET_CUTS[int(child)], *rest])


def _resnet_cut() -> pl.Expr:
    return pl.col("cut_index").replace_strict(_RESNET_CUTS, default=None, return_dtype=pl.String)


def _read(reference: str, kind: str) -> pl.DataFrame:
    return pl.read_csv(FOLDER / f"{_checked(reference)}_{kind}.csv", schema_overrides={"experiment": pl.String})


def _checked(reference: str) -> str:
    if reference not in REFERENCES:
        raise InputError(f"--reference {reference!r} is unknown; allowed: {', '.join(REFERENCES)}")
    return reference
