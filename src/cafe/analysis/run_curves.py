"""Curves of runs: accuracy, loss and age over time, and values sorted over clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cafe.analysis.run_costs import amounts_by_round
from cafe.latency.base import Floats
from cafe.rounds import History

POINTS = 160  # points of a curve: enough for a screen, and files stay small


class MeanCurve(NamedTuple):
    """A curve averaged over runs, and its standard error, which is NaN for one run."""

    x: Floats
    mean: Floats
    error: Floats


def learning_curve(histories: Sequence[History], along: str, what: str) -> MeanCurve | None:
    """The mean ``accuracy`` or ``loss`` against ``round``, ``time`` or ``work``.

    It covers the range that all runs cover. None if no run was evaluated.
    """
    pairs = []
    for history in histories:
        if history.curve is None or not len(history.curve):
            continue
        x, y = np.asarray(getattr(history.curve, along), float), getattr(history.curve, what)
        good = np.isfinite(y)
        if good.any():
            pairs.append((x[good], np.asarray(y[good], float)))
    if not pairs:
        return None
    low, high = max(x[0] for x, _ in pairs), min(x[-1] for x, _ in pairs)
    if len(pairs) == 1 and len(pairs[0][0]) <= POINTS:
        grid = pairs[0][0]
    else:
        grid = np.linspace(low, max(low, high), POINTS if high > low else 1)
    return _average(grid, [np.interp(grid, x, y) for x, y in pairs])


def age_curve(histories: Sequence[History]) -> MeanCurve | None:
    """The mean age over time, averaged exactly over each of at most :data:`POINTS` intervals."""
    ends = [h.virtual_time for h in histories if h.rounds]
    if not ends:
        return None
    number = min(POINTS, max(h.rounds for h in histories))
    edges = np.linspace(0, min(ends), number + 1)
    rows = [np.diff(integrated_age(h, edges)) / np.diff(edges) for h in histories if h.rounds]
    return _average((edges[1:] + edges[:-1]) / 2, rows)


def integrated_age(history: History, times: Floats) -> Floats:
    """The integral of the mean age from 0 to each of the times; exact within rounds too."""
    closed = np.concatenate([[0.0], history.by_round["closed"]])
    after = np.concatenate([[0.0], history.by_round["age"]])
    sums = np.concatenate([[0.0], np.cumsum(amounts_by_round(history)["area"])])
    last = np.clip(np.searchsorted(closed, times, side="right") - 1, 0, len(closed) - 1)
    since = times - closed[last]
    return np.asarray(sums[last] + since * (after[last] + since / 2))


def quantile_curve(values: Floats) -> tuple[Floats, Floats]:
    """Percentages of clients and the sorted values, at most :data:`POINTS` of them."""
    ordered = np.sort(values)
    if len(ordered) > POINTS:
        ordered = np.quantile(ordered, np.linspace(0, 1, POINTS))
    if len(ordered) == 1:
        ordered = np.repeat(ordered, 2)
    return np.linspace(0, 100, len(ordered)), ordered


def _average(grid: Floats, rows: Sequence[Floats]) -> MeanCurve:
    table = np.asarray(rows)
    error = table.std(axis=0, ddof=1) / len(table) ** 0.5 if len(table) > 1 else table[0] * np.nan
    return MeanCurve(grid, table.mean(axis=0), error)
