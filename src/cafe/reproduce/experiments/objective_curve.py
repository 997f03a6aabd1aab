"""The printed objective J over the deadline: its terms, turning points, and searches for its least.

The setting is that of Fig. 3; x is the deadline times the clients' rate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import cafe
from cafe.reproduce.rows import Row
from cafe.theory import (
    age_as_printed,
    broadcasts_as_printed,
    objective_as_printed,
    waste_as_printed,
)

CLIENTS, RATE, WASTE_PRICE, BROADCAST_PRICE = 50, 1.0, 20.0, 100.0  # as in the figure
X = (1e-3, 40.0)
POINTS = 181  # number of points of the curve
WEIGHTS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0)  # weights of waste
STARTS = (0.01, 0.1, 0.5, 0.9, 1.1, 2.0, 5.0, 20.0)  # starting points of descents
RANGES = (1.0, 2.0, 4.0, 5.0, 10.0, 20.0, 40.0)  # upper ends of exhaustive searches
PARTS = ("waste", "broadcasts", "age")


def objective(x: float, weight: float = WASTE_PRICE) -> float:
    """J(x) as printed."""
    return objective_as_printed(CLIENTS, RATE, x / RATE, weight, BROADCAST_PRICE)


def parts(x: float, weight: float = WASTE_PRICE) -> dict[str, float]:
    """The three terms of J(x), from the formulas of Sec. 4 at quorum 1."""
    at = (CLIENTS, RATE, 1, x / RATE)
    return {
        "waste": weight * waste_as_printed(*at),
        "broadcasts": BROADCAST_PRICE * broadcasts_as_printed(*at),
        "age": age_as_printed(*at),
    }


def early(x: float) -> dict[str, float]:
    """The same objective for rounds that close as soon as all clients have reported."""
    federation = cafe.Federation(CLIENTS, cafe.Exponential(RATE))
    e = cafe.expect(federation, quorum=1, deadline=x / RATE, target=CLIENTS)
    return {
        "early": WASTE_PRICE * e.waste + BROADCAST_PRICE * e.broadcasts + e.age,
        "all_in": e.everybody_probability,
        "length": e.round_duration,
    }


def curve_rows() -> list[Row]:
    """Everything that is calculated about J: the curve, turning points, weights and searches."""
    rows: list[Row] = [
        {"kind": "curve", "x": x, "J": objective(x), **parts(x), **early(x), **curvatures(x)}
        for x in map(float, np.geomspace(*X, POINTS))
    ]
    turns = turning_points(WASTE_PRICE)
    rows += [{"kind": what, "x": x, "J": objective(x), **parts(x), **early(x)} for what, x in turns]
    rows += [_basins(weight) for weight in WEIGHTS]
    rows += [{"kind": "tie", "weight": tie()}, {"kind": "convex", "weight": convex_up_to()}]
    rows += [{"kind": "descent", "from": x, "x": y, "J": objective(y)} for x, y in descents()]
    rows += [{"kind": "range", "to": to, "x": x, "J": objective(x)} for to, x in ranges()]
    first, top = (next(x for what, x in turns if what == kind) for kind in ("minimum", "maximum"))
    return [*rows, {"kind": "crossing", "x": crossing(first, top)}]


def turning_points(weight: float) -> list[tuple[str, float]]:
    """Every minimum and maximum of J, in order of x: found on a fine grid, then refined."""
    grid = np.geomspace(*X, 1001)
    values = np.array([objective(float(x), weight) for x in grid])
    rises = np.sign(np.diff(values))
    turns = []
    for at in np.flatnonzero(rises[1:] != rises[:-1]) + 1:
        what, sign = ("minimum", 1.0) if rises[at] > 0 else ("maximum", -1.0)
        within = (float(grid[at - 1]), float(grid[at + 1]))
        turns.append((what, _minimise(lambda x, s=sign: s * objective(x, weight), within)))
    return turns


def _minimise(function: Callable[..., float], within: tuple[float, float]) -> float:
    from scipy.optimize import minimize_scalar

    result = minimize_scalar(function, bounds=within, method="bounded", options={"xatol": 1e-9})
    return float(result.x)


def curvatures(x: float) -> dict[str, float]:
    """The second derivatives of J's terms at x, by differences."""
    step = 1e-3 * x
    low, here, high = (parts(x + shift, 1.0) for shift in (-step, 0.0, step))
    return {f"bend_{p}": (low[p] - 2 * here[p] + high[p]) / step**2 for p in PARTS}


def convex_up_to() -> float:
    """The largest weight of waste with which J is convex everywhere.

    Beyond x = 2 the waste's term is convex too: its second derivative is N (x - 2) exp(-x) there.
    """
    found = [curvatures(float(x)) for x in np.geomspace(X[0], 2.0, 501)]
    return min(
        (each["bend_broadcasts"] + each["bend_age"]) / -each["bend_waste"]
        for each in found
        if each["bend_waste"] < 0
    )


def _minima(weight: float) -> list[float]:
    return [x for what, x in turning_points(weight) if what == "minimum"]


def _basins(weight: float) -> Row:
    """The first and the last minimum at a weight of waste; no last one if there is only one."""
    minima = _minima(weight)
    first, last = minima[0], minima[-1]
    row = {"kind": "basins", "weight": weight, "x": first, "J": objective(first, weight)}
    return row | ({"x_last": last, "J_last": objective(last, weight)} if last > first else {})


def tie() -> float:
    """The weight of waste at which both minima are equally deep."""
    from scipy.optimize import brentq

    def lead(weight: float) -> float:
        minima = _minima(weight)
        return objective(minima[0], weight) - objective(minima[-1], weight)

    return float(brentq(lead, 1.0, 5.0, xtol=1e-4))


def descents() -> list[tuple[float, float]]:
    """The start and the end of each descent, in steps of 1 %, then refined."""
    found = []
    for start in STARTS:
        x = start
        step = 1.01 if objective(1.01 * x) < objective(x) else 1 / 1.01
        while objective(step * x) < objective(x):
            x *= step
        found.append((start, _minimise(objective, (x / 1.02, x * 1.02))))
    return found


def crossing(first: float, top: float) -> float:
    """The x above the maximum at which J falls below its first minimum."""
    from scipy.optimize import brentq

    return float(brentq(lambda x: objective(x) - objective(first), top, X[1] / 4))


def ranges() -> list[tuple[float, float]]:
    """The end of each range, and the best of a thousand evenly spaced values in it."""
    return [
        (to, float(min(np.linspace(0, to, 1001)[1:], key=lambda x: objective(float(x)))))
        for to in RANGES
    ]
