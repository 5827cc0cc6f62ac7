"""The line that says how far a sweep is."""

import pytest

from sweeps.progress import Progress, clock, progress_line


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (41.4, "41s"),
        (59.6, "1m00s"),
        (187, "3m07s"),
        (3599.7, "1h00m"),
        (3720, "1h02m"),
        (360000, "100h00m"),
    ],
)
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_a_fresh_sweep_half_way() -> None:
    # half of the work in 60 s: 60 of 120 cells a minute, and another minute to go
    line = progress_line(40, 120, 120, 600, 1200, 60, 0)
    assert line == "cells 40/120 | 60.0 cells/min | 1m00s gone, 1m00s left"


def test_a_resumed_sweep_counts_the_rate_of_what_it_trains() -> None:
    # 100 cells were there already; a quarter of the other 20 in 30 s
    line = progress_line(103, 120, 20, 50, 200, 30, 2)
    assert line == "cells 103/120 | 10.0 cells/min | 30s gone, 1m30s left | 2 diverged or failed"


def test_before_anything_is_done_nothing_is_promised() -> None:
    assert progress_line(0, 120, 120, 0, 1200, 5, 0).endswith("5s gone, ? left")
    assert progress_line(0, 120, 120, 0, 1200, 0, 0).startswith("cells 0/120 | 0.0 cells/min")


def test_at_the_end_nothing_is_left() -> None:
    # a block that was tried twice has been counted twice
    assert "0s left" in progress_line(120, 120, 120, 1300, 1200, 60, 0)
    assert "0s left" in progress_line(120, 120, 0, 0, 0, 1, 0)


def test_a_line_is_printed_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(lambda: "all done"):
        pass
    assert capsys.readouterr().out == "all done\n"


def test_a_line_that_cannot_be_made_does_not_end_the_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    def line() -> str:
        raise ConnectionError

    with Progress(line):
        pass
    assert "ConnectionError" in capsys.readouterr().out


def test_an_error_is_not_followed_by_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), Progress(lambda: "all done"):
        raise KeyError
    assert capsys.readouterr().out == ""
