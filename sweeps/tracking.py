"""MLflow: one parent run a sweep, one child run a cell, one run a base model. The ledger is the truth, this a copy."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # the default waits minutes for one that is gone

from mlflow import MlflowClient
from mlflow.entities import LifecycleStage, Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException

from sweeps.ledger import Ledger

Row = dict[str, Any]

# what a person filters by, beside the ids; the numbers go to metrics and the rest to parameters
TAGS = ("cell_id", "sender", "sender_cut", "receiver", "receiver_cut", "fit_data", "status", "reason", "experiment")
PARAMS = (
    "run", "sender", "sender_kind", "sender_arch", "sender_cut", "receiver", "receiver_arch", "receiver_cut",
    "data_source", "data_seed", "fit_data", "protocol", "stitch", "init", "bn_mode", "search", "device", "seed",
    "learning_rate", "momentum", "weight_decay", "batch_size", "epochs", "l1", "label_offset", "noise_sigma",
)  # fmt: skip
BY_EVALUATION = (
    "accuracy", "cross_entropy", "penalty", "receiver_accuracy", "sender_accuracy", "agreement_receiver",
    "agreement_sender", "worst_class_accuracy", "reconstruction_error", "receiver_error", "sender_error", "error_ratio",
)  # fmt: skip
OF_THE_CELL = ("weight_delta", "bias_delta", "weight_moved", "validation_accuracy", "validation_error", "train_seconds")
_STATE = "tracking.json"  # which run of which store the sweep's parent is


class Tracker:
    """Writes one sweep's runs. Not thread-safe; every method may raise what the store raises.

    Args:
        uri: of the tracking store.
        experiment: its experiment, made if need be.
        sweep: the sweep's name.
        folder: its results.
        artifacts: where a new experiment on SQLite keeps files; None leaves that to the server.
    """

    def __init__(self, uri: str, experiment: str, sweep: str, folder: Path, artifacts: Path | None) -> None:
        self.client = MlflowClient(tracking_uri=uri)
        found = self.client.get_experiment_by_name(experiment)
        if found is None:
            location = artifacts.resolve().as_uri() if artifacts else None
            kind = {"mlflow.experimentKind": "custom_model_development"}  # the UI then opens on the runs
            self.experiment = self.client.create_experiment(experiment, artifact_location=location, tags=kind)
        else:
            self.experiment = found.experiment_id
        self.sweep, self.ledger = sweep, Ledger(folder)
        self.parent = self._parent(uri)
        self.logged = self._logged()

    def _parent(self, uri: str) -> str:
        state = self.ledger.note(_STATE)
        if state.get("uri") == uri:
            try:
                run = self.client.get_run(state["run"])
                if run.info.lifecycle_stage == LifecycleStage.ACTIVE:
                    return str(run.info.run_id)
            except (MlflowException, KeyError):
                pass
        # none yet, or deleted, or a new store at the old address: begin anew, the ledger has every row
        run = self.client.create_run(self.experiment, run_name=self.sweep, tags={"kind": "sweep", "sweep": self.sweep})
        self.ledger.write_json(_STATE, {"uri": uri, "run": run.info.run_id})
        return str(run.info.run_id)

    def _children(self, kind: str, parent: str | None) -> list[Any]:
        clause = f"tags.kind = '{kind}'" + (f" and tags.`mlflow.parentRunId` = '{parent}'" if parent else "")
        runs, token = [], None
        while True:
            page = self.client.search_runs([self.experiment], clause, ViewType.ACTIVE_ONLY, 1000, page_token=token)
            runs += list(page)
            token = page.token
            if not token:
                return runs

    def _logged(self) -> dict[str, tuple[str, str]]:
        """By cell: its run and when the logged row was finished. Runs that a killed writer left open are removed."""
        logged = {}
        for run in self._children("cell", self.parent):
            if run.info.status == "RUNNING":
                self.client.delete_run(run.info.run_id)
            else:
                logged[run.data.tags["cell_id"]] = (run.info.run_id, run.data.tags.get("finished_at", ""))
        return logged

    def log_cell(self, rows: list[Row]) -> None:
        """One run for a cell: its rows differ in ``eval_data``. A newer result replaces the run of an older one."""
        first = rows[0]
        known = self.logged.get(first["cell_id"])
        if known and known[1] >= first["finished_at"]:
            return
        if known:
            self.client.delete_run(known[0])
        ends = " ".join(filter(None, (first["sender"], first["sender_cut"])))
        name = f"{ends} -> {first['receiver']} {first['receiver_cut']} (run {first['run']})"
        tags = {"kind": "cell", "sweep": self.sweep, "mlflow.parentRunId": self.parent}
        run = self.client.create_run(self.experiment, run_name=name, tags=tags)
        now = int(time.time() * 1000)
        metrics = [
            Metric(f"{column}/{row['eval_data']}", float(row[column]), now, 0)
            for row in rows
            for column in BY_EVALUATION
            if row[column] is not None
        ]
        metrics += [Metric(column, float(first[column]), now, 0) for column in OF_THE_CELL if first[column] is not None]
        metrics += [Metric("training_loss", loss, now, e + 1) for e, loss in enumerate(first["learning_curve"] or [])]
        # the parent's id goes in again with the rest: one call, whatever the number of values
        tagged = [RunTag(tag, str(first[tag])) for tag in (*TAGS, "finished_at") if first[tag] is not None]
        params = [Param(column, str(first[column])) for column in PARAMS if first[column] is not None]
        self.client.log_batch(run.info.run_id, metrics=metrics, params=params, tags=tagged)
        self.client.set_terminated(run.info.run_id, "FINISHED" if first["status"] == "ok" else "FAILED")
        self.logged[first["cell_id"]] = (run.info.run_id, first["finished_at"])

    def log_models(self, rows: list[Row]) -> None:
        """One run for each base model, shared by all sweeps of the experiment."""
        have = set()
        for run in self._children("model", None):
            if run.info.status == "RUNNING":  # half-written by a killed writer
                self.client.delete_run(run.info.run_id)
            else:
                have.add(run.data.tags.get("hash"))
        models: dict[str, list[Row]] = {}
        for row in rows:
            if row["eval_data"] is not None:
                models.setdefault(row["hash"], []).append(row)
        for content, measured in models.items():
            if content in have:
                continue
            first = measured[0]
            tags = {"kind": "model", "hash": content, "model": first["model"]}
            name = f"{first['model']} (seed {first['seed']})"
            run = self.client.create_run(self.experiment, run_name=name, tags=tags)
            now = int(time.time() * 1000)
            metrics = [
                Metric(f"{column}/{row['eval_data']}", row[column], now, 0)
                for row in measured
                for column in ("accuracy", "reconstruction_error")
                if row[column] is not None
            ]
            own = ("train_accuracy", "train_error", "train_seconds")
            metrics += [Metric(column, first[column], now, 0) for column in own if first[column] is not None]
            columns = ("model", "kind", "arch", "variant", "seed", "parameters", "learned", "hash")
            params = [Param(column, str(first[column])) for column in columns if first[column] is not None]
            self.client.log_batch(run.info.run_id, metrics=metrics, params=params)
            self.client.set_terminated(run.info.run_id)

    def log_files(self, files: list[Path], description: str) -> None:
        """Tables and figures as artifacts of the parent, and its description (Markdown)."""
        for file in files:
            folder = file.parent.name if file.parent != self.ledger.folder else None
            self.client.log_artifact(self.parent, str(file), artifact_path=folder)
        self.client.set_tag(self.parent, "mlflow.note.content", description)

    def end(self, failed: int) -> None:
        """Closes the parent run: FAILED if any cell is."""
        self.client.set_terminated(self.parent, "FAILED" if failed else "FINISHED")
