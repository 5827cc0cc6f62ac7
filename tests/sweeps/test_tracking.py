"""MLflow on a real SQLite store, and the writer that feeds it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.exceptions import MlflowException

from stitching_core.record import row
from sweeps.journal import TrialRecord
from sweeps.ledger import Ledger
from sweeps.tracking import Tracker
from sweeps.writer import Writer

CURVE = [2.0, 1.0, 0.5]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all tests: a new one takes seconds to set up."""
    return tmp_path_factory.mktemp("mlflow")


@pytest.fixture
def arguments(home: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Of a tracker with an experiment, a sweep and a results folder of the test's own."""
    name = request.node.name
    return {
        "uri": f"sqlite:///{home / 'mlflow.db'}",
        "experiment": name,
        "sweep": "mine",
        "folder": home / name,
        "artifacts": home / "artifacts",
    }


@pytest.fixture
def client(arguments: dict[str, Any]) -> Iterator[MlflowClient]:
    return MlflowClient(tracking_uri=arguments["uri"])


def runs(client: MlflowClient, arguments: dict[str, Any], kind: str) -> list[Run]:
    experiment = client.get_experiment_by_name(arguments["experiment"])
    found = client.search_runs([experiment.experiment_id], f"tags.kind = '{kind}'")
    return sorted(found, key=lambda run: run.info.run_name)


def cell(name: str, eval_data: str = "correlated", when: str = "2030-01-01", **values: Any) -> dict[str, Any]:
    known = {
        "cell_id": name, "eval_data": eval_data, "run": 0, "sender": "colour", "sender_cut": "layer1",
        "receiver": "digit", "receiver_cut": "layer2", "fit_data": "correlated", "status": "ok", "accuracy": 0.75,
        "learning_rate": 0.03, "epochs": 3, "weight_delta": 1.5, "learning_curve": CURVE, "finished_at": when,
    }  # fmt: skip
    return row("cells", **{**known, **values})


def model(content: str, eval_data: str | None = "digit", **values: Any) -> dict[str, Any]:
    known = {"model": "digit", "kind": "trained", "seed": 0, "hash": content, "eval_data": eval_data, "learned": True}
    return row("models", **{**known, "accuracy": 0.5 if eval_data else None, "parameters": 7, **values})


def test_a_cell_is_a_child_with_all_its_numbers(arguments: dict[str, Any], client: MlflowClient) -> None:
    tracker = Tracker(**arguments)
    tracker.log_cell([cell("a"), cell("a", "digit", accuracy=0.25, penalty=-0.5)])
    (parent,), (child,) = runs(client, arguments, "sweep"), runs(client, arguments, "cell")
    assert parent.info.run_name == "mine"
    assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert child.info.run_name == "colour layer1 -> digit layer2 (run 0)"
    assert child.info.status == "FINISHED"
    metrics = child.data.metrics
    assert (metrics["accuracy/correlated"], metrics["accuracy/digit"], metrics["penalty/digit"]) == (0.75, 0.25, -0.5)
    assert metrics["weight_delta"] == 1.5
    assert not [name for name in metrics if name.startswith(("penalty/correlated", "bias_delta"))]  # they are null
    curve = client.get_metric_history(child.info.run_id, "training_loss")
    assert [(point.step, point.value) for point in curve] == [(1, 2.0), (2, 1.0), (3, 0.5)]
    assert (child.data.params["learning_rate"], child.data.params["sender_cut"]) == ("0.03", "layer1")
    assert (child.data.tags["cell_id"], child.data.tags["status"], child.data.tags["sweep"]) == ("a", "ok", "mine")


def test_a_cell_that_diverged_is_marked(arguments: dict[str, Any], client: MlflowClient) -> None:
    tracker = Tracker(**arguments)
    bad = {"status": "diverged", "reason": "loss is nan", "accuracy": None, "learning_curve": [1.0, float("nan")]}
    tracker.log_cell([cell("a", sender="noise", sender_cut=None, **bad)])
    (child,) = runs(client, arguments, "cell")
    assert child.info.status == "FAILED"
    assert child.info.run_name == "noise -> digit layer2 (run 0)"
    assert child.data.tags["reason"] == "loss is nan"
    assert "accuracy/correlated" not in child.data.metrics


def test_a_second_run_of_the_sweep_adds_nothing(arguments: dict[str, Any], client: MlflowClient) -> None:
    for _ in range(2):
        tracker = Tracker(**arguments)
        for name in ("a", "b"):
            tracker.log_cell([cell(name)])
            tracker.log_cell([cell(name)])
        tracker.end(0)
    assert [len(runs(client, arguments, kind)) for kind in ("sweep", "cell")] == [1, 2]
    # another sweep of the same experiment has a parent of its own
    other = {**arguments, "sweep": "other", "folder": arguments["folder"] / "other"}
    Tracker(**other).log_cell([cell("a")])
    parents = {run.data.tags["mlflow.parentRunId"] for run in runs(client, arguments, "cell")}
    assert parents == {run.info.run_id for run in runs(client, arguments, "sweep")}
    assert len(parents) == 2


def test_a_newer_result_replaces_the_older_and_never_the_other_way_round(
    arguments: dict[str, Any], client: MlflowClient
) -> None:
    tracker = Tracker(**arguments)
    for when, accuracy in (("2030-01-02", 0.2), ("2030-01-03", 0.3), ("2030-01-01", 0.1)):
        tracker.log_cell([cell("a", when=when, accuracy=accuracy)])
    (child,) = runs(client, arguments, "cell")
    assert child.data.metrics["accuracy/correlated"] == 0.3


def test_what_a_killed_writer_left_half_written_is_made_again(arguments: dict[str, Any], client: MlflowClient) -> None:
    first = Tracker(**arguments)
    tags = {"kind": "cell", "sweep": "mine", "mlflow.parentRunId": first.parent}
    half = client.create_run(first.experiment, tags=tags)
    half_model = client.create_run(first.experiment, tags={"kind": "model", "hash": "abc"})
    second = Tracker(**arguments)
    second.log_cell([cell("a")])
    second.log_models([model("abc")])
    (child,), (base,) = runs(client, arguments, "cell"), runs(client, arguments, "model")
    assert child.info.run_id != half.info.run_id
    assert base.info.run_id != half_model.info.run_id
    assert base.data.metrics["accuracy/digit"] == 0.5


def test_a_base_model_is_a_run_of_its_own_once(arguments: dict[str, Any], client: MlflowClient) -> None:
    rows = [model("abc"), model("abc", "mix", accuracy=0.25), model("def", seed=1), model("noise", None)]
    for _ in range(2):
        tracker = Tracker(**arguments)
        tracker.log_models(rows)
        tracker.log_models(rows)
    first, second = runs(client, arguments, "model")
    assert (first.info.run_name, second.info.run_name) == ("digit (seed 0)", "digit (seed 1)")
    assert first.data.metrics == {"accuracy/digit": 0.5, "accuracy/mix": 0.25}
    assert (first.data.params["hash"], first.data.params["learned"]) == ("abc", "True")
    assert "mlflow.parentRunId" not in first.data.tags


def test_files_and_the_end_belong_to_the_parent(arguments: dict[str, Any], client: MlflowClient) -> None:
    tracker, folder = Tracker(**arguments), arguments["folder"]
    (folder / "figures").mkdir(parents=True)
    for name in ("table.csv", "figures/map.png"):
        (folder / name).write_text("x")
    tracker.log_files([folder / "table.csv", folder / "figures/map.png"], "| a | table |")
    tracker.end(1)
    (parent,) = runs(client, arguments, "sweep")
    assert parent.info.status == "FAILED"
    assert parent.data.tags["mlflow.note.content"] == "| a | table |"
    assert {item.path for item in client.list_artifacts(parent.info.run_id)} == {"table.csv", "figures"}
    assert [item.path for item in client.list_artifacts(parent.info.run_id, "figures")] == ["figures/map.png"]
    Tracker(**arguments).end(0)
    assert runs(client, arguments, "sweep")[0].info.status == "FINISHED"


def test_a_parent_that_somebody_deleted_is_made_again(arguments: dict[str, Any], client: MlflowClient) -> None:
    first = Tracker(**arguments)
    first.log_cell([cell("a")])
    client.delete_run(first.parent)
    second = Tracker(**arguments)
    assert second.parent != first.parent
    assert second.logged == {}
    second.log_cell([cell("a")])
    assert second.parent in {run.data.tags["mlflow.parentRunId"] for run in runs(client, arguments, "cell")}


# -- the writer, as a plain object


def test_the_writer_logs_what_the_ledger_has_and_mlflow_lacks(arguments: dict[str, Any], client: MlflowClient) -> None:
    ledger = Ledger(arguments["folder"])
    ledger.write_text("config.yaml", "schema_version: 1\n")
    ledger.add("old", {"cells": [cell("a"), cell("a", "digit"), cell("of another plan")]})
    writer = Writer(arguments["folder"], arguments, ["a", "b"])
    writer.add("new", {"cells": [cell("b")]})
    assert writer.finish([], [], "", 0) == (0, None)
    assert {run.data.tags["cell_id"] for run in runs(client, arguments, "cell")} == {"a", "b"}
    assert sorted(ledger.cells()["cell_id"]) == ["a", "a", "b", "of another plan"]


def test_a_store_that_cannot_be_reached_costs_no_row(tmp_path: Path) -> None:
    Ledger(tmp_path).write_text("config.yaml", "schema_version: 1\n")
    tracking = {"uri": "nowhere://else", "experiment": "e", "sweep": "s", "folder": tmp_path, "artifacts": None}
    writer = Writer(tmp_path, tracking, ["a"])
    writer.add("one", {"cells": [cell("a")]})
    behind, problem = writer.finish([], [], "", 0)
    # the connection, the cell, the models, the files and the end
    assert behind == 5
    assert problem is not None
    assert "\n" not in problem
    assert "nowhere" in problem
    assert writer.ledger.finished() == {("a", "correlated")}


def test_one_call_that_fails_is_counted_and_the_rest_goes_on(
    arguments: dict[str, Any], client: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_cell = Tracker.log_cell

    def flaky(self: Tracker, rows: list[dict[str, Any]]) -> None:
        if rows[0]["cell_id"] == "a":
            raise MlflowException("the store\nis busy")
        log_cell(self, rows)

    monkeypatch.setattr(Tracker, "log_cell", flaky)
    Ledger(arguments["folder"]).write_text("config.yaml", "schema_version: 1\n")
    writer = Writer(arguments["folder"], arguments, ["a", "b"])
    writer.add("one", {"cells": [cell("a"), cell("b")]})
    behind, problem = writer.finish([], [], "", 0)
    assert behind >= 1  # twice if the ledger already had the cell when the tracker began
    assert problem == "MlflowException: the store"
    assert [run.data.tags["cell_id"] for run in runs(client, arguments, "cell")] == ["b"]


def test_a_store_that_is_gone_is_given_up(
    arguments: dict[str, Any], client: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def refuse(self: Tracker, rows: list[dict[str, Any]]) -> None:
        tried.append(rows[0]["cell_id"])
        raise MlflowException("gone")

    monkeypatch.setattr(Tracker, "log_cell", refuse)
    Ledger(arguments["folder"]).write_text("config.yaml", "schema_version: 1\n")
    names = [f"cell {number}" for number in range(10)]
    writer = Writer(arguments["folder"], arguments, names)
    for name in names:
        writer.add(name.replace(" ", ""), {"cells": [cell(name)]})
    behind, problem = writer.finish([], [], "", 0)
    assert behind >= 10
    assert problem == "MlflowException: gone"
    assert len(tried) == 3


def test_the_writer_counts(tmp_path: Path) -> None:
    Ledger(tmp_path).write_text("config.yaml", "schema_version: 1\n")
    writer = Writer(tmp_path, None, ["a", "b", "c"])
    writer.add("one", {"cells": [cell("a"), cell("a", "digit"), cell("b", status="diverged")]})
    writer.add("two", {"cells": [cell("c", status="failed")]})
    writer.progress(2)
    writer.progress(1)
    assert writer.status() == {"done": 3, "work": 3.0, "ok": 1, "diverged": 1, "failed": 1}
    writer.reset_work()
    assert writer.status()["work"] == 0
    assert writer.queue.empty()  # nobody reads it without tracking
    assert writer.finish([], [], "", 0) == (0, None)
    # killed and started again: it knows what was done since the sweep began
    assert Writer(tmp_path, None, ["a", "c"], since="2030-01-01").status()["done"] == 2
    assert Writer(tmp_path, None, ["a", "c"], since="2030-01-02").status()["done"] == 0


def test_the_writer_keeps_candidates(tmp_path: Path) -> None:
    writer = Writer(tmp_path, None, [])
    trial = TrialRecord(0, {}, 0.5, 1.0, "ok")
    for _ in range(2):
        writer.add_trials("cell", [trial], {})
    assert writer.trials("cell") == [trial]
    assert (tmp_path / "studies/optuna.journal").exists()
