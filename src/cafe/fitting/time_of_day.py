"""How response times and availability change with the hour of the day."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cafe.errors import InputError, check_whole
from cafe.fitting.observations import Observations
from cafe.fitting.time_tests import (
    DAY,
    Ints,
    TimedRows,
    TimeTest,
    choose_width,
    hour_of,
    run_time_tests,
)
from cafe.latency.base import Floats, Latency
from cafe.presence import ByHour

if TYPE_CHECKING:
    from cafe.federation import Federation

SIGNIFICANT = 0.01  # there are four tests, so 4 % of the logs without any change have a finding
_MOST = 4000  # rows of a bin that its factors are estimated from


@dataclass(frozen=True, eq=False)
class TimeOfDay:
    """Changes with time: the tests, and factors for each hour of the day (UTC).

    Attributes:
        days: the time from the first to the last request, in days.
        width: how many hours of the day are estimated together; None if the log is too short.
        tests: of drift and of the hour of the day.
        slower: for each of the 24 hours, the factor of the response times; 1 if the test finds no
            pattern, NaN for hours without rows.
        present: for each hour, the factor of the availability; 1 if the test finds no pattern, NaN
            for hours without rows.
        rows: the number of rows in each hour.
        compared: the rows that the tests compare.
        base: makes :attr:`federation`.
    """

    days: float
    width: int | None
    tests: tuple[TimeTest, ...]
    slower: Floats
    present: Floats
    rows: Floats
    compared: TimedRows
    base: Callable[[], Federation]

    @cached_property
    def federation(self) -> Federation:
        """The clients at an average hour of the day.

        If response times depend on the hour, that part of their spread is removed.
        """
        return self.base()

    @property
    def findings(self) -> tuple[TimeTest, ...]:
        """The tests with p below 0.01."""
        return tuple(test for test in self.tests if test.p < SIGNIFICANT)

    @property
    def has_pattern(self) -> bool:
        """Whether response times or availability depend on the hour of the day."""
        return any(test.change == "hour of the day" for test in self.findings)

    def at(self, hour: int) -> Federation:
        """The federation at an hour of the day, for a plan that is used at that hour.

        Args:
            hour: from 0 to 23, UTC.

        Raises:
            InputError: if the log has no row at that hour.
        """
        hour = check_whole("hour", hour, 0)
        if hour > 23:
            raise InputError(f"hour must be from 0 to 23 (--hour). Got {hour}.")
        factor, share = float(self.slower[hour]), float(self.present[hour])
        if math.isnan(factor):
            known = ", ".join(str(each) for each in np.flatnonzero(~np.isnan(self.slower)))
            raise InputError(
                f"The log has no requests in the hour {hour} UTC, so nothing is known about it "
                f"(--hour). Hours with requests: {known}."
            )
        base, there = self.federation, _with_share(self.federation, share).scaled(factor)
        if there.evidence is None or base.evidence is None:
            return there
        # The clients of an hour were waited for as long as those of the other hours.
        return replace(there, evidence=replace(there.evidence, longest=base.evidence.longest))

    def by_hour(self) -> Federation:
        """The federation with a presence by hour, for a simulation over days.

        In each hour a share of the clients is present, and the availability is that of the best
        hour. An hour without rows has the mean share. Response times are those of an average hour:
        a simulation has no response times by hour.
        """
        share = np.where(np.isnan(self.present), np.nanmean(self.present), self.present)
        best = float(share.max())
        presence = ByHour(np.round(share / best, 4).tolist())
        return replace(_with_share(self.federation, best), presence=presence)

    def to_dict(self) -> dict[str, object]:
        """The tests and the hours as plain values, ready for JSON."""
        tests = [
            {"quantity": t.quantity, "change": t.change, "effect": t.effect, "p": t.p}
            for t in self.tests
        ]
        return {
            "days": self.days,
            "width": self.width,
            "tests": tests,
            "hours": {
                "slower": self.slower.tolist(),
                "present": self.present.tolist(),
                "rows": self.rows.tolist(),
            },
        }


def _with_share(federation: Federation, share: float) -> Federation:
    """The federation with its availability, and that of its alternatives, times ``share``."""
    there = np.minimum(np.multiply(federation.availability, share), 1.0)
    evidence = federation.evidence
    if evidence is not None:
        evidence = evidence.changed(lambda other: _with_share(other, share))
    return replace(federation, availability=there, evidence=evidence)


def find_time_of_day(
    seen: Observations, fit_federation: Callable[[Observations], Federation]
) -> TimeOfDay:
    """Test for changes with time, and estimate the factors of each hour of the day.

    If response times depend on the hour, they are divided by their factors and the clients are
    fitted again, so that the hours' differences are not taken for the spread of a client.

    Args:
        seen: the observations.
        fit_federation: fits the clients of observations; called only if they are needed.

    Raises:
        InputError: if it is not known when requests were sent.
    """
    if seen.sent is None:
        raise InputError(
            "A pattern by time needs to know when requests were sent, and these observations do "
            "not say it. Pass --sent with the column of the timestamps (in Python: sent=)."
        )
    rows = TimedRows.of(seen)
    width = choose_width(rows)
    tests = run_time_tests(rows, width)
    known = np.isfinite(seen.sent)
    hour = np.where(known, hour_of(np.where(known, seen.sent, 0.0)), -1)
    count = np.bincount(hour[known], minlength=24).astype(float)
    found = {t.quantity for t in tests if t.change == "hour of the day" and t.p < SIGNIFICANT}
    if width is None or not found:
        even = np.where(count > 0, 1.0, np.nan)
        return TimeOfDay(
            rows.span / DAY, width, tests, even, even, count, rows, lambda: fit_federation(seen)
        )
    federation = fit_federation(seen)
    slower, present = _by_hour(seen, federation, hour, width, found)
    if "response time" in found:
        factor = np.where(known, slower[hour], 1.0)
        level = Observations(seen.seconds / factor, seen.deadline / factor, seen.client, seen.sent)
        federation = fit_federation(level)
        slower, present = _by_hour(seen, federation, hour, width, found)
    mean = math.exp(np.nansum(count * np.log(slower)) / count.sum())
    average = federation.scaled(mean)
    return TimeOfDay(
        rows.span / DAY, width, tests, slower / mean, present, count, rows, lambda: average
    )


def _by_hour(
    seen: Observations, federation: Federation, hour: Ints, width: int, found: set[str]
) -> tuple[Floats, Floats]:
    """The factors of response times and of availability for each hour; NaN without rows."""
    slower, present = np.full(24, np.nan), np.full(24, np.nan)
    for first in range(0, 24, width):
        own = (hour >= first) & (hour < first + width)
        if own.any():
            factor, share = _factors(
                seen, federation, np.flatnonzero(own),
                speed="response time" in found, share="share of reports" in found,
            )  # fmt: skip
            here = np.unique(hour[own])
            slower[here], present[here] = factor, share
    return slower, present


def _factors(
    seen: Observations, federation: Federation, own: Ints, *, speed: bool, share: bool
) -> tuple[float, float]:
    """The factors of response times and of availability that maximise the likelihood of some rows.

    A quantity without a significant pattern keeps the factor 1, unless the other one explains it.
    """
    from scipy.optimize import minimize

    own = own[np.linspace(0, own.size - 1, min(own.size, _MOST)).astype(np.intp)]
    came = own[seen.reported[own]]
    late = own[~seen.reported[own]]
    here, gone = _latency_of(federation, seen.code[came]), _latency_of(federation, seen.code[late])
    there = federation.by_client(federation.availability)
    each = there[seen.code[late]]
    highest = 1.0 / float(np.max(there))

    def height(point: Floats) -> float:
        log_factor = point[0] if speed else 0.0
        factor, a = math.exp(log_factor), point[1] if share else 1.0
        value = came.size * (math.log(a) - log_factor)
        value += float(np.sum(here.logpdf(seen.seconds[came] / factor)))
        missing = 1.0 - a * each * gone.cdf(seen.deadline[late] / factor)
        return value + float(np.sum(np.log(np.maximum(missing, 1e-12))))

    found = minimize(
        lambda point: -height(point), [0.0, 0.9 * highest if share else 1.0],
        method="Nelder-Mead", bounds=[(-4.0, 4.0), (1e-3, highest)],
        options={"xatol": 1e-4, "fatol": 1e-6, "maxfev": 400},
    )  # fmt: skip
    return (math.exp(found.x[0]) if speed else 1.0), (float(found.x[1]) if share else 1.0)


def _latency_of(federation: Federation, code: Ints) -> Latency:
    kinds = federation.kind_of_client[code]
    return federation.latency if federation.latency.kinds == 1 else federation.latency.take(kinds)
