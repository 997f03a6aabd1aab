"""Calls of latencies, federations and the planner."""

from __future__ import annotations

import cafe
from cafe.control import SelfTuning
from cafe.latency import Various
from cafe.planner import Limit, ToAccuracy, pooled_mean, pooled_quantile
from tests.support.public_calls.samples import (
    CALLBACK,
    entry,
    fleet,
    given,
    problem,
)
from tests.support.wrong_calls import (
    FLAG,
    NATURAL,
    NOT_NEGATIVE,
    NOT_NEGATIVES,
    NOTHING,
    POSITIVE,
    POSITIVES,
    kind,
    maybe,
)

LATENCIES = [
    entry(
        cafe.Exponential,
        {"rate": POSITIVES, "mean": maybe(NOTHING)},
        given(rate=1.0),
        explains=True,
    ),
    entry(
        cafe.Exponential,
        {"rate": maybe(NOTHING), "mean": POSITIVES},
        given(mean=1.0),
        name="latency.Exponential by mean",
        explains=True,
    ),
    entry(cafe.Constant, {"value": POSITIVES}, given(value=1.0), explains=True),
    entry(
        cafe.Gamma,
        {
            "shape": POSITIVES,
            "scale": POSITIVES,
            "mean": maybe(NOTHING),
            "std": maybe(NOTHING),
        },
        given(shape=1.0, scale=1.0),
        explains=True,
    ),
    entry(
        cafe.Gamma,
        {
            "shape": maybe(NOTHING),
            "scale": maybe(NOTHING),
            "mean": POSITIVES,
            "std": POSITIVES,
        },
        given(mean=1.0, std=1.0),
        name="latency.Gamma by mean",
        explains=True,
    ),
    entry(
        cafe.Weibull,
        {"shape": POSITIVES, "scale": POSITIVES},
        given(shape=1.0, scale=1.0),
        explains=True,
    ),
    entry(
        cafe.LogNormal,
        {
            "mu": NOT_NEGATIVES | {"-1"},
            "sigma": POSITIVES,
            "shift": NOT_NEGATIVES,
            "mean": maybe(NOTHING),
            "std": maybe(NOTHING),
        },
        given(mu=1.0, sigma=0.5),
        explains=True,
    ),
    entry(
        cafe.LogNormal,
        {
            "mu": maybe(NOTHING),
            "sigma": maybe(NOTHING),
            "shift": NOT_NEGATIVE,
            "mean": POSITIVES,
            "std": POSITIVES,
        },
        given(mean=2.0, std=1.0),
        name="latency.LogNormal by mean",
        explains=True,
    ),
    entry(
        cafe.ShiftedExponential,
        {"shift": NOT_NEGATIVES, "rate": POSITIVES},
        given(shift=1.0, rate=1.0),
        explains=True,
    ),
    entry(
        cafe.Uniform,
        {"low": NOT_NEGATIVES, "high": POSITIVES},
        given(low=0.0, high=3.0),
        explains=True,
    ),
    entry(
        cafe.Empirical,
        {"times": kind("numbers"), "weights": kind("0.5", "numbers"), "kinds": NOTHING},
        given(times=[1.0, 2.0]),
    ),
    entry(
        cafe.Mixture,
        {"components": NOTHING, "weights": kind("numbers")},
        given(components=[cafe.Constant(1.0), cafe.Constant(2.0)], weights=[0.5, 0.5]),
    ),
    entry(Various, {"parts": NOTHING}, given(parts=[cafe.Constant(1.0)])),
]

ENTRIES = [
    *LATENCIES,
    entry(
        cafe.Federation,
        {
            "clients": NOTHING,
            "latency": NOTHING,
            "availability": POSITIVE,
            "examples": NATURAL,
            "kind": maybe(NOTHING),
            "per_step": NOT_NEGATIVE,
            "presence": maybe(NOTHING),
            "evidence": maybe(NOTHING),
        },
        given(clients=6, latency=cafe.Exponential(1.0)),
        explains=True,
    ),
    entry(
        cafe.Federation.exponential,
        {"rates": POSITIVES, "availability": maybe(POSITIVE)},
        given(rates=[1.0, 2.0]),
    ),
    entry(
        cafe.phones,
        {
            "clients": NOTHING,
            "seed": NATURAL,
            "examples": NOTHING,
            "seconds_per_example": POSITIVE,
            "model_kbytes": POSITIVE,
            "availability": POSITIVE,
            "batch": maybe(NOTHING),
        },
        given(clients=5),
        explains=True,
    ),
    entry(
        cafe.expect,
        {
            "federation": NOTHING,
            "quorum": NOTHING,
            "deadline": POSITIVE,
            "target": maybe(NOTHING),
            "cohort": maybe(NOTHING),
            "steps": NOTHING,
        },
        given(federation=fleet(), quorum=2, deadline=1.0),
        explains=True,
    ),
    entry(
        cafe.frontier,
        {
            "federation": NOTHING,
            "quorum": maybe(NOTHING),
            "close_when_all": FLAG,
            "cohort": maybe(NOTHING),
            "target": maybe(NOTHING),
            "steps": NOTHING,
            "progress": CALLBACK,
        },
        given(federation=fleet(), quorum=2),
        explains=True,
        slow=True,
    ),
    entry(
        cafe.plan,
        {
            "federation": NOTHING,
            "waste_price": maybe(NOT_NEGATIVE),
            "broadcast_price": maybe(NOT_NEGATIVE),
            "quorum": maybe(NOTHING),
            "cohort": maybe(NOTHING),
            "target": maybe(NOTHING),
            "goal": maybe(NOTHING),
            "at_most": maybe(kind("{}")),
            "at_least": maybe(kind("{}")),
            "close_when_all": FLAG,
            "steps": NOTHING,
            "trust": NOTHING,
            "progress": CALLBACK,
        },
        given(federation=fleet(), waste_price=1.0, broadcast_price=1.0, quorum=2),
        explains=True,
        slow=True,
    ),
    entry(
        SelfTuning,
        {
            "waste_price": maybe(NOT_NEGATIVE),
            "broadcast_price": maybe(NOT_NEGATIVE),
            "goal": maybe(NOTHING),
            "at_most": maybe(kind("{}")),
            "at_least": maybe(kind("{}")),
            "steps": NOTHING,
            "first_stop": POSITIVE,
        },
        given(waste_price=1.0, broadcast_price=1.0),
        explains=True,
    ),
    entry(
        cafe.Prices, {"waste": NOT_NEGATIVE, "broadcast": NOT_NEGATIVE}, given(waste=1, broadcast=1)
    ),
    entry(
        cafe.ToGap,
        {"problem": NOTHING, "gap": POSITIVE, "spend": NOTHING, "overhead": NOT_NEGATIVE},
        given(problem=problem(), gap=0.1),
    ),
    entry(
        cafe.Problem,
        {
            "smoothness": POSITIVE,
            "convexity": POSITIVE,
            "noise": NOT_NEGATIVE,
            "heterogeneity": NOT_NEGATIVE,
            "distance": NOT_NEGATIVE,
        },
        given(smoothness=1.0, convexity=0.1, noise=1.0, heterogeneity=1.0, distance=1.0),
    ),
    entry(
        Limit,
        {"quantity": NOTHING, "sign": kind("-1"), "value": NOT_NEGATIVE | {"-1"}},
        given(quantity="waste", sign=1, value=3.0),
    ),
    entry(pooled_mean, {"federation": NOTHING}, given(federation=fleet())),
    entry(
        ToAccuracy,
        {
            "spend": NOTHING,
            "noise_ratio": maybe(POSITIVE),
            "overhead": maybe(NOT_NEGATIVE),
        },
        given(),
    ),
    entry(
        pooled_quantile,
        {"federation": NOTHING, "share": POSITIVE},
        given(federation=fleet(), share=0.2),
    ),
]
