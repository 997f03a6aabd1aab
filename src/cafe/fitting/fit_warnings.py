"""Warnings about a fit: what the observations cannot tell, and where the fit may be wrong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cafe.fitting.censored_sample import CensoredSample
from cafe.fitting.pool_search import POOLED_FAMILIES, fit_pools
from cafe.latency.base import Floats, Latency
from cafe.wording import format_count, format_number

if TYPE_CHECKING:
    from cafe.fitting.fit import Fit
    from cafe.fitting.observations import Observations

FAR = 0.1  # a difference to the Kaplan-Meier estimate, in probability
FEW = 30  # reports in all
UNCERTAIN = 0.1  # the width of the 90 % interval of the mean availability
BEGINNING = 0.4  # a part of all answers this small shows only the beginning of the latency
_CLEARLY = 10.0  # a difference in score that leaves no doubt
_SHOWN = 3  # names of clients in a sentence
_POINTS = 60  # times at which the clients' fit is compared with the observed shares


def fit_warnings(found: Fit) -> tuple[str, ...]:
    """What a user should know before trusting the fitted families."""
    sentences = _about_reports(found.observations)
    if found.best.distance > FAR:
        sentences.append(
            f"No family fits well: {found.best.family}, the best, differs from the observed share "
            f"of reports by up to {found.best.distance:.2f}. The fitted curve shows where (--plot)."
        )
    offline = _offline_share(found)
    if offline:
        sentences.append(
            f"About {offline:.0%} of requests look as if they would never be answered, however "
            "long the wait. The fitted families take every miss for a slow client. The fit of each "
            "client tells offline from slow (--per-client, --output, Fit.by_client)."
        )
    return tuple(sentences)


def client_warnings(
    found: Fit,
    latency: Latency,
    availability: Floats,
    interval: tuple[float, float],
    longest: float,
) -> tuple[str, ...]:
    """What a user should know before planning with the fitted clients.

    Args:
        found: the fit.
        latency: of each client.
        availability: of each client.
        interval: the 90 % interval of the clients' mean availability.
        longest: the longest observed time.
    """
    seen = found.observations
    sentences = _about_reports(seen)
    distance = _distance(seen, latency, availability)
    if distance > FAR:
        sentences.append(
            f"The fitted clients differ from the observed share of reports by up to "
            f"{distance:.2f}: no family describes one client's times well."
        )
    low, high = interval
    part = float(np.mean(latency.cdf(longest)))
    reached = format_number(float(f"{longest:.4g}"))
    advice = "Wait longer in some rounds and fit again."
    if high - low > UNCERTAIN:
        sentences.append(
            "Offline clients cannot be told from slow ones in these observations: the clients' "
            f"mean availability may be anything from {low:.2f} to {high:.2f}, because reports were "
            f"still arriving at {reached} s, the longest wait. {advice}"
        )
    elif part < BEGINNING and not seen.reported.all():
        sentences.append(
            "Offline clients can hardly be told from slow ones in these observations: by the fit, "
            f"only {part:.0%} of all answers come within {reached} s, the longest wait. The rest "
            f"depends on the fitted family alone. {advice}"
        )
    return tuple(sentences)


def _about_reports(seen: Observations) -> list[str]:
    reports = int(seen.reported.sum())
    sentences = []
    if reports < FEW:
        sentences.append(
            f"There {'is' if reports == 1 else 'are'} only {format_count(reports, 'report')}: the "
            "estimates are rough. Collect more rounds."
        )
    silent = np.flatnonzero(np.bincount(seen.code[seen.reported], minlength=len(seen.clients)) == 0)
    if silent.size:
        names = ", ".join(seen.clients[i] for i in silent[:_SHOWN])
        more = f" and {silent.size - _SHOWN:,} more" if silent.size > _SHOWN else ""
        sentences.append(
            f"{format_count(silent.size, 'client')} never reported ({names}{more}): "
            f"{'its' if silent.size == 1 else 'their'} speed and availability are guesses from the "
            "other clients."
        )
    return sentences


def _offline_share(found: Fit) -> float:
    """The share of requests that no deadline would get answered, if the times clearly show it."""
    seen = found.observations
    if seen.reported.all() or found.best.family == "constant":
        return 0.0
    names = [each.family for each in found.candidates if each.family in POOLED_FAMILIES]
    if not names:
        return 0.0
    unit = float(np.median(seen.event_times))
    best = fit_pools(CensoredSample.of(seen).scaled(1 / unit).thinned(), 1, names)[0]
    # The spread between clients is 0 and was not estimated; densities are per unit of time.
    score = best.score - 2 + 2 * int(seen.reported.sum()) * math.log(unit)
    # A mixture can take offline clients for a second, slow component: it is no better evidence.
    always = min(each.score("aic") for each in found.candidates if each.family in names)
    if math.isinf(best.pool.level) or score > always - _CLEARLY:
        return 0.0
    if score > found.best.score("aic") + _CLEARLY:
        return 0.0
    return 1 / (1 + math.exp(best.pool.level))


def _distance(seen: Observations, latency: Latency, availability: Floats) -> float:
    """The largest difference between the clients' expected reports and Kaplan-Meier's estimate."""
    times, survival, _ = CensoredSample.of(seen).kaplan_meier()
    some = np.unique(np.linspace(0, times.size - 1, _POINTS).astype(np.intp))
    weight = np.bincount(seen.code, minlength=len(seen.clients)) / len(seen)
    fitted = [1 - float(weight @ (availability * latency.cdf(t))) for t in times[some]]
    return float(np.max(np.abs(survival[some] - fitted)))
