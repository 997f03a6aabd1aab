"""check_policy finds mistakes in policies, and names them."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.decisions import Everyone
from cafe.errors import CafeError, InfeasibleError, InputError
from cafe.policies import agu, fedavg, mcu
from cafe.rounds import FAIL, Carried, Closed, Invitation, Ledger, Merge, Outcome, Policy, Reports
from cafe.testing import CheckFailed, check_policy
from tests.support.policies import coin, curious, forecasting, refilling, scored

BASE = mcu(quorum=2, deadline=0.5)


def failure(policy: Any) -> str:
    with pytest.raises(CheckFailed) as caught:
        check_policy(policy, rounds=12)
    assert isinstance(caught.value, CafeError)
    assert isinstance(caught.value, AssertionError)
    return str(caught.value)


@pytest.mark.parametrize(
    "policy",
    [
        BASE,
        agu(quorum=4, deadline=100.0, pool="union"),
        fedavg(fraction=0.5, epochs=2, deadline=0.01),
        refilling(5, 3),
        coin(),
        curious(),
        scored(),
        forecasting(),
    ],
    ids=lambda policy: policy.name,
)
@pytest.mark.slow
def test_policies_that_satisfy_the_contract(policy: Policy) -> None:
    check_policy(policy, rounds=12)


def test_a_function_that_makes_policies() -> None:
    check_policy(lambda: mcu(quorum=2, deadline=0.5), rounds=6)


def own_generator() -> Policy:
    rng = np.random.default_rng()

    def invite(ledger: Ledger, given: np.random.Generator) -> Invitation:
        idle = ledger.idle
        return Invitation(np.sort(rng.choice(idle, max(len(idle) // 2, 1), replace=False)))

    return replace(BASE, name="dice", invite=invite, parameters={})


def test_policy_with_its_own_generator() -> None:
    text = failure(own_generator())
    assert text.startswith("The policy dice failed the check 'same seed, same run': in round 0, ")
    assert "the first run and" in text
    assert "Draw from ledger.rng" in text


def counter() -> Policy:
    count = itertools.count()

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.full(len(reports), 1.0 / (1 + next(count))))

    return replace(BASE, name="counter", merge=merge, parameters={})


def test_policy_with_state_in_a_closure() -> None:
    """A second run reveals it; if each run has a new policy, a restored run reveals it."""
    assert "same seed, same run" in failure(counter())
    text = failure(counter)
    assert "The policy counter failed the check 'save and restore'" in text


def test_policy_that_changes_its_state_in_place() -> None:
    def observe(ledger: Ledger, outcome: Outcome, closed: Closed) -> list[int]:
        state: list[int] = ledger.state or []
        state.append(outcome.used)
        return state

    text = failure(replace(BASE, name="appender", observe=observe))
    assert "'decisions leave their arguments alone': observe changed state of the Ledger" in text
    assert "in round 1" in text


def test_policy_that_writes_to_arrays() -> None:
    def carry(ledger: Ledger, closed: Closed) -> Carried:
        closed.arrived[:] = 0.0
        return Carried()

    text = failure(replace(BASE, name="scribbler", carry=carry))
    assert "carry changed arrived of the Closed it was given in round 0" in text

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        ledger.merged[0] += 1
        return Everyone()(ledger, rng)

    text = failure(replace(BASE, invite=invite))
    assert "invite tried to write to a read-only array in round 0" in text


def test_a_column_that_all_jobs_share_cannot_be_written() -> None:
    """The column is stored once and shared with other runs."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        reports.note[:] = 7.0
        return Merge(np.zeros(len(reports)))

    text = failure(replace(BASE, merge=merge))
    assert "merge tried to write to a read-only array in round 0" in text


def test_error_is_reported_without_a_guess_at_its_cause() -> None:
    text = failure(replace(BASE, observe=lambda *_: (1, 2)))
    assert "must return a state in observe that survives a JSON round trip" in text
    assert "usually means" not in text


def test_policy_that_fails_every_round_at_once() -> None:
    """All its rounds fail at once: ages stay 0, and there is no update."""
    with pytest.raises(InfeasibleError, match="No round"):
        check_policy(replace(BASE, close=lambda *_: FAIL), rounds=3)


def test_local_models_that_are_not_declared() -> None:
    text = failure(replace(agu(quorum=12, deadline=0.2), needs=frozenset()))
    assert "'live = engine'" in text
    assert 'Add "local models" to its needs' in text


@pytest.mark.parametrize("given", [3, lambda: 3, mcu, Policy])
def test_invalid_arguments_are_refused(given: Any) -> None:
    with pytest.raises(InputError, match="check_policy needs a policy"):
        check_policy(given)
    wrong: Any = 3
    with pytest.raises(InputError, match=r"federation must be a cafe\.Federation"):
        check_policy(BASE, federation=wrong)


def test_no_test_library_is_imported() -> None:
    for module in (
        cafe.testing,
        cafe.testing.contract,
        cafe.testing.check,
        cafe.testing.comparison,
    ):
        text = inspect.getsource(module)
        assert "pytest" not in text
        assert "hypothesis" not in text


def test_policy_that_never_succeeds_is_an_error() -> None:
    slow = cafe.Federation(5, cafe.Constant(2.0))
    with pytest.raises(InfeasibleError, match="No round of the policy mcu succeeded in 6 rounds"):
        check_policy(mcu(quorum=1, deadline=1.0), federation=slow, rounds=6)
