"""The length of a round that may close before its deadline.

In the paper every round lasts T, because all clients finish early only with a small probability
(Sec. 4.3). That probability is p^N for any quorum, and it is close to 1 if the deadline is long.
Then the duration Y = min(T, time of the K-th report) matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cafe.errors import InputError
from cafe.federation import Federation, total
from cafe.latency.base import Floats, Latency
from cafe.theory.counts import Turnout
from cafe.theory.many_kinds import has_many_kinds, others_suffice_at, turnout_at
from cafe.theory.panels import integral, integral_against

IMPOSSIBLE = 1e-18  # below this a probability cannot change a sum of ordinary size
MANY_BREAKS = 100  # with more jumps than this, the integral is summed panel by panel
EVEN_PANELS = 100  # panels added to the jumps, once evenly and once geometrically spaced
COUNTLESS_BREAKS = 2000  # with more jumps than this, single jumps no longer matter


@dataclass(frozen=True)
class Duration:
    """Moments of the length Y of one round.

    Attributes:
        mean: E[Y].
        second: E[Y^2].
        mean_when_full: E[Y; the target was reached by the deadline].
    """

    mean: float
    second: float
    mean_when_full: float = 0.0


def early_close(federation: Federation, target: int, deadline: float) -> tuple[Duration, float]:
    """The duration of rounds that close at the ``target``-th report, and the client-seconds of one.

    Pr(Y > t) = Pr(n(t) < target), and at time t the N - n(t) clients that have not reported work.
    """
    start, end = transition(federation, target, deadline)

    def integrand(t: float) -> Floats:
        turnout = turnout_at(federation, target, t)
        # One tolerance applies to all three, so each is scaled to lie between 0 and 2.
        share = turnout.missing_when_failed / federation.clients
        return np.array([turnout.failure, 2.0 * t / end * turnout.failure, share])

    breaks = federation.latency.breaks()
    integrate = integral if has_many_kinds(federation) else _integral
    mean, second, work = map(float, integrate(integrand, start, end, breaks))
    full = Turnout.of(federation, target, deadline)
    # Before the transition no round closes, so a client works for E[min(X, start)] there.
    waits = federation.availability * federation.latency.mean_below(start)
    waits = np.broadcast_to(waits + start * federation.miss(start), (federation.kinds,))
    duration = Duration(
        mean=start + mean,
        second=start**2 + end * second,
        mean_when_full=max(start + mean - deadline * full.failure, 0.0),
    )
    return duration, total(federation.number, waits) + federation.clients * work


def overtaken_probability(federation: Federation, target: int, deadline: float) -> Floats:
    """Each kind's Pr(a client reports by the deadline, but after the target was reached).

    This is the integral, over the time of the client's own report, of Pr(the other clients have
    reached the target by then).
    """
    start, end = transition(federation, target, deadline)
    latency, kinds = federation.latency, federation.kinds

    def density(t: float) -> Floats:
        return np.broadcast_to(federation.availability * np.exp(latency.logpdf(t)), (kinds,))

    def ahead(t: float) -> Floats:
        # Pr(n without k >= target) is what `others_suffice` gives for a quorum of target + 1.
        return others_suffice_at(federation, target + 1, t)

    check_density(latency, deadline)
    if has_many_kinds(federation):
        inside = integral_against(ahead, federation.report, density, start, end, latency.breaks())
    else:
        inside = _integral(lambda t: density(t) * ahead(t), start, end, latency.breaks())
    return np.asarray(inside + federation.report(deadline) - federation.report(end))


def check_density(latency: Latency, deadline: float) -> None:
    """Raise an error if the response times have no density, so that reports can be simultaneous."""
    try:
        latency.logpdf(deadline)
    except InputError:
        raise InputError(
            "A target below the number of clients needs response times with a density if clients "
            "differ. Got empirical or constant times: two clients can report at the same time, and "
            "which of them is first is not defined. Fit a family to the times, or leave the target "
            "out."
        ) from None


def transition(
    federation: Federation, target: int, deadline: float, cohort: int | None = None
) -> tuple[float, float]:
    """The part of [0, deadline] in which the target is reached, if it is reached at all.

    By Chernoff's bounds for sums of independent trials, the probability that the target is reached
    before this part, or is not reached by its end, is negligible. If the part ends at the deadline,
    the target may also be missed. The bounds hold for the reports of a random cohort too, because
    drawing without replacement makes them negatively associated.
    """
    number, invited = federation.number, federation.clients if cohort is None else cohort
    short = invited - target + 1
    if cohort is not None:
        number = number * (cohort / federation.clients)

    def surely_open(t: float) -> bool:
        return _chernoff(total(number, federation.report(t)), target) < IMPOSSIBLE

    def surely_closed(t: float) -> bool:
        return _chernoff(total(number, federation.miss(t)), short) < IMPOSSIBLE

    start, _ = _turning(surely_open, deadline)
    _, end = _turning(lambda t: not surely_closed(t), deadline)
    return start, max(start, end)


def _chernoff(mean: float, count: float) -> float:
    """A bound on Pr(sum of independent trials >= count), for a count above their mean."""
    if mean <= 0:
        return 0.0
    return 1.0 if count <= mean else float(np.exp(count - mean - count * np.log(count / mean)))


def _turning(holds: Callable[[float], bool], deadline: float) -> tuple[float, float]:
    """Two times, 0.1 % apart, between which a condition that holds at 0 stops holding."""
    if holds(deadline):
        return deadline, deadline
    low, high = 0.0, deadline
    while high - low > 1e-3 * high and high > 1e-100 * deadline:
        middle = 0.5 * (low + high) if low > 0 else 0.25 * high
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def _integral(
    integrand: Callable[[float], Floats], start: float, end: float, breaks: Floats
) -> Floats:
    """The integral from start to end, split at the jumps of the latencies."""
    if end <= start:
        return 0.0 * integrand(max(end, np.finfo(float).tiny))
    inside = breaks[(breaks > start) & (breaks < end)]
    if MANY_BREAKS < inside.size <= COUNTLESS_BREAKS:
        # Some of the families may be smooth, so no panel may be wide. With two Gauss nodes in each
        # panel the error is of fourth order.
        even = np.linspace(start, end, EVEN_PANELS)
        geometric = np.geomspace(max(start, 1e-6 * end), end, EVEN_PANELS)
        edges = np.unique(np.concatenate([even, geometric.clip(start, end), inside]))
        centre, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
        nodes = np.concatenate([centre - half / 3**0.5, centre + half / 3**0.5])
        widths = np.concatenate([half, half])
        return np.asarray(sum(w * integrand(float(t)) for w, t in zip(widths, nodes, strict=True)))
    from scipy.integrate import quad_vec

    points = inside if inside.size <= MANY_BREAKS else None
    value, _ = quad_vec(
        lambda t: integrand(max(float(t), np.finfo(float).tiny)),
        start, end, epsrel=1e-10, norm="max", limit=200, points=points,
    )  # fmt: skip
    return np.asarray(value)
