"""TOML values as the types that are asked for."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from cafe.toml_tables.conversion import MismatchError, convert
from cafe.toml_tables.shapes import Table

ACCEPTED: list[tuple[Any, Any, Any]] = [
    (bool, True, True),
    (int, 3, 3),
    (float, 3, 3.0),
    (float, float("inf"), float("inf")),
    (str, "a", "a"),
    (Table, {"a": [1]}, {"a": [1]}),
    (list[float], [1, 2.5], [1.0, 2.5]),
    (list[Table], [{}, {"a": 1}], [{}, {"a": 1}]),
    (Literal["own", "paper"], "own", "own"),
    (int | float, 3, 3),
    (list[float] | list[int], [1, 2], [1, 2]),
    (float | Table, 3, 3.0),
    (str | Table, {"a": 1}, {"a": 1}),
]

REJECTED: list[tuple[Any, Any]] = [
    (bool, 1),
    (int, True),
    (int, 3.0),
    (float, True),
    (float, "3"),
    (float, 10**400),
    (str, 3),
    (Table, []),
    (list[int], 3),
    (Literal["own", "paper"], "mine"),
    (int | Table, "3"),
]


@pytest.mark.parametrize(("kind", "value", "converted"), ACCEPTED)
def test_values_of_the_type_are_accepted(kind: Any, value: Any, converted: Any) -> None:
    found = convert(kind, value)
    assert found == converted
    assert type(found) is type(converted)
    if isinstance(found, list):
        assert [type(entry) for entry in found] == [type(entry) for entry in converted]


@pytest.mark.parametrize(("kind", "value"), REJECTED)
def test_values_of_another_type_are_rejected(kind: Any, value: Any) -> None:
    with pytest.raises(MismatchError) as wrong:
        convert(kind, value)
    assert (wrong.value.kind, wrong.value.value, wrong.value.entry) == (kind, value, None)


def test_the_first_wrong_entry_of_a_list_is_named() -> None:
    with pytest.raises(MismatchError) as wrong:
        convert(list[int], [1, 2.5, "a"])
    assert (wrong.value.kind, wrong.value.value, wrong.value.entry) == (int, 2.5, 1)


def test_a_table_is_copied() -> None:
    table = {"a": 1}
    assert convert(Table, table) is not table
