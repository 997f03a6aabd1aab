"""The plot of a controller's choices: deadline and quorum against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cafe.analysis.policy_steps import PolicySteps
from cafe.report.plotting import figure, line_style, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE_RANGE = 20  # the largest deadline over the smallest from which the axis is logarithmic


def deadline_and_quorum(runs: Sequence[tuple[str, PolicySteps]]) -> Figure:
    """Two panels of steps, a line for each run.

    Args:
        runs: the label and the steps of each run.
    """
    drawn = figure(9.6, 4.4)
    from matplotlib.ticker import MaxNLocator

    panels = drawn.subplots(2, 1, sharex=True)
    for index, (label, steps) in enumerate(runs):
        for axes, values in zip(panels, (steps.deadline, steps.quorum), strict=True):
            name = label if axes is panels[0] else None
            axes.step(steps.time, values, where="post", lw=1.6, label=name, **line_style(index))
    known = [value for _, steps in runs for value in steps.deadline if value == value]
    if known and max(known) > WIDE_RANGE * min(known):
        panels[0].set_yscale("log")
    else:
        panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel("deadline, s")
    panels[1].set(ylabel="quorum", xlabel="virtual time, s", ylim=(0, None))
    panels[1].yaxis.set_major_locator(MaxNLocator(5, integer=True))
    panels[1].set_xlim(left=0)
    for axes in panels:
        tidy(axes)
    return drawn
