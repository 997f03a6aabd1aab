"""The federation behind the last rounds, estimated quickly, with plausible alternatives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from cafe.control.measured_shape import MeasuredCurve, measured_shape
from cafe.control.recent_rounds import RecentRounds
from cafe.errors import CafeError
from cafe.evidence import Evidence
from cafe.federation import Federation
from cafe.fitting.censored_sample import CensoredSample, WeightedTimes
from cafe.fitting.client_likelihood import ClientSums
from cafe.fitting.client_posterior import Pool, client_posterior, draw_clients
from cafe.fitting.pool_draws import draw_pools
from cafe.fitting.pool_search import fit_pools
from cafe.latency import LogNormal
from cafe.latency.base import Floats

FAMILIES = ("lognormal", "weibull")
_CLIENTS = 500  # whose times determine the pool's few parameters
_TIMES = 50  # of each client; if there are more, neighbours are merged
_ALTERNATIVES = 8
_SEED = 7  # the same response times give the same plan
_BLUR = 0.01  # the spread of log times below which times are taken for equal
_LEAST = 1e-4  # availability


@dataclass(frozen=True, eq=False)
class Estimate:
    """The clients as the last rounds show them.

    Attributes:
        federation: the clients that took part in these rounds, with evidence.
        unit: the median response time, in seconds.
    """

    federation: Federation
    unit: float


def estimate(recent: RecentRounds) -> Estimate:
    """Estimate each client's speed and availability, and the shape of all clients' times."""
    seen = recent.observations()
    size = len(seen.clients)
    unit = float(np.median(seen.event_times))
    sample = CensoredSample.of(seen, by_client=True).scaled(1 / unit)
    sample = _blurred(sample.thinned(_TIMES), size)
    some, kept = _some(sample, size)
    every, rng = ClientSums.of(sample, size), np.random.default_rng(_SEED)
    try:
        pools = fit_pools(some, kept, FAMILIES)
        best = pools[0].pool
        drawn = draw_pools(pools, ClientSums.of(some, kept), _ALTERNATIVES, rng)
    except (CafeError, ValueError, FloatingPointError, np.linalg.LinAlgError):
        best, drawn = _rough_pool(sample), []
    found = client_posterior(every, best)
    scale = np.exp(found.u)
    share = np.maximum(found.availability, _LEAST)
    relative = scale[recent.code] * unit
    curve = MeasuredCurve.of(recent.seconds / relative, recent.waited / relative)
    reached = recent.shares()

    def federation(pool: Pool, answers: Floats) -> Federation:
        answered = float(answers[recent.code].mean())
        raised = max(answered, min(float(curve.share[-1]), 1.0))
        shape = measured_shape(curve, pool.latency, raised)
        available = np.minimum(answers * (raised / answered), 1.0) * reached
        return Federation(size, shape.scaled(scale * unit), np.maximum(available, _LEAST))

    others = []
    for pool in drawn:
        _, v = draw_clients(every, pool, client_posterior(every, pool, found), rng)
        others.append(federation(pool, np.maximum(expit(v), _LEAST)))
    longest = float(max(np.max(recent.waited), np.nanmax(recent.seconds)))
    reports = int(np.count_nonzero(recent.reported))
    evidence = Evidence(longest, reports, len(recent) - reports, tuple(others))
    return Estimate(replace(federation(best, share), evidence=evidence), unit)


def _some(sample: CensoredSample, size: int) -> tuple[CensoredSample, int]:
    """The sample of some of the clients, evenly spaced, and their number."""
    if size <= _CLIENTS:
        return sample, size
    place = np.full(size, -1)
    place[np.linspace(0, size - 1, _CLIENTS).astype(np.intp)] = np.arange(_CLIENTS)

    def picked(times: WeightedTimes) -> WeightedTimes:
        code = place[times.code]
        return WeightedTimes(times.seconds[code >= 0], times.weight[code >= 0], code[code >= 0])

    chosen = CensoredSample(picked(sample.reports), picked(sample.misses))
    return (chosen, _CLIENTS) if chosen.reports.seconds.size else (sample, size)


def _blurred(sample: CensoredSample, size: int) -> CensoredSample:
    """The sample, with reports spread by 1 % if each client always takes the same time.

    The likelihood of equal times has no maximum.
    """
    reports = sample.reports
    logs = np.log(reports.seconds)
    weight = np.bincount(reports.code, reports.weight, minlength=size)
    mean = np.bincount(reports.code, reports.weight * logs, minlength=size) / np.maximum(weight, 1)
    spread = np.sqrt(np.mean((logs - mean[reports.code]) ** 2))
    if spread > _BLUR and np.ptp(logs) > _BLUR:
        return sample
    if weight.max() <= 1 and np.ptp(logs) > 10 * _BLUR:  # one report each: they differ by client
        return sample
    golden = (np.arange(len(logs)) * 0.6180339887498949) % 1.0
    seconds = reports.seconds * np.exp(2 * _BLUR * (golden - 0.5))
    return CensoredSample(WeightedTimes(seconds, reports.weight, reports.code), sample.misses)


def _rough_pool(sample: CensoredSample) -> Pool:
    """A pool of equal clients with the reports' mean and spread, if nothing can be fitted."""
    logs = np.log(sample.reports.seconds)
    return Pool(LogNormal(float(logs.mean()), max(float(logs.std()), _BLUR)))
