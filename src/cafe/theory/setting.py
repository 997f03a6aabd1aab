"""A federation and the rules of its rounds: the input of all expected quantities."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cafe.errors import InputError, check_type
from cafe.federation import Federation, total
from cafe.latency.base import Floats
from cafe.theory.cohort_rounds import CohortRounds
from cafe.theory.cohort_turnout import CohortTurnout
from cafe.theory.counts import Turnout, check_deadline, check_quorum
from cafe.theory.duration import Duration, early_close, overtaken_probability


@dataclass(frozen=True, eq=False)
class Setting:
    """A federation whose rounds need ``quorum`` reports by ``deadline``.

    Attributes:
        federation: the clients; a presence is replaced by its long-run share of time.
        quorum: the paper's M.
        deadline: the paper's T.
        target: a round closes as soon as this many clients have reported; with the number of all
            invited clients, when all of them have. If None, a round always lasts until the
            deadline, as in the paper.
        cohort: how many clients are invited in a round, drawn uniformly without replacement. None,
            or the number of all clients, invites all of them, as in the paper.
        rounds: calculations that settings with the same clients, cohort and target share; made if
            left out.
    """

    federation: Federation
    quorum: int
    deadline: float
    target: int | None = None
    cohort: int | None = None
    rounds: CohortRounds | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_federation(self.federation)
        if self.federation.has_step_time:
            raise InputError(
                "A setting needs response times that include the time of gradient steps. Got a "
                "federation whose per_step is above 0: pass federation.at_steps(steps) instead."
            )
        object.__setattr__(self, "federation", self.federation.steady)
        check_quorum(self.quorum, self.federation.clients)
        if self.cohort is not None:
            check_cohort(self.cohort, self.quorum, self.federation.clients)
            everybody = self.cohort == self.federation.clients
            object.__setattr__(self, "cohort", None if everybody else int(self.cohort))
        if self.rounds is not None:
            check_type("rounds", self.rounds, CohortRounds, "shared by another setting, or None")
        check_deadline(self.deadline)
        if not 1e-150 < float(self.deadline) < 1e150:
            raise InputError(
                "The deadline must lie between 1e-150 and 1e150, so that its square is a finite "
                f"number. Got {self.deadline}: choose another unit of time."
            )
        object.__setattr__(self, "quorum", int(self.quorum))
        object.__setattr__(self, "deadline", float(self.deadline))
        if self.target is None:
            return
        whole = isinstance(self.target, int | np.integer) and not isinstance(self.target, bool)
        if not whole or not self.quorum <= self.target <= self.invited:
            who = "clients" if self.cohort is None else "invited clients"
            raise InputError(
                "The target must be a whole number from the quorum "
                f"({self.quorum}) to the number of {who} ({self.invited}). "
                f"Got {self.target}: a round may close early only once it has succeeded."
            )
        object.__setattr__(self, "target", int(self.target))

    @property
    def clients(self) -> int:
        """The paper's N."""
        return self.federation.clients

    @cached_property
    def number(self) -> Floats:
        """The number of clients of each kind."""
        return self.federation.number

    @property
    def invited(self) -> int:
        """The number of clients that are invited in a round: the cohort, or all."""
        return self.federation.clients if self.cohort is None else self.cohort

    @cached_property
    def invited_number(self) -> Floats:
        """The expected number of invited clients of each kind."""
        if self.cohort is None:
            return self.number
        return self.number * (self.cohort / self.clients)

    @cached_property
    def turnout(self) -> Turnout | CohortTurnout:
        """The number of reports by the deadline, compared with the quorum."""
        return self._turnout(self.quorum)

    @cached_property
    def target_turnout(self) -> Turnout | CohortTurnout | None:
        """The number of reports compared with the target; None unless it is below the invited."""
        if self.target is None or self.target == self.invited:
            return None
        return self._turnout(self.target)

    @cached_property
    def everyone(self) -> Turnout:
        """The number of reports by the deadline if all clients were invited."""
        if self.rounds is not None:
            return self.rounds.everyone(self.deadline)
        return Turnout.of(self.federation, 1, self.deadline)

    def _turnout(self, least: int) -> Turnout | CohortTurnout:
        if self.cohort is None:
            return Turnout.of(self.federation, least, self.deadline)
        return CohortTurnout(self.everyone, self.cohort, least)

    @cached_property
    def duration(self) -> Duration:
        """Moments of the length of a round."""
        if self.target is None:
            return Duration(self.deadline, self.deadline**2)
        return self._early[0]

    @cached_property
    def work(self) -> float:
        """Expected client-seconds of a round, used or wasted.

        Each invited client counts from the broadcast to its report or to the end of the round.
        Absent clients count too, because the server cannot tell them from slow ones.
        """
        if self.target is None:
            waits = self.reported_time + self.deadline * self.turnout.miss
            return total(self.invited_number, waits)
        return self._early[1]

    @cached_property
    def _early(self) -> tuple[Duration, float]:
        assert self.target is not None
        if self._rounds is not None:
            return self._rounds.closing(self.deadline)
        return early_close(self.federation, self.target, self.deadline)

    @cached_property
    def _rounds(self) -> CohortRounds | None:
        if self.rounds is not None or self.cohort is None or self.target is None:
            return self.rounds
        return CohortRounds(self.federation, self.cohort, self.target)

    @cached_property
    def reported_time(self) -> Floats:
        """Each kind's E[X; it reports by the deadline]."""
        part = self.federation.availability * self.federation.latency.mean_below(self.deadline)
        return np.broadcast_to(part, (self.federation.kinds,))

    @cached_property
    def participation(self) -> Floats:
        """Each kind's Pr(a client's report is used): in time, before the target, round succeeds.

        With a cohort the client must be invited. With a target below the number of invited clients,
        and clients that differ, it is computed as a difference, so its absolute error is small but
        its relative error may not be.
        """
        if self.target_turnout is None:
            return self.turnout.participation
        if self.federation.kinds == 1:
            # Equal clients are equally likely to be among the first K: E[min(n, K); n >= M] / N.
            surplus = (
                self.target_turnout.used - self.target_turnout.quorum * self.target_turnout.success
            )
            return self.turnout.participation - surplus / self.clients
        return np.maximum(self.turnout.participation - self.overtaken, 0.0)

    @cached_property
    def overtaken(self) -> Floats:
        """Each kind's Pr(a client reports by the deadline, but after the target was reached)."""
        assert self.target is not None
        if self._rounds is not None:
            return self._rounds.overtaken(self.deadline)
        return overtaken_probability(self.federation, self.target, self.deadline)

    @cached_property
    def share(self) -> Floats:
        """Each kind's weight in an average update, E[1/(reports used); k's is used]; 0 if it fails.

        A round that reaches the target uses exactly that many reports. The other successful rounds
        use all reports by the deadline.
        """
        full = self.target_turnout
        if full is None or self.federation.kinds == 1:
            return self.turnout.share
        when_full = self.participation - self.turnout.participation + full.participation
        rest = self.turnout.share - full.share
        return np.maximum(when_full / full.quorum + rest, 0.0)

    @cached_property
    def used(self) -> float:
        """Expected number of reports used per round, failed rounds included."""
        return total(self.number, self.participation)


def check_setting(setting: Setting) -> None:
    """Raise an error unless the argument is a Setting."""
    check_type("setting", setting, Setting, "a cafe.theory.Setting(federation, quorum, deadline)")


def check_federation(federation: Federation) -> None:
    """Raise an error unless the argument is a Federation."""
    if not isinstance(federation, Federation):
        raise InputError(
            f"federation must be a cafe.Federation. Got {federation!r}: build one with "
            "cafe.Federation(clients=..., latency=...) or cafe.load_federation(path)."
        )


def check_cohort(cohort: int, quorum: int, clients: int) -> None:
    """Raise an error unless the cohort is a whole number from the quorum to all clients."""
    whole = isinstance(cohort, int | np.integer) and not isinstance(cohort, bool)
    if not whole or not quorum <= cohort <= clients:
        raise InputError(
            f"The cohort must be a whole number from the quorum ({quorum}) to the number of "
            f"clients ({clients}). Got {cohort!r}: it is how many clients a round invites."
        )
