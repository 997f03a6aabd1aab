"""User functions by name; tests/policies/test_lookup.py has the cases of policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from cafe.errors import InputError
from cafe.user_code.user_functions import FunctionKind, find_function, folders_to_search

NUMBER = FunctionKind(
    "number", "my_numbers:two", "an int", lambda made: isinstance(made, int), "Return 2"
)


def test_a_function_is_found_and_checked(tmp_path: Path) -> None:
    (tmp_path / "my_own_numbers.py").write_text(
        "def two():\n    return 2\ndef word():\n    return 'two'\n"
    )
    folders = folders_to_search(tmp_path)
    assert find_function(NUMBER, "my_own_numbers:two", "two", folders)() == 2
    with pytest.raises(InputError, match=r"word must return an int. Got a str. Return 2\."):
        find_function(NUMBER, "my_own_numbers:word", "word", folders)()


def test_the_example_is_that_of_the_kind() -> None:
    with pytest.raises(
        InputError, match=r"'my_numbers:two' for the function two in the file my_nu"
    ):
        find_function(NUMBER, "two", "two", folders_to_search(None))
