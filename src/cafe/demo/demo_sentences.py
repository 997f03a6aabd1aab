"""The demo's findings in sentences. Each number in them was measured or calculated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cafe.analysis import statistics
from cafe.analysis.run_groups import RunGroup
from cafe.demo.demo_runs import GUESS, QUORUM, make_plan
from cafe.theory import expect
from cafe.wording import format_number, format_share

if TYPE_CHECKING:
    from cafe.federation import Federation
    from cafe.planner import Plan

GOAL = 0.9  # accuracy
WASTE = (
    "Wasted work is the time that phones really worked on reports that were discarded: the tables "
    "call it processing waste. The paper's waste, which the plan minimises, charges every "
    "discarded phone for the whole round, so it can exceed all the work that was done."
)


def describe_savings(guess: RunGroup, planned: RunGroup, goal: float = GOAL) -> str:
    """What the plan saved compared with the guess, or that it saved nothing."""
    if not np.isfinite(planned.spent_estimate(goal, "time").mean):
        return f"Planned rounds did not reach {format_share(goal)} accuracy in the time given."
    reach = f"Planned rounds reach {format_share(goal)} accuracy in {_spent(planned, goal)}"
    if not np.isfinite(guess.spent_estimate(goal, "time").mean):
        return f"{reach}; guessed ones do not reach it in the time given."
    changes = {"time": "time", "processing_waste": "wasted work"}
    time, waste = (_change(planned, guess, goal, *each) for each in changes.items())
    return f"{reach}. Guessed rounds need {_spent(guess, goal)}. The plan needs {time} and {waste}."


def describe_costs(fleet: Federation, made: Plan) -> str:
    """What plan and guess cost with the true latencies, which the demo knows."""
    guessed = expect(fleet, quorum=QUORUM, deadline=GUESS)
    planned = expect(fleet, quorum=made.quorum, deadline=made.deadline)
    best = make_plan(fleet)
    cost = {name: made.goal.cost(e) for name, e in (("plan", planned), ("guess", guessed))}
    return (
        f"Checked against the true latencies: the plan costs {cost['plan']:.2f}, the guess "
        f"{cost['guess']:.2f}, and a plan that knows every phone exactly costs {best.cost:.2f}. "
        f"The mean age of the worst phone is {planned.worst_age:,.0f} s with the plan and "
        f"{guessed.worst_age:,.0f} s with the guess."
    )


def describe_schemes(groups: Sequence[RunGroup], goal: float = GOAL) -> str:
    """The names of the three schemes, and what the other two change."""
    guess, kept, planned, aware, _ = groups
    wastes = [format_number(group.estimate("processing_waste").mean) for group in (guess, kept)]
    time = kept.spent_estimate(goal, "time").mean
    reach = f" and reaches {format_share(goal)} in {time / 60:.3g} min" if np.isfinite(time) else ""
    least = [f"{float(group.relative_weights.min()):.0%}" for group in (planned, aware)]
    failed = any(history.rounds > history.updates for history in planned.histories)
    same = "" if failed else " With the plan no round fails, so AGU and MCU are the same."
    return (
        f"MCU, the M-client update, averages the reports of each round that has enough. AGU, the "
        f"aggregated-gradient update, also keeps the work of failed rounds: with the guessed "
        f"timeout it wastes {wastes[1]} client-seconds per update instead of {wastes[0]}{reach}."
        f"{same} AWU, the age-weighted update, gives more weight to phones that report rarely: the "
        f"phone with the lowest weight has {least[1]} of an equal share instead of {least[0]}."
    )


def _spent(group: RunGroup, goal: float) -> str:
    names = ("time", "work", "processing_waste")
    time, work, waste = (group.spent_estimate(goal, name).mean for name in names)
    return (
        f"{time / 60:.3g} min and {work / 3600:.3g} client-hours of work, of which "
        f"{waste / 3600:.3g} are wasted"
    )


def _change(now: RunGroup, before: RunGroup, goal: float, name: str, words: str) -> str:
    """The relative change with its standard error, from runs with the same seeds.

    A change below two standard errors is called not significant.
    """
    spent = ([getattr(s, name) for s in each.spent_until(goal)] for each in (now, before))
    found = statistics.ratio(*spent)
    if not np.isfinite(found.mean) or found.mean == 1:
        return f"as much {words}"
    apart = abs(1 - found.mean)
    doubt = "" if found.is_apart(1.0) else " (less than two standard errors: not significant)"
    more = "less" if found.mean < 1 else "more"
    return f"{format_share(apart, found.error)} {more} {words}{doubt}"
