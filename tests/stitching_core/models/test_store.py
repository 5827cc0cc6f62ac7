"""The store: what is saved comes back, what was tampered with doesn't, and keys know what matters."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stitching_core.errors import InputError
from stitching_core.models import architectures, store
from stitching_core.models.store import Card, Zoo, content_hash, recipe_key, write_atomically
from stitching_core.models.weights import file_hash
from stitching_core.spec import DataSpec, ModelRecipe, TrainingRecipe

TRAINING = TrainingRecipe(learning_rate=0.1, momentum=0.9, weight_decay=1e-4, batch_size=128, epochs=4)
RECIPE = ModelRecipe("a", "trained", "resnet18_eighth", "digit", 3, TRAINING)
DATA = DataSpec("digits", seed=1)


def tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "conv.weight": rng.normal(size=(4, 3, 2, 2)).astype(np.float32),
        "fc.bias": rng.normal(size=5).astype(np.float32),
        "bn.num_batches_tracked": np.array(7),
    }


def stored(zoo: Zoo, arrays: dict[str, np.ndarray], key: str = "key") -> Card:
    card = Card(content_hash(RECIPE, arrays), {"name": "a"}, 53, True, 0.99, 1.5)
    zoo.save(key, card, arrays)
    return card


def weights_file(zoo: Zoo, card: Card) -> Path:
    return zoo.folder / "weights" / f"{card.hash}.safetensors"


def test_round_trip(tmp_path: Path) -> None:
    zoo, arrays = Zoo(tmp_path), tensors()
    assert zoo.find("key") is None
    card = stored(zoo, arrays)
    assert Zoo(tmp_path).find("key") == card
    loaded = zoo.load(card, RECIPE)
    assert loaded.keys() == arrays.keys()
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype
        assert loaded[name].shape == array.shape
        assert np.array_equal(loaded[name], array)


def test_the_memory_layout_of_a_weight_does_not_matter(tmp_path: Path) -> None:
    plain = torch.arange(48.0).reshape(4, 3, 2, 2)
    last = plain.to(memory_format=torch.channels_last)
    assert content_hash(RECIPE, {"w": last.numpy()}) == content_hash(RECIPE, {"w": plain.numpy()})
    zoo = Zoo(tmp_path)
    card = stored(zoo, {"w": last.numpy()})
    assert np.array_equal(zoo.load(card, RECIPE)["w"], plain.numpy())


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    zoo = Zoo(tmp_path)
    card = stored(zoo, tensors())
    file = weights_file(zoo, card)
    whole = file.read_bytes()
    start = len(whole) - (48 + 5) * 4 - 8  # the tensors' own bytes
    for position in (start, start + 100, len(whole) - 1):
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(InputError, match="does not match its hash; delete it to have it made again"):
            zoo.load(card, RECIPE)
    file.write_bytes(whole)
    zoo.load(card, RECIPE)


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    zoo = Zoo(tmp_path)
    card = stored(zoo, tensors())
    file = weights_file(zoo, card)
    whole = file.read_bytes()
    for length in (0, 4, 50, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(InputError, match="does not match its hash; delete it to have it made again"):
            zoo.load(card, RECIPE)
    file.unlink()
    assert zoo.find("key") is None  # deleting it is enough for it to be made again


def test_two_recipes_with_one_outcome_share_a_file(tmp_path: Path) -> None:
    zoo = Zoo(tmp_path)
    assert stored(zoo, tensors(), "one").hash == stored(zoo, tensors(), "two").hash
    assert len(list((tmp_path / "weights").iterdir())) == 1
    assert len(list((tmp_path / "cards").iterdir())) == 2


def test_a_crash_between_weights_and_card_leaves_no_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zoo = Zoo(tmp_path)
    real = write_atomically

    def dies_at_the_card(path: Path, write: Any) -> None:
        if path.suffix == ".json":
            raise KeyboardInterrupt
        real(path, write)

    monkeypatch.setattr(store, "write_atomically", dies_at_the_card)
    with pytest.raises(KeyboardInterrupt):
        stored(zoo, tensors())
    assert zoo.find("key") is None
    monkeypatch.undo()
    card = stored(zoo, tensors())  # the rerun meets the weights that are there already
    assert zoo.find("key") == card
    zoo.load(card, RECIPE)


def test_a_crash_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "x"
    write_atomically(file, lambda path: path.write_text("old"))

    def half(path: Path) -> None:
        path.write_text("ne")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(file, half)
    assert file.read_text() == "old"


@pytest.mark.parametrize("content", [b"", b'{"hash": "ab', b'{"hash": "ab"}', b'{"what": 1}', b"[]", b"\xff\xfe\x00"])
def test_a_card_that_can_not_be_read_is_no_card(tmp_path: Path, content: bytes) -> None:
    zoo = Zoo(tmp_path)
    stored(zoo, tensors())
    (tmp_path / "cards" / "key.json").write_bytes(content)
    assert zoo.find("key") is None


def key(recipe: ModelRecipe = RECIPE, classes: int = 10, data: DataSpec = DATA, data_hash: str = "d") -> str:
    return recipe_key(recipe, classes, data, data_hash)


def test_a_recipes_key_does_not_depend_on_names_or_places() -> None:
    for same in (dataclasses.replace(RECIPE, name="b"), dataclasses.replace(RECIPE, sigma=0.5)):
        assert key(same) == key()
    for data in (dataclasses.replace(DATA, source="mnist"), dataclasses.replace(DATA, noise_train_items=5)):
        assert key(data=data) == key()
    assert key(dataclasses.replace(RECIPE), 10, dataclasses.replace(DATA)) == key()


def test_a_recipes_key_depends_on_everything_that_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = [dataclasses.replace(RECIPE, **change) for change in (
        {"arch": "resnet18_quarter"}, {"variant": "colour"}, {"seed": 4}, {"kind": "random_init"}
    )]  # fmt: skip
    for field in dataclasses.fields(TRAINING):
        value = getattr(TRAINING, field.name)
        training = dataclasses.replace(TRAINING, **{field.name: value + 1 if field.name != "schedule" else "other"})
        changed.append(dataclasses.replace(RECIPE, training=training))
    keys = [key(), *map(key, changed)]
    keys += [key(classes=9), key(data_hash="e"), key(data=dataclasses.replace(DATA, seed=2))]
    keys += [key(data=dataclasses.replace(DATA, background_noise=0.2))]
    entry = architectures.ARCHITECTURES["resnet18_eighth"]
    monkeypatch.setitem(architectures.ARCHITECTURES, "resnet18_eighth", dataclasses.replace(entry, version="2"))
    keys.append(key())
    assert len(set(keys)) == len(keys) == 1 + 4 + 6 + 4 + 1


def test_an_untrained_network_depends_on_no_data() -> None:
    untrained = ModelRecipe("r", "random_init", "resnet18", None, 0)
    assert key(untrained) == key(untrained, data_hash="e", data=dataclasses.replace(DATA, seed=9))
    assert key(untrained) != key(dataclasses.replace(untrained, seed=1))


def test_noise_is_its_sigma() -> None:
    noise = [ModelRecipe("n", "noise", None, None, seed, sigma=sigma) for seed, sigma in ((0, 0.1), (1, 0.1), (0, 0.5))]
    assert key(noise[0]) == key(noise[1]) != key(noise[2])
    assert content_hash(noise[0], {}) == content_hash(noise[1], {}) != content_hash(noise[2], {})


def test_given_weights_are_known_by_their_content(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path, content in zip(paths, (b"one", b"one", b"two"), strict=True):
        path.write_bytes(content)
    given = [ModelRecipe("w", "weights", "resnet18", None, 0, weights=str(path)) for path in paths]
    assert key(given[0]) == key(given[1]) != key(given[2])
    # printf one | sha256sum
    assert file_hash(paths[0]) == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    with pytest.raises(InputError, match=r"weights file .*absent' can't be read: No such file"):
        key(dataclasses.replace(given[0], weights=str(tmp_path / "absent")))


def test_a_content_hash_depends_on_all_that_computes() -> None:
    arrays = tensors()
    moved = dict(arrays, **{"fc.bias": np.nextafter(arrays["fc.bias"], 9)})
    hashes = [
        content_hash(RECIPE, arrays),
        content_hash(RECIPE, moved),
        content_hash(RECIPE, {"x" if name == "fc.bias" else name: array for name, array in arrays.items()}),
        content_hash(RECIPE, dict(arrays, **{"conv.weight": arrays["conv.weight"].reshape(3, 4, 2, 2)})),
        content_hash(RECIPE, dict(arrays, **{"fc.bias": arrays["fc.bias"].view(np.int32)})),
        content_hash(RECIPE, dict(arrays, **{"bn.num_batches_tracked": np.array(8)})),
        content_hash(dataclasses.replace(RECIPE, arch="resnet18"), arrays),
    ]
    assert len(set(hashes)) == len(hashes)
    other = dataclasses.replace(RECIPE, name="b", seed=8, variant="mix")
    assert content_hash(other, dict(reversed(arrays.items()))) == hashes[0]
