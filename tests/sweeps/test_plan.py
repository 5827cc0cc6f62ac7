"""Plans counted by hand; blocks by their invariants; ids by what may and what may not change them."""

import dataclasses
import math
import random
from pathlib import Path

import polars as pl
import pytest

from stitching_core.errors import InputError
from sweeps.plan import make_blocks, make_plan, recipe
from sweeps.prepare import planned_cells
from tests.sweeps.fakes import configured, make_sweep

KEY = ["run", "sender", "fit_data"]


def plan(*arguments: str) -> pl.DataFrame:
    return make_plan(configured(*arguments))


@pytest.mark.parametrize(
    ("arguments", "cells"),
    [
        ([], 6 * 2 * 5 * 2),  # senders x receivers x cuts x runs
        (["experiment=2e"], 6 * 1 * 6 * 1),
        # a noise sender has no cuts: 5 senders x 5 x 5 cuts, and noise into 5, each into 2 receivers in 2 runs
        (["grid=all_cuts"], (5 * 25 + 5) * 2 * 2),
        (["grid.runs=1", "grid.cuts=[layer1]"], 12),
        (["grid.senders=[noise]", "grid.receivers=[digit]"], 10),
        # null is every model; noise and random_init do not receive: 6 x 4 x 5 x 2
        (["grid.receivers=null"], 240),
        # two names for one place
        (["grid.cuts=[layer1,layer1.1]", "grid.senders=[digit]", "grid.receivers=[digit]", "grid.runs=1"], 1),
    ],
)
def test_cells_are_counted(arguments: list[str], cells: int) -> None:
    table = plan(*arguments)
    assert table.height == cells
    assert table.select("run", "sender", "sender_cut", "receiver", "receiver_cut", "fit_data").is_unique().all()


def test_the_default_plan_row_by_row() -> None:
    table = plan()
    assert table["run"].unique().sort().to_list() == [0, 1]
    noise, others = table.filter(sender="noise"), table.filter(pl.col("sender") != "noise")
    assert noise.height == 2 * 5 * 2
    assert noise["sender_cut"].null_count() == noise.height
    assert noise["fit_data"].unique().to_list() == ["noise"]
    assert noise["eval_data"].to_list() == [["noise"]] * noise.height
    assert (others["sender_cut"] == others["receiver_cut"]).all()
    assert others["fit_data"].unique().to_list() == ["correlated"]
    assert others["eval_data"].to_list() == [["correlated", "digit"]] * others.height
    # cuts come in the order of the network, whatever the order in which they were asked
    assert plan("grid.cuts=[layer4,maxpool,layer2]")["receiver_cut"].to_list()[:3] == ["maxpool", "layer2", "layer4"]


def test_each_sender_on_its_own_data() -> None:
    table = plan("experiment=2e", "grid.fit_data=own", "grid.eval_data=[fit]")
    assert (table["fit_data"] == table["sender"]).all()
    assert (table["eval_data"].list.first() == table["sender"]).all()


def test_runs_begin_at_the_seed() -> None:
    assert plan("seed=7", "grid.runs=3")["run"].unique().sort().to_list() == [7, 8, 9]


def test_cuts_for_each_architecture() -> None:
    mixed = ["+zoo.models.digit.arch=vgg19", "grid.senders=[digit,correlated]", "grid.receivers=[digit]"]
    table = plan(*mixed, "grid=all_cuts", "grid.runs=1", "grid.cuts={vgg19: [features.8], resnet18_quarter: [layer1]}")
    assert sorted(table.select("sender_cut", "receiver_cut").rows()) == [
        ("features.8", "features.8"),
        ("layer1", "features.8"),
    ]
    with pytest.raises(InputError, match=r"names no cuts for vgg19; it has lists for resnet18_quarter"):
        plan(*mixed, "grid.cuts={resnet18_quarter: [layer1]}")


def test_recipes_leave_out_what_a_model_does_not_have() -> None:
    config = configured()
    noise, untrained, digit = (recipe(config, name, 3) for name in ("noise", "random_init", "digit"))
    assert (noise.arch, noise.training, noise.sigma) == (None, None, 0.1)
    assert (untrained.arch, untrained.training, untrained.variant) == ("resnet18_quarter", None, None)
    assert (digit.seed, digit.sigma) == (3, None)
    assert digit.training is not None
    assert digit.training.learning_rate == 0.05


def check_blocks(cells: pl.DataFrame, block_cells: int, slots: int) -> pl.DataFrame:
    """The invariants of every division into blocks."""
    placed = make_blocks(cells, block_cells, slots)
    assert placed.drop("block").equals(cells)
    blocks = (
        placed.group_by("block").agg(pl.len().alias("size"), *(pl.col(key).n_unique() for key in KEY)).sort("block")
    )
    assert blocks.select(KEY).unique().rows() == [(1, 1, 1)]
    sizes = blocks["size"].to_list()
    assert blocks["block"].to_list() == list(range(len(sizes)))
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) <= block_cells
    groups = cells.group_by(KEY).len()["len"].to_list()
    fewest = sum(math.ceil(size / block_cells) for size in groups)
    # as few as can be, unless there are slots to fill and cells to fill them with
    assert len(sizes) == max(fewest, min(slots, cells.height))
    return blocks


@pytest.mark.parametrize("block_cells", [1, 3, 7, 64])
@pytest.mark.parametrize("slots", [0, 1, 2, 13, 50, 1000])
@pytest.mark.parametrize("arguments", [[], ["grid=all_cuts"], ["experiment=2e"]], ids=["default", "all_cuts", "2e"])
def test_blocks(arguments: list[str], slots: int, block_cells: int) -> None:
    check_blocks(plan(*arguments), block_cells, slots)


def test_the_default_has_a_block_for_each_sender_and_run() -> None:
    # 6 senders x 2 runs, each into 2 receivers at 5 cuts
    assert check_blocks(plan(), 64, 2)["size"].to_list() == [10] * 12


def test_pieces_of_a_sender_are_of_one_size_or_nearly() -> None:
    cells = plan("grid.senders=[digit]", "grid.receivers=[digit,greyscale]", "grid.runs=1")
    assert check_blocks(cells, 64, 3)["size"].to_list() == [4, 3, 3]
    assert check_blocks(cells, 4, 1)["size"].to_list() == [4, 3, 3]


def test_a_hundred_thousand_cells() -> None:
    table = plan("grid.runs=1667")
    assert table.height == 60 * 1667
    assert check_blocks(table, 64, 500).height == 6 * 1667


# -- ids


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def ids(*arguments: str) -> list[str]:
    return [cell.id for cell in planned_cells(make_sweep(*arguments))]


def test_every_cell_has_an_id_of_its_own() -> None:
    found = ids()
    assert len(set(found)) == len(found) == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ["name=other"],
        ["protocol.name=other"],
        ["experiment_id=9z"],
        ["results_dir=elsewhere"],
        ["zoo.dir=elsewhere"],
        ["grid.eval_data=[mix]"],
        ["cluster.block_cells=1", "cluster.device=cpu", "cluster.cpus_per_block=2"],
        ["tracking=none"],
        ["search.n_trials=3"],  # there is no search
        ["zoo.training.epochs=1"],  # decides the weights, whose hash is given here
    ],
)
def test_what_decides_nothing_is_not_in_an_id(arguments: list[str]) -> None:
    assert ids(*arguments) == ids()


def test_an_id_does_not_depend_on_the_order_of_the_plan_nor_on_what_else_is_in_it() -> None:
    sweep = make_sweep()
    expected = {cell.id for cell in planned_cells(sweep)}
    order = list(range(sweep.plan.height))
    random.Random(0).shuffle(order)
    shuffled = dataclasses.replace(sweep, plan=sweep.plan[order])
    assert {cell.id for cell in planned_cells(shuffled)} == expected
    assert expected < set(ids("grid.senders=[greyscale,noise,digit]", "grid.cuts=[layer4,layer1,layer3]"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["protocol.learning_rate=0.5"],
        ["protocol.momentum=0.5"],
        ["protocol.weight_decay=0.5"],
        ["protocol.epochs=1"],
        ["protocol.batch_size=3"],
        ["protocol.bn_mode=frozen"],
        ["protocol.init=identity"],
        ["protocol.l1=0.5"],
        ["protocol.label_offset=1"],
        ["seed=1"],
        ["data.seed=1"],
        ["data.background_noise=0.2"],
        ["data.train_items=30"],
        ["search=per_cell"],
        ["search=shared"],
    ],
)
def test_what_decides_a_result_changes_every_id(arguments: list[str]) -> None:
    assert set(ids(*arguments)).isdisjoint(ids())


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        (["grid.fit_data=digit"], {"digit"}),
        (["data.noise_train_items=30"], {"noise"}),
        (["data.noise_test_items=30"], {"noise"}),
        (["zoo.models.noise.sigma=0.2"], {"noise"}),
    ],
)
def test_what_decides_some_results_changes_just_their_ids(arguments: list[str], changed: set[str]) -> None:
    before = {cell.id: cell.spec.sender.name for cell in planned_cells(make_sweep())}
    after = {cell.id: cell.spec.sender.name for cell in planned_cells(make_sweep(*arguments))}
    assert {before[one] for one in before.keys() - after.keys()} == changed
    assert {after[one] for one in after.keys() - before.keys()} == changed


@pytest.mark.parametrize(
    "argument",
    ["search.n_trials=5", "search.batch=2", "search.validation_fraction=0.3", "search.space.epochs=[1,2]"],
)
def test_a_search_is_in_the_ids_by_its_definition(argument: str) -> None:
    assert set(ids("search=per_cell", argument)).isdisjoint(ids("search=per_cell"))


def test_a_shared_search_is_in_the_ids_with_its_sample() -> None:
    shared = ["search=shared", "search.sample_cells=3"]
    assert ids(*shared) == ids(*shared)
    # another grid can mean another sample, and with it another winner
    assert set(ids(*shared, "grid.cuts=[layer3]")).isdisjoint(ids(*shared))


def test_the_weights_are_in_an_id_but_not_the_models_name() -> None:
    sweep = make_sweep()
    before = planned_cells(sweep)
    member = sweep.members["digit", 0]
    assert member.card is not None
    member.card = dataclasses.replace(member.card, hash="other weights")
    after = planned_cells(sweep)
    assert {cell.id for cell in after}.isdisjoint(cell.id for cell in before)  # digit receives every cell


def test_a_models_own_training_changes_what_it_names_alone() -> None:
    config = configured("+zoo.models.digit.training.epochs=3")
    of_zoo, own = (recipe(config, name, 0).training for name in ("greyscale", "digit"))
    assert of_zoo is not None
    assert own == dataclasses.replace(of_zoo, epochs=3)


def test_pairs_of_a_model_with_itself_or_with_others_alone() -> None:
    ends = ["grid.senders=[greyscale,colour_only]", "grid.receivers=[greyscale,colour_only]", "grid.cuts=[layer1]"]
    for pairs, expected in (
        ("self", {("greyscale", "greyscale"), ("colour_only", "colour_only")}),
        ("other", {("greyscale", "colour_only"), ("colour_only", "greyscale")}),
    ):
        table = plan(*ends, "grid.runs=1", f"grid.pairs={pairs}")
        assert set(table.select("sender", "receiver").iter_rows()) == expected
        assert table.height == 2
    with pytest.raises(InputError, match=r"grid is empty.*pairs=self a model that is both"):
        plan("grid.senders=[noise]", "grid.pairs=self")


def test_a_key_of_the_protocol_can_take_several_values() -> None:
    table = plan("grid.vary={label_offset:[0,3],l1:[0,0.01]}", "grid.runs=1", "grid.cuts=[layer1]")
    plain = plan("grid.runs=1", "grid.cuts=[layer1]")
    assert table.height == 4 * plain.height
    assert table.schema["l1"] == pl.Float64()  # as the protocol has it, whatever was written
    cell = table.filter(sender="digit", receiver="digit")
    assert set(cell.select("label_offset", "l1").iter_rows()) == {(0, 0.0), (0, 0.01), (3, 0.0), (3, 0.01)}


def test_the_cells_of_a_block_share_batch_size_and_bn_mode() -> None:
    table = plan("grid.vary={bn_mode:[adapt,frozen],batch_size:[32,64],epochs:[1,2]}", "grid.runs=1")
    blocks = make_blocks(table, 1000, 1)
    assert blocks.group_by("block").agg(pl.col("bn_mode", "batch_size").n_unique()).drop("block").unique().rows() == [
        (1, 1)
    ]
    assert blocks["block"].n_unique() == 6 * 4  # senders x combinations: epochs may differ within a block


def test_varied_cells_have_protocols_and_ids_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = planned_cells(make_sweep("grid.vary={label_offset:[0,1]}", "grid.senders=[digit]", "grid.cuts=[layer4]"))
    assert [cell.spec.protocol.label_offset for cell in cells] == [0, 1]
    assert cells[0].id != cells[1].id
    (alone,) = planned_cells(make_sweep("protocol.label_offset=1", "grid.senders=[digit]", "grid.cuts=[layer4]"))
    assert alone.id == cells[1].id  # whatever else is in the grid


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("grid.vary={depth:[1]}", "grid.vary.depth is no key of the protocol; allowed: stitch, init"),
        ("grid.vary={epochs:3}", "grid.vary.epochs=3 is no list of values"),
        ("grid.vary={epochs:[]}", "is no list of values"),
        ("grid.vary={epochs:[1,1.5]}", "grid.vary.epochs holds 1.5, which is no int"),
        ("grid.vary={epochs:[1,0]}", "grid.vary.epochs=0 is out of range"),
        ("grid.vary={l1:[a]}", "grid.vary.l1 holds 'a', which is no number"),
        ("grid.vary={bn_mode:[adapt,thawed]}", "grid.vary.bn_mode=thawed is unknown; allowed: adapt, frozen"),
        ("grid.vary={epochs:[2,2]}", "names a value twice"),
    ],
)
def test_values_that_cant_be_varied(argument: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(argument)


def test_what_a_search_finds_cant_be_varied() -> None:
    with pytest.raises(InputError, match=r"grid\.vary\.epochs is what the search finds"):
        plan("search=per_cell", "grid.vary={epochs:[1,2]}")
