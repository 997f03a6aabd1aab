"""Tables and plots of changes with time."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

import cafe
from cafe.errors import InputError
from cafe.fitting import TimeOfDay
from cafe.fitting.time_of_day import find_time_of_day
from cafe.report import time_plots, time_tables
from tests.support.timed_logs import MONDAY, make_timed_log


def federation(_: cafe.Observations) -> cafe.Federation:
    return cafe.Federation(40, cafe.LogNormal(2.0, 0.6), availability=0.9)


def shown(found: TimeOfDay) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(time_tables.time_of_day(found))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_pattern_is_shown_by_hour() -> None:
    rng = np.random.default_rng(1)
    found = find_time_of_day(make_timed_log(rng, slower=1.6, away=0.3, drift=1.5), federation)
    text = shown(found)
    assert "Changes over 6.98 days" in text
    assert "! Clients changed during the log" in text
    assert "--output FILE --hour H" in text
    assert "06-07 h" in text
    assert "< 0.0001" in text


def test_a_quiet_log_has_one_table() -> None:
    text = shown(find_time_of_day(make_timed_log(np.random.default_rng(2)), federation))
    assert "By hour of the day" not in text
    assert "!" not in text


def test_a_short_log_is_not_tested() -> None:
    rng = np.random.default_rng(3)
    seen = cafe.Observations(rng.exponential(1.0, 60), sent=MONDAY + 60.0 * np.arange(60))
    found = find_time_of_day(seen, federation)
    assert "Not tested: needs some hours of the day on at least two days" in shown(found)
    with pytest.raises(InputError, match="leave --plot-hours out"):
        time_plots.hours(found)


def test_the_plot_has_a_panel_for_each_quantity() -> None:
    found = find_time_of_day(make_timed_log(np.random.default_rng(4)), federation)
    upper, lower = time_plots.hours(found).axes
    assert "response time" in upper.get_ylabel()
    assert lower.get_ylabel() == "share of reports"
