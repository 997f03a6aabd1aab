"""The number of reports of a random cohort by the deadline, compared with a quorum.

Let v be the number of all N clients that would report by the deadline if all were invited. The
cohort does not depend on who would report. So, given v, the number of reports n of the cohort is
hypergeometric, and its distribution is a mixture over v, whose distribution
:mod:`cafe.theory.poisson_binomial` has. This is exact, for equal and for unequal clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cafe.federation import total
from cafe.latency.base import Floats
from cafe.theory.counts import Turnout
from cafe.theory.draws import Draws, draws_of, hypergeometric
from cafe.theory.poisson_binomial import Tilted

SMALL = 1e-3  # a tail below this is summed from a tilted distribution, to keep its digits
NODES = 48  # numbers of ready clients at which a smooth function of them is evaluated, at least


@dataclass(frozen=True, eq=False)
class CohortTurnout:
    """The distribution of the number of reports n of a random cohort, compared with the quorum M.

    It has the quantities of :class:`Turnout`. Those "by kind" are of a client that is invited,
    except ``participation`` and ``share``, which are per round, invited or not.

    Attributes:
        everyone: the number of reports if all clients were invited.
        cohort: C, how many clients are invited, drawn uniformly without replacement.
        quorum: the paper's M, at most C.

    Example:
        >>> from cafe import Federation
        >>> from cafe.theory import CohortTurnout, Turnout
        >>> federation = Federation.exponential([0.5, 1.0, 2.0])
        >>> everyone = Turnout.of(federation, quorum=1, deadline=1.0)
        >>> turnout = CohortTurnout(everyone, cohort=2, quorum=2)
        >>> round(turnout.mean, 3), round(turnout.success, 3)
        (1.26, 0.379)
    """

    everyone: Turnout
    cohort: int
    quorum: int

    @property
    def clients(self) -> int:
        """The paper's N."""
        return self.everyone.clients

    @property
    def invited(self) -> int:
        """C, the number of invited clients."""
        return self.cohort

    @property
    def invitation(self) -> float:
        """C / N, the probability that a client is invited."""
        return self.cohort / self.clients

    @property
    def report(self) -> Floats:
        """Each kind's probability to report by the deadline if it is invited."""
        return self.everyone.report

    @property
    def miss(self) -> Floats:
        """1 - :attr:`report`."""
        return self.everyone.miss

    @property
    def number(self) -> Floats:
        """How many clients are of each kind."""
        return self.everyone.number

    @property
    def mean(self) -> float:
        """E[n], the expected number of reports in a round."""
        return self.invitation * self.everyone.mean

    @property
    def mean_missing(self) -> float:
        """C - E[n]."""
        return self.invitation * self.everyone.mean_missing

    @cached_property
    def all_report(self) -> float:
        """Pr(n = C), the probability that all invited clients report by the deadline."""
        return self.success if self.quorum == self.cohort else self.at(self.cohort).success

    @property
    def success(self) -> float:
        """Pr(n >= M)."""
        return self._tails[0]

    @property
    def failure(self) -> float:
        """Pr(n < M)."""
        return self._tails[1]

    @cached_property
    def reports_when_failed(self) -> float:
        """E[n; n < M]: given v, E[n; n < M] = C v/N Pr(one of the others fewer than M - 1)."""
        short = draws_of(self.clients - 1, self.cohort - 1, self.quorum - 1).log_short
        v = np.arange(1.0, self.clients + 1.0)
        log = np.log(v) + short
        tilt = self._lower if self.failure < SMALL else self._plain
        return self.invitation * self._mean_of(np.concatenate([[-np.inf], log]), tilt)

    @cached_property
    def missing_when_failed(self) -> float:
        """E[C - n; n < M], the clients still at work at the end of a failed round, per round."""
        return self.cohort * self.failure - self.reports_when_failed

    @cached_property
    def inverse_reports(self) -> float:
        """E[1/n; n >= M], the noise of an update that averages n reports."""
        tilt = self._upper if self.success < SMALL else self._plain
        values, masses = self._masses(tilt, self.quorum)
        return float(np.sum(masses / np.maximum(values, 1.0)))

    @cached_property
    def distribution(self) -> tuple[Floats, Floats]:
        """The values of n with a probability above about 1e-16, and their probabilities."""
        return self._masses(self._plain, 0)

    @property
    def others_suffice(self) -> Floats:
        """Each kind's Pr(the other invited clients bring M - 1 reports or more | k is invited)."""
        return self._others[0]

    @property
    def others_fall_short(self) -> Floats:
        """1 - :attr:`others_suffice`."""
        return self._others[1]

    @cached_property
    def participation(self) -> Floats:
        """Each kind's r_k = Pr(k is invited and reports, and n >= M)."""
        return self.invitation * self.report * self.others_suffice

    @cached_property
    def used(self) -> float:
        """E[n; n >= M], the expected number of reports used per round, failed rounds included."""
        return total(self.number, self.participation)

    @cached_property
    def share(self) -> Floats:
        """Each kind's S_k = E[1/n; k is invited and reports, and n >= M].

        Given v ready clients, each of them has the same share, Pr(n >= M | v) / v.
        """
        enough = self._draws.log_enough[1:] - np.log(np.arange(1.0, self.clients + 1.0))
        tilt = self._upper if self.success < SMALL else self._plain
        return self.report * self._mean_without(enough, tilt)

    def at(self, quorum: int) -> CohortTurnout:
        """The same round, compared with another number of reports."""
        return CohortTurnout(self.everyone, self.cohort, quorum)

    @cached_property
    def _draws(self) -> Draws:
        return draws_of(self.clients, self.cohort, self.quorum)

    @cached_property
    def _tails(self) -> tuple[float, float]:
        """Pr(n >= M) and Pr(n < M); a small one is summed with a tilt, the other is its rest."""
        plain = self._plain
        enough = self._mean_of(self._draws.log_enough, plain)
        short = self._mean_of(self._draws.log_short, plain)
        if enough < SMALL:
            enough = self._mean_of(self._draws.log_enough, self._upper)
            return min(enough, 1.0), 1.0 - min(enough, 1.0)
        if short < SMALL:
            short = self._mean_of(self._draws.log_short, self._lower)
        return max(1.0 - short, 0.0), min(short, 1.0)

    @cached_property
    def _others(self) -> tuple[Floats, Floats]:
        draws = draws_of(self.clients - 1, self.cohort - 1, self.quorum - 1)
        if self.success < SMALL:
            enough = np.minimum(self._mean_without(draws.log_enough, self._upper), 1.0)
            return enough, 1.0 - enough
        tilt = self._lower if self.failure < SMALL else self._plain
        short = np.minimum(self._mean_without(draws.log_short, tilt), 1.0)
        return 1.0 - short, short

    def _mean_of(self, log_weight: Floats, tilt: Tilted | None) -> float:
        return mean_over_ready(self.everyone, log_weight, tilt)

    def _mean_without(self, log_weight: Floats, tilt: Tilted | None) -> Floats:
        return mean_over_others(self.everyone, log_weight, tilt)

    @cached_property
    def _plain(self) -> Tilted | None:
        """The distribution of v, not tilted; None if v is the same in every round."""
        return self.everyone.untilted

    @cached_property
    def _upper(self) -> Tilted | None:
        """The distribution of v tilted towards the rounds in which the cohort has M reports."""
        return self._tilted(self._draws.log_enough, +1)

    @cached_property
    def _lower(self) -> Tilted | None:
        """The distribution of v tilted towards the rounds in which it has not."""
        return self._tilted(self._draws.log_short, -1)

    def _tilted(self, log_weight: Floats, sign: int) -> Tilted | None:
        """A tilt near the largest term of Pr(v) exp(log_weight[v]), which is unimodal.

        There the slope of log_weight is the tilt. Any tilt gives the exact result; a tilt near this
        one keeps all digits.
        """
        if self._plain is None:
            return None
        trials, number = self._plain.trials, self._plain.trials.number
        slope = np.full(log_weight.size - 1, np.inf)
        both = np.isfinite(log_weight[1:]) & np.isfinite(log_weight[:-1])
        slope[both] = sign * (log_weight[1:][both] - log_weight[:-1][both])

        def beyond(theta: float) -> bool:
            centre = total(number, Tilted(trials, sign * theta).chance) + self.everyone.certain
            return bool(slope[min(int(centre), slope.size - 1)] <= theta)

        low, high = 0.0, 0.25
        while not beyond(high) and high < 1e3:
            low, high = high, 2.0 * high
        for _ in range(12):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if beyond(middle) else (middle, high)
        return Tilted(trials, sign * 0.5 * (low + high))

    def _masses(self, tilt: Tilted | None, first: int) -> tuple[Floats, Floats]:
        """The values of n from ``first`` on and their probabilities.

        Pr(n | v) is smooth in v, the more so the smaller the cohort is compared with N. It is
        evaluated at a few numbers v, with weights that are exact for polynomials.
        """
        certain = self.everyone.certain
        if tilt is None:
            ready, log_scale, weight = np.array([float(certain)]), 0.0, np.ones(1)
        else:
            v, mass = tilt.distribution
            peak = float(v[np.argmax(mass)])
            mass = mass * np.exp(np.clip(-tilt.theta * (v - peak), -700.0, 700.0))
            inside = v + certain <= self.clients
            ready, weight = self._nodes(v[inside] + certain, mass[inside])
            log_scale = tilt.log_total - tilt.theta * peak
        spread = (self.cohort * 0.25) ** 0.5
        low, high = first, self.cohort
        if tilt is None or tilt.theta == 0.0:  # n is near its mean
            low = max(low, int(self.mean - 10 * spread) - 30)
            high = min(high, int(self.mean + 10 * spread) + 30)
        values = np.arange(min(low, high), high + 1, dtype=float)
        chances = hypergeometric(self.clients, self.cohort, ready, values)
        masses = np.exp(log_scale) * np.einsum("i,ij->j", weight, chances)
        return values, np.maximum(masses, 0.0)

    def _nodes(self, v: Floats, mass: Floats) -> tuple[Floats, Floats]:
        """Chebyshev nodes in the range of v and their weights; v itself if it has few values."""
        rest = max(self.clients - self.cohort, 1)
        count = NODES + int(100 * (self.cohort / rest) ** 0.5)
        if v.size <= 2 * count:
            return v, mass
        angle = np.pi * (np.arange(count) + 0.5) / count
        centre, half = 0.5 * (v[0] + v[-1]), 0.5 * (v[-1] - v[0])
        x = np.arccos(np.clip((v - centre) / half, -1.0, 1.0))
        order = np.arange(count)
        moments = np.einsum("v,vm->m", mass, np.cos(np.multiply.outer(x, order)))
        moments[1:] *= 2.0
        weight = np.einsum("im,m->i", np.cos(np.multiply.outer(angle, order)), moments) / count
        return centre + half * np.cos(angle), weight


# Clients that always or never report are not trials of the tilted distribution; see `Turnout`.


def mean_over_ready(everyone: Turnout, log_weight: Floats, tilt: Tilted | None) -> float:
    """E[exp(log_weight[v])], where v of all clients would report; weights for v = 0, ... N."""
    if tilt is None:
        return float(np.exp(log_weight[everyone.certain]))
    return tilt.weighted(0, log_weight[everyone.certain :])


def mean_over_others(everyone: Turnout, log_weight: Floats, tilt: Tilted | None) -> Floats:
    """The same over all clients but one, for one of each kind; weights for v = 0, ... N - 1."""
    result = np.zeros_like(everyone.report)
    always, never = everyone.miss == 0, everyone.report == 0
    if always.any():
        result[always] = mean_over_ready(everyone, np.append(-np.inf, log_weight), tilt)
    if never.any():
        result[never] = mean_over_ready(everyone, np.append(log_weight, -np.inf), tilt)
    if tilt is not None:
        result[~always & ~never] = tilt.weighted_without(0, log_weight[everyone.certain :])
    return result
