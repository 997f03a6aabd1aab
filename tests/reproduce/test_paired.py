"""A table of the paper beside the runs that reproduce it."""

from __future__ import annotations

from cafe.reproduce.experiments import table_agu
from cafe.reproduce.paper_tables import TABLE_AGU
from tests.support.reproductions import runs_as_printed


def test_table_shows_both_schemes_and_the_printed_values() -> None:
    (table,) = table_agu.conclude(runs_as_printed(TABLE_AGU)).tables
    first = dict(zip(table.columns, table.rows[0], strict=True))
    assert first["quorum"] == "27"
    assert first["MCU printed"] == "0.938"
    assert first["MCU"].startswith("0.938 ± ")
    assert first["expected updates"] == "440"
    assert first["difference printed"] == "-0.006"
