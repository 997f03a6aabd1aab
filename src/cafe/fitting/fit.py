"""Fit every latency family to censored response times and rank the families."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cafe.errors import InputError, check_choice, did_you_mean, shorten
from cafe.fitting.censored_sample import CensoredSample
from cafe.fitting.families import (
    FAMILY_FITTERS,
    UnfittableError,
    all_times_equal,
    estimated_parameters,
)
from cafe.fitting.log_files import open_log
from cafe.fitting.log_interpretation import ParsedLog
from cafe.fitting.log_reading import read_log
from cafe.fitting.log_warnings import warn_without_misses
from cafe.fitting.observations import Observations
from cafe.keywords import explain_keywords
from cafe.latency.base import Floats, Latency
from cafe.latency.empirical import Empirical

if TYPE_CHECKING:
    from cafe.federation import Federation
    from cafe.fitting.pooling import ClientFits
    from cafe.fitting.time_of_day import TimeOfDay

Criterion = Literal["aic", "bic"]
_CRITERIA = ("aic", "bic")
_SPAN = 1e12  # from a millisecond to thirty years


@dataclass(frozen=True, eq=False)
class FamilyFit:
    """A fitted family.

    Attributes:
        family: its name.
        latency: with the maximum likelihood parameters.
        parameters: by name, as in the latency; the components of a mixture are numbered, the
            fastest first.
        standard_errors: by name; NaN if the likelihood has no regular maximum.
        log_likelihood: of all observations, reports and misses.
        complexity: the number of parameters, where one that fits noise better than a regular
            parameter counts more: 3 for a shifted exponential, 3 or 4 for a uniform, 8 for a
            mixture.
        reports: the number of reports it was fitted to.
        distance: the largest difference to the Kaplan-Meier estimate, in probability.
    """

    family: str
    latency: Latency
    parameters: dict[str, float]
    standard_errors: dict[str, float]
    log_likelihood: float
    complexity: int
    reports: int
    distance: float

    @property
    def aic(self) -> float:
        """Akaike's criterion, smaller is better: 2 per parameter minus twice the log-likelihood."""
        return 2 * len(self.parameters) - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Schwarz's criterion, smaller is better: like AIC with log(reports) per parameter, not 2.

        A miss carries little information, so reports are counted instead of observations (Volinsky
        and Raftery, Biometrics 56, 2000).
        """
        return math.log(self.reports) * len(self.parameters) - 2 * self.log_likelihood

    def score(self, criterion: Criterion) -> float:
        """The value that families are ranked by: the criterion with complexity as parameter count.

        A shift, an end of an interval or a component of a mixture fits noise better than a regular
        parameter, so the plain criteria would choose them too often.
        """
        price = 2.0 if criterion == "aic" else math.log(self.reports)
        return price * self.complexity - 2 * self.log_likelihood

    def to_dict(self) -> dict[str, object]:
        """The family's fit as plain values, ready for JSON."""
        return {
            "family": self.family,
            "parameters": dict(self.parameters),
            "standard_errors": dict(self.standard_errors),
            "log_likelihood": self.log_likelihood,
            "aic": self.aic,
            "bic": self.bic,
            "complexity": self.complexity,
            "distance": self.distance,
        }


@dataclass(frozen=True, eq=False)
class Fit:
    """The families fitted to some observations.

    Attributes:
        candidates: the families that could be fitted, best first.
        skipped: the other families, each with the reason.
        observations: the observations they were fitted to.
        criterion: how families are ranked, ``"aic"`` or ``"bic"``.
        log_warnings: sentences about the log, often none.
    """

    candidates: tuple[FamilyFit, ...]
    skipped: dict[str, str]
    observations: Observations
    criterion: Criterion
    log_warnings: tuple[str, ...] = ()

    @property
    def best(self) -> FamilyFit:
        """The family with the best score."""
        return self.candidates[0]

    @property
    def latency(self) -> Latency:
        """The latency of the best family."""
        return self.best.latency

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about the log, what it cannot tell, and why the fit may be wrong."""
        from cafe.fitting.fit_warnings import fit_warnings

        return (*self.log_warnings, *fit_warnings(self))

    def to_dict(self) -> dict[str, object]:
        """The fit as plain values, ready for JSON."""
        reports = int(self.observations.reported.sum())
        return {
            "best": self.best.to_dict(),
            "candidates": [each.to_dict() for each in self.candidates],
            "skipped": dict(self.skipped),
            "criterion": self.criterion,
            "reports": reports,
            "misses": len(self.observations) - reports,
            "warnings": list(self.warnings),
        }

    def kaplan_meier(self) -> tuple[Floats, Floats, Floats]:
        """Distinct report times, the share missing after each, and Greenwood's standard error.

        No family is assumed. The share is constant after the last report.
        """
        return CensoredSample.of(self.observations).kaplan_meier()

    def empirical(self) -> tuple[Empirical, float]:
        """The Kaplan-Meier estimate as a latency, and the share of times that it covers.

        Times beyond the last report are unknown. So the latency describes the times up to the last
        report, and the share can be used as the availability of a federation's clients.
        """
        times, survival, _ = self.kaplan_meier()
        masses = -np.diff(survival, prepend=1.0)
        return Empirical(times, masses), float(1.0 - survival[-1])

    def by_client(self) -> ClientFits:
        """How slow each client is, with clients of few observations pulled towards the average."""
        from cafe.fitting.pooling import fit_clients

        return fit_clients(self)

    def time_of_day(self, clients: ClientFits | None = None) -> TimeOfDay:
        """Tests for drift and for a pattern by hour of the day, and factors for each hour.

        Args:
            clients: what :meth:`by_client` returned; it is called if this is left out.

        Raises:
            InputError: if the observations do not say when requests were sent.
        """
        from cafe.fitting.time_of_day import find_time_of_day

        def federation(seen: Observations) -> Federation:
            if seen is self.observations:
                return (clients or self.by_client()).federation()
            names = [each.family for each in self.candidates]
            return fit(seen, families=names, criterion=self.criterion).by_client().federation()

        return find_time_of_day(self.observations, federation)


@explain_keywords
def fit(
    observations: Observations | ParsedLog | str | Path | ArrayLike | Any,
    deadline: ArrayLike | str | None = None,
    client: ArrayLike | Sequence[str] | str | None = None,
    families: str | Sequence[str] | None = None,
    criterion: Criterion = "aic",
    *,
    seconds: str | None = None,
    unit: str | None = None,
    sent: str | None = None,
    received: str | None = None,
) -> Fit:
    """Fit latency families to response times, some of which were cut off by a deadline.

    Args:
        observations: the observations; or a log: the path of a file, a data frame, or anything that
            :func:`read_log` reads; or response times in seconds with NaN for a missed deadline.
        deadline: with a log: the column of the deadlines, or one deadline for all rows. With
            response times: one deadline for all of them or one for each. Leave it out if nothing
            limited the wait.
        client: with a log: the column of the clients' names. With response times: the client of
            each, for :meth:`Fit.by_client`.
        families: the names of the families to try; all if left out.
        criterion: how families are ranked, ``"aic"`` or ``"bic"``.
        seconds: with a log: the column of the response times.
        unit: with a log: ``"ms"``, ``"s"`` or ``"min"`` for columns whose names do not say it.
        sent: with a log: the column that says when a request was sent.
        received: with a log: the column that says when a report was received.

    Returns:
        The fitted families, best first. If two are equal, the one with fewer parameters is first.

    Raises:
        InputError: if no client reported, or no family can be fitted.

    Example:
        >>> import cafe
        >>> times = [0.8, 1.5, 2.1, 0.4, float("nan"), 1.1]
        >>> found = cafe.fit(times, deadline=3.0, families="exponential")
        >>> round(found.best.parameters["rate"], 3)
        0.562
        >>> log = {"device": ["a", "b", "a"], "latency_ms": [800, 1500, None]}
        >>> cafe.fit(log, deadline="3s").observations.seconds
        array([0.8, 1.5, nan])
    """
    columns = {"seconds": seconds, "unit": unit, "sent": sent, "received": received}
    log = _log(observations, deadline, client, columns)
    seen = log.observations
    check_choice("criterion", criterion, _CRITERIA)
    sample = CensoredSample.of(seen)
    if not sample.reports.seconds.size:
        raise InputError(
            "A fit needs at least one response time. Got none: all "
            f"{len(seen)} observations are missed deadlines. Wait longer in some rounds."
        )
    first, last = np.min(sample.reports.seconds), np.max(sample.reports.seconds)
    if last / _SPAN > first:
        raise InputError(
            f"Response times must not differ by more than a factor of {_SPAN:g}. "
            f"Got {first:g} to {last:g}: check their units."
        )
    candidates, skipped = [], {}
    for family in _names(families, sample):
        try:
            candidates.append(_fitted(family, sample))
        except UnfittableError as reason:
            skipped[family] = str(reason)
    if not candidates:
        reasons = "; ".join(f"{family}: {reason}" for family, reason in skipped.items())
        raise InputError(
            f"No family can be fitted. {reasons}. Try other families, or collect more observations."
        )
    candidates.sort(key=lambda each: (each.score(criterion), len(each.parameters)))
    warnings = (*log.warnings, *warn_without_misses(seen))
    return Fit(tuple(candidates), skipped, seen, criterion, warnings)


def _log(given: Any, deadline: Any, client: Any, columns: dict[str, str | None]) -> ParsedLog:
    """The log that is given, read from a file or a table, or made of arrays."""
    if isinstance(given, Observations | ParsedLog):
        if any(each is not None for each in (deadline, client, *columns.values())):
            raise InputError(
                "deadline and client must be left out if Observations are given, which already "
                "contain them. So must seconds, unit, sent and received."
            )
        return given if isinstance(given, ParsedLog) else ParsedLog(given, "")
    if isinstance(given, str | Path) or open_log(given) is not None:
        for name, value in (("client", client), ("deadline", deadline)):
            if not (value is None or isinstance(value, str | int | float)):
                raise InputError(
                    f"{name} must be the name of a column if a log is given. Got {value!r:.60}."
                )
        return read_log(given, client=client, deadline=deadline, **columns)
    named = [name for name, value in columns.items() if value is not None]
    if named:
        raise InputError(
            f"{named[0]} names a column or a unit of a log. Got it with plain response times, "
            "which are in seconds: leave it out, or pass a dictionary of columns."
        )
    return ParsedLog(Observations(given, deadline, client), "")


def _names(families: str | Sequence[str] | None, sample: CensoredSample) -> list[str]:
    """The families to try; a constant only if all times are equal, because it fits no others."""
    if families is None:
        return [name for name in FAMILY_FITTERS if name != "constant" or all_times_equal(sample)]
    if not isinstance(families, str | Sequence):
        raise InputError(f"families must be names of families. Got {shorten(families)}.")
    names = [families] if isinstance(families, str) else list(families)
    for name in names:
        if not isinstance(name, str) or name not in FAMILY_FITTERS:
            raise InputError(
                f"There is no family '{name}' to fit. {did_you_mean(name, FAMILY_FITTERS)}"
            )
    if not names:
        raise InputError(
            "families must name at least one family. Got none: leave it out to try all, or choose "
            f"from {', '.join(FAMILY_FITTERS)}."
        )
    return list(dict.fromkeys(names))


def _fitted(family: str, sample: CensoredSample) -> FamilyFit:
    recipe, reports = FAMILY_FITTERS[family], int(sample.reports.total)
    if reports < recipe.reports:
        raise UnfittableError(f"needs at least {recipe.reports} reports, got {reports}")
    found = recipe.fit(sample)
    return FamilyFit(
        family,
        found.latency,
        estimated_parameters(found.latency),
        found.standard_errors,
        # A constant puts all its probability on one time, where its density is infinite.
        math.inf if family == "constant" else sample.log_likelihood(found.latency),
        found.complexity,
        reports,
        _distance(found.latency, sample),
    )


def _distance(latency: Latency, sample: CensoredSample) -> float:
    """The largest difference to the Kaplan-Meier estimate, at both sides of each step."""
    times, survival, _ = sample.kaplan_meier()
    before = np.concatenate([[1.0], survival[:-1]])
    gaps = [survival - latency.sf(times), before - latency.sf(np.nextafter(times, 0.0))]
    last = float(sample.misses.seconds.max(initial=0.0))
    if last > times[-1]:
        gaps.append(survival[-1:] - latency.sf(last))
    return float(np.max(np.abs(np.concatenate(gaps))))
