"""Ray Tune over the blocks that are left, after the shared search if there is one; no cell is lost."""

from __future__ import annotations

import dataclasses
import logging
import tempfile
import time
from typing import Any

import polars as pl
import ray
from ray import tune

from stitching_core import record
from stitching_core.spec import Protocol, digest
from sweeps import cluster as ray_cluster
from sweeps.cells import Planned
from sweeps.objectives import score_text
from sweeps.plan import make_blocks
from sweeps.prepare import Sweep, planned_cells, specs
from sweeps.progress import Progress, clock, progress_line, say
from sweeps.rows import rows_of
from sweeps.shared_search import sample, shared_search
from sweeps.trial import Block, BlockTrial
from sweeps.variations import SEARCHED, TOGETHER
from sweeps.worker import Setting


def train_cells(sweep: Sweep, setting: Setting, cluster: ray_cluster.Cluster, todo: list[Planned], total: int) -> None:
    config, writer = sweep.config, setting.writer
    started = time.monotonic()
    finished = total - len(todo)
    trainings = float(sum(cell.spec.protocol.epochs for cell in todo))
    if setting.search.mode == "per_cell":
        kept = ray.get(writer.kept.remote([cell.id for cell in todo]))  # of a search that was killed
        trainings += (len(todo) * setting.search.n_trials - kept) * sum(setting.search.epochs) / 2

    def line() -> str:
        status = ray.get(writer.status.remote(), timeout=10)
        problems = status[record.DIVERGED] + status[record.FAILED]
        done, elapsed = status["done"], time.monotonic() - started
        work = trainings if done == len(todo) else status["work"]
        return progress_line(finished + done, total, len(todo), work, trainings, elapsed, problems)

    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # a failed block is a row, not three tracebacks
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
                    checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),  # the ledger is what resumes
                ),
            )
            tuner.fit()

        if setting.search.mode == "shared":
            protocol = _search(sweep, setting, run_tuner)
            found = {key: getattr(protocol, key) for key in SEARCHED}
            todo = [with_found(cell, found) for cell in todo]
            trainings = sum(cell.spec.protocol.epochs for cell in todo)
            ray.get(writer.reset_work.remote())
            started = time.monotonic()

        def run_blocks(block_cells: int) -> list[Planned]:
            absent = set(ray.get(writer.missing.remote([cell.id for cell in todo])))
            lost = [cell for cell in todo if cell.id in absent]
            if lost:
                blocks = put_blocks(lost, block_cells, cluster.slots)
                inputs = {"setting": setting, "blocks": blocks}
                run_tuner(BlockTrial, inputs, None, 1, {"block": tune.grid_search(list(range(len(blocks))))})
            return lost

        with Progress(line):
            run_blocks(config.cluster.block_cells)
            alone = run_blocks(1)  # a cell that kills its worker takes nobody else along
    absent = set(ray.get(writer.missing.remote([cell.id for cell in alone])))
    lost = [cell for cell in alone if cell.id in absent]
    if lost:  # the worker died each time that it was tried
        reason = f"the worker died; tried {config.cluster.max_failures + 1} times alone"
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
    total, started = search.n_trials * len(cells) * sum(search.epochs) / 2, time.monotonic()

    def line() -> str:
        share = min(ray.get(setting.writer.status.remote(), timeout=10)["work"] / total, 1.0)
        return f"shared search | {share:.0%} | {clock(time.monotonic() - started)} gone"

    with Progress(line):
        protocol, value = shared_search(setting, cells, fixed, search, sweep.config.seed, run_tuner)
    scored = score_text(fixed, value)
    say(
        f"shared search: learning_rate={protocol.learning_rate:.3g} momentum={protocol.momentum:.3g} "
        f"weight_decay={protocol.weight_decay:.3g} epochs={protocol.epochs} init={protocol.init} ({scored})"
    )
    return protocol


def with_found(cell: Planned, found: dict[str, Any]) -> Planned:
    """The cell with hyperparameters that a search found, and the rest of its protocol as it was."""
    protocol = dataclasses.replace(cell.spec.protocol, **found)
    return dataclasses.replace(cell, spec=dataclasses.replace(cell.spec, protocol=protocol))


def put_blocks(todo: list[Planned], block_cells: int, slots: int) -> list[Any]:
    """The cells that are left, as blocks in Ray's object store."""
    table = pl.DataFrame(
        {
            "run": [cell.spec.seed for cell in todo],
            "sender": [cell.spec.sender.name for cell in todo],
            "fit_data": [cell.spec.fit_data for cell in todo],
            **{key: [getattr(cell.spec.protocol, key) for cell in todo] for key in TOGETHER},
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
