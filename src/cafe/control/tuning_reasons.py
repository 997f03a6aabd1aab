"""Sentences that say why a self-tuning controller moved."""

from __future__ import annotations

import numpy as np

from cafe.control.recent_rounds import Change, RecentRounds
from cafe.control.robust_plan import RobustPlan
from cafe.control.tuner_state import TunerState
from cafe.federation import total
from cafe.planner.to_accuracy import ToAccuracy
from cafe.theory import Expectation
from cafe.wording import format_count

NO_UPDATES = (
    "Single updates cannot be seen or are too large to be compared, so the plan assumes that noise "
    "and differences of clients weigh the same."
)


LOOK_AGAIN = "The next round looks for the time scale again."


def explain_noise(ratio: float) -> str:
    """What two rounds of updates have shown."""
    return (
        f"The updates of two rounds show {ratio:.2g} times as much gradient noise as differences "
        "between clients."
    )


def explain_first(made: RobustPlan, recent: RecentRounds) -> str:
    """The first plan, and what it rests on."""
    reports = int(np.count_nonzero(recent.reported))
    return (
        f"The first plan has the deadline {made.deadline:.3g} s and the quorum {made.quorum}, from "
        f"{format_count(reports, 'report')} of {format_count(len(recent.names), 'client')}."
    )


def explain_move(made: RobustPlan, before: TunerState, old: Expectation, gain: float) -> str:
    """How the plan moves, and what is gained."""
    assert before.deadline is not None
    moves = []
    if f"{before.deadline:.3g}" != f"{made.deadline:.3g}":
        moves.append(f"the deadline moves from {before.deadline:.3g} s to {made.deadline:.3g} s")
    if before.quorum != made.quorum:
        moves.append(f"the quorum moves from {before.quorum} to {made.quorum}")
    if not moves:
        return ""
    said = " and ".join(moves).replace("and the quorum moves", "and the quorum")
    return (
        f"{said[0].upper()}{said[1:]}: {_later(made)} of the reports come later than that, and "
        f"{_gained(made, gain)}."
    )


def _later(made: RobustPlan) -> str:
    """The share of the reports that come after the deadline."""
    federation = made.federation
    weight = federation.number * np.broadcast_to(federation.availability, (federation.kinds,))
    late = total(weight, federation.latency.sf(made.deadline)) / max(float(weight.sum()), 1e-300)
    return f"{100 * late:.2g} %"


def _gained(made: RobustPlan, gain: float) -> str:
    goal = made.goal
    if isinstance(goal, ToAccuracy):
        what = "time" if goal.spend == "time" else "client time"
        if gain > 0:
            return f"a full update takes {100 * gain:.0f} % less {what}"
        return f"a full update then takes hardly more {what}, but more rounds succeed"
    if gain > 0:
        return f"the cost ({goal.describe()}) falls by {100 * gain:.0f} %"
    return f"the cost ({goal.describe()}) hardly rises, but the limits are kept"


def explain_change(change: Change | None, rounds: int) -> str:
    """What contradicts the plan."""
    span = "the last round" if rounds == 1 else f"the last {rounds} rounds"
    if change is None:
        return f"No update was made in {span}."
    if change.factor > 1:
        return (
            f"In {span} the answers took at least {100 * (change.factor - 1):.0f} % longer than "
            "before."
        )
    return (
        f"In {span} the answers took about {100 * (1 - change.factor):.0f} % less time than before."
    )
