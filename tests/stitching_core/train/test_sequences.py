"""Sequences on a device: a token is a one in its own channel, and the embedding a table look-up."""

import numpy as np
import torch

from stitching_core.data.sequence import Sequences, SequenceSource
from stitching_core.models.divide import DividedModel, check
from stitching_core.models.sequence_networks import series_cnn, text_cnn
from stitching_core.train.sequences import SequenceTensors

CPU = torch.device("cpu")


def texts(length: int = 4, tokens: int = 3) -> SequenceSource:
    part = Sequences(np.array([[1, 3, 0, 0], [2, 2, 1, 0]], np.uint8)[:, :length], np.array([0, 1]))
    return SequenceSource("made", part, part, ("a", "b"), tokens)


def test_tokens_become_channels_and_padding_nothing() -> None:
    data = SequenceTensors(texts(), texts().train, CPU)
    got = data.batch(torch.tensor([1, 0]))
    assert got.shape == (2, 3, 4)
    assert got[0].tolist() == [[0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    assert got[1].tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]]


def test_a_subset_repeats_items_and_leaves_the_rest_alone() -> None:
    data = SequenceTensors(texts(), texts().train, CPU)
    part = data.subset(torch.tensor([1, 1, 0]))
    part.labels = torch.tensor([7, 7, 8])
    assert (len(part), len(data), data.labels.tolist()) == (3, 2, [0, 1])
    assert torch.equal(part.batch(torch.tensor([0, 2])), data.batch(torch.tensor([1, 0])))


def test_the_embedding_looks_up_a_table() -> None:
    model = text_cnn(10)
    codes = torch.randint(0, 97, (2, 256), generator=torch.Generator().manual_seed(0))
    one_hot = torch.nn.functional.one_hot(codes, 97)[:, :, 1:].transpose(1, 2).float()
    table = torch.cat([torch.zeros(1, 16), model.embedding.weight[:, :, 0].T])  # row 0 is padding
    torch.testing.assert_close(model.embedding(one_hot), table[codes].transpose(1, 2))


def test_their_cuts_carry_everything() -> None:
    torch.manual_seed(0)
    expected = {"block1": (32, 29), "block2": (64, 15), "block3": (64, 8), "pool": (64,)}
    series = DividedModel(series_cnn(9), 29, (12, 29))
    assert {name: series.cut(name).shape for name in expected} == expected
    text = DividedModel(text_cnn(10), 256, (96, 256))
    shapes = {"embedding": (16, 256), "block1": (32, 128), "block2": (64, 64), "block3": (64, 32), "pool": (64,)}
    assert {name: text.cut(name).shape for name in shapes} == shapes
    check(series, list(expected))
    check(text, list(shapes))
