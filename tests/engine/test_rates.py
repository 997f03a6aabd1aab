"""Learning rates that policies see with the reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from cafe.engine import Run
from cafe.learn.schedules import LearningRate
from cafe.policies import agu
from cafe.reference import Reference
from cafe.rounds import Invitation, Ledger, Merge, Policy, Reports
from cafe.testing import contract
from tests.support.federations import taking
from tests.support.policies import federation, task
from tests.support.vectors import points


def by_rate() -> Policy:
    """Reports count as much as their learning rate; some of them continue from local models."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.rates is not None
        return Merge(reports.rates / len(reports))

    base = agu(quorum=6, deadline=0.4)
    needs = base.needs | {"rates"}
    return replace(base, name="by_rate", merge=merge, needs=needs, parameters={})


@pytest.mark.parametrize("kind", [Run, Reference])
@pytest.mark.parametrize("per", ["round", "update"])
def test_rates_by_hand(kind: Any, per: Literal["round", "update"]) -> None:
    """Client 0 is alone in rounds 0 and 1, which fail; client 1 is invited from round 2 on.

    t is 3 in round 2, and 1 before the first update; in round 3 it is 4, or 2.
    """
    seen = []

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        clients = ledger.idle[: 1 if ledger.round < 2 else 2]
        return Invitation(clients, local=ledger.local[clients])

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.rates is not None
        seen.append((reports.client.tolist(), reports.steps.tolist(), reports.rates.tolist()))
        return Merge(np.full(len(reports), 0.5))

    base = agu(quorum=2, deadline=1.0)
    needs = base.needs | {"rates"}
    policy = replace(base, invite=invite, merge=merge, needs=needs, parameters={})
    what = replace(points(0.0, 4.0), rate=LearningRate(1.0, 1.0), per=per)
    run = kind(taking(0.5, 0.5), policy, what)
    for _ in range(4):
        run.step()
    third, fourth = (1 / 4, 1 / 5) if per == "round" else (1 / 2, 1 / 3)
    assert seen == [
        ([0, 1], [3, 1], [third, third]),
        ([0, 1], [1, 1], [fourth, fourth]),
    ]


@pytest.mark.parametrize("per", ["round", "update"])
def test_engine_reference_and_live_run_agree(per: Literal["round", "update"]) -> None:
    what = replace(task(), rate=LearningRate(3.0, 9.0), per=per)
    setting = contract.CheckSetup(by_rate, federation(), task=what, rounds=15, seed=3)
    contract.check_reference(setting)
    contract.check_saving(setting)
    contract.check_live(setting)
