from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.claims import FAILS, HOLDS, NOT_MEASURED, Claim, check_claims
from analysis.load import load
from analysis.published import accuracies, ranks
from analysis.verdict_text import claims_text
from tests.analysis.repetition import repeated, stitch_rank, uncut, write_repetition

NOISE = {
    "experiment": "1f",
    "sender_kind": "noise",
    "fit_data": "noise",
    "eval_data": "noise",
    "receiver_accuracy": None,
}
RANDOM = {"experiment": "2m", "sender_kind": "random_init"}


def claim(folder: Path, name: str, cells: list[dict[str, Any]], **tables: Any) -> Claim:
    results = load(write_repetition(folder, cells, **tables))
    return next(one for one in check_claims({cells[0]["experiment"]: results}) if one.name == name)


def with_ranks(folder: Path, senders: dict[str, tuple[int, float]], cut: str = "layer3", run: int = 0) -> Claim:
    """The claim about ranks where each sender has such a rank and accuracy."""
    cells = [repeated(name, cut, accuracy, run) for name, (_, accuracy) in senders.items()]
    modules = [stitch_rank(cell, senders[cell["sender"]][0]) for cell in cells]
    return claim(folder, "rank", cells, modules=modules)


def test_the_published_numbers_hold(tmp_path: Path) -> None:
    known, at_stitch = accuracies("smith2025"), ranks("smith2025").filter(experiment="2e", part="stitch")
    uncut_digit = {"2e": 0.9799, "2m": 0.97805}
    sweeps = {}
    for experiment, kind in (("1f", NOISE), ("2e", {"experiment": "2e"}), ("2m", RANDOM)):
        cells = [
            repeated(
                row["sender"], row["cut"], row["mean"], receiver=row["receiver"], receiver_variant=row["receiver"],
                **{"receiver_accuracy": uncut_digit.get(experiment), **kind},
            )
            for row in known.drop_nulls("sender").filter(experiment=experiment).iter_rows(named=True)
        ]  # fmt: skip
        mean = {(row["sender"], row["cut"]): row["mean"] for row in at_stitch.iter_rows(named=True)}
        ranked = cells if experiment == "2e" else []
        modules = [stitch_rank(cell, round(mean[cell["sender"], cell["receiver_cut"]])) for cell in ranked]
        sweeps[experiment] = load(write_repetition(tmp_path / experiment, cells, modules=modules))
    found = {one.name: one for one in check_claims(sweeps)}
    assert {name: one.status for name, one in found.items()} == {
        "misaligned sender": HOLDS,
        "random sender": HOLDS,
        "noise": HOLDS,
        "self-stitch": NOT_MEASURED,  # no stitch of 2e was published on decorrelated data
        "rank": HOLDS,
    }
    # (0.9896 + 0.99255 + 0.99595 + 0.99455 + 0.99165 + 0.99225) / 6 = 0.992758; minus 0.97805
    assert "random_init +1.47 (99.28%, 1 run)" in found["random sender"].numbers
    assert "lowest cell colour_only at layer1 99.89%" in found["noise"].numbers
    text = claims_text(list(found.values()))
    assert text.endswith("Claims: 4 hold, 0 fail, 1 not measured.\n")


@pytest.mark.parametrize(("accuracy", "status"), [(0.97, HOLDS), (0.9699, FAILS)])
def test_one_point_below_the_receiver_is_no_worse(tmp_path: Path, accuracy: float, status: str) -> None:
    found = claim(tmp_path / "a", "misaligned sender", [repeated("colour_only", "layer3", accuracy)])
    assert found.status == status
    assert (
        claim(tmp_path / "b", "random sender", [repeated("random_init", "layer3", accuracy, **RANDOM)]).status == status
    )


def test_each_sender_counts_over_cuts_and_runs(tmp_path: Path) -> None:
    # penalties of colour: run 0 (0.02 - 0.01) / 2, run 1 0.01: mean 0.0075; of correlated 0.02
    cells = [
        repeated("colour", "maxpool", 0.96),
        repeated("colour", "layer3", 0.99),
        repeated("colour", "layer3", 0.97, run=1),
        repeated("greyscale", "layer3", 0.5),  # goes by digit
    ]
    found = claim(tmp_path / "a", "misaligned sender", cells)
    assert (found.status, found.numbers) == (
        HOLDS,
        "stitched minus uncut, in points, over maxpool, layer3: colour -0.75 ±0.35 (97.25%, 2 runs)",
    )
    assert claim(tmp_path / "b", "misaligned sender", [*cells, repeated("correlated", "layer3", 0.96)]).status == FAILS


def test_a_sender_that_only_diverged_fails(tmp_path: Path) -> None:
    cells = [repeated("colour", "layer3", 0.99), repeated("correlated", "layer3", None)]
    found = claim(tmp_path / "a", "misaligned sender", cells)
    assert found.status == FAILS
    assert "correlated none; 1 failed or diverged, in no mean" in found.numbers
    assert claim(tmp_path / "b", "misaligned sender", cells[1:]).status == NOT_MEASURED


def test_a_receiver_that_did_not_learn_bears_no_claim(tmp_path: Path) -> None:
    cells = [repeated("colour", "layer3", 0.99, receiver_accuracy=0.2)]
    models = [uncut("digit", 0.2, learned=False)]
    assert claim(tmp_path / "sweep", "misaligned sender", cells, models=models).status == NOT_MEASURED


def test_a_self_stitch_is_measured_on_decorrelated_data(tmp_path: Path) -> None:
    one = {"sender_hash": "x", "receiver_hash": "x"}
    on_digit = repeated("digit", "layer3", 0.96, eval_data="digit", **one)
    other = repeated("colour", "layer3", 0.99, eval_data="digit")
    correlated = repeated("digit", "layer3", 0.99, **one)
    assert claim(tmp_path / "a", "self-stitch", [on_digit, other, correlated]).status == FAILS
    assert claim(tmp_path / "b", "self-stitch", [other, correlated]).status == NOT_MEASURED


def test_noise_is_measured_cut_by_cut(tmp_path: Path) -> None:
    cells = [repeated("noise", cut, x, **NOISE) for cut, x in (("maxpool", 1.0), ("layer3", 0.995))]
    assert claim(tmp_path / "a", "noise", cells).status == HOLDS
    found = claim(tmp_path / "b", "noise", [*cells, repeated("noise", "layer4", 0.99, **NOISE)])
    assert found.status == FAILS
    assert found.numbers == "maxpool 100.00%, layer3 99.50%, layer4 99.00%; lowest cell digit at layer4 99.00%"


@pytest.mark.parametrize(
    ("senders", "status"),
    [
        ({"colour_only": (13, 0.99), "correlated": (20, 0.99), "digit": (56, 0.98), "greyscale": (21, 0.99)}, HOLDS),
        ({"colour_only": (13, 0.99), "correlated": (21, 0.99), "digit": (56, 0.98), "greyscale": (21, 0.99)}, FAILS),
        ({"colour_only": (13, 0.96), "digit": (56, 0.98)}, HOLDS),
        ({"colour_only": (13, 0.959), "digit": (56, 0.98)}, FAILS),  # accuracy tells them apart
        ({"colour_only": (13, 0.99), "mix": (56, 0.98)}, NOT_MEASURED),
    ],
)
def test_rank_parts_senders_that_accuracy_does_not(
    tmp_path: Path, senders: dict[str, tuple[int, float]], status: str
) -> None:
    assert with_ranks(tmp_path / "sweep", senders).status == status


def test_rank_is_read_where_the_published_ranks_part(tmp_path: Path) -> None:
    assert with_ranks(tmp_path / "a", {"colour": (13, 0.99), "digit": (56, 0.98)}, cut="layer4").status == NOT_MEASURED


def test_rank_parts_senders_in_every_run(tmp_path: Path) -> None:
    cells = [repeated(name, "layer2", 0.98, run) for run in (0, 1) for name in ("colour", "digit")]
    modules = [stitch_rank(cell, rank) for cell, rank in zip(cells, (10, 90, 40, 30), strict=True)]
    found = claim(tmp_path / "sweep", "rank", cells, modules=modules)
    assert found.status == FAILS
    assert (
        found.numbers == "rank (accuracy) over layer2: colour 25.0 (98.00%), digit 60.0 (98.00%); parted in 1 of 2 runs"
    )


def test_without_its_sweep_a_claim_is_not_measured() -> None:
    assert [one.status for one in check_claims({})] == [NOT_MEASURED] * 5
    assert check_claims({})[1].numbers == "no sweep of 2m"
