"""Whole sweeps on a real Ray cluster: what is trained, what is not trained again, and that nothing else matters."""

import hashlib
import json
import sqlite3
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from analysis.load import load
from tests.sweeps.conftest import Place

ROOT = Path(__file__).parents[2]

# columns that may differ between two runs of the same cell
CLOCK = ["sweep", "train_seconds", "finished_at"]


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def first(place: Place) -> Place:
    """The place after a first sweep, with MLflow."""
    assert place.run("name=first", "tracking=mlflow") == 0
    return place


def test_every_cell_has_its_rows(first: Place) -> None:
    cells = first.cells("first")
    # digit at two cuts, each evaluated on correlated and digit; noise at two cuts, on noise alone
    assert cells.height == 2 * 2 + 2
    assert cells["cell_id"].n_unique() == 4
    assert cells["status"].to_list() == ["ok"] * 6
    on_noise = cells.filter(pl.col("sender") == "noise")
    assert on_noise["eval_data"].to_list() == ["noise", "noise"]
    assert on_noise["penalty"].to_list() == [None, None]


def test_accuracy_follows_from_the_predictions(first: Place) -> None:
    predictions = pl.read_parquet(first.folder / "results/first/predictions/*.parquet")
    own = predictions.filter(pl.col("cell_id").is_not_null())
    counted = own.select(
        "cell_id",
        "eval_data",
        accuracy=pl.struct("target", "predicted").map_elements(
            lambda row: sum(t == p for t, p in zip(row["target"], row["predicted"], strict=True)) / len(row["target"]),
            return_dtype=pl.Float64,
        ),
    ).sort("cell_id", "eval_data")
    assert_frame_equal(counted, first.cells("first").select("cell_id", "eval_data", "accuracy"))


def test_the_penalty_follows_from_the_uncut_predictions(first: Place) -> None:
    predictions = pl.read_parquet(first.folder / "results/first/predictions/part-models.parquet")
    for row in first.cells("first").filter(pl.col("penalty").is_not_null()).iter_rows(named=True):
        (uncut,) = predictions.filter(model=row["receiver"], seed=row["seed"], eval_data=row["eval_data"]).rows(
            named=True
        )
        right = sum(t == p for t, p in zip(uncut["target"], uncut["predicted"], strict=True)) / len(uncut["target"])
        assert row["penalty"] == pytest.approx(right - row["accuracy"], abs=1e-12)


def test_tables_and_pictures_are_written(first: Place) -> None:
    folder = first.folder / "results/first"
    table = pl.read_csv(folder / "stitchability.csv")
    assert set(table["sender"]) >= {"digit", "noise"}
    assert sorted(path.suffix for path in (folder / "figures").iterdir()) == [".png", ".png", ".svg", ".svg"]


def test_mlflow_has_a_parent_its_children_and_the_models(first: Place) -> None:
    database = sqlite3.connect(first.folder / "results/mlflow.db")
    kinds = dict(database.execute("SELECT value, count(*) FROM tags WHERE key = 'kind' GROUP BY value"))
    assert kinds == {"sweep": 1, "cell": 4, "model": 1}
    (parent,) = database.execute("SELECT run_uuid FROM tags WHERE key = 'kind' AND value = 'sweep'").fetchone()
    parents = database.execute("SELECT DISTINCT value FROM tags WHERE key = 'mlflow.parentRunId'").fetchall()
    assert parents == [(parent,)]
    logged = {value for (value,) in database.execute("SELECT value FROM metrics WHERE key = 'accuracy/digit'")}
    cells = first.cells("first").filter(pl.col("eval_data") == "digit", pl.col("sender") == "digit")
    assert logged >= set(cells["accuracy"])


def test_a_second_run_trains_nothing(
    first: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forbidden(sweep: object) -> None:
        raise AssertionError("Ray was asked for")

    monkeypatch.setattr("sweeps.execute.execute", forbidden)
    before = hashes(first.folder / "results")
    assert first.run("name=first", "tracking=mlflow") == 0
    after = hashes(first.folder / "results")
    assert {name for name in before | after if before.get(name) != after.get(name)} == set()
    out = capsys.readouterr().out
    assert "all 4 cells" in out
    assert "Receiver digit" in out


def test_only_what_changed_is_trained(first: Place) -> None:
    before = first.cells("first")
    stored = hashes(first.folder / "zoo")
    assert first.run("name=first", "tracking=mlflow", "grid.cuts=[layer2,layer3,layer4]") == 0
    after = first.cells("first")
    assert after.height == before.height + 3
    assert_frame_equal(after.filter(pl.col("cell_id").is_in(before["cell_id"].to_list())), before)
    assert hashes(first.folder / "zoo") == stored  # models are as they were, whatever was stitched to them


@pytest.mark.parametrize(
    "otherwise",
    [
        ["cluster.block_cells=1"],
        ["cluster.cpus_per_block=2", "grid.cuts=[layer4,layer3]"],
        ["grid.senders=[noise,random_init,digit]", "grid.runs=2"],
    ],
    ids=["blocks of one cell", "one worker, other order", "among more senders and runs"],
)
def test_a_cell_is_the_same_bit_for_bit(first: Place, otherwise: list[str], request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id.replace(" ", "-").replace(",", "")
    assert first.run(f"name={name}", *otherwise) == 0
    reference, again = first.cells("first"), first.cells(name)
    common = [cell for cell in reference["cell_id"].unique() if cell in set(again["cell_id"])]
    assert len(common) == 4
    kept = pl.col("cell_id").is_in(common)
    assert_frame_equal(again.filter(kept).drop(CLOCK), reference.filter(kept).drop(CLOCK), check_exact=True)
    theirs, ours = (
        pl.read_parquet(first.folder / f"results/{sweep}/predictions/*.parquet")
        .filter(kept)
        .sort("cell_id", "eval_data")
        for sweep in ("first", name)
    )
    assert_frame_equal(ours, theirs)


def test_two_names_of_one_network_have_a_row_each_and_are_trained_once(first: Place) -> None:
    (card,) = [
        card
        for card in map(json.loads, map(Path.read_text, (first.folder / "zoo/cards").glob("*.json")))
        if (card["recipe"]["kind"], card["recipe"]["seed"]) == ("trained", 0)
    ]
    weights = first.folder / f"zoo/weights/{card['hash']}.safetensors"
    twin = ["+zoo.models.twin.kind=weights", f"+zoo.models.twin.weights={weights}"]
    assert first.run("name=twins", "grid.senders=[digit,twin]", "grid.cuts=[layer4]", *twin) == 0
    assert first.cells("twins")["cell_id"].n_unique() == 1
    shown = load(first.folder / "results/twins").cells.collect()
    assert sorted(shown["sender"]) == ["digit", "digit", "twin", "twin"]
    assert shown.filter(sender="twin")["accuracy"].to_list() == shown.filter(sender="digit")["accuracy"].to_list()


def test_the_readmes_plugin_runs(place: Place) -> None:
    text = (ROOT / "docs/my_zoo.py").read_text()
    assert text in (ROOT / "README.md").read_text()
    plugin = ["name=mine", f"plugins=[{ROOT / 'docs/my_zoo.py'}]", "data.source=odd_or_even", "zoo.arch=small_cnn"]
    assert place.run(*plugin, "grid.senders=[digit]", "grid.cuts=[block1,block2]") == 0
    cells = place.cells("mine")
    assert cells["status"].to_list() == ["ok"] * 4
    assert set(cells["data_source"]) == {"odd_or_even"}
    predictions = pl.read_parquet(place.folder / "results/mine/predictions/*.parquet")
    assert set(predictions["target"].explode()) == {0, 1}


def test_a_model_that_did_not_learn_is_refused(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    slow = ["name=slow", "zoo.training.learning_rate=1e-9", "zoo.training.epochs=1", "grid.senders=[digit,random_init]"]
    assert place.run(*slow, "zoo.allow_unlearned=false") == 2
    error = capsys.readouterr().err
    assert error.startswith("error: did not learn: digit (run 0, ")  # random_init is a sender by design
    assert "random_init" not in error
    assert error.count("\n") == 1
    assert not list((place.folder / "results/slow").glob("cells/*"))
    assert place.run(*slow, "zoo.allow_unlearned=true") == 0
    assert set(place.cells("slow")["status"]) == {"ok"}


def test_a_diverged_cell_is_a_row_that_says_so(place: Place) -> None:
    assert place.run("name=wild", "grid.senders=[digit]", "protocol.learning_rate=1e30", "protocol.momentum=1") == 0
    cells = place.cells("wild")
    assert set(cells["status"]) == {"diverged"}
    assert cells["accuracy"].to_list() == [None] * cells.height
    assert all(reason for reason in cells["reason"])


def test_ranks_are_measured_where_they_are_asked_for(first: Place) -> None:
    before = first.cells("first")
    assert first.run("name=ranked", "grid.eval_data=[fit]", "measure.rank=true") == 0
    results = load(first.folder / "results/ranked")
    modules = results.modules.collect()
    stitched, uncut = modules.drop_nulls("cell_id"), modules.filter(pl.col("cell_id").is_null())
    per_cell = stitched.join(results.cells.select("cell_id", "sender", "receiver_cut").collect(), on="cell_id")
    counted = per_cell.group_by("sender", "receiver_cut").len().rows()
    # ResNet-18 has 21 convolutions and linear layers, 15 of them up to layer3, and 20 up to layer4; and the stitch's
    assert set(counted) == {
        ("digit", "layer3", 22),
        ("digit", "layer4", 22),
        ("noise", "layer3", 1 + 6),
        ("noise", "layer4", 1 + 1),
    }
    assert set(uncut.group_by("model", "eval_data").len().iter_rows()) == {
        ("digit", "correlated", 21),  # what was asked for
        ("digit", "digit", 21),  # and what it was trained on
    }
    # measuring changes nothing
    ranked = first.cells("ranked")
    assert ranked.height == 4
    same = pl.col("cell_id").is_in(ranked["cell_id"].to_list()), pl.col("eval_data") != "digit"
    assert_frame_equal(ranked.drop(CLOCK), before.filter(*same).drop(CLOCK))
    # and what is finished without ranks is not finished with them
    assert first.run("name=later", "grid.eval_data=[fit]", "grid.senders=[digit]") == 0
    assert first.run("name=later", "grid.eval_data=[fit]", "grid.senders=[digit]", "measure.rank=true") == 0
    again = load(first.folder / "results/later").modules.collect().drop_nulls("cell_id")
    key = ["cell_id", "position"]
    assert_frame_equal(again.sort(key), stitched.join(again, on="cell_id", how="semi").sort(key))


def test_models_stitched_into_themselves_with_shifted_labels(first: Place) -> None:
    arguments = ["name=shifted", "grid.pairs=self", "grid.senders=[digit]", "grid.vary={label_offset:[0,1]}"]
    assert first.run(*arguments, "grid.fit_data=own", "grid.eval_data=[fit]", "grid.cuts=[layer4]") == 0
    cells = first.cells("shifted")
    assert sorted(cells["label_offset"]) == [0, 1]
    targets = {
        row["label_offset"]: row["target"]
        for row in load(first.folder / "results/shifted")
        .predictions.join(cells.lazy().select("cell_id", "label_offset"), on="cell_id")
        .collect()
        .iter_rows(named=True)
    }
    assert targets[1] == [(label + 1) % 10 for label in targets[0]]
