"""Oort: choose clients that are useful and fast (Lai et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cafe.decisions.build import closing, local_work, non_defaults, over_committed
from cafe.decisions.carry import DropAll
from cafe.decisions.choose import highest, response_times, to_digits, weighted_draw
from cafe.decisions.client_memory import client_memory
from cafe.decisions.weigh import BySize
from cafe.errors import InputError, check_not_negative, check_positive, check_whole
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.policies._recipe import recipe
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Invitation, Reports, Work
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed

DECAY, LEAST = 0.98, 0.2  # the share of exploration falls by DECAY per round, down to LEAST
CUTOFF = 0.95  # clients with this share of the score of the last one chosen may be drawn too
CLIP = 0.95  # utilities above this quantile count as the quantile
UNCERTAINTY = 0.1
BLACKLISTED = 0.3  # at most this share of all clients is left out

UTILITY, SECONDS = 0, 1  # the rows of ledger.memory, which has a column per client


@dataclass(frozen=True)
class _Choose:
    """Invite clients with high scores, and some that have never reported."""

    count: int
    work: Work
    preferred: float
    explore: float
    penalty: float
    blacklist: int | None

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        clients = self._allowed(ledger, rng)
        # Not those that were merged under another policy, if a controller has changed it.
        known = client_memory(ledger, 2)[SECONDS, clients] > 0
        old, new = clients[known], clients[~known]
        share = max(self.explore * DECAY**ledger.round, min(self.explore, LEAST))
        explored = min(round(share * self.count), len(new))
        exploited = min(self.count - explored, len(old))
        best = self._exploit(ledger, old, exploited, rng)
        others = highest(new, np.zeros(len(new)), self.count - exploited, rng)
        return Invitation(np.sort(np.concatenate([best, others])), work=self.work)

    def _allowed(self, ledger: Ledger, rng: np.random.Generator) -> Indices:
        """The idle clients that are not on the blacklist."""
        idle = ledger.idle
        if self.blacklist is None:
            return idle
        often = np.flatnonzero(ledger.merged >= self.blacklist)
        most = int(BLACKLISTED * ledger.clients)
        often = highest(often, ledger.merged[often].astype(float), most, rng)
        return idle[~np.isin(idle, often)]

    def _exploit(
        self, ledger: Ledger, clients: Indices, count: int, rng: np.random.Generator
    ) -> Indices:
        """Draw among the clients whose score is near the highest ones, in proportion to it."""
        if not count:
            return clients[:0]
        score = self.score(ledger, clients)
        cut = CUTOFF * np.partition(score, len(score) - count)[len(score) - count]
        near = score >= cut
        return weighted_draw(clients[near], score[near], count, rng)

    def score(self, ledger: Ledger, clients: Indices) -> Floats:
        """The utility of clients that have reported; less for slow ones."""
        assert ledger.memory is not None  # a merge of these clients has written it
        utility, seconds = ledger.memory[UTILITY, clients], ledger.memory[SECONDS, clients]
        clip = np.quantile(utility, CLIP, method="higher")
        last = ledger.last_round[clients] + 1.0
        score = np.minimum(utility, clip) + np.sqrt(UNCERTAINTY * np.log(ledger.round + 1) / last)
        preferred = (ledger.state or {}).get("preferred", self.preferred)
        slow = seconds > preferred
        score[slow] *= (preferred / seconds[slow]) ** self.penalty
        return np.asarray(score)


def _utility(ledger: Ledger, reports: Reports) -> Floats:
    """Each report's |B| times the root of its mean squared loss; 0 if the loss is not finite."""
    assert reports.rms_losses is not None
    losses = np.nan_to_num(reports.rms_losses, nan=0.0, posinf=0.0)
    return to_digits(ledger.examples[reports.client] * losses, 4)


def _learn(ledger: Ledger, reports: Reports) -> Merge:
    """Weigh by size, and remember the utility and the response time of each client."""
    memory = client_memory(ledger, 2)
    memory[UTILITY, reports.client] = _utility(ledger, reports)
    memory[SECONDS, reports.client] = response_times(reports)
    return replace(BySize()(ledger, reports), memory=memory)


@dataclass(frozen=True)
class _Pacer:
    """Allow more time when the clients of the last rounds were less useful than those before."""

    window: int
    preferred: float
    increment: float

    def __call__(self, ledger: Ledger, outcome: Outcome, closed: Closed) -> dict[str, Any]:
        old = ledger.state or {"preferred": self.preferred, "sums": []}
        gained = 0.0 if closed.reports is None else float(_utility(ledger, closed.reports).sum())
        sums, preferred = [*old["sums"], gained], old["preferred"]
        if len(sums) == 2 * self.window:
            before, sums = sums[: self.window], sums[self.window :]
            preferred += self.increment * (sum(sums) < sum(before))
        return {"preferred": preferred, "sums": sums}


@recipe("synchronous", "Lai et al. (2021)")
def oort(
    *,
    goal: int,
    preferred: float,
    increment: float | None = None,
    window: int = 20,
    explore: float = 0.9,
    penalty: float = 2.0,
    blacklist: int | None = None,
    extra: float = 1.3,
    epochs: int | None = None,
    steps: int | None = None,
    deadline: float | None = None,
    quorum: int = 1,
) -> Policy:
    """Oort: prefer clients with high losses that are fast enough, and explore the others.

    "Oort: Efficient Federated Learning via Guided Participant Selection" (OSDI 2021). The utility
    of a client is the number of its examples times the root of the mean squared loss in its last
    report. Utilities above the 95 % quantile are cut to it. The score is the utility plus sqrt(0.1
    ln R / L), in round R for a client that was last used in round L. A client with a response time
    t above the preferred duration T is slow: its score is multiplied by (T / t)^penalty.

    The server invites ``extra`` times as many clients as it needs, and closes the round when
    ``goal`` reports have arrived. A share ``explore`` * 0.98^round of the clients, at least 20 %,
    are clients that have never reported. The others are drawn in proportion to their score among
    those with at least 95 % of the score of the last one in the ranking. Clients that were used
    ``blacklist`` times are left out, but never more than 30 % of all clients. The pacer compares
    the utilities of the last ``window`` rounds with those of the window before, once per window: if
    their sum is lower, T increases by ``increment``. Reports are weighed by size.

    Differs from the authors' code: there, utilities are scaled to [0, 1] before the term of
    uncertainty is added, and the cut-off is 70 % or 5 %. The pacer can also decrease T, which is a
    percentile of all response times. Invited clients that are still working when the goal is
    reached count as if they had reported the mean utility. All of these contradict the paper. The
    code draws new clients with many examples and fast devices more often; here they are drawn
    uniformly, because their response times are not known before they report. The losses are those
    of the first batch, before any local step.

    As published, the term of uncertainty does not grow while a client waits, and after many rounds
    it is almost zero.

    Not verified: the initial T in the paper, which is therefore an argument; the cut-off of 95 %
    and the quantile of 95 %; and whether the pacer compares once per window, as here and in the
    code, or in every round. The limit of 30 % is that of the code.

    Args:
        goal: reports that close a round.
        preferred: the preferred duration of a round at the start, T.
        increment: what the pacer adds to T; None: the initial T.
        window: rounds in each of the two windows that the pacer compares.
        explore: share of clients that are new, in the first round.
        penalty: the exponent alpha for slow clients; 0 ignores response times.
        blacklist: uses after which a client is left out; None: it never is.
        extra: how many clients are invited, as a multiple of the goal; rounded to the nearest.
        epochs: local passes over a client's examples; one, unless steps are given.
        steps: local gradient steps instead of epochs.
        deadline: how long a round waits; None waits for the goal.
        quorum: reports needed for a round to succeed at the deadline.

    Example:
        >>> import cafe
        >>> task = cafe.testing.check.small_task(20)
        >>> policy = cafe.policies.oort(goal=5, preferred=1.0)
        >>> run = cafe.simulate(cafe.Federation(20, cafe.Exponential(1.0)), policy, task, rounds=30)
        >>> run.updates, run.jobs, run.reports_used  # six are invited, and five are used
        (30, 180, 150)
    """
    given = non_defaults(oort, locals())
    cohort, preferred = over_committed(goal, extra, quorum), check_positive("preferred", preferred)
    if check_not_negative("explore", explore) > 1:
        raise InputError(f"explore is a share of clients: it must be at most 1. Got {explore!r}.")
    if blacklist is not None:
        check_whole("blacklist", blacklist)
    if increment is not None:
        check_positive("increment", increment)
    return Policy(
        "oort",
        _Choose(
            cohort,
            local_work(epochs, steps, scaled=False),
            preferred,
            float(explore),
            check_not_negative("penalty", penalty),
            blacklist,
        ),
        merge=_learn,
        carry=DropAll(),
        observe=_Pacer(check_whole("window", window), preferred, increment or preferred),
        needs=frozenset({"sizes", "rms losses"}),
        parameters=given,
        cohort=cohort,
        **closing(quorum, deadline, goal),
    )
