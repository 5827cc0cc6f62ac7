"""Runs on Ray what is not finished: base models, the shared search, blocks; and sees to it that no cell is lost."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import ray
from ray import tune
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from stitching_core import record
from stitching_core.errors import InputError
from stitching_core.spec import Protocol, digest
from sweeps import cluster as ray_cluster
from sweeps.cells import Planned, rows_of
from sweeps.plan import make_blocks
from sweeps.prepare import Sweep, planned_cells, specs, unfinished
from sweeps.progress import Progress, clock, progress_line, say
from sweeps.schema import SweepConfig
from sweeps.shared_search import sample, shared_search
from sweeps.trial import Block, BlockTrial
from sweeps.worker import Setting
from sweeps.writer import WriterActor
from sweeps.zoo import Member, complete_zoo, model_rows, refuse_unlearned


def write_plan(sweep: Sweep, cells: list[Planned], config_text: str) -> None:
    """The files that describe the sweep; the configuration last, since a folder without it is no sweep's."""
    sweep.ledger.write_frame("plan.parquet", sweep.plan.with_columns(pl.Series("cell_id", [c.id for c in cells])))
    sweep.ledger.write_rows("models.parquet", "models", model_rows(sweep.config.name, sweep.members))
    (sweep.ledger.folder / "cells").mkdir(exist_ok=True)
    sweep.ledger.write_text("config.yaml", config_text)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a sweep ended: cells by status in the whole plan, and what MLflow lacks."""

    failed: int
    diverged: int
    behind: int
    problem: str | None


def execute(sweep: Sweep, config_text: str, artifacts: Callable[[], tuple[list[Path], str]]) -> Outcome:
    """Runs what is not finished yet on Ray.

    Args:
        config_text: goes to ``config.yaml``.
        artifacts: called at the end; returns files for MLflow's parent run and its description.

    Raises:
        InputError: a base model that did not learn.
    """
    config = sweep.config
    with ray_cluster.start(config.cluster) as cluster:
        say(cluster.description)
        if cluster.slots < 1:
            raise InputError(f"a block needs {cluster.per_block}, and {cluster.description} has no room for one")
        setting = dataclasses.replace(sweep.setting, source=ray.put(sweep.setting.source))
        _zoo(sweep, setting, cluster)
        if not config.zoo.allow_unlearned:
            refuse_unlearned(sweep.members)
        cells = planned_cells(sweep)
        write_plan(sweep, cells, config_text)
        todo = unfinished(cells, sweep.ledger.finished())
        writer = _writer(sweep, [cell.id for cell in cells])
        writer.call.remote("log_models", model_rows(config.name, sweep.members))
        setting = dataclasses.replace(setting, writer=writer, **_stored(sweep))
        if todo:
            _train(sweep, setting, cluster, todo, len(cells))
        rows = sweep.ledger.cells().filter(pl.col("cell_id").is_in([cell.id for cell in cells]))
        status = rows.group_by("cell_id").agg(pl.col("status").first())["status"].to_list()
        failed, diverged = status.count(record.FAILED), status.count(record.DIVERGED)
        writer.call.remote("log_files", *artifacts())
        writer.call.remote("end", failed)
        behind, problem = ray.get(writer.close.remote())
        return Outcome(failed, diverged, behind, problem)


def _zoo(sweep: Sweep, setting: Setting, cluster: ray_cluster.Cluster) -> None:
    started = time.monotonic()

    def tell(member: Member, done: int, total: int) -> None:
        assert member.card is not None
        own = member.uncut.get(member.recipe.variant or "")
        accuracy = f", {own.accuracy:.1%} on {member.recipe.variant}" if own else ""
        name = f"{member.recipe.name} (run {member.recipe.seed}{accuracy})"
        say(f"base models {done}/{total} | {name} | {clock(time.monotonic() - started)} gone")

    complete_zoo(sweep.zoo, sweep.members, setting, sweep.asked, cluster.per_task, tell)


def _stored(sweep: Sweep) -> dict[str, dict[str, Any]]:
    """References to every model's weights, verified, and to what it predicts uncut, by content hash."""
    tensors, uncut = {}, {}
    for member in sweep.members.values():
        if member.card is not None and member.recipe.kind != record.NOISE and member.card.hash not in tensors:
            tensors[member.card.hash] = ray.put(sweep.zoo.load(member.card, member.recipe))
            uncut[member.card.hash] = ray.put(member.uncut)
    return {"tensors": tensors, "uncut": uncut}


def _writer(sweep: Sweep, planned: list[str]) -> Any:
    config, folder = sweep.config, sweep.ledger.folder.resolve()
    tracking = None
    if config.tracking.enabled:
        home = Path(config.results_dir).resolve()
        tracking = {
            "uri": tracking_uri(config),
            "experiment": config.tracking.experiment,
            "sweep": config.name,
            "folder": folder,
            "artifacts": None if config.tracking.uri else home / "mlartifacts",
        }
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return WriterActor.options(scheduling_strategy=here).remote(folder, tracking, planned)


def tracking_uri(config: SweepConfig) -> str:
    """The configured store, or SQLite beside the results."""
    return config.tracking.uri or f"sqlite:///{Path(config.results_dir).resolve() / 'mlflow.db'}"


def _train(sweep: Sweep, setting: Setting, cluster: ray_cluster.Cluster, todo: list[Planned], total: int) -> None:
    config, writer = sweep.config, setting.writer
    started = time.monotonic()
    finished = total - len(todo)
    trainings = sum(cell.spec.protocol.epochs for cell in todo)
    if setting.search.mode == "per_cell":
        trainings += len(todo) * setting.search.n_trials * setting.search.epochs[1]

    def line() -> str:
        status = ray.get(writer.status.remote(), timeout=10)
        problems = status[record.DIVERGED] + status[record.FAILED]
        done, elapsed = status["done"], time.monotonic() - started
        work = trainings if done == len(todo) else status["work"]
        return progress_line(finished + done, total, work, trainings, elapsed, problems)

    with tempfile.TemporaryDirectory(prefix="stitching-tune-") as scratch:

        def run_tuner(trainable: Any, inputs: dict[str, Any], algorithm: Any, samples: int, space: Any = None) -> None:
            tuner = tune.Tuner(
                tune.with_resources(tune.with_parameters(trainable, **inputs), cluster.per_block),
                param_space=space,
                tune_config=tune.TuneConfig(search_alg=algorithm, num_samples=samples, reuse_actors=True),
                run_config=tune.RunConfig(
                    storage_path=scratch,
                    verbose=0,
                    failure_config=tune.FailureConfig(max_failures=config.cluster.max_failures),
                ),
            )
            tuner.fit()

        if setting.search.mode == "shared":
            protocol = _search(sweep, setting, run_tuner)
            todo = [dataclasses.replace(c, spec=dataclasses.replace(c.spec, protocol=protocol)) for c in todo]
            trainings = sum(cell.spec.protocol.epochs for cell in todo)
            ray.get(writer.reset_work.remote())
            started = time.monotonic()
        blocks = put_blocks(todo, config.cluster.block_cells, cluster.slots)
        with Progress(line):
            inputs = {"setting": setting, "blocks": blocks}
            run_tuner(BlockTrial, inputs, None, 1, {"block": tune.grid_search(list(range(len(blocks))))})
    lost = unfinished(todo, set(sweep.ledger.cells().select("cell_id", "eval_data").iter_rows()))
    if lost:  # the worker died each time that it was tried
        reason = f"the worker died; tried {config.cluster.max_failures + 1} times"
        rows = [
            row
            for cell in lost
            for row in rows_of(setting, cell, cell.spec.protocol, "unknown", None, {}, None, failure=reason)[0]
        ]
        ray.get(writer.add.remote("lost-" + digest([cell.id for cell in lost])[:16], {"cells": rows}))


def _search(sweep: Sweep, setting: Setting, run_tuner: Any) -> Protocol:
    _, fixed, search = specs(sweep.config)
    cells = sample(planned_cells(sweep), search.sample_cells, sweep.config.seed)
    say(f"shared search: {search.n_trials} candidates over {len(cells)} cells each")
    protocol, value = shared_search(setting, cells, fixed, search, sweep.config.seed, run_tuner)
    scored = "every candidate failed; the fixed protocol is used" if value is None else f"{value:.2%} on validation"
    say(
        f"shared search: learning_rate={protocol.learning_rate:.3g} momentum={protocol.momentum:.3g} "
        f"weight_decay={protocol.weight_decay:.3g} epochs={protocol.epochs} init={protocol.init} ({scored})"
    )
    return protocol


def put_blocks(todo: list[Planned], block_cells: int, slots: int) -> list[Any]:
    """The cells that are left, as blocks in Ray's object store."""
    table = pl.DataFrame(
        {
            "run": [cell.spec.seed for cell in todo],
            "sender": [cell.spec.sender.name for cell in todo],
            "fit_data": [cell.spec.fit_data for cell in todo],
            "index": range(len(todo)),
        }
    )
    members: dict[int, list[Planned]] = {}
    for number, index in make_blocks(table, block_cells, slots).select("block", "index").iter_rows():
        members.setdefault(number, []).append(todo[index])
    blocks = []
    for number in sorted(members):
        cells = tuple(members[number])
        blocks.append(ray.put(Block(digest([cell.id for cell in cells])[:24], cells)))
    return blocks
