"""One block as a Tune trial: train its cells, measure them, hand the rows over."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ray
import torch
from ray import tune

from stitching_core import record
from stitching_core.spec import Protocol
from stitching_core.train.block import nothing_more
from sweeps import cells as work
from sweeps.cells import VALIDATION, Candidate, Planned
from sweeps.ledger import Rows
from sweeps.objectives import score_of
from sweeps.pictures import output_rows
from sweeps.ranks import Ranks, collector, rank_rows
from sweeps.rows import rows_of
from sweeps.search import CellSearch, with_params
from sweeps.worker import Setting, prepare


@dataclass(frozen=True)
class Block:
    """Cells that are trained together; the part of the ledger that they go to is named after their ids."""

    part: str
    cells: tuple[Planned, ...]


def run_block(setting: Setting, block: Block) -> Rows:
    """Trains every cell of a block and returns its rows. An exception makes rows too: no cell is ever lost."""
    started = time.perf_counter()
    device = torch.device("cpu")
    protocols: dict[str, Protocol] = {cell.id: cell.spec.protocol for cell in block.cells}
    scores: dict[str, float | None] = {}
    runs: dict[str, Any] = {}
    results: dict[str, Any] = {}
    ranks: dict[str, Ranks] = {}
    failure = None
    try:
        device = prepare(setting)
        if setting.search.mode == "per_cell":
            protocols, scores = search_block(setting, block, device)
        candidates = [Candidate(cell.id, cell, protocols[cell.id]) for cell in block.cells]
        planned = {cell.id: cell for cell in block.cells}
        on_leave = collector(setting, planned, ranks) if setting.rank else nothing_more
        runs, results = work.train(setting, candidates, device, _progress(setting), on_leave=on_leave)
    except Exception as error:  # a worker must outlive whatever a block does; the rows say what it was
        failure = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:500]
    if failure and len(block.cells) > 1:  # whose fault it was is found out by training each alone
        single = [run_block(setting, Block(block.part, (cell,))) for cell in block.cells]
        return {table: [row for rows in single for row in rows[table]] for table in single[0]}
    seconds = (time.perf_counter() - started) / len(block.cells)
    rows: Rows = {"cells": [], "predictions": [], "modules": [], "outputs": []}
    for cell in block.cells:
        its_rows, predictions = rows_of(
            setting,
            cell,
            protocols[cell.id],
            device,
            runs.get(cell.id),
            results.get(cell.id, {}),
            seconds,
            failure=failure,
            validation_accuracy=scores.get(cell.id),
        )
        rows["cells"] += its_rows
        rows["predictions"] += predictions
        rows["outputs"] += output_rows(results.get(cell.id, {}), cell.spec.seed, cell.id)
        rows["modules"] += rank_rows(ranks.get(cell.id, {}), cell.spec.seed, cell_id=cell.id)
    return rows


def _progress(setting: Setting) -> Callable[[int], None]:
    writer = setting.writer
    return (lambda stitches: writer.progress.remote(stitches)) if writer is not None else lambda stitches: None


def search_block(
    setting: Setting, block: Block, device: torch.device
) -> tuple[dict[str, Protocol], dict[str, float | None]]:
    """Searches each cell's hyperparameters: a round's candidates of all cells train in one lock-step.

    Returns:
        The winner's protocol and its validation score, by cell.
    """
    writer = setting.writer
    studies = {}
    for cell in block.cells:
        finished = ray.get(writer.trials.remote(cell.id)) if writer is not None else []
        studies[cell.id] = CellSearch(cell.id, cell.spec.protocol, setting.search, finished)
    while True:
        candidates = []
        for cell in block.cells:
            study = studies[cell.id]
            for number, params in enumerate(study.ask()):
                key = f"{cell.id}/{len(study.records) + number}"
                candidates.append(Candidate(key, cell, with_params(cell.spec.protocol, params)))
        if not candidates:
            break
        outcomes = score(setting, candidates, device)
        for cell_id, study in studies.items():
            first = len(study.records)
            told = study.tell([outcomes[f"{cell_id}/{first + i}"] for i in range(len(study.asked))])
            if writer is not None and told:
                ray.get(writer.add_trials.remote(cell_id, told, study.space))
    winners = {cell_id: study.winner() for cell_id, study in studies.items()}
    protocols = {c.id: with_params(c.spec.protocol, winners[c.id].params) for c in block.cells}
    return protocols, {cell_id: winner.value for cell_id, winner in winners.items()}


def score(
    setting: Setting, candidates: list[Candidate], device: torch.device
) -> dict[str, tuple[float | None, float | None, str]]:
    """Validation score, loss (see ``score_of``) and status of candidates that share a block, by key."""
    runs, results = work.train(setting, candidates, device, _progress(setting), validate=True)
    outcomes: dict[str, tuple[float | None, float | None, str]] = {}
    for key, run in runs.items():
        if run.status == record.OK:
            outcomes[key] = (*score_of(results[key][VALIDATION]), run.status)
        else:
            outcomes[key] = (None, None, run.status)
    return outcomes


class BlockTrial(tune.Trainable):
    """Tune's view of a block. The actor is reused from block to block, and with it whatever it has loaded."""

    def setup(  # type: ignore[override]  # tune.with_parameters adds the rest
        self, config: dict[str, Any], setting: Setting, blocks: list[Any]
    ) -> None:
        self.setting, self.blocks, self.number = setting, blocks, config["block"]

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.number = new_config["block"]
        return True

    def step(self) -> dict[str, Any]:
        block: Block = ray.get(self.blocks[self.number])
        rows = run_block(self.setting, block)
        ray.get(self.setting.writer.add.remote(block.part, rows))  # returns when they are on disk
        return {"done": True, "cells": len(block.cells)}
