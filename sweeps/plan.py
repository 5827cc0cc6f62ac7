"""From the configuration to the table of cells, and from cells to blocks. Pure: no data, no weights, no Ray."""

from __future__ import annotations

import itertools
import math

import polars as pl

from stitching_core import record
from stitching_core.data.variants import VARIANTS
from stitching_core.errors import InputError
from stitching_core.models.architectures import architecture
from stitching_core.models.divide import cuts_of
from stitching_core.spec import ModelRecipe, TrainingRecipe
from stitching_core.stitch.shapes import match
from sweeps.checks import one_of
from sweeps.schema import SweepConfig, training_of
from sweeps.variations import TOGETHER, variations

OWN, FIT = "own", "fit"
SHAPES_AT = 10  # classes of the networks whose cuts are looked up: the shapes at the cuts do not depend on it


def recipe(config: SweepConfig, name: str, seed: int) -> ModelRecipe:
    """The recipe of one of the zoo's models in the run of that seed."""
    named = config.zoo.models[name]
    model = config.zoo.models[named.of] if named.of is not None else named  # whose stitches get shuffled labels
    return ModelRecipe(
        name=name,
        kind=model.kind,
        arch=None if model.kind == record.NOISE else model.arch or config.zoo.arch,
        variant=model.source if model.source and model.kind == record.TRAINED else model.variant,
        seed=seed,
        training=TrainingRecipe(**vars(training_of(config.zoo, model))) if model.kind == record.TRAINED else None,
        sigma=model.sigma if model.kind == record.NOISE else None,
        weights=model.weights if model.kind == record.WEIGHTS else None,
        source=model.source,
        shuffled=named.kind == record.SHUFFLED,
    )


def make_plan(config: SweepConfig) -> pl.DataFrame:
    """Every cell of the sweep, one row each, without ids.

    Returns:
        Columns run (the run's seed), sender, sender_cut (null for noise), receiver, receiver_cut, fit_data, eval_data
        (a list), and one for each key of `grid.vary`. Ordered by run, receiver, sender and cut.

    Raises:
        InputError: unknown model, cut or variant, shapes that can't match, or an empty grid.
    """
    grid, models = config.grid, config.zoo.models
    senders, receivers = _names(config, "senders"), _names(config, "receivers")
    for name in receivers:
        if models[name].kind == record.NOISE:
            raise InputError(f"grid.receivers: {name!r} is a noise source; it has no network to receive with")
        if models[name].kind == record.SHUFFLED:
            raise InputError(
                f"grid.receivers: {name!r} is a floor of senders (shuffled labels); {models[name].of!r} can"
            )
        if models[name].source is not None:
            raise InputError(f"grid.receivers: {name!r} reads {models[name].source}; receivers read the sweep's images")
    one_of("grid.fit_data", grid.fit_data, (OWN, *VARIANTS))
    for name in grid.eval_data:
        one_of("grid.eval_data", name, (FIT, *VARIANTS))
    if not grid.eval_data:
        raise InputError("grid.eval_data=[] is empty; allowed: fit, " + ", ".join(VARIANTS))

    rows = []
    pairs: dict[tuple[str | None, str], list[tuple[str | None, str]]] = {}
    for receiver in receivers:
        for sender in senders:
            if grid.pairs != "all" and (sender == receiver) != (grid.pairs == "self"):
                continue
            arch = recipe(config, sender, config.seed).arch
            key = (arch, models[receiver].arch or config.zoo.arch)
            if key not in pairs:
                pairs[key] = _cut_pairs(config, *key)
            fit, evaluations = _data_of(config, sender)
            rows += [(sender, s_cut, receiver, r_cut, fit, evaluations) for s_cut, r_cut in pairs[key]]
    schema = {
        "sender": pl.String(),
        "sender_cut": pl.String(),
        "receiver": pl.String(),
        "receiver_cut": pl.String(),
        "fit_data": pl.String(),
        "eval_data": pl.List(pl.String()),
    }
    cells = pl.DataFrame(rows, schema=schema, orient="row")
    if cells.is_empty():
        raise InputError(
            f"the grid is empty: {len(senders)} senders x {len(receivers)} receivers, cuts {grid.cuts!r}, "
            f"grid.mode={grid.mode}, grid.pairs={grid.pairs}; it needs at least one of each, in same_cut a cut that "
            "both networks have, with pairs=self a model that is both, with pairs=other two models"
        )
    if grid.vary:
        cells = cells.join(variations(config), how="cross", maintain_order="left_right")
    runs = pl.DataFrame({"run": range(config.seed, config.seed + grid.runs)}, schema={"run": pl.Int64()})
    return runs.join(cells, how="cross", maintain_order="left_right")


def _names(config: SweepConfig, key: str) -> list[str]:
    names = getattr(config.grid, key)
    if names is None:
        receiver = key == "receivers"
        names = [n for n, m in config.zoo.models.items() if not (receiver and (m.kind in record.FLOORS or m.source))]
    for name in names:
        one_of(f"grid.{key}", name, config.zoo.models)
    if len(set(names)) < len(names):
        raise InputError(f"grid.{key}={names} names a model twice")
    return list(names)


def _data_of(config: SweepConfig, sender: str) -> tuple[str, list[str]]:
    model, grid = config.zoo.models[sender], config.grid
    if model.kind == record.NOISE:
        return record.NOISE, [record.NOISE]
    model = config.zoo.models[model.of] if model.of is not None else model
    if model.source is not None:
        return model.source, [model.source]
    fit = grid.fit_data
    if fit == OWN:
        if model.variant is None:
            raise InputError(
                f"grid.fit_data=own: the sender {sender!r} has no data of its own; set grid.fit_data to a variant"
            )
        fit = model.variant
    return fit, list(dict.fromkeys(fit if name == FIT else name for name in grid.eval_data))


def cut_names(config: SweepConfig, arch: str) -> list[str]:
    """The canonical names of an architecture's cuts that the grid asks for, in the order of the network.

    Raises:
        InputError: an unknown cut, or none named for the architecture.
    """
    asked = config.grid.cuts
    if isinstance(asked, dict):
        if arch not in asked:
            raise InputError(f"grid.cuts names no cuts for {arch}; it has lists for {', '.join(map(str, asked))}")
        asked = asked[arch]
    if not isinstance(asked, list):
        raise InputError(f"grid.cuts={asked!r} is no list of names, nor one list for each architecture")
    divided = cuts_of(arch, config.zoo.classes or SHAPES_AT)
    try:
        names = {divided.cut(str(name)).name for name in asked}
    except InputError as error:
        raise InputError(f"grid.cuts: {arch} has an {error}") from None
    return [name for name in divided.cuts if name in names]


def _cut_pairs(config: SweepConfig, sender: str | None, receiver: str) -> list[tuple[str | None, str]]:
    """The pairs of cuts to stitch between two architectures, shapes checked; a noise sender has no cut of its own."""
    receiver_cuts = cut_names(config, receiver)
    if sender is None:
        return [(None, cut) for cut in receiver_cuts]
    sender_cuts = cut_names(config, sender)
    same = config.grid.mode == "same_cut"
    pairs: list[tuple[str | None, str]] = []
    classes = config.zoo.classes or SHAPES_AT
    for sender_cut, receiver_cut in itertools.product(sender_cuts, receiver_cuts):
        if same and sender_cut != receiver_cut:
            continue
        pairs.append((sender_cut, receiver_cut))
        sent = cuts_of(sender, classes).cut(sender_cut).shape
        if len(sent) == 2 and architecture(sender).sequence is None:  # of tokens, channels last: no series
            raise InputError(f"grid.cuts: {sender} {sender_cut} is {sent[0]}x{sent[1]}, neither a map nor a vector")
        try:
            match(sent, cuts_of(receiver, classes).cut(receiver_cut).shape)
        except InputError as error:
            raise InputError(f"grid.cuts: {sender} {sender_cut} -> {receiver} {receiver_cut}: {error}") from None
    return pairs


def make_blocks(cells: pl.DataFrame, block_cells: int, slots: int) -> pl.DataFrame:
    """Puts every cell into a block: cells that share sender, run and fit data, and so each batch of the front.

    Where the cells differ in batch size or bn_mode (columns of those names), they share those too.

    Blocks hold at most ``block_cells`` cells, and the largest groups are split further while there are fewer blocks
    than slots. Which block a cell is in does not change its result.

    Returns:
        The cells with a column ``block``, numbered with the largest block first.
    """
    key = ["run", "sender", "fit_data", *(name for name in TOGETHER if name in cells.columns)]
    groups = cells.group_by(key, maintain_order=True).agg(pl.len().alias("size"))
    sizes = groups["size"].to_list()
    pieces = [math.ceil(size / block_cells) for size in sizes]
    while sum(pieces) < slots:
        largest = max(range(len(sizes)), key=lambda i: sizes[i] / pieces[i])
        if sizes[largest] == pieces[largest]:
            break
        pieces[largest] += 1
    groups = groups.with_columns(pl.Series("pieces", pieces), pl.int_range(pl.len()).alias("group"))
    placed = cells.join(groups, on=key, how="left", maintain_order="left").with_columns(
        (pl.int_range(pl.len()).over("group") * pl.col("pieces") // pl.col("size")).alias("piece")
    )
    blocks = placed.group_by("group", "piece", maintain_order=True).agg(pl.len().alias("cells"))
    blocks = blocks.sort("cells", descending=True, maintain_order=True)
    blocks = blocks.with_columns(pl.int_range(pl.len()).alias("block")).drop("cells")
    placed = placed.join(blocks, on=["group", "piece"], how="left", maintain_order="left")
    return placed.drop("size", "pieces", "group", "piece")
