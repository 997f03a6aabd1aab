"""The federation behind the last rounds, estimated quickly, with plausible alternatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from cafe.control.measured_shape import MeasuredCurve, measured_shape
from cafe.control.pool_posterior import draw_posterior
from cafe.control.recent_rounds import RecentRounds
from cafe.federation import Federation
from cafe.fitting.censored_sample import CensoredSample, WeightedTimes
from cafe.fitting.client_likelihood import CERTAIN, ClientSums
from cafe.fitting.client_posterior import Pool, client_posterior, draw_clients
from cafe.latency.base import Floats

_CLIENTS = 300  # whose times determine the pool's few parameters
_TIMES = 40  # of each client; if there are more, neighbours are merged
_ALTERNATIVES = 8
_SEED = 7  # the same response times give the same plan
_EQUAL = 0.01  # the spread of log times below which times are taken for equal
_BLUR = 0.002  # the spread that they then get
_LEAST = 1e-4  # availability


@dataclass(frozen=True, eq=False)
class EstimatedClients:
    """The clients as the last rounds show them.

    Attributes:
        federation: the most probable federation of the clients that took part in these rounds.
        alternatives: others, drawn from the posterior distribution.
        longest: the longest time that the server waited.
    """

    federation: Federation
    alternatives: tuple[Federation, ...]
    longest: float


def estimate(recent: RecentRounds) -> EstimatedClients:
    """Estimate each client's speed and availability, and the shape of all clients' times."""
    size = len(recent.names)
    unit = float(np.median(recent.seconds[recent.reported]))
    sample = _blurred(_sample(recent).scaled(1 / unit).thinned(_TIMES), size)
    some, kept = sample.of_some_clients(size, _CLIENTS)
    every, rng = ClientSums.of(sample, size), np.random.default_rng(_SEED)
    best, *drawn = draw_posterior(ClientSums.of(some, kept), _ALTERNATIVES)
    found = client_posterior(every, best.pool)
    reached = recent.shares()

    def federation(pool: Pool, u: Floats) -> Federation:
        scale = np.exp(u)
        relative = scale[recent.code] * unit
        curve = MeasuredCurve.of(recent.seconds / relative, recent.waited / relative)
        answered = 1.0 if pool.level == CERTAIN else float(expit(pool.level))
        answered = max(answered, min(float(curve.share[-1]), 1.0))
        shape = measured_shape(curve, pool.latency, answered)
        return Federation(size, shape.scaled(scale * unit), np.maximum(answered * reached, _LEAST))

    others = []
    for each in drawn:
        u, _ = draw_clients(every, each.pool, client_posterior(every, each.pool, found), rng)
        others.append(federation(each.pool, u))
    longest = float(max(np.max(recent.waited), np.nanmax(recent.seconds)))
    return EstimatedClients(federation(best.pool, found.u), tuple(others), longest)


def _sample(recent: RecentRounds) -> CensoredSample:
    """The rows as reports and missed deadlines."""

    def part(seconds: Floats, rows: NDArray[np.bool_]) -> WeightedTimes:
        chosen = seconds[rows]
        return WeightedTimes(chosen, np.ones(len(chosen)), recent.code[rows])

    reported = recent.reported
    return CensoredSample(part(recent.seconds, reported), part(recent.waited, ~reported))


def _blurred(sample: CensoredSample, size: int) -> CensoredSample:
    """The sample, with reports spread by 0.2 % if each client always takes the same time.

    The likelihood of equal times has no maximum.
    """
    reports = sample.reports
    logs = np.log(reports.seconds)
    weight = np.bincount(reports.code, reports.weight, minlength=size)
    mean = np.bincount(reports.code, reports.weight * logs, minlength=size) / np.maximum(weight, 1)
    spread = np.sqrt(np.mean((logs - mean[reports.code]) ** 2))
    if spread > _EQUAL:
        return sample
    golden = (np.arange(len(logs)) * 0.6180339887498949) % 1.0
    seconds = reports.seconds * np.exp(2 * _BLUR * (golden - 0.5))
    return CensoredSample(WeightedTimes(seconds, reports.weight, reports.code), sample.misses)
