"""Arguments and policies that a run must reject."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.controllers import Fixed
from cafe.engine import Run
from cafe.errors import CafeError, InputError
from cafe.live.aggregation import GlobalModel
from cafe.live.live_run import LiveRun
from cafe.policies import agu, awu, fedavg, mcu
from cafe.rounds import HOLD, Carried, Policy
from cafe.testing import VirtualWire, split_in_two
from tests.support.policies import clipped, curious, federation, task
from tests.support.small_tasks import logistic_task


class ill:  # noqa: N801
    """The functions without their types, so that tests can pass wrong arguments."""

    simulate: Any = staticmethod(cafe.simulate)
    mcu: Any = staticmethod(mcu)
    awu: Any = staticmethod(awu)
    agu: Any = staticmethod(agu)
    fedavg: Any = staticmethod(fedavg)


@pytest.mark.parametrize(
    ("attempt", "why"),
    [
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1.0)), "time is required"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1.0), rounds=0), "from 1 up"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1.0), rounds=2.5), "whole number"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1.0), time=-1), "positive number"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=6, deadline=1), rounds=1), "at most the number"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=3, deadline=1.0, cohort=2), rounds=1), r"\(2\)"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=3, deadline=1.0, cohort=9), rounds=1), "cohort"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1.0), rounds=1, seed=-1), "seed"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1), rounds=1, crash=1.0), "crash"),
        (lambda f: ill.simulate(f, ill.mcu, rounds=1), "Expected a policy"),
        (lambda f: ill.simulate(7, ill.mcu(quorum=1, deadline=1.0), rounds=1), "a cafe.Federation"),
        (
            lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1), logistic_task(4), rounds=1),
            "4 clients",
        ),
        (lambda _: ill.mcu(quorum=0, deadline=1.0), "quorum must be a whole number"),
        (lambda _: ill.mcu(quorum=True, deadline=1.0), "quorum must be a whole number"),
        (lambda _: ill.mcu(quorum=1, deadline=0.0), "deadline must be a positive number"),
        (lambda _: ill.mcu(quorum=1, deadline=float("inf")), "must be finite. Got inf"),
        (lambda _: ill.mcu(quorum=1, deadline=float("nan")), "deadline must be a positive number"),
        (lambda _: ill.mcu(quorum=3, deadline=1.0, target=2), "at least the quorum"),
        (lambda _: ill.mcu(quorum=1, deadline=1.0, late="kep"), "Did you mean 'keep'"),
        (lambda _: ill.mcu(quorum=1, deadline=1.0, steps=0), "steps"),
        (lambda _: ill.awu(deadline=1.0, weight="unbiassed"), "Did you mean 'unbiased'"),
        (lambda _: ill.awu(deadline=1.0, unit="hours"), "unit must be"),
        (lambda _: ill.awu(deadline=1.0, weight="linear", unit="hours"), "unit must be"),
        (lambda _: ill.awu(deadline=1.0, weight=3), "weight must be .* Got 3"),
        (lambda _: ill.awu(deadline=1.0, weight=["age"]), "weight must be"),
        (lambda _: ill.awu(deadline=1.0, unit=None), "unit must be"),
        (lambda _: ill.agu(quorum=1, deadline=1.0, pool=None), "pool must be"),
        (lambda _: ill.mcu(quorum=1, deadline=1.0, late=True), "late must be 'drop' or 'keep'"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1), "digits", rounds=1), "The task"),
        (lambda _: ill.agu(quorum=1, deadline=1.0, pool="onion"), "Did you mean 'union'"),
        (lambda _: ill.fedavg(fraction=0.0), "fraction"),
        (lambda _: ill.fedavg(fraction="all"), "fraction"),
        (lambda _: ill.fedavg(epochs=5, steps=3), "Give steps or epochs, not both"),
        (lambda _: ill.mcu(quorum=1, deadline=1.0, cohort=True), "A cohort"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1), time=float("inf")), "time must"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1), time="long"), "time must"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1), rounds=1, patience=1.5), "pati"),
        (lambda _: ill.fedavg(divisor="al"), "Did you mean 'all'"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(attempt: Any, why: str) -> None:
    with pytest.raises(CafeError, match=why):
        attempt(cafe.Federation(5, cafe.Exponential(1.0)))


def test_invalid_weights_are_refused() -> None:
    who = cafe.Federation(5, cafe.Exponential(1.0))
    for weight, why in ((lambda age: -age, "finite weight"), (lambda age: age[:1], "for each age"),
                        (lambda age: 0 * age, "weight above 0")):  # fmt: skip
        with pytest.raises(InputError, match=why):
            cafe.simulate(who, awu(deadline=1.0, weight=weight), rounds=5)


@pytest.mark.parametrize("policy", [clipped(0.1), curious()], ids=lambda policy: policy.name)
def test_secure_aggregation_refuses_policies_that_need_single_reports(policy: Policy) -> None:
    with pytest.raises(InputError, match="secure aggregation shows the server only sums"):
        Run(federation(), policy, task(), secure_aggregation=True)
    with pytest.raises(InputError, match="secure aggregation shows the server only sums"):
        LiveRun(
            VirtualWire(federation()),
            Fixed(policy),
            GlobalModel(split_in_two(np.zeros(6, np.float32))),
            secure_aggregation=True,
        )


def test_secure_aggregation_refuses_held_reports() -> None:
    policy = replace(mcu(quorum=1, deadline=0.5), carry=lambda *_: Carried(HOLD))
    run = Run(federation(), policy, secure_aggregation=True)
    with pytest.raises(InputError, match="holds reports of single clients"):
        run.step()
    Run(federation(), mcu(quorum=1, deadline=0.5), secure_aggregation=True).step()
