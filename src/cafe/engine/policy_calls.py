"""Calls of a policy's decisions: sets their random numbers, and checks their answers.

The simulator and the server of real clients call a policy through this module. The reference calls
policies itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cafe.engine.run_checks import check_held
from cafe.federation import Indices
from cafe.randomness import Stream
from cafe.rounds import answer_checks
from cafe.rounds.answers import DROP, Carried, Merge, Verdict, Wait
from cafe.rounds.jobs import Invitation, Mask, Reports
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed, Waiting

# The stream of random numbers of each decision. The index in the stream is the round; for close it
# is the number of earlier calls.
_STREAMS = {
    "invite": "policy",
    "close": "policy close",
    "merge": "policy merge",
    "carry": "policy carry",
    "observe": "policy observe",
}


def score_is_due(policy: Policy, ledger: Ledger) -> bool:
    """Whether the policy needs scores, and the last one is missing or too old for it."""
    if "scores" not in policy.needs:
        return False
    return ledger.score is None or ledger.version - ledger.score.version >= policy.score_every


class PolicyCalls:
    """Calls the decisions of the policy of a round.

    Args:
        ledger: what the decisions see.
        seed: the seed of the decisions' random numbers.
        secure_aggregation: raise an error if a policy holds single reports.

    Attributes:
        waits: how many calls of ``close`` have returned.
    """

    def __init__(self, ledger: Ledger, seed: int, secure_aggregation: bool) -> None:
        self.waits = 0
        self._ledger, self._secure = ledger, secure_aggregation
        self._streams = {name: Stream(seed, address) for name, address in _STREAMS.items()}

    def invite(self, policy: Policy) -> Invitation:
        """The invitation with which a round opens."""
        ledger = self._ledger
        ledger.seed_decision(self._streams["invite"], ledger.round)
        return answer_checks.check_invitation(
            policy, "invite", ledger, policy.invite(ledger, ledger.rng)
        )

    def close(
        self, policy: Policy, waiting: Waiting, open_clients: Callable[[], Indices]
    ) -> Wait | Verdict | Invitation:
        """What to do next in an open round.

        Args:
            policy: the policy of the round.
            waiting: what the policy may see of the open round.
            open_clients: returns the clients of all jobs of the round.
        """
        ledger = self._ledger
        ledger.seed_decision(self._streams["close"], self.waits)
        self.waits += 1
        answer = answer_checks.check_close(policy, policy.close(ledger, waiting))
        if not isinstance(answer, Invitation):
            return answer
        more = answer_checks.check_more(policy, ledger, answer)
        if more.local is None:
            return more
        # A client cannot continue from a local model before the round in which it was reported
        # has closed.
        return replace(more, local=more.local & ~np.isin(more.clients, open_clients()))

    def repeat_close(self) -> None:
        """Give the next call of ``close`` the random numbers of the last one.

        A live server calls again before a wait is over if a client is lost.
        """
        self.waits -= 1

    def merge(self, policy: Policy, reports: Reports, parameters: int | None) -> Merge:
        """How the reports change the model. ``parameters`` is its size; None: there is no model."""
        self._ledger.seed_decision(self._streams["merge"], self._ledger.round)
        return answer_checks.ask_merge(policy, self._ledger, reports, parameters)

    def carry(self, policy: Policy, closed: Closed, jobs: int, spoilt: bool) -> Carried:
        """What is kept after a round.

        Args:
            policy: the policy of the round.
            closed: what the policy may see of the closed round.
            jobs: the number of jobs in the round.
            spoilt: whether the update contained NaN or infinity. Then no report is kept.
        """
        ledger = self._ledger
        ledger.seed_decision(self._streams["carry"], ledger.round)
        carried = answer_checks.check_carry(
            policy, policy.carry(ledger, closed), jobs, ledger.clients
        )
        check_held(policy, carried, self._secure)
        return _without(carried, closed.reported) if spoilt else carried

    def observe(self, policy: Policy, outcome: Outcome, closed: Closed) -> None:
        """Ask the policy for its next state. The ledger is already that of the next round."""
        if policy.observe is None:
            return
        ledger = self._ledger
        ledger.seed_decision(self._streams["observe"], ledger.round - 1)
        ledger.state = answer_checks.check_state(policy, policy.observe(ledger, outcome, closed))


def _without(carried: Carried, reported: Mask) -> Carried:
    """What is carried, without reports and local models, which would spoil the next update too."""
    codes = np.where(reported, int(DROP), np.asarray(carried.jobs, dtype=np.int64))
    return Carried(codes, kept=False)
