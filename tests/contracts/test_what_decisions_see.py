"""The table of docs/how-to/write-a-policy.md: what each decision sees, and when."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.decisions import DropAll, Mean
from cafe.engine import Run
from cafe.randomness import Stream
from cafe.reference import Reference
from cafe.rounds import COMMIT, FAIL, RUN, Carried, Invitation, Ledger, Policy, Wait
from cafe.testing import VirtualWire
from tests.support.virtual_runs import live

SEED = 9
# Client k takes k + 1 seconds.
WHO = cafe.Federation(5, cafe.Constant(np.array([1.0, 2.0, 3.0, 4.0, 5.0])))


@dataclass(frozen=True)
class View:
    """What a decision saw."""

    decision: str
    now: float
    round: int
    version: int
    invitations: int
    busy: list[int]
    idle: list[int]
    last_round: list[int]
    state: Any
    draw: float
    more: Any = None


@dataclass(eq=False)
class Recorder:
    """Decisions that record what they see in two rounds; the second round fails."""

    seen: list[View] = field(default_factory=list)

    def note(self, decision: str, ledger: Ledger, more: Any = None) -> None:
        busy, idle = np.flatnonzero(ledger.busy).tolist(), ledger.idle.tolist()
        self.seen.append(
            View(
                decision, ledger.now, ledger.round, ledger.version, ledger.invitations,
                busy, idle, ledger.last_round.tolist(), ledger.state,
                float(ledger.rng.random()), more,
            )
        )  # fmt: skip

    def invite(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        assert rng is ledger.rng
        self.note("invite", ledger)
        return Invitation(np.array([0, 1, 2, 3]) if ledger.round == 0 else ledger.idle[:1])

    def close(self, ledger: Ledger, waiting: Any) -> Any:
        counts = (waiting.reports, waiting.invited, waiting.outstanding)
        self.note("close", ledger, (counts, waiting.jobs.client.tolist()))
        if ledger.round == 1:
            return Wait(ledger.opened + 0.25) if ledger.now == ledger.opened else FAIL
        if ledger.now == 0:
            return Wait(until=1.5)
        if ledger.invitations == 1:
            return Invitation(np.array([4]))
        return Wait(until=2.5) if waiting.reports < 2 else COMMIT

    def merge(self, ledger: Ledger, reports: Any) -> Any:
        self.note("merge", ledger, reports.client.tolist())
        return Mean()(ledger, reports)

    def carry(self, ledger: Ledger, closed: Any) -> Carried:
        self.note("carry", ledger, (closed.succeeded, closed.reported.tolist()))
        return Carried(RUN)

    def observe(self, ledger: Ledger, outcome: Any, closed: Any) -> int:
        self.note("observe", ledger, (outcome.round, outcome.succeeded, closed.reports is None))
        return int(ledger.round)

    @property
    def policy(self) -> Policy:
        return Policy(
            "notebook", self.invite, self.close, self.merge, self.carry, self.observe, late="keep"
        )


def views(which: str) -> list[View]:
    book = Recorder()
    runs: dict[str, Any] = {"engine": Run, "reference": Reference}
    if which == "live":
        run: Any = live(VirtualWire(WHO, SEED), book.policy)
    else:
        run = runs[which](WHO, book.policy, seed=SEED)
    run.step()
    run.step()
    return book.seen


def drawn(stream: str, index: int) -> float:
    return float(Stream(SEED, stream).at(index).random())


NEVER = [-1] * 5
FIRST = [0, 0, -1, -1, -1]
EXPECTED = [
    View("invite", 0.0, 0, 0, 0, [], [0, 1, 2, 3, 4], NEVER, None, drawn("policy", 0)),
    # Asked at once: the clients that were just invited are busy.
    View("close", 0.0, 0, 0, 1, [0, 1, 2, 3], [4], NEVER, None, drawn("policy close", 0),
          ((0, 4, 4), [])),
    # Client 0 has reported at 1.0 and is idle again. Client 4 is invited.
    View("close", 1.5, 0, 0, 1, [1, 2, 3], [0, 4], NEVER, None, drawn("policy close", 1),
          ((1, 4, 3), [0])),
    # Asked again at once.
    View("close", 1.5, 0, 0, 2, [1, 2, 3, 4], [0], NEVER, None, drawn("policy close", 2),
          ((1, 5, 4), [0])),
    View("close", 2.5, 0, 0, 2, [2, 3, 4], [0, 1], NEVER, None, drawn("policy close", 3),
          ((2, 5, 3), [0, 1])),
    View("merge", 2.5, 0, 0, 2, [2, 3, 4], [0, 1], NEVER, None, drawn("policy merge", 0), [0, 1]),
    View("carry", 2.5, 0, 0, 2, [2, 3, 4], [0, 1], NEVER, None, drawn("policy carry", 0),
          (True, [True, True, False, False, False])),
    # The round is booked: the next round's number, the new version, ages as they are now.
    View("observe", 2.5, 1, 1, 2, [2, 3, 4], [0, 1], FIRST, None, drawn("policy observe", 0),
          (0, True, False)),
    View("invite", 2.5, 1, 1, 2, [2, 3, 4], [0, 1], FIRST, 1, drawn("policy", 1)),
    View("close", 2.5, 1, 1, 3, [0, 2, 3, 4], [1], FIRST, 1, drawn("policy close", 4),
          ((0, 1, 4), [])),
    View("close", 2.75, 1, 1, 3, [0, 2, 3, 4], [1], FIRST, 1, drawn("policy close", 5),
          ((0, 1, 4), [])),
    # Failed: merge is not asked, the version stays.
    View("carry", 2.75, 1, 1, 3, [0, 2, 3, 4], [1], FIRST, 1, drawn("policy carry", 1),
          (False, [False, False, False, False])),
    View("observe", 2.75, 2, 1, 3, [0, 2, 3, 4], [1], FIRST, 1, drawn("policy observe", 1),
          (1, False, True)),
]  # fmt: skip


@pytest.mark.parametrize("which", ["engine", "reference", "live"])
def test_decisions_see_the_expected_ledgers(which: str) -> None:
    found = views(which)
    assert [state.decision for state in found] == [state.decision for state in EXPECTED]
    for ours, expected in zip(found, EXPECTED, strict=True):
        assert ours.now == pytest.approx(expected.now, abs=1e-9)
        mine, theirs = ({**vars(s), "now": None} for s in (ours, expected))
        assert mine == theirs


def test_clients_of_dropped_jobs_are_idle_in_observe() -> None:
    book = Recorder()
    Run(WHO, replace(book.policy, carry=DropAll())).step()
    by_name = {state.decision: state for state in book.seen}
    assert by_name["merge"].busy == [2, 3, 4]
    assert by_name["observe"].busy == []
