"""A finished sweep is brought level without Ray: plan, tables and MLflow follow the ledger and the configuration."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from mlflow import MlflowClient

from sweeps import writer
from sweeps.level import bring_level, config_text
from sweeps.plan import make_plan
from sweeps.prepare import Sweep, is_level, planned_cells, unfinished
from tests.sweeps.fakes import configured, finish, make_sweep

UNTRACKED = "tracking=none"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def finished(*arguments: str, **values: Any) -> Sweep:
    sweep = make_sweep(*arguments)
    finish(sweep, **values)
    sweep.ledger.write_text("config.yaml", config_text(sweep))
    return sweep


def kinds() -> dict[str, int]:
    """Runs in MLflow, by kind."""
    client = MlflowClient(tracking_uri=f"sqlite:///{Path('results/mlflow.db').resolve()}")
    found = client.search_runs([client.get_experiment_by_name("stitching").experiment_id])
    tags = [run.data.tags["kind"] for run in found]
    return {kind: tags.count(kind) for kind in sorted(set(tags))}


def test_what_is_level() -> None:
    assert not is_level(make_sweep(UNTRACKED))
    sweep = finished(UNTRACKED)
    assert is_level(sweep)
    # an evaluation more, a model gone
    assert not is_level(make_sweep(UNTRACKED, "grid.eval_data=[fit,digit,mix]"))
    sweep.members["digit", 0].card = None
    assert not is_level(sweep)


@pytest.mark.parametrize(("status", "left"), [("ok", 0), ("diverged", 0), ("failed", 4)])
def test_what_is_left_to_do(status: str, left: int) -> None:
    sweep = finished(UNTRACKED, status=status)
    assert len(unfinished(planned_cells(sweep), sweep.ledger.finished())) == left


def test_two_names_for_one_network_are_trained_once() -> None:
    twin = "+zoo.models.twin={variant: digit}"
    sweep = make_sweep(UNTRACKED, twin, "grid.senders=[digit,twin]")
    sweep.members["twin", 0].card = sweep.members["digit", 0].card
    cells = planned_cells(sweep)
    assert [len(cells), len({cell.id for cell in cells})] == [4, 2]
    assert [cell.spec.sender.name for cell in unfinished(cells, set())] == ["digit", "digit"]


def test_the_files_of_a_finished_sweep_and_nothing_the_second_time() -> None:
    sweep = finished(UNTRACKED)
    outcome = bring_level(sweep)
    assert outcome is not None
    assert (outcome.failed, outcome.diverged, outcome.behind, outcome.problem) == (0, 0, 0, None)
    folder = sweep.ledger.folder
    assert pl.read_parquet(folder / "plan.parquet")["cell_id"].to_list() == [cell.id for cell in planned_cells(sweep)]
    # digit on two variants, and noise, which has none
    assert pl.read_parquet(folder / "models.parquet").select("model", "eval_data").rows() == [
        ("digit", "correlated"),
        ("digit", "digit"),
        ("noise", None),
    ]
    assert pl.read_parquet(folder / "predictions/part-models.parquet").height == 2
    assert set(pl.read_csv(folder / "stitchability.csv")["sender"]) >= {"digit", "noise"}
    assert (folder / "stitchability.md").read_text().count("|") > 10
    assert len(list((folder / "figures").glob("*.png"))) >= 1
    assert not Path("results/mlflow.db").exists()
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert bring_level(make_sweep(UNTRACKED)) is None
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_failed_and_diverged_cells_are_counted_once() -> None:
    sweep = finished(UNTRACKED, status="diverged", accuracy=None, penalty=None)
    outcome = bring_level(sweep)
    assert outcome is not None
    assert (outcome.failed, outcome.diverged) == (0, 4)  # cells, not their six rows


def test_a_narrowed_plan_rewrites_plan_and_tables() -> None:
    bring_level(finished(UNTRACKED))
    narrow = make_sweep(UNTRACKED, "grid.cuts=[layer4]")
    assert is_level(narrow)
    assert bring_level(narrow) is not None
    folder = narrow.ledger.folder
    assert pl.read_parquet(folder / "plan.parquet").height == 2
    assert set(pl.read_csv(folder / "stitchability.csv")["receiver_cut"].drop_nulls()) == {"layer4"}
    assert "cuts:\n  - layer4\n" in (folder / "config.yaml").read_text()
    assert narrow.ledger.cells()["cell_id"].n_unique() == 4  # what was computed is kept
    assert bring_level(make_sweep(UNTRACKED, "grid.cuts=[layer4]")) is None


def test_mlflow_is_rebuilt_from_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    bring_level(finished(UNTRACKED))
    outcome = bring_level(make_sweep())
    assert outcome is not None
    assert (outcome.behind, outcome.problem) == (0, None)
    assert kinds() == {"cell": 4, "model": 1, "sweep": 1}
    assert bring_level(make_sweep()) is None
    # the store is gone; a writer that only listens, since this process still holds the old one open
    called: list[str] = []

    class Listener:
        def __init__(self, *arguments: Any) -> None: ...

        def finish(self, models: Any, files: list[Path], description: str, failed: int) -> tuple[int, None]:
            called.extend(sorted(file.suffix for file in files))
            return 0, None

    Path("results/mlflow.db").unlink()
    monkeypatch.setattr(writer, "Writer", Listener)
    assert bring_level(make_sweep()) is not None
    assert called[:2] == [".csv", ".md"]
    assert {".png", ".svg", ".yaml"} <= set(called)


def test_what_mlflow_could_not_take_is_tried_again() -> None:
    broken = ["tracking.uri=nowhere://else"]
    first = bring_level(finished(*broken))
    assert first is not None
    assert first.behind > 0
    assert first.problem is not None
    assert bring_level(make_sweep(*broken)) is not None


def test_the_plan_needs_neither_data_nor_models_nor_a_folder(tmp_path: Path) -> None:
    assert make_plan(configured("experiment=2e")).height == 36
    assert list(tmp_path.iterdir()) == []
