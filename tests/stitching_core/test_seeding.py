"""Streams: a published hash of what they are for, and nothing that happened before."""

import hashlib
import math

import numpy as np
import pytest
import torch

from stitching_core.seeding import numpy_generator, reseed, stream, torch_generator


def test_a_stream_is_the_first_63_bits_of_the_hash_of_its_parts() -> None:
    digest = hashlib.sha256(b'["batch_order","digit",3,null,0.5,true]').hexdigest()
    assert stream("batch_order", "digit", 3, None, 0.5, True) == int(digest[:16], 16) // 2


def test_parts_do_not_run_together() -> None:
    streams = [stream("ab"), stream("a", "b"), stream("a", "b", None), stream(1), stream("1"), stream(True), stream()]
    assert len(set(streams)) == len(streams)
    assert all(0 <= s < 2**63 for s in streams)


def test_a_part_that_has_no_value_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        stream("sigma", math.nan)


def test_generators_start_at_their_stream() -> None:
    for make, draw in (
        (torch_generator, lambda g: torch.randint(1000, (8,), generator=g).tolist()),
        (numpy_generator, lambda g: g.integers(1000, size=8).tolist()),
    ):
        assert draw(make("a", 1)) == draw(make("a", 1)) != draw(make("a", 2))
    expected = np.random.Generator(np.random.Philox(key=stream("a", 1))).random(3)
    assert numpy_generator("a", 1).random(3).tolist() == expected.tolist()


def test_reseeding_fixes_what_dropout_draws() -> None:
    with torch.random.fork_rng(devices=[]):
        draws = []
        for parts in (("x", 1), ("x", 1), ("x", 2)):
            reseed(torch.device("cpu"), *parts)
            draws.append(torch.nn.functional.dropout(torch.ones(64)).tolist())
        torch.manual_seed(stream("x", 1))
        assert draws[0] == draws[1] == torch.nn.functional.dropout(torch.ones(64)).tolist()
        assert draws[0] != draws[2]
