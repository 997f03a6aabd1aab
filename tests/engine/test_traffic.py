"""The bytes of a round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cafe.engine.traffic import Traffic
from cafe.rounds.jobs import Running, Status, Work
from cafe.rounds.outcome import Outcome


def jobs(invitation: int, statuses: list[Status]) -> Running:
    n = len(statuses)
    empty = Running.empty()
    columns = {name: np.resize(column, n) for name, column in vars(empty).items()}
    return replace(
        empty,
        **columns
        | {
            "client": np.arange(n),
            "invitation": np.full(n, invitation),
            "status": np.array(statuses, dtype=np.int8),
        },
    )


def test_absent_clients_are_sent_nothing() -> None:
    traffic, outcome = Traffic(100), Outcome(0, 0.0, 0.0, False)
    new = jobs(0, [Status.EXPECTED, Status.ABSENT, Status.CRASHED])
    traffic.count_down(outcome, new, Work(download=0.5), vectors=1)
    assert outcome.downloads == 2
    assert outcome.bytes_down == 2 * 0.5 * 100 + 100


def test_reports_have_the_size_of_their_invitation() -> None:
    traffic, outcome = Traffic(100), Outcome(0, 0.0, 0.0, False)
    small, whole = jobs(0, [Status.EXPECTED] * 2), jobs(1, [Status.EXPECTED])
    traffic.count_down(outcome, small, Work(upload=0.25), vectors=0)
    traffic.count_down(outcome, whole, Work(), vectors=0)
    both = small.then(whole)
    outcome.reports = 2
    traffic.count_up(outcome, both, np.array([True, False, True]), both.take(np.array([1])))
    assert outcome.bytes_up == 125
    assert traffic.uploads == {0: 0.25}  # one of its jobs runs on
    outcome.reports = 0
    traffic.count_up(outcome, both, np.zeros(3, dtype=bool), Running.empty())
    assert outcome.bytes_up == 0
    assert not traffic.uploads
