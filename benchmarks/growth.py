"""How the time of ``expect`` and ``plan`` grows with the number of unequal clients."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import cafe
from benchmarks.report import Sheet
from cafe.federation import Federation

RNG_SEED = 0


@dataclass(frozen=True)
class Case:
    """One column of the table: the function to time, and the largest federation."""

    name: str
    run: Callable[[Federation], object]


def federation(clients: int) -> Federation:
    """Unequal clients: each has its own rate and availability."""
    rng = np.random.default_rng(RNG_SEED)
    return Federation.exponential(rng.uniform(0.2, 3.0, clients), rng.uniform(0.7, 1.0, clients))


def _expect(who: Federation, deadline: float, share: float) -> object:
    reports = float(who.number @ who.report(deadline))
    expected = cafe.expect(who, quorum=max(1, int(share * reports)), deadline=deadline)
    return expected.to_dict(), expected.age_by_client, expected.participation_by_client


def expect_target(who: Federation, cohort: int | None) -> object:
    """Rounds that close at 80 % of the reports that are expected by the deadline."""
    reports = who.report(0.5).sum() * (1.0 if cohort is None else cohort / who.clients)
    target = max(int(0.8 * reports), 1)
    expected = cafe.expect(who, quorum=1, deadline=0.5, target=target, cohort=cohort)
    return expected.to_dict(), expected.participation_by_client


def _far(who: Federation) -> object:
    """A quorum 12 standard deviations above the mean: a success probability near 1e-33."""
    report = who.report(0.5)
    mean, sd = float(report.sum()), float(np.sqrt((report * who.miss(0.5)).sum()))
    quorum = min(int(mean + 12 * sd), who.clients)
    return cafe.expect(who, quorum=quorum, deadline=0.5).participation_by_client


CASES = (
    Case("expect, M=1", lambda who: _expect(who, 0.5, 0.0)),
    Case("expect, M=0.97 E[n]", lambda who: _expect(who, 0.5, 0.97)),
    Case("participation, +12 sd", _far),
    Case("expect, target", lambda who: expect_target(who, None)),
    Case("expect, cohort of a tenth, target", lambda who: expect_target(who, who.clients // 10)),
    Case("plan", lambda who: cafe.plan(who, waste_price=0.1, broadcast_price=100)),
)
SIZES = tuple(10**k for k in range(2, 7))


def measure(repeats: int = 5) -> dict[str, dict[int, list[float]]]:
    """Seconds by case and size; cases are interleaved, so that a slow period affects all."""
    seconds: dict[str, dict[int, list[float]]] = {case.name: {} for case in CASES}
    CASES[0].run(federation(100))  # warm up: imports and first calls are not measured
    CASES[-1].run(federation(100))
    for size in SIZES:
        who = federation(size)
        for _ in range(repeats if size < 10**6 else 3):
            for case in CASES:
                began = time.perf_counter()
                case.run(who)
                seconds[case.name].setdefault(size, []).append(time.perf_counter() - began)
    return seconds


def exponent(by_size: dict[int, list[float]], least: int = 10**4) -> float:
    """The slope of log time over log N from ``least`` up: 1 is linear."""
    sizes = [size for size in by_size if size >= least]
    medians = [float(np.median(by_size[size])) for size in sizes]
    return float(np.polyfit(np.log(sizes), np.log(medians), 1)[0])


def sheet(seconds: dict[str, dict[int, list[float]]]) -> Sheet:
    """The table that ``make bench`` prints."""
    names = [case.name for case in CASES]
    rows = [
        [f"{size:,}", *(f"{np.median(t):.4f} ({min(t):.4f} to {max(t):.4f})" for t in times)]
        for size in SIZES
        if (times := [seconds[name][size] for name in names])
    ]
    rows.append(["growth from 10,000", *(f"N^{exponent(seconds[name]):.2f}" for name in names)])
    return Sheet("Unequal clients: median seconds (min to max)", ["N", *names], rows)
