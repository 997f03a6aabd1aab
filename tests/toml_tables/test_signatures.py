"""The keys of a table are the parameters of the function that it calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from cafe.engine import simulate
from cafe.errors import FileError, InputError
from cafe.policies import recipes
from cafe.toml_tables.reading import TableLocation
from cafe.toml_tables.shapes import REQUIRED
from cafe.toml_tables.signatures import call_named, read_arguments, shape_of, shape_of_call


@pytest.mark.parametrize("name", recipes())
def test_every_parameter_of_a_policy_is_a_key(name: str) -> None:
    types = get_type_hints(recipes()[name])
    for key in inspect.signature(recipes()[name]).parameters:
        if "Callable" not in f"{types[key]}" or "str" in f"{types[key]}":
            assert key in shape_of(recipes()[name])


def test_every_argument_of_simulate_is_a_key_or_a_table() -> None:
    tables = {"federation", "policy", "task"}
    others = {*inspect.signature(simulate).parameters} - {*shape_of(simulate)}
    assert others == tables | {"progress"}


def optional(quorum: int, late: str | None = "drop", then: Callable[[], int] | None = None) -> Any:
    return quorum, late, then


def test_parameters_that_toml_cannot_give_are_left_out() -> None:
    shape = shape_of(optional)
    assert list(shape) == ["quorum", "late"]
    assert shape["quorum"] == (int, REQUIRED)
    location = TableLocation("a.toml", "policy")
    assert read_arguments(shape, {"quorum": 3, "late": "none"}, location) == {
        "quorum": 3,
        "late": None,
    }


def test_a_table_calls_the_function_that_it_names() -> None:
    location = TableLocation("a.toml", "policy")
    called = call_named({"own": optional}, {"name": "own", "quorum": 3}, location)
    assert called == (3, "drop", None)
    with pytest.raises(FileError, match=r"policy\.quorum is missing"):
        call_named({"own": optional}, {"name": "own"}, location)


def test_function_that_cannot_be_called_from_a_table() -> None:
    def named(name: str) -> None: ...

    def needs_a_function(then: Callable[[], int]) -> None: ...

    for wrong in (named, needs_a_function):
        with pytest.raises(InputError, match="cannot be given in a scenario file"):
            shape_of_call(wrong)
