"""What is compared: the grid of a search, usual guesses, and plans with several goals."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from fleets import Fleet
from proposal import OVERHEAD, Balanced
from trials import Rules, Settings, Tuned, least_overhead

import cafe
from cafe.errors import InputError
from cafe.planner import Plan, ToAccuracy
from cafe.planner.deadline_grid import deadline_range, first_time
from cafe.planner.safe_quorum import with_safe_quorum

GOALS = ("time", "client-seconds")
DEADLINES = 12  # of the grid
SHARES = (0.0, 0.75, 1.0)  # quorums of the grid, as shares of the expected reports
FEWEST = 0.02  # share of the invited clients that report by the grid's first deadline ...
MOST = 0.999  # ... and of the reports that arrive by its last one
SURE = 0.9999  # a quorum that more rounds reach than this is the same as a quorum of 1
FLOWER = 3600.0  # Flower's default timeout
WASTE = (1.0, 10.0, 100.0)  # prices of waste over the number of clients
BROADCAST = (1.0, 10.0, 100.0)  # prices of a broadcast, in median response times
LEAST_RATIO = 1e-3  # of noise: a client that uses all its examples has none
STATED_PRICES = "J, 1 and 1"
PAPER_PRICES = "J, best of nine prices"
PLANS = ("plan", "plan, true overhead", "plan, ratio at the start", "plan, ratio at the end")
GUESSES = (
    "median",
    "mean",
    "2 x median",
    "p90",
    "p95",
    "p99",
    "wait for all",
    "Flower's defaults",
)
PROPOSED = (
    "proposed",
    "proposed, true overhead",
    "proposed, measured at the start",
    "proposed, measured on the way",
)
# The controller plans in every run, which takes time: it is compared on some federations.
TUNED_ON = ("40 exponential, 2 classes, 99 %", "50 phones, classes by speed, 99 %")
TUNED = ("self-tuning, proposed goal", "self-tuning")
RULES = (*PROPOSED, *PLANS, *TUNED, STATED_PRICES, PAPER_PRICES, *GUESSES)


def grid(fleet: Fleet, deadlines: int = DEADLINES) -> list[Rules]:
    """The cells of the grid search; the middle deadlines come first."""
    steady = fleet.federation.steady
    low, high = deadline_range(steady)
    scale = steady.clients / fleet.invited
    share = steady.report(high) @ steady.number / steady.clients  # who ever reports
    fewest = max(1.0, FEWEST * share * fleet.invited)
    first = first_time(steady, scale * fewest, low, high)
    last = first_time(steady, scale * MOST * share * fleet.invited, low, high)
    found = [float(x) for x in np.geomspace(first, last, deadlines)]
    middle = found[2 * deadlines // 3]
    found.sort(key=lambda x: abs(np.log(x / middle)))
    return [rules for deadline in found for rules in quorums(fleet, deadline)]


def quorums(fleet: Fleet, deadline: float) -> Iterator[Rules]:
    """The different quorums of the grid with this deadline, and a quorum of 1."""
    steady = fleet.federation.steady
    known = {1}
    yield Rules(1, deadline)
    expected = cafe.expect(steady, quorum=1, deadline=deadline, cohort=fleet.cohort)
    for share in SHARES:
        quorum = max(1, round(share * expected.expected_reports))
        if quorum not in known:
            known.add(quorum)
            found = cafe.expect(steady, quorum=quorum, deadline=deadline, cohort=fleet.cohort)
            if found.success_probability <= SURE:
                yield Rules(quorum, deadline)


def guesses(fleet: Fleet) -> dict[str, Rules]:
    """The usual guesses, and what Flower does by default."""
    found = {}
    for rival in plan(fleet, "time").rivals:
        name = "wait for all" if "wait for all" in rival.name else rival.name.split(" = ")[1]
        expected = rival.expected
        found[name] = Rules(expected.quorum, expected.deadline, expected.setting.target)
    found["Flower's defaults"] = Rules(1, FLOWER, close_when_all=True)
    return found


def plan(fleet: Fleet, goal: str | ToAccuracy) -> Plan:
    """The plan of CAFe with a goal."""
    return cafe.plan(fleet.federation, goal=goal, cohort=fleet.cohort)


def prices(fleet: Fleet, waste: float, broadcast: float) -> Plan:
    """The plan with the paper's goal J, and prices relative to the federation."""
    return cafe.plan(
        fleet.federation,
        waste_price=waste / fleet.invited,
        broadcast_price=broadcast * fleet.median,
        cohort=fleet.cohort,
    )


def plans(fleet: Fleet, measured: dict[str, Any]) -> dict[str, Settings | None]:
    """What CAFe calculates; None if there is no best deadline.

    Args:
        fleet: the federation.
        measured: the row of the target, with the noise "ratio" at the start and at the end.
    """
    ratios = {place: max(ratio, LEAST_RATIO) for place, ratio in measured["ratio"].items()}
    found: dict[str, Settings | None] = {}
    for waste, broadcast in product(WASTE, BROADCAST):
        made = prices(fleet, waste, broadcast)
        # Deadlines that differ by less than 3 % count as one.
        near = [
            x
            for x in found.values()
            if isinstance(x, Rules) and abs(x.deadline / made.deadline - 1) < 0.03
        ]
        found[f"J, {waste:g} and {broadcast:g}"] = (
            near[0] if near else Rules(made.quorum, made.deadline)
        )
    true = fleet.seconds
    for spend in GOALS:
        goals = {
            "plan": ToAccuracy(spend),
            "plan, true overhead": ToAccuracy(spend, None, true),
            "plan, ratio at the start": ToAccuracy(spend, ratios["start"], true),
            "plan, ratio at the end": ToAccuracy(spend, ratios["end"], true),
        }
        for name, goal in goals.items():
            try:
                made = plan(fleet, goal)
            except InputError:  # without an overhead, there may be no best deadline
                found[f"{name}: {spend}"] = None
            else:
                found[f"{name}: {spend}"] = Rules(made.quorum, made.deadline)
        for name, goal in proposals(fleet, measured, spend).items():
            found[f"{name}: {spend}"] = proposed(fleet, goal)
        for name in TUNED if fleet.name in TUNED_ON else ():
            found[f"{name}: {spend}"] = Tuned(spend, name == TUNED[0])
    return found


def proposals(fleet: Fleet, measured: dict[str, Any], spend: str) -> dict[str, Balanced]:
    """The proposed goal with its defaults, and with what is known or measured."""
    true = least_overhead(fleet)
    critical = measured["critical"]
    ratio = {place: max(found, LEAST_RATIO) for place, found in measured["ratio"].items()}
    goals = (
        Balanced(spend, OVERHEAD * fleet.median),
        Balanced(spend, true),
        Balanced(spend, true, critical["start"], ratio["start"]),
        Balanced(spend, true, critical["mean"], ratio["end"]),
    )
    return dict(zip(PROPOSED, goals, strict=True))


def proposed(fleet: Fleet, goal: Balanced) -> Rules:
    """The plan with the proposed goal, with the quorum that plans choose for safety."""
    made = cafe.plan(fleet.federation, goal=goal, cohort=fleet.cohort)
    safe = with_safe_quorum(made.search, made.local_optima[0])
    return Rules(safe.quorum, safe.deadline)
