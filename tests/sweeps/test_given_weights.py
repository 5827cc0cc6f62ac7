"""Noise stitched into a network that somebody else trained, for classes of which there are no images."""

import hashlib
import json
from pathlib import Path

import polars as pl
import torch

from analysis.load import load
from stitching_core.models.architectures import architecture
from stitching_core.seeding import stream
from sweeps.config import load_config
from sweeps.plan import recipe
from tests.sweeps.conftest import Place

PLUGIN = """
from stitching_core.data.source import source_without_images
from stitching_core.data.sources import SOURCES

SOURCES["secret"] = lambda root, download: source_without_images("secret", 20, 28, "nobody may see them")
"""


def test_a_model_whose_kind_changes_forgets_its_weights() -> None:
    given = ["+zoo.models.mine={kind: weights, weights: mine.pth, variant: digit}"]
    assert recipe(load_config(given), "mine", 0).weights == "mine.pth"
    trained = recipe(load_config(["+zoo.models.mine={kind: trained, weights: mine.pth, variant: digit}"]), "mine", 0)
    assert trained.weights is None
    assert trained.training is not None


def test_noise_into_given_weights_without_images(place: Place) -> None:
    torch.manual_seed(stream("somebody else's"))
    file = place.folder / "theirs.pth"
    torch.save(architecture("resnet18_eighth").build(20).state_dict(), file)
    (place.folder / "secret.py").write_text(PLUGIN)
    arguments = [
        "name=secret", "plugins=[secret.py]", "data.source=secret", "data.train_items=null", "grid.senders=[noise]",
        "+zoo.models.theirs={kind: weights, weights: theirs.pth}", "grid.receivers=[theirs]", "protocol.batch_size=32",
        "zoo.allow_unlearned=false",
    ]  # fmt: skip
    assert place.run(*arguments) == 0
    cells = place.cells("secret")
    assert cells["status"].to_list() == ["ok", "ok"]
    assert cells["classes"].to_list() == [20, 20]
    assert cells["receiver_accuracy"].null_count() == 2
    assert [len(row) for row in pl.read_parquet(place.folder / "results/secret/predictions/*.parquet")["target"]] == [
        60,
        60,
    ]
    theirs = load(place.folder / "results/secret").models.filter(pl.col("model") == "theirs").collect()
    assert theirs.select("accuracy", "learned", "reason").rows() == [
        (None, None, "the data source has no images to measure it on")
    ]
    (card,) = [
        card
        for card in map(json.loads, map(Path.read_text, (place.folder / "zoo/cards").glob("*.json")))
        if card["recipe"]["kind"] == "weights"
    ]
    assert card["recipe"]["weights"] == {
        "source": "theirs.pth",
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "learned": "declared by their source, not measured here",
    }
    markdown = (place.folder / "results/secret/stitchability.md").read_text()
    assert "compare with chance (1 / classes = 5%)" in markdown
    assert "Not converged, by the training loss of the last epoch" in markdown
    assert place.run(*arguments) == 0  # nothing is left to do
    assert place.cells("secret").equals(cells)
