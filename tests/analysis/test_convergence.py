"""Which cells count as not converged: curves whose answer is worked out by hand."""

import math

import polars as pl
import pytest

from analysis.convergence import convergence_notes, unconverged
from analysis.load import polars_schema
from stitching_core import record

TEN = math.log(10)  # 2.303


def cells(*curves: list[float] | None, **values: object) -> pl.LazyFrame:
    common = {"status": "ok", "objective": "cross_entropy", "classes": 10, "sender": "noise", "receiver": "r"}
    rows = [
        record.row("cells", **{**common, "cell_id": f"c{i}", "receiver_cut": f"cut{i}", "eval_data": data, **values,
                               "learning_curve": curve})
        for i, curve in enumerate(curves)
        for data in ("digit", "correlated")
    ]  # fmt: skip
    return pl.LazyFrame(rows, schema=polars_schema("cells"))


@pytest.mark.parametrize(
    ("curve", "why"),
    [
        ([TEN, 2.25, 2.2], "far above 0"),  # half of 2.303 is 1.151
        ([2.2, 1.2, 1.2], "far above 0"),  # though it stands still
        ([2.2, 1.1, 1.0], "still falling"),  # 9% less than the epoch before
        ([2.2, 1.0, 0.97], None),  # 3% less
        ([2.2, 0.5, 0.22], None),  # halved, but a tenth of chance (0.2303) is as good as there
        ([2.2, 0.5, 0.24], "still falling"),
        ([1.9, 1.0, 1.05], None),  # it rises
        ([1.2], "far above 0"),
        ([1.1], "still falling"),  # from chance in one epoch
        ([0.2], None),
    ],
)
def test_the_rule(curve: list[float], why: str | None) -> None:
    assert unconverged(cells(curve))["why"].to_list() == ([why] if why else [])


def test_classes_set_the_scale() -> None:
    curve = [6.9, 6.8, 6.7]  # ln(1000) = 6.908
    found = unconverged(cells(curve, classes=1000))
    assert found["why"].to_list() == ["far above 0"]
    assert found["chance"].to_list() == pytest.approx([6.9078], abs=1e-4)
    assert unconverged(cells([2.0, 1.0, 0.65], classes=1000)).is_empty()  # below a tenth of 6.9


@pytest.mark.parametrize(
    "values", [{"status": "diverged"}, {"objective": "mse"}, {"l1": 0.01}, {"classes": None}, {"status": None}]
)
def test_what_is_not_judged(values: dict) -> None:
    assert unconverged(cells([2.3, 2.3], **values)).is_empty()


def test_a_good_stitch_has_converged_whatever_its_loss() -> None:
    """By the test set of its own fit data: another one says how far a cue carries, not how far the training got."""
    falling = [2.2, 1.3, 1.1]
    for fit_data, accuracy, found in (("digit", 0.95, 0), ("digit", 0.85, 1), ("mix", 0.95, 1), ("digit", None, 1)):
        assert unconverged(cells(falling, fit_data=fit_data, accuracy=accuracy)).height == found


def test_no_curve_is_not_judged() -> None:
    assert unconverged(cells(None, [])).is_empty()
    assert convergence_notes(cells(None)) == []
    assert convergence_notes(cells([0.1, 0.01])) == []


def test_the_note_names_the_cells_once() -> None:
    (note,) = convergence_notes(cells([2.3, 2.25], [0.3, 0.01], [2.2, 1.0]))
    assert note.startswith("Not converged, by the training loss of the last epoch: 2 cells: ")
    assert "noise into r at cut0 (far above 0: 2.25, chance 2.30); noise into r at cut2 (still falling: 1.00" in note
    assert "cut1" not in note
    (note,) = convergence_notes(cells(*[[2.3]] * 8))
    assert "8 cells: " in note
    assert "; and 2 more." in note
    (note,) = convergence_notes(pl.concat([cells([2.2]), cells([2.3], cell_id="another run")]))
    assert "(far above 0: 2.25, chance 2.30, 2 cells)" in note
    (note,) = convergence_notes(cells([2.3], sender_cut="layer1"))
    assert "noise layer1 into r at cut0" in note
