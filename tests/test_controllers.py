"""Controllers: what counts as one, what it may return, and what identifies it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from cafe.controllers import (
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
    assert ask_controller(controller, LEDGER, None) is POLICY
    assert str(controller) == display_name(controller) == "mcu(quorum=1, deadline=0.5)"
    assert identity_of(controller) == POLICY.identity


def test_controller_is_returned_unchanged() -> None:
    controller = Doubling(0.5)
    assert as_controller(controller) is controller
    assert ask_controller(controller, LEDGER, None).deadline == 0.5


@pytest.mark.parametrize("given", [None, "mcu", mcu, Doubling, lambda ledger: POLICY])
def test_invalid_controllers_are_refused(given: Any) -> None:
    assert not is_controller(given)
    with pytest.raises(InputError, match="Expected a policy"):
        as_controller(given)


def test_a_controller_must_return_a_policy() -> None:
    wrong: Any = lambda ledger, seen: "mcu"  # noqa: E731
    with pytest.raises(InputError, match=r"must return a Policy\. Got 'mcu'"):
        ask_controller(wrong, LEDGER, None)


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
