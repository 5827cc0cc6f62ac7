"""Sweeps of auto-encoders: refusals before anything starts, and one small sweep from start to pictures."""

from pathlib import Path

import polars as pl
import pytest

from analysis.load import load
from analysis.pictures import sheets
from analysis.query import query
from stitching_core.errors import InputError
from stitching_core.measure.reconstruction import Reconstructions
from stitching_core.record import CELLS
from sweeps.config import load_config
from sweeps.objectives import score_of
from sweeps.plan import make_plan
from tests.sweeps.conftest import Place

ENCODERS = ["zoo=autoencoders", "protocol=reconstruct", "grid.receivers=[digit]", "grid.cuts=[bottleneck]"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["protocol.objective=cross_entropy"], "gives images; allowed: mse"),
        (["+zoo.models.digit.arch=resnet18"], "gives classes; allowed: cross_entropy"),
        (["grid.vary.objective=[mse,cross_entropy]"], "gives images; allowed: mse"),
        (["+zoo.models.noise={kind: noise, sigma: 0.1}"], "'noise' is a noise source"),
        (["protocol.label_offset=1"], "label_offset moves labels"),
    ],
)
def test_what_has_no_meaning_is_refused(changes: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_plan(load_config([*ENCODERS, *changes]))


def test_a_classifier_may_send_to_a_decoder() -> None:
    arguments = ["+zoo.models.reader={arch: resnet18_quarter, variant: digit}", "grid.senders=[reader]"]
    cuts = ["grid.cuts={autoencoder: [down2], resnet18_quarter: [layer1]}", "grid.mode=all_cuts"]
    plan = make_plan(load_config([*ENCODERS, *arguments, *cuts]))
    assert plan.select("sender", "sender_cut", "receiver_cut").unique().rows() == [("reader", "layer1", "down2")]


def test_a_smaller_error_is_a_better_score() -> None:
    def of(error: float) -> tuple[float, float]:
        nothing = pl.Series([], dtype=pl.Int64).to_numpy()
        return score_of(Reconstructions(error, nothing, nothing, nothing, nothing))

    assert of(0.0) == (1.0, 0.0)
    assert of(0.25) == (0.8, 0.25)  # 1 / 1.25
    assert of(100.0)[0] > 0  # what a failed candidate is worth


def test_a_sweep_from_start_to_pictures(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        *ENCODERS, "name=encoders", "zoo.arch=autoencoder", "grid.senders=[digit,greyscale,random_init]",
        "grid.receivers=[digit,greyscale]", "grid.eval_data=[fit,digit]", "zoo.training.epochs=2",
    ]  # fmt: skip
    assert place.run(*asked) == 0
    out = capsys.readouterr().out
    assert "Receiver greyscale, stitch fitted on correlated, evaluated on digit: reconstruction error" in out
    cells = place.cells("encoders")
    assert cells.columns == list(CELLS)
    assert cells.height == 3 * 2 * 2
    assert cells.select("accuracy", "penalty", "receiver_accuracy", "sender_accuracy").null_count().row(0) == (12,) * 4
    assert (cells["status"] == "ok").all()
    ratio = (cells["reconstruction_error"] / cells["receiver_error"] - cells["error_ratio"]).abs()
    assert ratio.max() < 1e-12  # type: ignore[operator]
    own = cells.filter(pl.col("sender") == pl.col("receiver"))
    assert own["sender_error"].to_list() == own["receiver_error"].to_list()

    folder = place.folder / "results/encoders"
    results = load(folder)
    # 10 items; 2 eval_data x 6 cells stitched; 3 networks uncut on each measured variant, input and own
    kinds = dict(query(results, "SELECT kind, COUNT(*) FROM outputs GROUP BY kind").rows())
    assert kinds["stitched"] == 10 * 2 * 6
    assert kinds["input"] == kinds["own"]
    drawn = list(sheets(results))
    assert [(one.receiver, one.eval_data) for one in drawn] == [
        ("digit", "correlated"), ("digit", "digit"), ("greyscale", "correlated"), ("greyscale", "digit"),
    ]  # fmt: skip
    first = drawn[0].strips
    assert [strip.label for strip in first] == ["input", "uncut Digit", "Digit", "Greyscale-MNIST", "Random init"]
    assert all(image is not None and image.shape == (28, 28, 3) for strip in first for image in strip.images)
    # the same test images whoever receives
    again = drawn[2].strips[0].images
    assert all((a == b).all() for a, b in zip(first[0].images, again, strict=True))  # type: ignore[union-attr]
    written = {path.name for path in Path(folder, "figures").glob("pictures_*.png")}
    assert written == {f"pictures_{one.receiver}_correlated_{one.eval_data}.png" for one in drawn}
    models = results.models.collect().filter(pl.col("model") == "digit")
    assert models["accuracy"].null_count() == models.height
    assert models["reconstruction_error"].null_count() == 0
    assert models["train_error"].null_count() == 0
