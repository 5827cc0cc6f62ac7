"""What is known about a sweep before anything is launched: plan, data, zoo so far, ids, what is finished."""

from __future__ import annotations

import dataclasses
from math import inf
from pathlib import Path

import polars as pl

from stitching_core import record
from stitching_core.data.sequences import SEQUENCES
from stitching_core.data.sources import load_source
from stitching_core.errors import InputError
from stitching_core.models.architectures import architecture
from stitching_core.models.divide import DividedModel, check
from stitching_core.models.store import Zoo
from stitching_core.spec import CellSpec, DataSpec, Protocol, SearchSpec, cell_id, digest
from sweeps.cells import Planned
from sweeps.checks import within
from sweeps.ledger import Ledger
from sweeps.members import Member, Slot, check_variants, find_members, incomplete
from sweeps.plan import recipe
from sweeps.plugins import Plugin, data_hash
from sweeps.schema import SweepConfig
from sweeps.sequences import classes_of, make_pairings, part_of_id
from sweeps.shared_search import sample
from sweeps.worker import Setting


@dataclasses.dataclass
class Sweep:
    """Everything that is known before the first training."""

    config: SweepConfig
    plan: pl.DataFrame
    setting: Setting
    zoo: Zoo
    members: dict[Slot, Member]
    ledger: Ledger

    def finished(self) -> set[tuple[str, str]]:
        """(cell_id, eval_data) of what the ledger has all of that is asked for."""
        return self.ledger.finished(self.setting.rank, self.setting.columns)

    @property
    def asked(self) -> list[str]:
        """The test sets that uncut models are measured on."""
        names = self.plan["eval_data"].explode().unique(maintain_order=True).to_list()
        return [name for name in names if name != record.NOISE and name not in SEQUENCES]


def specs(config: SweepConfig) -> tuple[DataSpec, Protocol, SearchSpec]:
    """The core's frozen values from the configuration."""
    data = {field.name: getattr(config.data, field.name) for field in dataclasses.fields(DataSpec)}
    search, ranges = config.search, config.search.space
    if search.mode == "none":
        found = SearchSpec()
    else:
        found = SearchSpec(
            mode=search.mode,
            n_trials=search.n_trials,
            batch=search.batch,
            validation_fraction=search.validation_fraction,
            startup_trials=search.startup_trials,
            sample_cells=search.sample_cells if search.mode == "shared" else 0,
            learning_rate=(ranges.learning_rate[0], ranges.learning_rate[1]),
            momentum=(ranges.momentum[0], ranges.momentum[1]),
            weight_decay=(ranges.weight_decay[0], ranges.weight_decay[1]),
            epochs=(ranges.epochs[0], ranges.epochs[1]),
            init=tuple(ranges.init),
        )
    return DataSpec(**data), Protocol(**vars(config.protocol)), found


def prepare(config: SweepConfig, plan: pl.DataFrame, plugins: tuple[Plugin, ...]) -> Sweep:
    """Loads the data and looks into the zoo and the results folder; writes nothing.

    Raises:
        InputError: data, weights or results that can't be used.
    """
    ledger = Ledger(Path(config.results_dir) / config.name)
    ledger.check_version()
    setting = make_setting(config, plugins)
    check_variants(setting, [name for name in plan["fit_data"].unique() if name not in (record.NOISE, *SEQUENCES)])
    zoo = Zoo(Path(config.zoo.dir))
    names = sorted({*plan["sender"].unique(), *plan["receiver"].unique()}, key=list(config.zoo.models).index)
    recipes = [recipe(config, name, seed) for seed in plan["run"].unique(maintain_order=True) for name in names]
    sweep = Sweep(config, plan, setting, zoo, {}, ledger)
    sweep.members = find_members(zoo, recipes, setting, sweep.asked)
    return sweep


def make_setting(config: SweepConfig, plugins: tuple[Plugin, ...]) -> Setting:
    """Loads the data and says what is the same for every task.

    Raises:
        InputError: data that can't be used, or networks with fewer classes than the data.
    """
    data, _, search = specs(config)
    source = load_source(data.source, config.data.root, config.data.download, data.train_items)
    classes = config.zoo.classes or source.classes
    if classes < source.classes:
        raise InputError(f"zoo.classes={classes} is fewer than the {source.classes} classes of {data.source}")
    for offset in [config.protocol.label_offset, *config.grid.vary.get("label_offset", [])]:
        within("protocol.label_offset", offset, 0, classes - 1)
    for key in ("noise_train_items", "noise_test_items"):
        items = getattr(data, key)
        if items is None and source.absent is not None:
            raise InputError(f"data.{key} has no value; {data.source} has no images that it could be counted by")
        if items is not None:
            within(f"data.{key}", items, classes, inf)  # a point for each class
    return Setting(
        sweep=config.name,
        experiment=config.experiment_id,
        data=data,
        source=source,
        data_hash=data_hash(source.fingerprint, plugins),
        classes=classes,
        search=search,
        device=config.cluster.device,
        threads=config.cluster.threads,
        rank=config.measure.rank,
        columns=config.measure.columns,
        plugins=plugins,
        sequences=make_pairings(config, source, classes),
    )


def planned_cells(sweep: Sweep) -> list[Planned]:
    """The plan's cells with their ids, in the plan's order. Every member must have its card."""
    _, protocol, search = specs(sweep.config)
    setting = sweep.setting
    hashes = {slot: member.card.hash for slot, member in sweep.members.items() if member.card}

    def identify(cell: CellSpec, search: SearchSpec) -> Planned:
        sender, receiver = hashes[cell.sender.name, cell.seed], hashes[cell.receiver.name, cell.seed]
        found = cell_id(
            cell,
            sender_hash=sender,
            receiver_hash=receiver,
            data=setting.data,
            data_hash=setting.data_hash,
            search=search,
            more=part_of_id(setting, cell),
        )
        return Planned(found, cell, sender, receiver)

    cells = []
    for row in sweep.plan.iter_rows(named=True):
        seed = row["run"]
        spec = CellSpec(
            sender=sweep.members[row["sender"], seed].recipe,
            sender_cut=row["sender_cut"],
            receiver=sweep.members[row["receiver"], seed].recipe,
            receiver_cut=row["receiver_cut"],
            fit_data=row["fit_data"],
            eval_data=tuple(row["eval_data"]),
            protocol=dataclasses.replace(protocol, **{key: row[key] for key in sweep.config.grid.vary}),
            seed=seed,
        )
        cells.append(identify(spec, search))
    if search.mode == "shared":  # the winner depends on the sample too, so the sample is a part of every id
        chosen = sample([identify(cell.spec, SearchSpec()) for cell in cells], search.sample_cells, sweep.config.seed)
        search = dataclasses.replace(search, sample=digest([sweep.config.seed, [cell.id for cell in chosen]]))
        cells = [identify(cell.spec, search) for cell in cells]
    return cells


def unfinished(cells: list[Planned], done: set[tuple[str, str]]) -> list[Planned]:
    """Cells that lack the row of an evaluation asked of them; one of each id, whatever names it goes by."""
    once = {cell.id: cell for cell in reversed(cells)}
    return [
        cell
        for cell in cells
        if once[cell.id] is cell and any((cell.id, name) not in done for name in cell.spec.eval_data)
    ]


def check_cuts(sweep: Sweep) -> None:
    """Checks tail(front(x)) == model(x) at every cut of the grid, on networks with random weights.

    Raises:
        InputError: a cut that does not carry everything.
    """
    asked: dict[str, set[str]] = {}
    outputs: dict[str, int] = {}
    for end in ("sender", "receiver"):
        for name, cut in sweep.plan.select(end, f"{end}_cut").unique().drop_nulls().iter_rows():
            one = recipe(sweep.config, name, 0)
            arch = one.arch
            if arch is not None:
                outputs[arch] = classes_of(sweep.setting, one)
                asked.setdefault(arch, set()).add(cut)
    for arch, cuts in asked.items():
        entry = architecture(arch)
        divided = DividedModel(entry.build(outputs[arch]), entry.size, entry.shape)
        try:
            check(divided, [name for name in divided.cuts if name in cuts])
        except InputError as error:
            raise InputError(f"{arch}: {error}") from None


def is_level(sweep: Sweep) -> bool:
    """Whether the zoo is complete and every cell finished: then there is nothing to start Ray for."""
    if any(incomplete(member, sweep.asked, sweep.setting) for member in sweep.members.values()):
        return False
    return not unfinished(planned_cells(sweep), sweep.finished())
