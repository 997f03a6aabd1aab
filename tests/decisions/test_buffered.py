"""When a round of an asynchronous scheme closes, and which clients are invited meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.decisions import Buffered, KeepRunning, RandomSteps, Refill, buffering
from cafe.errors import InputError
from cafe.randomness import Stream
from cafe.rounds import COMMIT, FAIL, Invitation, Ledger, Wait, Waiting
from cafe.rounds.jobs import Running


def ledger(clients: int = 6, working: int = 0, now: float = 0.0, version: int = 0) -> Ledger:
    found = Ledger.new(np.ones(clients, dtype=np.int64))
    found.mark(np.arange(working), None, True)
    found.working, found.now, found.version = working, now, version
    found.seed_decision(Stream(1, "close"), 0)
    return found


def waiting(reports: int, versions: list[int] | None = None) -> Waiting:
    jobs: Any = Running.empty().visible()
    if versions is not None:
        object.__setattr__(jobs, "version", np.array(versions))
    return Waiting(reports, 9, 9, lambda: (jobs, np.zeros(reports)))


def test_round_closes_at_the_goal() -> None:
    close = Buffered(Refill(4), goal=3)
    assert close(ledger(working=4), waiting(2)) == Wait(np.inf, 3)
    assert close(ledger(working=4), waiting(3)) is COMMIT
    assert close(ledger(working=1), waiting(3)) is COMMIT  # without new invitations


def test_clients_that_have_reported_are_replaced() -> None:
    answer = Buffered(Refill(4), goal=3)(ledger(working=2), waiting(2))
    assert isinstance(answer, Invitation)
    assert len(answer.clients) == 2
    assert np.all(answer.clients >= 2)


@pytest.mark.parametrize(("reports", "verdict"), [(0, FAIL), (1, COMMIT), (2, COMMIT)])
def test_deadline_closes_the_round(reports: int, verdict: Any) -> None:
    close = Buffered(Refill(4), goal=3, deadline=2.0)
    before = ledger(working=4, now=11.9)
    before.opened = 10.0
    assert close(before, waiting(reports)) == Wait(12.0, reports + 1)
    before.now = 12.0
    assert close(before, waiting(reports)) is verdict


def test_reports_that_are_too_old_do_not_count() -> None:
    close = Buffered(Refill(4), goal=2, deadline=2.0, max_staleness=3)
    late = ledger(working=4, version=8)
    assert close(late, waiting(3, [5, 4, 4])) == Wait(2.0, 4)
    assert close(late, waiting(3, [5, 4, 6])) is COMMIT
    late.now = 2.0
    assert close(late, waiting(3, [4, 4, 4])) is FAIL


def test_a_policy_declares_a_target_that_will_be_reached() -> None:
    parts = buffering(Refill(4), 3, 2.0)
    declared = {name: parts[name] for name in ("target", "cohort", "deadline", "late")}
    assert declared == {"target": 3, "cohort": 4, "deadline": 2.0, "late": "keep"}
    assert parts["carry"] == KeepRunning()
    assert buffering(Refill(4), 5)["target"] is None  # a client reports twice
    assert buffering(Refill(4), 3, max_staleness=2)["target"] is None


def test_steps_are_drawn_for_each_client() -> None:
    draw = RandomSteps(Refill(200), 2, 4)
    answers = [draw(ledger(300), Stream(1, "a").at(k)) for k in (0, 0, 1)]
    amounts = [answer.amount for answer in answers]
    assert amounts[0] is not None
    assert amounts[1] is not None
    assert sorted({*amounts[0].tolist()}) == [2, 3, 4]
    assert amounts[0].tolist() == amounts[1].tolist() != amounts[2].tolist()  # type: ignore[union-attr]
    more = draw.now(ledger(300, working=150))
    assert more is not None
    assert more.amount is not None
    assert len(more.amount) == len(more.clients) == 50
    assert draw.now(ledger(300, working=200)) is None


@pytest.mark.parametrize("refill", [None, 3, np.sqrt])
def test_wrong_refill_is_explained(refill: Any) -> None:
    with pytest.raises(InputError, match="refill must invite clients"):
        Buffered(refill, 2)
