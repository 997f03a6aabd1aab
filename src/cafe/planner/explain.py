"""A plan in words: what to do and why, what the goal means, and warnings."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np

from cafe.planner.deadline_grid import deadline_range
from cafe.planner.goals import Prices, ToGap
from cafe.planner.good_deadlines import WITHIN
from cafe.planner.intervals import describe_intervals, evidence_warnings
from cafe.planner.to_accuracy import NOISE_RATIO, ToAccuracy

if TYPE_CHECKING:
    from cafe.planner.deadline_search import DeadlineSearch
    from cafe.planner.plan import Plan
    from cafe.planner.rivals import Rival

# Thresholds of the warnings.
EVERYBODY = 0.05  # probability that all clients report
LEANING = 0.1  # bias of an average update
SELDOM = 0.01  # how often a client reports, compared with the fastest
CLOSE = 0.05  # relative difference in cost between two local optima
FLAT = 1e-3  # relative difference in cost between the deadline and twice the deadline

NUDGE = 0.1  # relative change of the deadline in the sentence about prices
SLIGHT = 1e-4  # relative changes that the sentence leaves out
NEGLIGIBLE = 1e-6  # share of the clients' time in a round below which waste is 0 in sentences
REACH = 16.0  # factor by which the deadline may change with the noise ratio
RATIO_POINTS = 81


def explain_plan(plan: Plan) -> tuple[str, ...]:
    """The plan in four sentences: what to do, what it costs, why, and what is to be gained."""
    e = plan.expected
    reports = "report" if plan.quorum == 1 else "reports"
    wait = f"Wait {plan.deadline:.4g} s and accept a round with at least {plan.quorum} {reports}"
    if plan.search.cohort is not None or plan.search.target is not None:
        wait = invitation_sentence(plan)
    what = (
        f"{wait}: {e.expected_reports:,.4g} of {plan.cohort:,} clients report by then "
        f"on average, and {e.success_probability:.2%} of rounds succeed."
    )
    costs = (
        f"An update takes {e.update_interval:.4g} s and {e.broadcasts:.4g} "
        f"broadcast{'s' * (e.broadcasts > 1.00005)} and wastes "
        f"{_visible(e.waste, plan):.4g} client-seconds, "
        f"{_visible(e.waste_per_gradient, plan):.3g} for each report used; "
        f"the mean age of the clients is {_seconds(e.age)}, the worst {_seconds(e.worst_age)}."
    )
    return what, costs + describe_intervals(plan), f"{_why(plan)}.", f"{_gains(plan)}."


def _visible(waste: float, plan: Plan) -> float:
    """The client-seconds, or 0 if they are negligible compared with the clients' whole time."""
    return waste if waste > NEGLIGIBLE * plan.federation.clients * plan.deadline else 0.0


def _seconds(time: float) -> str:
    return f"{time:.4g} s" if isfinite(time) else "infinite"


def invitation_sentence(plan: Plan) -> str:
    """What to do in a round: how many to invite, when to close, how long to wait."""
    close = "" if plan.target is None else f"close at {plan.target:,} reports, "
    return (
        f"Invite {plan.cohort:,} of {plan.federation.clients:,} clients, {close}"
        f"accept at least {plan.quorum:,}, wait at most {plan.deadline:.4g} s"
    )


def _why(plan: Plan) -> str:
    if plan.binding:
        return f"The limit '{plan.binding[0]}' decides, at a cost of {_cost(plan)}"
    if len(plan.local_optima) > 1:
        other = plan.local_optima[1]
        return (
            f"The cost has {len(plan.local_optima)} basins and this is the deepest, "
            f"{plan.cost:.4g} against {other.cost:.4g} at a deadline of {other.deadline:.4g} s"
        )
    longer = "gives a higher age" if isinstance(plan.goal, Prices) else "takes longer than it gains"
    return (
        "A shorter deadline gives fewer reports, and a longer one "
        f"{longer}: the cost is least here, {_cost(plan)}"
    )


def _cost(plan: Plan) -> str:
    """The cost; for the default goal with its unit and meaning."""
    if not isinstance(plan.goal, ToAccuracy):
        return f"{plan.cost:.4g}"
    unit = "s" if plan.goal.spend == "time" else "client-seconds"
    return f"{plan.cost:.4g} {unit} for as much progress as one update by all clients"


def _gains(plan: Plan) -> str:
    """How much the plan gains against the usual guesses that keep the limits, and how exact it is.

    A guess is not compared if its cost is infinite.
    """
    low, high = plan.good_deadlines
    reach = f"from {low:.3g} s on" if high == inf else f"from {low:.3g} to {high:.3g} s"
    enough = f"any deadline {reach} costs at most {WITHIN:.0%} more than the least"
    keeping = [rival for rival in plan.rivals if not rival.breaks and rival.cost < inf]
    if not keeping:
        none = "keeps the limits" if plan.search.limits else "works"
        return f"No usual guess {none}; {enough}"
    best, worst = (f(keeping, key=lambda rival: rival.cost) for f in (min, max))
    against = f"The best usual guess ({_guess(best)}) {_compared(best, plan)}"
    if worst is not best:
        against += f", the worst ({_guess(worst)}) {_compared(worst, plan).removeprefix('costs ')}"
    return f"{against}; {enough}"


def _guess(rival: Rival) -> str:
    return f"{rival.name}, quorum {rival.expected.quorum:,}"


def _compared(rival: Rival, plan: Plan) -> str:
    ratio = rival.cost / plan.cost
    if abs(ratio - 1) < 5e-4:
        return "costs as much"
    if ratio < 1:
        return f"costs {1 - ratio:.1%} less, as it closes rounds early"
    if ratio < 2:
        return f"costs {ratio - 1:.1%} more"
    return f"costs {ratio:.3g} times as much" if ratio < 1000 else "costs over 1,000 times as much"


def explain_goal(plan: Plan) -> tuple[str, ...]:
    """What was assumed and how much it matters, or what the prices mean at this plan."""
    notes = list(plan.assumptions)
    if isinstance(plan.goal, ToAccuracy):
        notes.append(_other_ratios(plan.search, plan.goal, plan.deadline))
    if isinstance(plan.goal, Prices):
        notes.append(_prices_in_words(plan, plan.goal))
    return tuple(notes)


def _other_ratios(search: DeadlineSearch, goal: ToAccuracy, deadline: float) -> str:
    """The best deadlines if the noise ratio is ten times smaller or larger."""
    low, high = deadline_range(search.federation)
    tried = np.geomspace(max(deadline / REACH, low), min(deadline * REACH, high), RATIO_POINTS)
    points = [search.sketch.expect(search.quorums()[0], float(t)) for t in tried]
    points = [p for p in points if all(limit.keeps(p) for limit in search.limits)]
    ratio = goal.noise_ratio or NOISE_RATIO
    others = (ratio / 10, ratio * 10)
    best = [
        min(points, key=replace(goal, noise_ratio=other).cost).deadline if points else deadline
        for other in others
    ]
    if all(0.9 < t / deadline < 1.1 for t in best):
        return f"A noise ratio of {others[0]:g} or {others[1]:g} gives nearly the same deadline."
    return (
        f"A noise ratio of {others[0]:g} would give a deadline of about {best[0]:.2g} s, one of "
        f"{others[1]:g} about {best[1]:.2g} s."
    )


def _prices_in_words(plan: Plan, goal: Prices) -> str:
    """What the prices mean: what a shorter and a longer deadline would save and cost."""
    prices = [
        f"1 {what} = {price:g} s of mean age"
        for what, price in (("client-second of waste", goal.waste), ("broadcast", goal.broadcast))
        if price
    ]
    shorter, longer = (_nudged(plan, goal, factor) for factor in (1 - NUDGE, 1 + NUDGE))
    return (
        f"The prices mean {' and '.join(prices) or 'that only age counts'}: a deadline {NUDGE:.0%} "
        f"shorter {shorter}; one {NUDGE:.0%} longer {longer}."
    )


def _nudged(plan: Plan, goal: Prices, factor: float) -> str:
    """What changes per update if the deadline is multiplied by the factor."""
    e, other = plan.expected, plan.search.expect(plan.quorum, factor * plan.deadline)
    waste, rounds = other.waste - e.waste, other.broadcasts - e.broadcasts
    age, cost = other.age - e.age, goal.cost(other) - plan.cost
    whole = max(e.waste, plan.federation.clients * plan.deadline * NEGLIGIBLE / SLIGHT)
    if not isfinite(waste + rounds + age):
        return "leaves a client out for ever, or never succeeds"
    parts = [
        ("saves {} client-seconds of waste", "wastes {} client-seconds more", waste, whole),
        ("saves {} broadcasts", "needs {} broadcasts more", rounds, e.broadcasts),
        ("lowers the age by {} s", "raises the age by {} s", age, e.age),
    ]
    said = [
        (less if change < 0 else more).format(f"{abs(change):.2g}")
        for less, more, change, base in parts
        if abs(change) > SLIGHT * base
    ]
    if not said:
        return "changes almost nothing"
    text = f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]
    return f"{text}, in all {abs(cost):.2g} s {'worse' if cost > 0 else 'better'}"


def plan_warnings(plan: Plan) -> tuple[str, ...]:
    """What a user should know before trusting the plan."""
    e, found = plan.expected, []
    for warning in (*plan.federation_warnings, *evidence_warnings(plan)):
        found.append(warning)
    if e.everybody_probability > EVERYBODY and plan.target is None:
        found.append(
            f"All clients report before the deadline with probability "
            f"{e.everybody_probability:.2f}, but the model assumes that every round lasts until "
            "it. Close rounds when all have reported and plan for that "
            "(close_when_all, --close-when-all)."
        )
    longer = plan.search.sketch.at(2 * plan.deadline)
    if longer is not None and longer.cost <= (1 + FLAT) * plan.cost:
        found.append(
            "The cost hardly depends on the deadline here: twice the deadline costs nearly the "
            "same."
        )
    if e.success_probability < 0.5:
        found.append(f"Most rounds fail: only {e.success_probability:.2%} succeed.")
    if e.reports_per_update < 3 and plan.federation.clients >= 10:
        found.append(
            f"An update averages only {e.reports_per_update:.2g} reports, which makes it noisy. "
            "A limit on reports_per_update keeps it larger."
        )
    if e.bias > LEANING:
        found.append(
            f"Clients differ in speed: {e.bias:.0%} of the weight of an average update moves "
            "from slow clients to fast ones, "
            "and plain averaging converges to the fast clients' optimum."
        )
    left_out = _left_out(plan)
    if left_out:
        found.append(
            f"{left_out:,} of {plan.federation.clients:,} clients report less than a hundredth as "
            "often as the fastest ones, so their data hardly count. A longer deadline includes "
            "them: set a limit on worst_age."
        )
    if isinstance(plan.goal, ToGap) and plan.federation.kinds > 1:
        found.append(
            "The bound behind this goal is proved for equal clients; here it is an approximation."
        )
    if len(plan.local_optima) > 1:
        other = plan.local_optima[1]
        if other.cost < (1 + CLOSE) * plan.cost:
            found.append(
                f"Another basin is nearly as good: deadline {other.deadline:.4g} s "
                f"with cost {other.cost:.4g}."
            )
    return tuple(found)


def _left_out(plan: Plan) -> int:
    """The number of clients that report less than a hundredth as often as the fastest ones."""
    share = plan.expected.setting.participation
    seldom = share < SELDOM * share.max()
    return round(float(plan.expected.setting.number[seldom].sum()))
