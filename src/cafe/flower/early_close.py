"""When an attempt of a watched round closes before its deadline: at a target, or by a policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from cafe.engine.policy_calls import PolicyCalls
from cafe.errors import InputError
from cafe.federation import Indices
from cafe.flower.exchange import Answer
from cafe.latency.base import Floats
from cafe.rounds.answers import Verdict, Wait
from cafe.rounds.jobs import Invitation, Jobs
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Waiting


class EarlyClose(Protocol):
    """Asked whenever the server has looked for replies. One object serves one attempt.

    Attributes:
        closed: whether it has closed the attempt.
    """

    closed: bool

    def __call__(self, answers: Sequence[Answer], seconds: float) -> bool:
        """Whether the attempt closes now.

        Args:
            answers: what has arrived so far.
            seconds: the time since the sending began.
        """


class AtTarget:
    """Closes as soon as this many reports have arrived; never if the target is None."""

    def __init__(self, target: int | None) -> None:
        self._target, self.closed = target, False

    def __call__(self, answers: Sequence[Answer], seconds: float) -> bool:
        if self._target is not None:
            self.closed = count_reports(answers) >= self._target
        return self.closed


class ByPolicy:
    """Closes when the ``close`` of a policy says so.

    Whether the attempt has then succeeded, the quorum alone decides.

    Args:
        policy: the policy of the attempt.
        ledger: what the server knows when the attempt begins.
        clients: the number in the ledger of the client of each message.
    """

    def __init__(self, policy: Policy, ledger: Ledger, clients: Indices) -> None:
        self._policy, self._ledger, self._clients = policy, ledger, clients
        self._calls = PolicyCalls(ledger, seed=0, secure_aggregation=False)
        self._wait = Wait(-np.inf)
        self.closed = False

    def __call__(self, answers: Sequence[Answer], seconds: float) -> bool:
        ledger, wait = self._ledger, self._wait
        ledger.now = ledger.opened + seconds
        reports, invited = count_reports(answers), len(self._clients)
        ledger.working = invited - len(answers)
        enough = wait.reports is not None and reports >= wait.reports
        if ledger.now < wait.until and not enough and ledger.working:
            return False
        waiting = Waiting(reports, invited, ledger.working, self._load(answers))
        answer = self._calls.close(self._policy, waiting, lambda: self._clients)
        if isinstance(answer, Invitation):
            raise InputError(
                f"The policy {self._policy.name} invites more clients while a round is open, but "
                "in a watched round only the strategy invites. Choose a policy that does not, or "
                "use cafe.flower.Strategy."
            )
        if isinstance(answer, Verdict):
            self.closed = True
        else:
            self._wait = answer
        return self.closed

    def _load(self, answers: Sequence[Answer]) -> Callable[[], tuple[Jobs, Floats]]:
        """A function that returns the jobs that have reported, and when they did."""

        def load() -> tuple[Jobs, Floats]:
            ledger = self._ledger
            found = sorted((a.position, a.seconds) for a in answers if a.is_report)
            n, position = len(found), np.array([row for row, _ in found], dtype=np.intp)
            jobs = Jobs(
                client=self._clients[position],
                start=np.full(n, ledger.opened),
                version=np.full(n, ledger.version, dtype=np.int64),
                round=np.full(n, ledger.round, dtype=np.int64),
                local=np.zeros(n, dtype=bool),
                invitation=np.full(n, ledger.invitations, dtype=np.int64),
                steps=np.zeros(n, dtype=np.int64),
                note=np.zeros(n),
            )
            return jobs, ledger.opened + np.array([seconds for _, seconds in found])

        return load


def count_reports(answers: Sequence[Answer]) -> int:
    """How many of the answers are reports."""
    return sum(answer.is_report for answer in answers)
