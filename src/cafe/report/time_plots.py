"""Plots of changes with the hour of the day."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cafe.errors import InputError
from cafe.fitting.time_tests import hour_means
from cafe.report.plotting import COOL, GREY, INK, figure, tidy
from cafe.report.time_tables import format_p

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cafe.fitting import TimeOfDay


def hours(found: TimeOfDay) -> Figure:
    """Response times and the share of reports by hour of the day, with two standard errors.

    Raises:
        InputError: if the log is too short.
    """
    if found.width is None:
        raise InputError(
            "A picture of the hours of the day needs hours that the log has on at least two days, "
            f"with 20 reports each. The log covers {found.days:.2g} days: leave --plot-hours out."
        )
    width = found.width
    drawn = figure(7.0, 5.0)
    upper, lower = drawn.subplots(2, 1, sharex=True)
    middle = (np.arange(-(-24 // width)) + 0.5) * width
    for axes, name, label, colour in (
        (upper, "response time", "response time,\nmean of the log = 1", INK),
        (lower, "share of reports", "share of reports", COOL),
    ):
        mean, error = hour_means(found.compared, name, width)
        test = next(t for t in found.tests if t.quantity == name and t.change != "drift")
        axes.errorbar(middle, mean, yerr=2 * error, fmt="o", ms=4, lw=1.2, color=colour)
        axes.set_title(f"± 2 standard errors, {format_p(test.p)}", fontsize=8, loc="right")
        axes.set(ylabel=label)
        tidy(axes)
    upper.axhline(1.0, color=GREY, lw=0.8)
    lower.set(xlabel="hour of the day (UTC)", xlim=(0, 24), xticks=range(0, 25, 3))
    return drawn
