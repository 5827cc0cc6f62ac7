"""Batches: torchvision's own normalisation, and an order that depends on its key alone."""

import numpy as np
import pytest
import torch
from torchvision import transforms

from stitching_core.data.variants import VariantData
from stitching_core.train.images import EVAL_BATCH, ImageTensors, batch_order, eval_batches

CPU = torch.device("cpu")


def variant(items: int, size: int = 6) -> VariantData:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (items, 3, size, size), dtype=np.uint8)
    return VariantData("made", images, np.arange(items) % 10, (0.1307, 0.5, 0.2), (0.3081, 0.5, 0.7), True)


def test_normalisation_is_torchvisions_bit_for_bit() -> None:
    data = variant(20)
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(data.mean, data.std)])
    chosen = torch.tensor([3, 0, 19, 3])
    expected = torch.stack([transform(data.images[i].transpose(1, 2, 0)) for i in chosen])
    data.images.setflags(write=False)  # as an object store hands them out
    tensors = ImageTensors(data, 6, CPU)
    assert torch.equal(tensors.batch(chosen), expected)
    assert torch.equal(tensors.batch(chosen), expected)  # the stored images are still what they were
    assert tensors.labels[chosen].tolist() == [3, 0, 9, 3]
    assert tensors.images.dtype == torch.uint8
    assert tensors.drop_last
    assert len(tensors) == 20


def test_images_are_resized_before_they_are_scaled() -> None:
    tensors = ImageTensors(variant(4), 12, CPU)
    assert tensors.batch(torch.arange(4)).shape == (4, 3, 12, 12)
    assert tensors.images.dtype == torch.uint8


def test_a_subset_is_a_set_of_its_own() -> None:
    whole = ImageTensors(variant(20), 6, CPU)
    part = whole.subset(torch.tensor([7, 2]))
    assert len(part) == 2
    assert part.labels.tolist() == [7, 2]
    assert torch.equal(part.batch(torch.tensor([1, 0])), whole.batch(torch.tensor([2, 7])))
    assert len(whole) == 20


@pytest.mark.parametrize(
    ("items", "batch_size", "drop_last", "sizes"),
    [
        (10, 4, False, [4, 4, 2]),
        (10, 4, True, [4, 4]),
        (8, 4, True, [4, 4]),
        (9, 4, False, [4, 4]),  # one item has no variance
        (3, 4, False, [3]),
        (3, 4, True, []),
        (1, 4, False, []),
        (60_000, 128, False, [128] * 468 + [96]),
    ],
)
def test_batch_sizes(items: int, batch_size: int, drop_last: bool, sizes: list[int]) -> None:
    assert [len(indices) for indices in batch_order(items, batch_size, drop_last, "x", 0)] == sizes


def test_an_epoch_is_a_permutation_that_its_key_decides() -> None:
    def order(*key: str | int) -> list[int]:
        return torch.cat(list(batch_order(100, 8, False, *key))).tolist()

    state = torch.get_rng_state()
    first = order("digit", 3, 0)
    assert sorted(first) == list(range(100))
    torch.rand(5)
    assert order("digit", 3, 0) == first
    others = [order("digit", 3, 1), order("digit", 4, 0), order("colour", 3, 0)]
    assert all(other != first and sorted(other) == list(range(100)) for other in others)
    torch.set_rng_state(state)
    # the batch size cuts one and the same order
    assert torch.cat(list(batch_order(100, 10, False, "digit", 3, 0))).tolist() == first


def test_an_evaluation_takes_every_item_in_its_own_order() -> None:
    batches = list(eval_batches(2 * EVAL_BATCH + 1))
    assert torch.cat(batches).tolist() == list(range(2 * EVAL_BATCH + 1))
    assert [len(batch) for batch in batches] == [EVAL_BATCH, EVAL_BATCH, 1]
