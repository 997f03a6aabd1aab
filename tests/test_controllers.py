"""Controllers: what counts as one, what it may return, and what identifies it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from cafe.controllers import (
    Choice,
    Fixed,
    as_controller,
    ask_controller,
    display_name,
    identity_of,
    is_controller,
)
from cafe.errors import InputError
from cafe.policies import mcu
from cafe.rounds import Ledger, Policy

POLICY = mcu(quorum=1, deadline=0.5)
LEDGER = Ledger.new(np.ones(3, dtype=int))


@dataclass(frozen=True)
class Doubling:
    deadline: float
    held: Any = None

    def __call__(self, ledger: Ledger, seen: Any) -> Policy:
        return mcu(quorum=1, deadline=self.deadline * 2**ledger.round)


@dataclass(frozen=True)
class Named(Doubling):
    def __str__(self) -> str:
        return f"named({self.deadline})"


def test_a_policy_is_its_own_controller() -> None:
    controller = as_controller(POLICY)
    assert isinstance(controller, Fixed)
    assert ask_controller(controller, LEDGER, None).policy is POLICY
    assert str(controller) == display_name(controller) == "mcu(quorum=1, deadline=0.5)"
    assert identity_of(controller) == POLICY.identity


def test_controller_is_returned_unchanged() -> None:
    controller = Doubling(0.5)
    assert as_controller(controller) is controller
    assert ask_controller(controller, LEDGER, None).policy.deadline == 0.5


@pytest.mark.parametrize("given", [None, "mcu", mcu, Doubling, lambda ledger: POLICY])
def test_invalid_controllers_are_refused(given: Any) -> None:
    assert not is_controller(given)
    with pytest.raises(InputError, match="Expected a policy"):
        as_controller(given)


def test_a_controller_must_return_a_policy() -> None:
    wrong: Any = lambda ledger, seen: "mcu"  # noqa: E731
    with pytest.raises(InputError, match=r"must return a Policy or a Choice\. Got 'mcu'"):
        ask_controller(wrong, LEDGER, None)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (Choice("mcu"), r"must return a Policy or a Choice\. Got 'mcu'"),  # type: ignore[arg-type]
        (Choice(POLICY, reason=None), r"reason of a Choice must be a string\. Got None"),  # type: ignore[arg-type]
        (Choice(POLICY, state=(1, 2)), r"with a state that survives a JSON.* Got \(1, 2\)"),
        (Choice(POLICY, state={"a": float("nan")}), r"survives a JSON round trip.*Got nan"),
    ],
)
def test_a_choice_has_a_policy_a_plain_state_and_a_reason(choice: Choice, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ask_controller(lambda ledger, seen: choice, LEDGER, None)


def test_names_contain_no_memory_addresses() -> None:
    def mine(ledger: Ledger, seen: Any) -> Policy:
        return POLICY

    assert display_name(mine) == "mine"
    assert display_name(Named(0.5)) == "named(0.5)"
    assert display_name(object()) == "object"


def test_controllers_are_identified_by_their_fields_or_their_text() -> None:
    assert identity_of(Doubling(0.5)) == identity_of(Doubling(0.5))
    assert identity_of(Doubling(0.5)) != identity_of(Doubling(0.25))
    lock = threading.Lock()
    assert identity_of(Named(0.5, lock)) == "named(0.5)"
    with pytest.raises(InputError, match="cannot be identified"):
        identity_of(lambda ledger, seen: mcu(quorum=1, deadline=0.5 if lock else 1.0))
