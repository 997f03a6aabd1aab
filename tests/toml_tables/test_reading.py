"""TOML text, the keys of tables, and messages that name them."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import pytest

from cafe.data import PARTITIONS
from cafe.errors import FileError, InputError
from cafe.federation_files.family_names import families_by_name, parameters_of
from cafe.learn.linear import Logistic, Ridge
from cafe.learn.mlp import MLP
from cafe.learn.server_optimisers import Adam, Momentum
from cafe.policies import recipes
from cafe.toml_tables.reading import (
    TableLocation,
    example_line,
    look_up_name,
    parse_toml,
    validate_table,
)
from cafe.toml_tables.shapes import REQUIRED, Shape, Table
from cafe.toml_tables.signatures import shape_of


def test_no_parameter_is_similar_to_name() -> None:
    """A key that looks like ``name`` is treated as a misspelling, before other keys are known."""
    others: list[Any] = [Adam, Momentum, MLP, Logistic, Ridge]
    named = [*recipes().values(), *PARTITIONS.values(), *others]
    parameters = {key for called in named for key in shape_of(called)}
    assert not get_close_matches("name", parameters)
    latencies = families_by_name().values()
    assert not get_close_matches("family", {k for c in latencies for k in parameters_of(c)})


SHAPE: Shape = {"rounds": (int, REQUIRED), "time": (float, None)}
RUN = TableLocation("a.toml", "run")


def test_toml_is_parsed_or_its_line_is_named() -> None:
    assert parse_toml("a.toml", "[run]\nrounds = 3") == {"run": {"rounds": 3}}
    with pytest.raises(FileError, match=r"^a\.toml, line 2: this is not valid TOML"):
        parse_toml("a.toml", "[run]\nrounds 3")


def test_a_valid_table_is_copied_with_the_types_of_its_shape() -> None:
    table = {"rounds": 3, "time": 5}
    found = validate_table(SHAPE, table, RUN)
    assert found == {"rounds": 3, "time": 5.0}
    assert isinstance(found["time"], float)
    assert found is not table
    assert validate_table(SHAPE, {"rounds": 3}, RUN) == {"rounds": 3}


def test_a_wrong_key_or_type_is_named_in_full() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"round": 3}, r"a\.toml: the key run\.round is not known\. Did you mean 'rounds'\?"),
        ({}, r"run\.rounds is missing: add a whole number, such as rounds = 100\."),
        ({"rounds": "3"}, r"run\.rounds must be a whole number\. Got the text '3'"),
    ]
    for table, said in cases:
        with pytest.raises(FileError, match=said):
            validate_table(SHAPE, table, RUN)


def test_a_name_is_looked_up() -> None:
    known = {"mcu": 1, "agu": 2}
    assert look_up_name("name", known, {"name": "agu"}, RUN) == 2
    with pytest.raises(FileError, match=r"run\.name must be a known name\. Got 'mcuu'"):
        look_up_name("name", known, {"name": "mcuu"}, RUN)


def test_errors_of_a_block_get_the_file_and_the_table() -> None:
    place = TableLocation("a.toml", "run", advice="Ask for help.").inside("time")
    said = r"^a\.toml: run\.time: too long\. Ask for help\.$"
    with pytest.raises(FileError, match=said), place.add_to_errors():
        raise InputError("too long.")


def test_an_example_is_a_line_of_toml() -> None:
    assert example_line("run.rounds", int) == "rounds = 100"
    assert example_line("run", Table) == "[run] and the lines that belong to it"
