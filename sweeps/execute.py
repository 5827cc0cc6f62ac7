"""Brings a sweep level on Ray: base models, the shared search, blocks, tables, MLflow."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from stitching_core import record
from sweeps import cluster as ray_cluster
from sweeps.level import Outcome, conclude, tracker_of, write_plan
from sweeps.members import model_rows, refuse_unlearned
from sweeps.prepare import Sweep, planned_cells, unfinished
from sweeps.progress import say
from sweeps.tuning import train_cells
from sweeps.writer import Writer
from sweeps.zoo import complete_zoo

# a writer that is killed starts again and is asked again: whatever it is asked can be done twice
WriterActor = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Writer)


def execute(sweep: Sweep) -> Outcome:
    """Runs what is not finished yet on Ray; the ledger must be locked.

    Args:
        sweep: completed in place.

    Raises:
        InputError: a base model that did not learn, or a cluster without room for a block.
    """
    config = sweep.config
    with ray_cluster.start(config.cluster) as cluster:
        say(cluster.description)
        ray_cluster.check_room(cluster)
        setting = dataclasses.replace(
            sweep.setting,
            source=ray.put(sweep.setting.source),
            sequences={k: ray.put(v) for k, v in sweep.setting.sequences.items()},
        )
        complete_zoo(sweep.zoo, sweep.members, setting, sweep.asked, cluster.per_task)
        if not config.zoo.allow_unlearned:
            refuse_unlearned(sweep.members)
        cells = planned_cells(sweep)
        write_plan(sweep, cells)
        todo = unfinished(cells, sweep.finished())
        writer = _writer(sweep, [cell.id for cell in cells])
        writer.log_models.remote(model_rows(config.name, sweep.members))
        if todo:
            needed = {content for cell in todo for content in (cell.sender_hash, cell.receiver_hash)}
            tensors, uncut = _stored(sweep, needed)
            setting = dataclasses.replace(setting, writer=writer, tensors=tensors, uncut=uncut)
            train_cells(sweep, setting, cluster, todo, len(cells))
        return conclude(sweep, cells, lambda *logged: ray.get(writer.finish.remote(*logged)))


def _stored(sweep: Sweep, needed: set[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """References to the weights of the models needed, verified, and to what they predict uncut, by content hash."""
    tensors: dict[str, Any] = {}
    uncut: dict[str, Any] = {}
    for member in sweep.members.values():
        if member.card is None or member.recipe.kind == record.NOISE or member.card.hash in tensors:
            continue
        if member.card.hash in needed:
            tensors[member.card.hash] = ray.put(sweep.zoo.load(member.card, member.recipe))
            uncut[member.card.hash] = ray.put(member.uncut)
    return tensors, uncut


def _writer(sweep: Sweep, planned: list[str]) -> Any:
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    actor = WriterActor.options(scheduling_strategy=here)
    return actor.remote(sweep.ledger.folder.resolve(), tracker_of(sweep), planned, now)
