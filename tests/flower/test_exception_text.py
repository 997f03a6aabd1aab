"""Flower's form of an exception is rewritten."""

from __future__ import annotations

import builtins
import json

from cafe.flower.exception_text import plain_exceptions


def in_flowers_form(error: Exception) -> str:
    return str(type(error)) + ":<'" + str(error) + "'>"


def test_type_and_message_in_pythons_form() -> None:
    assert plain_exceptions(in_flowers_form(KeyError("labels"))) == "KeyError: 'labels'"
    assert plain_exceptions(in_flowers_form(ValueError("two\nlines"))) == "ValueError: two\nlines"
    assert plain_exceptions(in_flowers_form(builtins.ValueError())) == "ValueError"
    own = json.JSONDecodeError("bad", "{", 0)
    assert plain_exceptions(in_flowers_form(own)).startswith("json.decoder.JSONDecodeError: bad")


def test_other_text_stays() -> None:
    assert plain_exceptions("KeyError: 'x'") == "KeyError: 'x'"
    assert (
        plain_exceptions("code 2: " + in_flowers_form(OSError("gone"))) == "code 2: OSError: gone"
    )
