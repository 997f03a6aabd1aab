"""The number of reports by the deadline, compared with a quorum (Sec. 3).

The number of reports n is binomial for equal clients and Poisson-binomial for unequal ones. Every
result is exact up to relative rounding error, also in the far tails. The cost is O(kinds of
client).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError
from cafe.federation import Federation, total
from cafe.latency.base import Floats
from cafe.theory.poisson_binomial import Tilted, Trials


@dataclass(frozen=True, eq=False)
class Turnout:
    """The distribution of the number of reports n in one round, compared with the quorum M.

    Attributes:
        report: each kind's probability p_k to report by the deadline.
        miss: 1 - p_k, given separately because it may be far below the last digit of p_k.
        number: how many clients are of each kind.
        quorum: the paper's M.

    Example:
        >>> from cafe import Exponential, Federation
        >>> from cafe.theory import Turnout
        >>> turnout = Turnout.of(Federation(100, Exponential(1.0)), quorum=40, deadline=0.5)
        >>> round(turnout.mean, 2), round(turnout.success, 3)
        (39.35, 0.485)
    """

    report: Floats
    miss: Floats
    number: Floats
    quorum: int

    @classmethod
    def of(cls, federation: Federation, quorum: int, deadline: float) -> Turnout:
        """The turnout of a round of the federation that lasts until the deadline."""
        check_quorum(quorum, federation.clients)
        check_deadline(deadline)
        report, miss = federation.report(deadline), federation.miss(deadline)
        return cls(report, miss, federation.number, int(quorum))

    @property
    def clients(self) -> int:
        """The paper's N."""
        return int(self.number.sum())

    @property
    def invited(self) -> int:
        """The number of invited clients: all of them."""
        return self.clients

    @cached_property
    def mean(self) -> float:
        """E[n], the expected number of reports in a round."""
        return total(self.number, self.report)

    @cached_property
    def mean_missing(self) -> float:
        """N - E[n], summed from the misses so that it keeps its digits if E[n] is close to N."""
        return total(self.number, self.miss)

    @cached_property
    def all_report(self) -> float:
        """Pr(n = N), the probability that all clients report by the deadline."""
        return float(np.exp(self._log_all_report))

    @cached_property
    def success(self) -> float:
        """Pr(n >= M), the paper's 1 - q."""
        if self.quorum == 1:
            return 0.0 - float(np.expm1(self._log_none_reports))  # never -0.0
        if self.quorum == self.clients:
            return self.all_report
        return self._tails[0]

    @cached_property
    def failure(self) -> float:
        """Pr(n < M), the paper's q."""
        if self.quorum == 1:
            return float(np.exp(self._log_none_reports))
        if self.quorum == self.clients:
            return 0.0 - float(np.expm1(self._log_all_report))
        return self._tails[1]

    @cached_property
    def missing_when_failed(self) -> float:
        """E[N - n; n < M], the clients still at work at the end of a failed round, per round."""
        if self.quorum == self.clients:
            return self.mean_missing
        return self.clients * self.failure - self.reports_when_failed

    @cached_property
    def reports_when_failed(self) -> float:
        """E[n; n < M], the reports that are discarded because the round fails, per round."""
        if self.quorum == 1:
            return 0.0
        if self._trials is None:
            return self.certain * self.failure
        if self._lower_is_summed:
            return self._lower.mass(0, self._needed - 1, self._as_count)
        return self.mean - self._upper.mass(self._needed, self._trials.total, self._as_count)

    @cached_property
    def inverse_reports(self) -> float:
        """E[1/n; n >= M], the paper's e_M: the noise of an update that averages n reports."""
        if self._trials is None:
            return self.success / self.certain if self.certain else 0.0
        return self._centred.mass(max(self._needed, 0), self._trials.total, self._one_over)

    @cached_property
    def distribution(self) -> tuple[Floats, Floats]:
        """The values of n with a probability above about 1e-16, and their probabilities."""
        if self._trials is None:
            return np.array([float(self.certain)]), np.ones(1)
        values, masses = Tilted(self._trials, 0.0).distribution
        return values + self.certain, masses

    @cached_property
    def others_suffice(self) -> Floats:
        """Each kind's Pr(the other clients bring M - 1 reports or more).

        "The other clients" are all clients but one of this kind, whose own report then completes
        the quorum.
        """
        return self._others[0]

    @cached_property
    def others_fall_short(self) -> Floats:
        """1 - :attr:`others_suffice`, accurate if :attr:`others_suffice` is close to 1."""
        return self._others[1]

    @cached_property
    def participation(self) -> Floats:
        """Each kind's r_k = Pr(k reports and n >= M), the probability that its report is used."""
        return self.report * self.others_suffice

    @cached_property
    def used(self) -> float:
        """E[n; n >= M], the expected number of reports used per round, failed rounds included."""
        return total(self.number, self.participation)

    @cached_property
    def share(self) -> Floats:
        """Each kind's S_k = E[1/n; k reports and n >= M], a client's weight in the average update.

        Summed over the clients they give Pr(n >= M), so for equal clients each is exactly
        (1 - q) / N. If clients differ, the average update gives more weight to the fast ones.
        """
        share = np.zeros_like(self.report)
        share[self.miss == 0] = self.inverse_reports
        if self._trials is not None:
            first = max(self._needed - 1, 0)
            without = self._centred.mass_without(
                first, self._trials.total, lambda n: 1.0 / (n + 1.0 + self.certain)
            )
            share[self._uncertain] = self._trials.report * without
        return share

    # Clients that always or never report are left out; the others are trials for `tilted`.

    @cached_property
    def certain(self) -> int:
        """The number of clients that report in every round."""
        return int(np.sum(self.number[self.miss == 0]))

    @cached_property
    def _uncertain(self) -> NDArray[np.bool_]:
        return (self.report > 0) & (self.miss > 0)

    @cached_property
    def _trials(self) -> Trials | None:
        kept = self._uncertain
        if not kept.any():
            return None
        if kept.all():
            return Trials(self.report, self.miss, self.number)
        return Trials(self.report[kept], self.miss[kept], self.number[kept])

    @property
    def _needed(self) -> int:
        """The quorum minus the clients that always report."""
        return self.quorum - self.certain

    def _as_count(self, n: Floats) -> Floats:
        return n + self.certain

    def _one_over(self, n: Floats) -> Floats:
        count = n + self.certain
        return np.where(count > 0, 1.0 / np.maximum(count, 1.0), 0.0)

    @cached_property
    def _log_none_reports(self) -> float:
        return total(self.number, _log(self.miss, self.report))

    @cached_property
    def _log_all_report(self) -> float:
        return total(self.number, _log(self.report, self.miss))

    @property
    def _upper_is_small(self) -> bool:
        return self.quorum > self.mean

    @property
    def _lower_is_summed(self) -> bool:
        """Whether the lower tail is so small that it would lose digits as a complement."""
        return not self._upper_is_small or self.failure < 0.25

    @cached_property
    def _upper(self) -> Tilted:
        """The sum tilted towards n >= M; also used for n >= M - 1 with one client left out."""
        trials = self._some_trials
        return Tilted(trials, max(trials.saddle(self._needed - 0.5), 0.0))

    @cached_property
    def _lower(self) -> Tilted:
        """The sum tilted towards n < M; also used for n < M - 1 with one client left out."""
        trials = self._some_trials
        return Tilted(trials, min(trials.saddle(self._needed - 1.5), 0.0))

    @cached_property
    def _centred(self) -> Tilted:
        """The sum tilted towards the bulk of n >= M; not tilted if M is at most the mean."""
        return self._upper if self._upper_is_small else Tilted(self._some_trials, 0.0)

    @property
    def _some_trials(self) -> Trials:
        assert self._trials is not None
        return self._trials

    @cached_property
    def untilted(self) -> Tilted | None:
        """The distribution of the reports that are not certain; None if every report is."""
        return None if self._trials is None else Tilted(self._trials, 0.0)

    @cached_property
    def _tails(self) -> tuple[float, float]:
        """Pr(n >= M) and Pr(n < M).

        The tail that is expected to be smaller is summed and the other is its complement. If the
        first one turns out to be the larger, the other is summed too.
        """
        if self._trials is None or self._needed <= 0 or self._needed > self._trials.total:
            enough = self._needed <= 0
            return float(enough), float(not enough)
        if self._upper_is_small:
            upper = self._upper.mass(self._needed, self._trials.total)
            lower = 1.0 - upper if upper < 0.75 else self._lower.mass(0, self._needed - 1)
        else:
            lower = self._lower.mass(0, self._needed - 1)
            upper = (
                1.0 - lower if lower < 0.75 else self._upper.mass(self._needed, self._trials.total)
            )
        return upper, lower

    @cached_property
    def _others(self) -> tuple[Floats, Floats]:
        """For each kind, the upper and lower tail at M - 1 of n without one of its clients.

        If M <= E[n], the mean of the other clients is at least M - 1. Their upper tail is then at
        least about one half, and 1 - lower tail is accurate enough. If M > E[n], the upper tail
        itself is summed.
        """
        ones = np.ones_like(self.report)
        if self.quorum == 1 or self._needed <= 0:
            return ones, 0.0 * ones
        # For a client that always reports, n - 1 >= M - 1 is the same as n >= M.
        enough, short = ones * self.success, ones * self.failure
        never = self.report == 0
        if never.any():
            fewer = Turnout(self.report, self.miss, self.number, self.quorum - 1)
            enough[never], short[never] = fewer.success, fewer.failure
        if self._trials is not None:
            inside, last = self._uncertain, self._trials.total - 1
            if self._upper_is_small:
                upper = np.minimum(self._upper.mass_without(self._needed - 1, last), 1.0)
                lower = 1.0 - upper
                if np.any(upper > 0.25):
                    summed = np.minimum(self._lower.mass_without(0, self._needed - 2), 1.0)
                    lower = np.where(upper > 0.25, summed, lower)
            else:
                lower = np.minimum(self._lower.mass_without(0, self._needed - 2), 1.0)
                upper = 1.0 - lower
            enough[inside], short[inside] = upper, lower
        return enough, short


def _log(chance: Floats, rest: Floats) -> Floats:
    """Log(chance), from ``chance`` or from ``rest`` = 1 - chance, whichever is more accurate."""
    result = np.log1p(-np.minimum(rest, 0.5))
    small = rest > 0.5
    with np.errstate(divide="ignore"):
        result[small] = np.log(chance[small])
    return result


def check_quorum(quorum: int, clients: int) -> None:
    """Raise an error unless the quorum is a whole number from 1 to the number of clients."""
    if isinstance(quorum, bool) or not isinstance(quorum, int | np.integer):
        raise InputError(f"The quorum must be a whole number of reports. Got {quorum!r}.")
    if quorum < 1:
        raise InputError(
            f"The quorum must be at least 1. Got {quorum}: "
            "a round without a report cannot move the model."
        )
    if quorum > clients:
        raise InputError(
            f"The quorum must be at most the number of clients ({clients}). "
            f"Got {quorum}: no round could ever succeed. Lower the quorum or add clients."
        )


def check_deadline(deadline: float) -> None:
    """Raise an error unless the deadline is a positive, finite time."""
    number = isinstance(deadline, int | float | np.integer | np.floating)
    if not number or isinstance(deadline, bool):
        raise InputError(f"The deadline must be a number of seconds. Got {deadline!r}.")
    if not np.isfinite(deadline) or deadline <= 0:
        raise InputError(
            f"The deadline must be a positive, finite time. Got {deadline}: "
            "no client can report at time 0, and a round must end."
        )
