"""LocalSteps: its terms, and what it does not accept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from tests.support.local_terms import (
    ragged_steps,
    with_terms,
)


def test_terms_are_converted_to_the_learners_types() -> None:
    terms: dict[str, Any] = {
        "prox": np.ones((5, 7)),
        "offset": np.ones((5, 2)).tolist(),
        "frozen": [True, False],
    }
    local = replace(ragged_steps(), **terms)
    kinds = [a.dtype for a in (local.prox, local.offset, local.frozen) if a is not None]
    assert kinds == [np.float32, np.float32, np.bool_]


def test_plain_is_true_without_terms() -> None:
    local = ragged_steps()
    assert local.plain
    for term in ("prox", "offset", "frozen"):
        assert not with_terms(local, 4, term).plain


@pytest.mark.parametrize(
    "clients", [slice(1, 3), np.array([3, 0]), np.array([True, False, True, False, False])], ids=str
)
def test_take_selects_clients(clients: Any) -> None:
    local = with_terms(ragged_steps(), 4, "prox", "offset", "frozen")
    some = local.take(clients)
    for name in ("rows", "weight", "rate", "prox", "offset"):
        np.testing.assert_array_equal(getattr(some, name), getattr(local, name)[clients])
    assert some.frozen is local.frozen
    assert ragged_steps().take(clients).plain


def test_then_refuses_different_terms() -> None:
    plain = ragged_steps()
    offset = with_terms(plain, 4, "offset")
    with pytest.raises(InputError, match="if offset is the same in both"):
        plain.then(offset)
    with pytest.raises(InputError, match="if offset is the same in both"):
        offset.then(with_terms(plain, 4, "offset", seed=6))
    with pytest.raises(InputError, match="if frozen is the same in both"):
        with_terms(plain, 4, "frozen").then(plain)
    copied = with_terms(plain, 4, "offset")
    assert offset.then(copied).offset is offset.offset


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"prox": np.ones((5, 2), np.float32)}, r"shape \(5, 7\)\. Got shape \(5, 2\)"),
        ({"prox": 1.0}, r"Got shape \(\)\. For a single value, use np.full"),
        ({"prox": np.full((5, 7), -1.0, np.float32)}, "prox must be 0 or more"),
        ({"prox": np.full((5, 7), np.nan, np.float32)}, "prox must be 0 or more"),
        ({"offset": np.ones(4, np.float32)}, r"each of the 5 clients.*Got shape \(4,\)"),
        ({"offset": np.ones((4, 4), np.float32)}, r"each of the 5 clients.*Got shape \(4, 4\)"),
        ({"frozen": np.array([0, 3])}, r"shape \(2,\) and type int64\. If it holds indices"),
        ({"frozen": [1, 0]}, r"shape \(2,\) and type int64"),
        ({"frozen": np.ones((5, 4), bool)}, r"shape \(5, 4\)"),
    ],
)
def test_invalid_terms_are_refused(terms: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(ragged_steps(), **terms)
