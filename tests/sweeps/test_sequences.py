"""Senders of other modalities in a sweep: planned, refused, identified, trained and compared."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from analysis.load import load
from analysis.tables import stitchability
from stitching_core.data.fortunes import TOPICS
from stitching_core.errors import InputError
from stitching_core.measure.accuracy import Predictions
from sweeps import sequences
from sweeps.checks import check
from sweeps.config import load_config
from sweeps.plan import make_plan
from sweeps.prepare import make_setting
from sweeps.schema import SequenceConfig, SweepConfig
from tests.sweeps.conftest import Place

ASKED = ["experiment=modalities", "zoo.arch=resnet18_eighth", "cluster=local"]
CUTS = "grid.cuts={series_cnn:[pool],text_cnn:[pool],resnet18_eighth:[layer3,layer4]}"


@pytest.fixture
def words(tmp_path: Path) -> Path:
    for topic in TOPICS:
        lines = [f"{topic} is what saying number {i} is about: {topic}" for i in range(40)]
        (tmp_path / topic).write_text("\n%\n".join(lines))
    return tmp_path


def of_texts(words: Path, *more: str) -> SweepConfig:
    root = f"data.sequences.fortunes.root={words}"
    return load_config([*ASKED, CUTS, root, "grid.senders=[text,text_shuffled]", "data.train_items=100", *more])


def only_text(config: SweepConfig) -> SweepConfig:
    config.zoo.models = {name: model for name, model in config.zoo.models.items() if "audio" not in name}
    return config


def test_every_sender_has_its_own_data_and_every_cut_of_the_receiver() -> None:
    plan = make_plan(load_config(["experiment=modalities"]))
    counted = plan.group_by("sender", "fit_data").len().sort("sender").rows()
    assert counted == [
        ("audio", "japanese_vowels", 8),  # two cuts of its own into two cuts of two receivers
        ("audio_random_init", "japanese_vowels", 8),
        ("audio_shuffled", "japanese_vowels", 8),
        ("noise", "noise", 4),
        ("text", "fortunes", 8),
        ("text_random_init", "fortunes", 8),
        ("text_shuffled", "fortunes", 8),
    ]
    assert (plan["eval_data"].list.join(",") == plan["fit_data"]).all()


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            "{source: birds, arch: series_cnn}",
            "zoo.models.x.source=birds is unknown; allowed: japanese_vowels, fortunes",
        ),
        ("{source: fortunes}", "zoo.models.x.arch=resnet18_eighth reads images, not fortunes; allowed: series_cnn"),
        ("{arch: text_cnn, variant: digit}", "zoo.models.x.arch=text_cnn reads sequences; zoo.models.x.source"),
        ("{source: fortunes, arch: text_cnn, variant: digit}", "zoo.models.x.variant=digit is a variant of images"),
        ("{kind: shuffled, of: nobody}", "zoo.models.x.of=nobody is unknown; allowed: digit"),
        ("{kind: shuffled, of: audio, arch: series_cnn}", "zoo.models.x.arch is given; a sender of kind shuffled"),
        ("{kind: noise, sigma: 1, source: fortunes}", "zoo.models.x.source is given; a sender of kind noise"),
        ("{variant: digit, of: audio}", "zoo.models.x.of=audio is for kind shuffled alone"),
    ],
)
def test_a_model_that_can_not_be_meant_is_refused(model: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        check(load_config([*ASKED, CUTS, f"+zoo.models.x={model}"]))


def test_other_refusals(words: Path) -> None:
    with pytest.raises(InputError, match=r"'audio' reads japanese_vowels; receivers read the sweep's images"):
        make_plan(load_config([*ASKED, CUTS, "grid.receivers=[audio]"]))
    with pytest.raises(InputError, match="'text_shuffled' is a floor of senders"):
        make_plan(load_config([*ASKED, CUTS, "grid.receivers=[text_shuffled]"]))
    wrong = of_texts(words)
    wrong.data.sequences["birds"] = SequenceConfig()
    with pytest.raises(InputError, match=r"data.sequences key=birds is unknown"):
        check(wrong)
    with pytest.raises(InputError, match=r"fortunes.class_map has the receiver class 12; allowed: 0 to 9"):
        make_setting(only_text(of_texts(words, "+data.sequences.fortunes.class_map={0:12,1:3}")), ())
    crossed = of_texts(words)
    crossed.zoo.models["text"].arch = "series_cnn"
    with pytest.raises(InputError, match=r"series_cnn reads 12x29, fortunes are 96x256"):
        make_setting(only_text(crossed), ())


def test_predictions_of_a_sender_are_compared_in_the_receivers_classes(words: Path) -> None:
    setting = make_setting(only_text(of_texts(words, "+data.sequences.fortunes.class_map={0:5,1:3}")), ())
    pairing = sequences.pairing_of(setting, "fortunes")
    labels = pairing.source.test.labels
    wrong = np.where(labels == 0, 1, np.where(labels == 1, 2, labels))  # class 2 stands for none
    got = sequences.paired_predictions(setting, "fortunes", Predictions(wrong, labels, 0.0))
    assert (got.target == pairing.test.labels).all()
    assert (got.predicted == np.where(pairing.test.labels == 5, 3, -1)).all()
    assert set(got.target) == {3, 5}


def test_shuffled_labels_tell_nothing_and_keep_their_counts(words: Path) -> None:
    setting = make_setting(only_text(of_texts(words)), ())
    items = sequences.paired_items(setting, "fortunes", "train", torch.device("cpu"))
    spec = type("Spec", (), {"fit_data": "fortunes", "seed": 0})()
    got = sequences.shuffled(items.labels, spec)
    assert torch.equal(got.bincount(), items.labels.bincount())
    assert float((got == items.labels).float().mean()) < 0.3  # a tenth is expected of ten classes


def test_a_sweep_of_texts(place: Place, words: Path) -> None:
    """One text sender and its floors into a digit classifier: rows, floors, ids, and nulls where nothing is defined."""
    drop = [f"~zoo.models.{name}" for name in ("audio", "audio_random_init", "audio_shuffled")]
    cuts = "grid.cuts={series_cnn:[pool],text_cnn:[pool],resnet18_eighth:[layer3,layer4]}"
    asked = ["experiment=modalities", cuts, f"data.sequences.fortunes.root={words}", *drop]
    asked += ["+data.sequences.fortunes.class_map={0:5,1:3,2:4,3:1,4:0,5:2}"]
    asked += ["grid.senders=[text,text_random_init,text_shuffled]", "zoo.models.text.training.epochs=3"]
    assert place.run("name=texts", *asked, "data.train_items=300", "protocol.epochs=6") == 0
    cells = load(place.folder / "results/texts").cells.collect()
    assert cells.height == 3 * 2
    assert cells["cell_id"].n_unique() == 6
    assert set(cells["status"]) == {"ok"}
    assert cells["penalty"].null_count() == cells["agreement_receiver"].null_count() == 6
    kinds = {"text": "trained", "text_random_init": "random_init", "text_shuffled": "shuffled"}
    assert dict(cells.select("sender", "sender_kind").unique().iter_rows()) == kinds
    of = {name: cells.filter(sender=name) for name in kinds}
    assert of["text"]["sender_hash"].to_list() == of["text_shuffled"]["sender_hash"].to_list()
    # a sixth is chance; each text names its topic twice, and that is all that shuffled labels hide
    assert of["text"]["accuracy"].min() > 0.5
    assert of["text_shuffled"]["accuracy"].max() < 0.35
    table = stitchability(load(place.folder / "results/texts"))
    assert set(table["floor"].drop_nulls()) == {"random_init", "shuffled"}
    assert table.filter(row="uncut").height == 1
    predictions = load(place.folder / "results/texts").predictions.drop_nulls("cell_id").collect()
    digits = pl.read_parquet(place.folder / "results/texts/predictions/part-models.parquet").filter(
        model="digit", eval_data="digit"
    )
    counts = digits["target"].explode().value_counts()
    wanted = {label: count for label, count in counts.rows() if label in range(6)}
    for target in predictions["target"]:  # as often as in the receiver's test images, over the mapped classes alone
        assert dict(target.value_counts().rows()) == wanted
    uncut = digits.explode("target", "predicted").filter(pl.col("target") < 6)
    right = (uncut["target"] == uncut["predicted"]).mean()
    assert cells["receiver_accuracy"].to_list() == pytest.approx([right] * 6)
