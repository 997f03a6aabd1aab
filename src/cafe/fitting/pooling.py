"""Partial pooling: each client's speed and availability, from too few observations to fit it alone.

Client k answers with probability a_k, and then takes s_k times as long as the pool. Over clients,
log s_k is normal around 0 and logit a_k is normal around the pool's level. Their spreads and the
parameters of the pool maximise the marginal likelihood in Laplace's approximation. Then each s_k is
set to its most probable value, and a_k to its mean. So a client with many observations keeps its
own speed, a client with few observations is pulled towards the pool, and if clients do not differ,
all get the same speed. If no client needs to be offline to explain the misses, a_k is 1.

The shape of the pool is estimated together with the spread. The shape of all clients' times taken
together would be too wide, because it includes the differences between clients, which the s_k
already describe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from cafe.evidence import Evidence
from cafe.fitting.censored_sample import CensoredSample
from cafe.fitting.client_likelihood import ClientSums
from cafe.fitting.client_posterior import ClientPosterior, Pool, client_posterior, draw_clients
from cafe.fitting.families import estimated_parameters
from cafe.fitting.fit import Fit, fit
from cafe.fitting.fit_warnings import client_warnings
from cafe.fitting.observations import Observations
from cafe.fitting.pool_draws import draw_pools
from cafe.fitting.pool_search import POOLED_FAMILIES, fit_pools
from cafe.latency.base import Floats, Latency

if TYPE_CHECKING:
    from cafe.federation import Federation

_CLIENTS = 2000  # enough to estimate the pool's few parameters to 1 or 2 %
_TIMES = 200  # per client; if there are more, neighbours are merged
_ALTERNATIVES = 40  # plausible federations to draw ...
_NUMBERS = 100_000  # ... or fewer, so that they have about this many clients together ...
_FEWEST = 20  # ... but at least this many
_SEED = 7  # the same log gives the same federation and the same alternatives
_LEAST = 1e-6  # availability


@dataclass(frozen=True, eq=False)
class ClientFits:
    """How slow each client is, relative to a typical one, and how often it answers.

    Attributes:
        clients: their names.
        scale: s_k: how many times as long as the typical client each takes.
        standard_error: of log s_k, given the pool; 0 where clients do not differ.
        reports: how many reports each client sent.
        misses: how many deadlines each missed.
        family: of the pool, chosen for one client's times: often not the family that fits all
            clients' times together best, because that one must explain their differences too.
        pooled: the latency of a typical client, one with scale 1.
        spread: the standard deviation of log s_k over clients; 0 where they do not differ.
        availability: a_k: the probability that each client answers at all, however long the wait.
        availability_error: the standard error of a_k, with the uncertainty of the pool.
        unevenness: the standard deviation of logit a_k over clients; 0 where they do not differ.
        evidence: the observations, other plausible federations, and warnings.
    """

    clients: tuple[str, ...]
    scale: Floats
    standard_error: Floats
    reports: NDArray[np.int64]
    misses: NDArray[np.int64]
    family: str
    pooled: Latency
    spread: float
    availability: Floats
    availability_error: Floats
    unevenness: float
    evidence: Evidence

    @property
    def latency(self) -> Latency:
        """The latency with one kind per client."""
        return self.pooled.scaled(self.scale)

    @property
    def availability_range(self) -> tuple[float, float]:
        """The 90 % interval of the clients' mean availability."""
        return _range([float(np.mean(x.availability)) for x in self.evidence.alternatives])

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what the observations cannot tell, or why the fit may be wrong."""
        return self.evidence.warnings

    def to_dict(self) -> dict[str, object]:
        """The clients as plain values, ready for JSON."""
        columns = {
            "client": list(self.clients),
            "scale": self.scale.tolist(),
            "standard_error": self.standard_error.tolist(),
            "availability": self.availability.tolist(),
            "availability_error": self.availability_error.tolist(),
            "reports": self.reports.tolist(),
            "misses": self.misses.tolist(),
        }
        return {
            "family": self.family,
            "parameters": estimated_parameters(self.pooled),
            "spread": self.spread,
            "unevenness": self.unevenness,
            "availability_range": list(self.availability_range),
            "longest": self.evidence.longest,
            "warnings": list(self.warnings),
            "clients": [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ],
        }

    def federation(self) -> Federation:
        """The federation of these clients, with its evidence."""
        from cafe.federation import Federation

        share = self.availability
        return Federation(
            len(self.clients),
            self.latency,
            1.0 if np.all(share == 1.0) else share,
            evidence=self.evidence,
        )


def fit_clients(found: Fit) -> ClientFits:
    """How slow each client is; clients with few observations are pulled towards the pool.

    The fitted families among exponential, Weibull, log-normal and gamma are tried, or all four if
    none of them was fitted. The family with the best score for the clients' times is used, with or
    without clients that are offline. If all reports took the same time, all clients get the same
    speed.
    """
    seen = found.observations
    size = len(seen.clients)
    if found.best.family == "constant":
        zero = np.zeros(size)
        same = ClientPosterior(zero, zero + np.inf, zero, zero, zero, zero + 1.0, 0.0)
        return _result(found, "constant", Pool(found.latency), same, [])
    names = [each.family for each in found.candidates if each.family in POOLED_FAMILIES]
    if not names:
        names = [each.family for each in fit(seen, families=list(POOLED_FAMILIES)).candidates]
    unit = float(np.median(seen.event_times))
    sample = CensoredSample.of(seen, by_client=True).scaled(1 / unit).thinned(_TIMES)
    some, kept = sample.of_some_clients(size, _CLIENTS)
    pools = fit_pools(some, kept, names)
    every = ClientSums.of(sample, size)
    best = pools[0]
    posterior = client_posterior(every, best.pool)
    rng = np.random.default_rng(_SEED)
    number = max(_FEWEST, min(_ALTERNATIVES, _NUMBERS // size))
    others = []
    for pool in draw_pools(pools, ClientSums.of(some, kept), number, rng):
        u, v = draw_clients(every, pool, client_posterior(every, pool, posterior), rng)
        share = np.maximum(expit(v), _LEAST)
        others.append((pool.latency.scaled(unit).scaled(np.exp(u)), share))
    pool = Pool(
        best.pool.latency.scaled(unit), best.pool.spread, best.pool.level, best.pool.unevenness
    )
    return _result(found, best.model.family, pool, posterior, others)


def _result(
    found: Fit,
    family: str,
    pool: Pool,
    posterior: ClientPosterior,
    others: list[tuple[Latency, Floats]],
) -> ClientFits:
    from cafe.federation import Federation

    seen = found.observations
    size = len(seen.clients)
    reports = np.bincount(seen.code[seen.reported], minlength=size).astype(np.int64)
    misses = np.bincount(seen.code[~seen.reported], minlength=size).astype(np.int64)
    scale, share = np.exp(posterior.u), np.maximum(posterior.availability, _LEAST)
    alternatives = tuple(Federation(size, latency, some) for latency, some in others)
    ranges = _range([float(np.mean(some)) for _, some in others] or [1.0])
    longest = longest_time(seen)
    doubts = client_warnings(found, pool.latency.scaled(scale), share, ranges, longest)
    evidence = Evidence(longest, int(reports.sum()), int(misses.sum()), alternatives, doubts)
    error = np.zeros(size)
    if others:
        error = np.sqrt(np.mean([(some - share) ** 2 for _, some in others], axis=0))
    return ClientFits(
        seen.clients, scale, np.sqrt(posterior.uu), reports, misses, family, pool.latency,
        pool.spread, share, error, pool.unevenness, evidence,
    )  # fmt: skip


def longest_time(seen: Observations) -> float:
    """The longest time, in seconds, that any client was waited for or took."""
    limits = seen.deadline[np.isfinite(seen.deadline)]
    return float(max(np.max(seen.event_times), np.max(limits, initial=0.0)))


def _range(values: list[float]) -> tuple[float, float]:
    low, high = np.quantile(values or [1.0], [0.05, 0.95])
    return float(low), float(high)
