"""Policies and orders that unchanged ClientApps cannot serve are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.errors import InputError
from cafe.flower.stock_policy import check_order, check_policy, check_work
from cafe.live.wire import Order
from cafe.policies import awu, fedavg, mcu
from cafe.rounds import Work
from cafe.rounds.policy import NEEDS

ORDER = Order("1", 0, 0, 0, 0)
SERVED = {"forecasts", "sizes", "scores", "updates"}


@pytest.mark.parametrize("need", sorted(NEEDS))
def test_needs(need: str) -> None:
    policy = replace(mcu(quorum=1, deadline=1.0), needs=frozenset({need}))
    if need in SERVED:
        check_policy(policy)
    else:
        with pytest.raises(InputError, match=f"mcu needs {need} .*cafe.flower.client"):
            check_policy(policy)


@pytest.mark.parametrize(
    "policy",
    [
        mcu(quorum=1, deadline=1.0, target=3, cohort=4),
        mcu(quorum=1, deadline=1.0, late="keep"),
        awu(quorum=1, deadline=1.0),
        fedavg(fraction=1.0, deadline=1.0),
        fedavg(steps=1, deadline=1.0),
    ],
    ids=str,
)
def test_policies_that_are_served(policy: cafe.Policy) -> None:
    check_policy(policy)


@pytest.mark.parametrize(
    "work",
    [
        {"steps": 2}, {"epochs": 2}, {"seconds": 1.0}, {"prox": 0.1}, {"partial": True},
        {"upload": 0.5}, {"download": 0.5},
    ],
)  # fmt: skip
def test_work_that_only_cafes_client_does(work: dict[str, Any]) -> None:
    ((name, value),) = work.items()
    with pytest.raises(InputError, match=f"asks its clients for {name}={value}"):
        check_work(Work(**work))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"carry": True}, "local model"),
        ({"after": 0, "began": 0}, "local model"),
        ({"offset": {"w": np.ones(1)}}, "add a vector"),
        ({"frozen": {"w": np.ones(1, bool)}}, "leave some parameters unchanged"),
        ({"work": Work(steps=3)}, "steps=3"),
    ],
)
def test_orders_that_usual_messages_do_not_carry(asked: dict[str, Any], words: str) -> None:
    check_order(ORDER)
    with pytest.raises(InputError, match=words):
        check_order(replace(ORDER, **asked))
