"""Policies as values: what they accept, what identifies them, and which may resume a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cafe.controllers import identity_of
from cafe.engine import Run
from cafe.engine.snapshot import restore, save
from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.policies import awu, mcu
from cafe.rounds import Policy

FEDERATION = Federation(10, Exponential(1.0))


def with_closure(offset: float) -> Callable[[Any], Any]:
    return lambda age: age + offset


def with_default(value: float) -> Callable[..., Any]:
    return lambda age, offset=value: age + offset


def with_keyword(value: float) -> Callable[..., Any]:
    return lambda age, *, offset=value: age + offset


WEIGHTS: dict[str, tuple[Any, Any]] = {
    "code": (lambda age: age + 1, lambda age: age * 1),
    "constant": (lambda age: age + 1, lambda age: age + 2),
    "constant's type": (lambda age: age + 1, lambda age: age + 1.0),
    "inner code": (lambda age: (lambda x: x + 1)(age), lambda age: (lambda x: x + 2)(age)),
    "name": (lambda age: np.minimum(age, 3), lambda age: np.maximum(age, 3)),
    "closure": (with_closure(1.0), with_closure(2.0)),
    "default": (with_default(1.0), with_default(2.0)),
    "keyword default": (with_keyword(1.0), with_keyword(2.0)),
}
every_pair = pytest.mark.parametrize(("one", "other"), WEIGHTS.values(), ids=WEIGHTS)


@every_pair
def test_a_run_is_not_resumed_with_another_lambda(one: Any, other: Any) -> None:
    first, second = (awu(deadline=0.5, weight=weight) for weight in (one, other))
    run = Run(FEDERATION, first, seed=1)
    run.step()
    saved = save(run)
    restore(Run(FEDERATION, awu(deadline=0.5, weight=one), seed=1), saved)
    with pytest.raises(InputError, match=r"has the policy awu\(.* this one awu\("):
        restore(Run(FEDERATION, second, seed=1), saved)


@every_pair
def test_controllers_with_different_lambdas_are_different(one: Any, other: Any) -> None:
    def controller(weight: Any) -> Any:
        return lambda ledger, seen: awu(deadline=0.5, weight=weight)

    assert identity_of(controller(one)) == identity_of(controller(one))
    assert identity_of(controller(one)) != identity_of(controller(other))


def test_a_cohort_counts_clients_or_is_a_fraction_of_them() -> None:
    decide: Any = print

    def cohort(size: Any) -> Policy:
        return Policy("parts", decide, decide, decide, decide, cohort=size)

    assert [cohort(size).invites(10) for size in (None, 4, 0.26, 0.001)] == [10, 4, 3, 1]
    with pytest.raises(InputError, match=r"at most the number of clients \(10\)"):
        cohort(11).invites(10)


def test_impossible_quorum_or_target_is_refused() -> None:
    for given in ({"quorum": 11}, {"quorum": 1, "target": 11}):
        options: Any = given
        with pytest.raises(InputError, match="could never be met"):
            mcu(deadline=1.0, **options).check(FEDERATION)
    mcu(deadline=1.0, quorum=10, target=10).check(FEDERATION)


@pytest.mark.parametrize(
    ("part", "given", "told"),
    [
        ("needs", ["losses"], "needs must be a set of strings"),
        ("needs", None, "needs must be a set of strings"),
        ("invite", None, "a function as invite. Got None"),
        ("observe", 3, "a function as observe. Got 3"),
        ("parameters", [1], "parameters must be a dictionary"),
        ("up_to_clients", ["tiers"], "up_to_clients must be a dictionary"),
        ("target", 0, "The target must be a whole number from 1 up. Got 0"),
        ("target", 1.5, "The target must be a whole number from 1 up. Got 1.5"),
        ("cohort", 0, "A cohort must be a whole number from 1 up. Got 0"),
        ("cohort", "x", "A cohort must be a whole number from 1 up. Got 'x'"),
        ("cohort", 2.5, "a fraction of all clients. Got 2.5"),
        ("cohort", float("nan"), "a fraction of all clients. Got nan"),
    ],
)
def test_parts_of_the_wrong_type_are_refused(part: str, given: Any, told: str) -> None:
    changed: Any = {part: given}
    with pytest.raises(InputError) as caught:
        replace(mcu(quorum=1, deadline=0.5), **changed)
    assert told in str(caught.value)
