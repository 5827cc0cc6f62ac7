"""Small 1-D convolutional networks for series and texts, with named cuts: block1 to block3 (maps), pool (a vector)."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn


def series_cnn(classes: int) -> nn.Module:
    """For Japanese Vowels: (n, 12, 29). Cuts: block1 32x29, block2 64x15, block3 64x8, pool 64."""
    return nn.Sequential(
        OrderedDict(
            block1=_block(12, 32, 3, 1),
            block2=_block(32, 64, 3, 2),
            block3=_block(64, 64, 3, 2),
            pool=nn.Sequential(nn.AdaptiveAvgPool1d(1), nn.Flatten()),
            fc=nn.Linear(64, classes),
        )
    )


def text_cnn(classes: int) -> nn.Module:
    """For Fortunes: (n, 96, 256), a channel for each token. Cuts: embedding 16x256, block1 to block3, pool 64.

    The embedding is a table with a vector for each token: a 1x1 convolution without bias over one-hot channels, so that
    padding is the zero vector. The pool takes the maximum over the text, as Kim 2014 does (Convolutional Neural
    Networks for Sentence Classification, Section 2), since a word counts wherever it stands.
    """
    return nn.Sequential(
        OrderedDict(
            embedding=nn.Conv1d(96, 16, 1, bias=False),
            block1=_block(16, 32, 5, 2),
            block2=_block(32, 64, 5, 2),
            block3=_block(64, 64, 5, 2),
            pool=nn.Sequential(nn.AdaptiveMaxPool1d(1), nn.Flatten()),
            fc=nn.Linear(64, classes),
        )
    )


def _block(channels_in: int, channels_out: int, kernel: int, stride: int) -> nn.Sequential:
    convolution = nn.Conv1d(channels_in, channels_out, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm1d(channels_out), nn.ReLU())
