"""The schema that leaves the core."""

import datetime

import pytest

from stitching_core import record

TYPES = {"str", "int", "float", "bool", "list[int]", "list[float]"}


def test_every_column_has_a_known_type() -> None:
    assert {kind for table in record.TABLES.values() for kind in table.values()} <= TYPES
    assert len({record.OK, record.DIVERGED, record.FAILED}) == 3
    assert set(record.FLOORS) == {"random_init", "noise", "shuffled"}


def test_a_row_has_every_column_and_null_where_nothing_was_given() -> None:
    row = record.row("modules", module="fc", width=10)
    assert list(row) == list(record.MODULES)
    assert {name: value for name, value in row.items() if value is not None} == {"module": "fc", "width": 10}
    assert record.row("modules", width=0)["width"] == 0


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(KeyError, match="'acuracy' is not a column of cells"):
        record.row("cells", acuracy=0.5, finished_at=datetime.datetime.now().isoformat())
