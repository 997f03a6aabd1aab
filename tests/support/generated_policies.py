"""Policies that give random but valid answers.

Each answer is a function of a seed and of what the decision sees, so that a policy gives the same
answers in every simulator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cafe.rounds import (
    COMMIT,
    FAIL,
    HOLD,
    LOCAL,
    RUN,
    Carried,
    Closed,
    Invitation,
    Ledger,
    Merge,
    Outcome,
    Policy,
    Reports,
    Verdict,
    Wait,
    Waiting,
    Work,
)

DEADLINE = 1.0
STAGES = 5


@dataclass(frozen=True)
class Answers:
    """What a generated policy answers.

    Attributes:
        seed: of its answers.
        late: whether jobs may run on after the deadline.
        timed: whether the federation says how long a step takes.
    """

    seed: int
    late: bool
    timed: bool

    def rng(self, decision: int, ledger: Ledger, *counts: int) -> np.random.Generator:
        """Choices of a decision: a function of what it sees."""
        state = 0 if ledger.state is None else ledger.state["n"]
        return np.random.default_rng(
            [self.seed, decision, ledger.round, ledger.version, state, *counts]
        )

    def work(self, rng: np.random.Generator) -> Work:
        """What the invited clients do."""
        given: dict[str, Any] = {"prox": float(rng.choice([0.0, 0.0, 0.5]))}
        given["upload"] = float(rng.choice([1.0, 0.25]))
        given["download"] = float(rng.choice([1.0, 0.5]))
        given["scaled"] = bool(rng.random() < 0.5)
        given["partial"] = not self.late and bool(rng.random() < 0.4)
        kind = rng.integers(4)
        if kind == 0:
            given["epochs"] = int(rng.integers(1, 3))
        elif kind == 1 and self.timed:
            given["seconds"] = float(rng.uniform(0.05, 0.5))
        else:
            given["steps"] = int(rng.integers(1, 5))
        return Work(**given)

    def some(self, ledger: Ledger, rng: np.random.Generator, least: int) -> Invitation:
        """Some idle clients, at least ``least`` of them."""
        idle, n = ledger.idle, len(ledger.idle)
        count = int(rng.integers(least, n + 1)) if n > least else n
        clients = np.sort(rng.choice(idle, count, replace=False)) if count else idle[:0]
        local = rng.random(count) < 0.7 if rng.random() < 0.7 else None
        work, amount = self.work(rng), None
        if rng.random() < 0.4:
            whole = rng.integers(1, 5, size=count)
            amount = rng.uniform(0.05, 0.5, size=count) if work.seconds is not None else whole
        note = rng.normal(size=count) if rng.random() < 0.5 else None
        return Invitation(clients, local, work, amount, note)

    def invite(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        """Some idle clients, or none."""
        mine = self.rng(1, ledger, ledger.invitations)
        if mine.random() < 0.1:
            return Invitation(np.empty(0, dtype=np.intp))
        return self.some(ledger, mine if mine.random() < 0.7 else rng, 0)

    def close(self, ledger: Ledger, waiting: Waiting) -> Wait | Verdict | Invitation:
        """Wait for a time or for reports, invite, commit or fail."""
        end = ledger.opened + DEADLINE
        stage = int((ledger.now - ledger.opened) / DEADLINE * STAGES + 1e-6)
        mine = self.rng(2, ledger, waiting.reports, waiting.invited, stage)
        if stage >= STAGES or mine.random() < 0.1:
            return COMMIT if mine.random() < 0.7 else FAIL
        if mine.random() < 0.3 and waiting.invited < 2 * ledger.clients and len(ledger.idle):
            return self.some(ledger, mine if mine.random() < 0.7 else ledger.rng, 1)
        if waiting.outstanding and mine.random() < 0.5:
            return Wait(end, waiting.reports + int(mine.integers(1, waiting.outstanding + 1)))
        later = int(mine.integers(stage + 1, STAGES + 1))
        return Wait(end if later == STAGES else ledger.opened + later / STAGES * DEADLINE)

    def merge(self, ledger: Ledger, reports: Reports) -> Merge:
        """Coefficients of either sign, many of them 0."""
        mine = self.rng(3, ledger, len(reports), int(reports.used.sum()), int(reports.steps.sum()))
        n = len(reports)
        chosen = mine.choice([0.0, 0.5, -0.2, 0.3], size=n) / max(n, 1)
        chosen *= 1.0 + 0.1 * np.tanh(reports.note) + 0.1 * (ledger.version - reports.version > 1)
        chosen *= 1.0 + 0.1 * np.tanh(reports.seconds)
        keep = float(mine.choice([1.0, 1.0, 0.9]))
        return Merge(chosen, keep, "model" if mine.random() < 0.3 else "update")

    def carry(self, ledger: Ledger, closed: Closed) -> Carried:
        """One code for all jobs or one for each job; one keep flag for all or one for each."""
        n, known = len(closed.jobs), int(np.count_nonzero(closed.reported))
        mine = self.rng(4, ledger, n, known, int(np.count_nonzero(closed.used)))
        most = int(RUN | HOLD | LOCAL)
        codes = mine.integers(0, most + 1, size=n)
        if not self.late:
            codes &= ~int(RUN)
        kept = mine.random(ledger.clients) < 0.6 if mine.random() < 0.5 else mine.random() < 0.6
        if mine.random() < 0.3:
            return Carried((HOLD, LOCAL, HOLD | LOCAL)[mine.integers(3)], bool(np.all(kept)))
        return Carried(codes, kept if isinstance(kept, np.ndarray) else bool(kept))

    def observe(self, ledger: Ledger, outcome: Outcome, closed: Closed) -> dict[str, Any]:
        """A small state."""
        drawn = int(ledger.rng.integers(5))
        before = 0 if ledger.state is None else ledger.state["n"]
        seen = int(np.count_nonzero(closed.used))
        return {"n": (3 * before + outcome.used + drawn) % 17, "last": [seen, outcome.succeeded]}


def generated(seed: int, late: bool, timed: bool, observes: bool = True) -> Policy:
    """A policy with answers from a seed."""
    answers = Answers(seed, late, timed)
    return Policy(
        f"generated {seed}",
        answers.invite,
        answers.close,
        answers.merge,
        answers.carry,
        answers.observe if observes else None,
        needs=frozenset({"local models"}),
        deadline=DEADLINE,
        late="keep" if late else "drop",
    )
