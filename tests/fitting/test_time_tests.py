"""Tests for changes with time: false positives, power, and when they refuse to judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.fitting import Observations
from cafe.fitting.time_tests import (
    TimedRows,
    choose_width,
    hour_means,
    hour_of,
    run_time_tests,
)
from tests.support.timed_logs import MONDAY, make_timed_log

LOGS = 120


def p_values(seed: int, **changes: Any) -> np.ndarray:
    """One row per log: p of drift and hour for response times, then for the share of reports."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(LOGS):
        rows = TimedRows.of(make_timed_log(rng, **changes))
        found.append([test.p for test in run_time_tests(rows, choose_width(rows))])
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "quiet"),
    [
        (1, {}),
        (2, {"days": 3}),
        (3, {"shock": 0.3}),  # clients of a round are slow together
        (4, {"changing_deadline": True}),
    ],
    ids=["a week", "three days", "common shocks", "another deadline after noon"],
)
def test_quiet_logs_are_rarely_called_changed(seed: int, quiet: dict[str, Any]) -> None:
    found = p_values(seed, **quiet)
    # 5 % of the logs should be below 0.05; four standard errors of that share, for four tests.
    error = np.sqrt(0.05 * 0.95 / LOGS)
    assert np.all((found < 0.05).mean(axis=0) < 0.05 + 4 * error)
    # And p-values are uniform: their means are 1/2, with the standard error sqrt(1/12 / LOGS).
    assert np.all(np.abs(found.mean(axis=0) - 0.5) < 4 * np.sqrt(1 / 12 / LOGS))


@pytest.mark.slow
def test_changes_are_found_and_told_apart() -> None:
    slow = p_values(5, slower=1.3) < 0.01
    assert slow[:, 1].mean() > 0.9, "response times by hour"
    assert slow[:, 0].mean() < 0.1, "no drift"
    away = p_values(6, away=0.15) < 0.01
    assert away[:, 3].mean() > 0.9, "share of reports by hour"
    assert away[:, 1].mean() < 0.1, "those who answer are not slower"
    drift = p_values(7, drift=1.4) < 0.01
    assert drift[:, 0].mean() > 0.9, "drift of response times"
    assert drift[:, 1].mean() < 0.1, "no pattern by hour"


def test_effects_are_factors_and_differences() -> None:
    rng = np.random.default_rng(8)
    seen = make_timed_log(rng, days=14, cohort=40, slower=1.5, drift=1.3, spread=0.1)
    rows = TimedRows.of(seen)
    by_name = {(t.quantity, t.change): t for t in run_time_tests(rows, 6)}
    # Hardly any time is cut by the deadline, so the factors are nearly the true ones.
    assert by_name["response time", "hour of the day"].effect == pytest.approx(1.5, rel=0.1)
    assert by_name["response time", "drift"].effect == pytest.approx(1.3, rel=0.1)
    mean, error = hour_means(rows, "response time", 6)
    assert mean[[1, 2]].mean() / mean[[0, 3]].mean() == pytest.approx(1.5, rel=0.1)
    assert np.all(error < 0.1)
    share, _ = hour_means(rows, "share of reports", 6)
    overall = (~np.isnan(rows.logs)).mean()
    assert share.mean() == pytest.approx(overall, abs=0.01)


def test_rows_are_cut_at_one_deadline() -> None:
    seen = Observations(
        [1.0, 9.0, np.nan, 3.0, 2.0],
        deadline=[5.0, 10.0, 10.0, 5.0, 5.0],
        sent=[0, 1, 2, 3, np.nan],
    )
    rows = TimedRows.of(seen)
    assert rows.deadline == 5.0
    np.testing.assert_allclose(np.exp(rows.logs), [1.0, np.nan, np.nan, 3.0])


def test_hours_are_those_of_utc() -> None:
    sent = MONDAY + 3600 * np.array([0.0, 0.99, 1.0, 23.5, 24.0])
    assert hour_of(sent).tolist() == [0, 0, 1, 23, 0]


@pytest.mark.parametrize(
    ("hours", "width"),
    [(24 * 7, 1), (24 * 3, 1), (20, None), (30, None)],
    ids=["a week", "three days", "less than a day", "only some hours on two days"],
)
def test_the_width_of_bins(hours: int, width: int | None) -> None:
    sent = np.repeat(MONDAY + 3600.0 * np.arange(hours), 30)
    seen = Observations(np.ones(sent.size), sent=sent)
    assert choose_width(TimedRows.of(seen)) == width


def test_fewer_rows_give_wider_bins() -> None:
    sent = MONDAY + 3600.0 * np.arange(24 * 7)
    seen = Observations(np.ones(sent.size), sent=sent)
    assert choose_width(TimedRows.of(seen)) == 3  # 7 rows per hour: 21 in three hours


def test_short_and_constant_logs_are_not_judged() -> None:
    rng = np.random.default_rng(9)
    short = TimedRows.of(Observations(rng.exponential(1.0, 10), sent=MONDAY + np.arange(10.0)))
    assert [test.p == test.p for test in run_time_tests(short, choose_width(short))] == [False] * 4
    assert all(test.reason for test in run_time_tests(short, None))
    equal = TimedRows.of(Observations(np.ones(500), sent=MONDAY + 3600.0 * np.arange(500)))
    tests = run_time_tests(equal, choose_width(equal))
    assert {test.reason for test in tests} == {"all rows are equal"}
    at_once = TimedRows.of(Observations(rng.exponential(1.0, 99), sent=np.full(99, MONDAY)))
    assert all(test.reason for test in run_time_tests(at_once, None))
