"""Rounds of a random cohort that close at a target: their length, work, and late reports.

The quantities are integrals over the time t of a round, of chances that concern the number n(t) of
reports of the cohort by then. Each is a mixture over the number of all clients that would have
reported by t; see :mod:`cafe.theory.cohort_turnout`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cafe.federation import Federation, total
from cafe.latency.base import Floats
from cafe.theory.cohort_turnout import mean_over_others, mean_over_ready
from cafe.theory.counts import Turnout
from cafe.theory.draws import draws_of
from cafe.theory.duration import Duration, check_density, transition
from cafe.theory.many_kinds import for_each_kind, has_many_kinds, turnout_at
from cafe.theory.panels import ROUGH, Panels, integral, integral_against

Turnouts = dict[float, Turnout]


@dataclass(frozen=True, eq=False)
class CohortRounds:
    """Rounds that invite a random cohort and close at a target, seen at any time.

    Attributes:
        federation: the clients.
        cohort: C, how many of them are invited.
        target: K, the number of reports at which a round closes, at most C.
        turnouts: by t, the number of reports if all clients were invited; shared between cohorts.
        origin: integrals begin at this time, at which no client has reported yet, so that cohorts
            and targets use the same times; if None, when the target can be reached first.
        rough: how smooth a function must be in a panel of an integral; see ``panels.integral``.

    Example:
        >>> import cafe
        >>> from cafe.theory.cohort_rounds import CohortRounds
        >>> federation = cafe.Federation(clients=20, latency=cafe.Exponential(1.0))
        >>> rounds = CohortRounds(federation, cohort=4, target=2)
        >>> round(rounds.closing(100.0)[0].mean, 6)  # 1/4 + 1/3
        0.583333
    """

    federation: Federation
    cohort: int
    target: int
    turnouts: Turnouts = field(default_factory=dict)
    origin: float | None = None
    rough: float = ROUGH

    @property
    def invitation(self) -> float:
        """C / N, the probability that a client is invited."""
        return self.cohort / self.federation.clients

    def open(self, t: float) -> tuple[float, float]:
        """Pr(the round is open at t), and the expected number of clients at work at t."""
        everyone = self._counted(t)
        failure = min(mean_over_ready(everyone, self._log_open, everyone.untilted), 1.0)
        reports = mean_over_ready(everyone, self._log_reports, everyone.untilted)
        return failure, max(self.cohort * failure - self.invitation * reports, 0.0)

    def reached(self, t: float) -> Floats:
        """Each kind's Pr(the other invited clients have reached the target by t | k is invited)."""
        everyone = self._counted(t)
        found = mean_over_others(everyone, self._log_reached, everyone.untilted)
        if has_many_kinds(self.federation):
            found = for_each_kind(self.federation.report(t), everyone, found)
        return np.clip(found, 0.0, 1.0)

    def closing(self, deadline: float) -> tuple[Duration, float]:
        """The length of a round with this deadline, and its client-seconds, used or wasted."""
        federation = self.federation
        start, end = self._reached_between(deadline)
        mean, scaled, work = 0.0, 0.0, 0.0
        if end > start:
            mean, scaled, work = map(float, self._open_panels.until(end))
        # Before `start` no round closes, so an invited client works for E[min(X, start)] there.
        waits = federation.availability * federation.latency.mean_below(start)
        waits = np.broadcast_to(waits + start * federation.miss(start), (federation.kinds,))
        full = start + mean - deadline * self.open(deadline)[0]
        return (
            Duration(start + mean, start**2 + self._last * scaled, max(full, 0.0)),
            self.invitation * total(federation.number, waits) + self.cohort * work,
        )

    def overtaken(self, deadline: float) -> Floats:
        """Each kind's Pr(a client is invited and reports by the deadline, but after the target)."""
        federation = self.federation
        check_density(federation.latency, deadline)
        start, end = self._reached_between(deadline)
        late = np.zeros(federation.kinds)
        if end > start:
            late = self._late_panels.until(end)
        late = late + federation.report(deadline) - federation.report(end)
        return np.asarray(self.invitation * np.maximum(late, 0.0))

    @cached_property
    def _range(self) -> tuple[float, float]:
        """When the target is reached, if there is no deadline."""
        longest = float(np.max(self.federation.latency.quantile(1.0 - 1e-12)))
        start, end = transition(self.federation, self.target, longest, self.cohort)
        return start if self.origin is None else min(self.origin, start), end

    @property
    def _last(self) -> float:
        return self._range[1]

    def _reached_between(self, deadline: float) -> tuple[float, float]:
        start, end = self._range
        return min(start, deadline), min(end, deadline)

    @cached_property
    def _open_panels(self) -> Panels:
        def function(t: float) -> Floats:
            failure, working = self.open(t)
            return np.array([failure, 2.0 * t / self._last * failure, working / self.cohort])

        def integrate(low: float, high: float) -> Floats:
            breaks = self.federation.latency.breaks()
            return integral(function, low, high, breaks, self._count(low, high), self.rough)

        return Panels(integrate, self._range[0])

    @cached_property
    def _late_panels(self) -> Panels:
        federation = self.federation

        def density(t: float) -> Floats:
            found = federation.availability * np.exp(federation.latency.logpdf(t))
            return np.broadcast_to(found, (federation.kinds,))

        def integrate(low: float, high: float) -> Floats:
            breaks = federation.latency.breaks()
            return integral_against(
                self.reached, federation.report, density, low, high, breaks,
                self._count(low, high), self.rough,
            )  # fmt: skip

        return Panels(integrate, self._range[0])

    def _count(self, low: float, high: float) -> int:
        """Panels to begin with: one if a known integral is only extended a little."""
        if low == self._range[0] and self.origin is None:
            return 4
        return 1 if high < 1.5 * low else 2

    def everyone(self, t: float) -> Turnout:
        """The number of reports by t if all clients were invited."""
        many = has_many_kinds(self.federation)
        return Turnout.of(self.federation, 1, t) if many else self._counted(t)

    def _counted(self, t: float) -> Turnout:
        """The same, from bins if there are many kinds of client."""
        if t not in self.turnouts:
            self.turnouts[t] = turnout_at(self.federation, 1, t)
        return self.turnouts[t]

    @cached_property
    def _log_open(self) -> Floats:
        """Log Pr(n < K | v of all clients have reported)."""
        return draws_of(self.federation.clients, self.cohort, self.target).log_short

    @cached_property
    def _log_reports(self) -> Floats:
        """Log E[n; n < K | v], up to the factor C / N."""
        fewer = draws_of(self.federation.clients - 1, self.cohort - 1, self.target - 1).log_short
        return np.append(-np.inf, np.log(np.arange(1.0, fewer.size + 1.0)) + fewer)

    @cached_property
    def _log_reached(self) -> Floats:
        """Log Pr(n >= K | v), for the other clients of an invited one."""
        return draws_of(self.federation.clients - 1, self.cohort - 1, self.target).log_enough
