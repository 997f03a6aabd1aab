"""A federation and the rules of its rounds: the input of all expected quantities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cafe.errors import InputError, check_type
from cafe.federation import Federation, total
from cafe.latency.base import Floats
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
            clients, when all of them have. If None, a round always lasts until the deadline, as in
            the paper.
    """

    federation: Federation
    quorum: int
    deadline: float
    target: int | None = None

    def __post_init__(self) -> None:
        check_federation(self.federation)
        if self.federation.has_step_time:
            raise InputError(
                "A setting needs response times that include the time of gradient steps. Got a "
                "federation whose per_step is above 0: pass federation.at_steps(steps) instead."
            )
        object.__setattr__(self, "federation", self.federation.steady)
        check_quorum(self.quorum, self.federation.clients)
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
        if not whole or not self.quorum <= self.target <= self.federation.clients:
            raise InputError(
                "The target must be a whole number from the quorum "
                f"({self.quorum}) to the number of clients ({self.federation.clients}). "
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

    @cached_property
    def turnout(self) -> Turnout:
        """The number of reports by the deadline, compared with the quorum."""
        return Turnout.of(self.federation, self.quorum, self.deadline)

    @cached_property
    def target_turnout(self) -> Turnout | None:
        """The number of reports compared with the target; None unless the target is below N."""
        if self.target is None or self.target == self.clients:
            return None
        return Turnout.of(self.federation, self.target, self.deadline)

    @cached_property
    def duration(self) -> Duration:
        """Moments of the length of a round."""
        if self.target is None:
            return Duration(self.deadline, self.deadline**2)
        return self._early[0]

    @cached_property
    def work(self) -> float:
        """Expected client-seconds of a round, used or wasted.

        Each client counts from the broadcast to its report or to the end of the round. Absent
        clients count too, because the server cannot tell them from slow ones.
        """
        if self.target is None:
            waits = self.reported_time + self.deadline * self.turnout.miss
            return total(self.number, waits)
        return self._early[1]

    @cached_property
    def _early(self) -> tuple[Duration, float]:
        assert self.target is not None
        return early_close(self.federation, self.target, self.deadline)

    @cached_property
    def reported_time(self) -> Floats:
        """Each kind's E[X; it reports by the deadline]."""
        part = self.federation.availability * self.federation.latency.mean_below(self.deadline)
        return np.broadcast_to(part, (self.federation.kinds,))

    @cached_property
    def participation(self) -> Floats:
        """Each kind's Pr(a client's report is used): in time, before the target, round succeeds.

        With a target below N and clients that differ, it is computed as a difference, so its
        absolute error is small but its relative error may not be.
        """
        if self.target_turnout is None:
            return self.turnout.participation
        if self.federation.kinds == 1:
            # Equal clients are equally likely to be among the first K: E[min(n, K); n >= M] / N.
            surplus = (
                self.target_turnout.used - self.target_turnout.quorum * self.target_turnout.success
            )
            return self.turnout.participation - surplus / self.clients
        assert self.target is not None
        late = overtaken_probability(self.federation, self.target, self.deadline)
        return np.maximum(self.turnout.participation - late, 0.0)

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
