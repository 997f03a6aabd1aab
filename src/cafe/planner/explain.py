"""A plan in words: three sentences, and warnings if the model does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cafe.planner.goals import ToGap

if TYPE_CHECKING:
    from cafe.planner.plan import Plan

# Thresholds of the warnings.
EVERYBODY = 0.05  # probability that all clients report
LEANING = 0.1  # bias of an average update
CLOSE = 0.05  # relative difference in cost between two local optima
FLAT = 1e-3  # relative difference in cost between the deadline and twice the deadline


def explain_plan(plan: Plan) -> tuple[str, str, str]:
    """The plan in three sentences: what to do, what it costs, and why."""
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
        f"{e.waste:.4g} client-seconds, {e.waste_per_gradient:.3g} for each report used; "
        f"the mean age of the clients is {e.age:.4g} s, the worst {e.worst_age:.4g} s."
    )
    return what, costs, _why(plan)


def invitation_sentence(plan: Plan) -> str:
    """What to do in a round: how many to invite, when to close, how long to wait."""
    close = "" if plan.target is None else f"close at {plan.target:,} reports, "
    return (
        f"Invite {plan.cohort:,} of {plan.federation.clients:,} clients, {close}"
        f"accept at least {plan.quorum:,}, wait at most {plan.deadline:.4g} s"
    )


def _why(plan: Plan) -> str:
    if plan.binding:
        reason = f"The limit '{plan.binding[0]}' decides, at a cost of {plan.cost:.4g}"
    elif len(plan.local_optima) > 1:
        other = plan.local_optima[1]
        reason = (
            f"The cost has {len(plan.local_optima)} basins and this is the deepest, "
            f"{plan.cost:.4g} against {other.cost:.4g} at a deadline of {other.deadline:.4g} s"
        )
    else:
        longer = (
            "takes longer than it gains" if isinstance(plan.goal, ToGap) else "gives a higher age"
        )
        reason = (
            "A shorter deadline gives fewer reports, and a longer one "
            f"{longer}: the cost is least here, {plan.cost:.4g}"
        )
    return f"{reason}; {_against(plan)}."


def _against(plan: Plan) -> str:
    """A comparison with the best of the usual guesses that keep the limits."""
    keeping = [rival for rival in plan.rivals if not rival.breaks and rival.cost < float("inf")]
    if not keeping:
        return "no usual guess keeps the limits" if plan.search.limits else "no usual guess works"
    best = min(keeping, key=lambda rival: rival.cost)
    ratio = best.cost / plan.cost
    if abs(ratio - 1) < 5e-4:
        compared = "costs as much"
    elif ratio < 1:
        compared = f"costs {1 - ratio:.1%} less, as it closes rounds early"
    else:
        compared = (
            f"costs {ratio - 1:.1%} more" if ratio < 2 else f"costs {ratio:.3g} times as much"
        )
    return f"the best usual guess, {best.name}, {compared}"


def plan_warnings(plan: Plan) -> tuple[str, ...]:
    """What a user should know before trusting the plan."""
    e, found = plan.expected, []
    for warning in plan.federation_warnings:
        found.append(warning)
    if e.everybody_probability > EVERYBODY and plan.target is None:
        found.append(
            f"All clients report before the deadline with probability "
            f"{e.everybody_probability:.2f}, but the model assumes that every round lasts until "
            "it. Close rounds when all have reported and plan for that "
            "(close_when_all, --close-when-all)."
        )
    longer = plan.search.at(2 * plan.deadline)
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
