"""Aggregated-gradient update: what a success merges after a failed round, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.learn.quadratic import Quadratic
from cafe.policies import agu
from cafe.rounds import Invitation, Ledger
from tests.support.federations import taking


def play(second: list[int], pool: Any) -> cafe.History:
    """Client 0 reports alone in round 0, which fails; then the clients of ``second`` report.

    Clients hold the points 1, 3 and 5. The model starts at 0, and a step goes half of the way.
    """

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        clients = np.array(second if ledger.round else [0])
        return Invitation(clients, ledger.local[clients])

    data = Examples(np.array([[1.0], [3.0], [5.0]]), np.zeros(3))
    what = cafe.Task(data, Shards.of([np.array([k]) for k in range(3)]), Quadratic(1), rate=0.5)
    policy = replace(agu(quorum=2, deadline=2.0, pool=pool), invite=invite)
    return cafe.simulate(taking(1.0, 1.0, 1.0), policy, what, rounds=2)


@pytest.mark.parametrize("pool", ["round", "union"])
def test_a_client_continues_from_its_local_model(pool: Any) -> None:
    """Client 0 goes from 0 to 0.5 to 0.75; client 1 goes from 0 to 1.5."""
    run = play([0, 1], pool)
    assert run.by_round["succeeded"].tolist() == [False, True]
    assert run.model == pytest.approx([(0.75 + 1.5) / 2])
    # Both jobs of client 0 are merged with one report.
    assert (run.fates["fresh"], run.reports_used, run.waste) == (3, 2, 0.0)


def test_the_reports_of_the_round_are_merged() -> None:
    run = play([1, 2], "round")
    assert run.model == pytest.approx([(1.5 + 2.5) / 2])
    assert (run.fates["fresh"], run.fates["failed"]) == (2, 1)
    assert run.waste == 2.0  # the job of client 0, until its round closed


def test_the_union_has_the_reports_of_failed_rounds_too() -> None:
    run = play([1, 2], "union")
    assert run.model == pytest.approx([(0.5 + 1.5 + 2.5) / 3])
    assert (run.fates["fresh"], run.fates["failed"], run.waste) == (3, 0, 0.0)
