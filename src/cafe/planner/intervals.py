"""How well the observations behind a fitted federation determine a plan's figures.

The evidence of a fitted federation has alternatives: federations that explain the observations
about as well. The plan's quorum and deadline are evaluated on each of them. The 90 % interval of a
quantity leaves out 5 % of the alternatives at each end. A plan beyond the observations must cost
less than a plan within them, on average over the alternatives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from cafe.errors import InputError, did_you_mean
from cafe.federation import Federation
from cafe.planner.limits import Limit
from cafe.wording import format_interval, format_number, format_percent

if TYPE_CHECKING:
    from cafe.planner.plan import Plan

Trust = Literal["auto", "fitted", "observed"]
TRUSTS = ("auto", "fitted", "observed")
COVERED = 0.9
BOUNDED = ("waste", "broadcasts", "age", "worst_age", "success_probability", "expected_reports")


class Interval(NamedTuple):
    """The ends of a 90 % interval.

    Attributes:
        low: the lower end.
        high: the upper end.
    """

    low: float
    high: float


def plan_intervals(plan: Plan) -> dict[str, Interval]:
    """The 90 % intervals of the cost and of the main quantities, by name."""
    evidence = plan.federation.evidence
    if evidence is None or not evidence.alternatives:
        return {}
    names = ("cost", *BOUNDED)
    values: dict[str, list[float]] = {name: [] for name in names}
    for other in evidence.alternatives:
        expected = replace(plan.search, federation=other).expect(plan.quorum, plan.deadline)
        values["cost"].append(plan.goal.cost(expected))
        for name in BOUNDED:
            values[name].append(float(getattr(expected, name)))
    found = {"cost": plan.cost, **{name: getattr(plan.expected, name) for name in BOUNDED}}
    return {name: _interval(values[name], float(found[name])) for name in names}


def _interval(values: list[float], found: float) -> Interval:
    """The interval of the values; it always contains the value that was found."""
    known = np.sort(np.nan_to_num(values, nan=np.inf, posinf=np.inf))
    cut = int(0.5 * (1 - COVERED) * known.size)
    low, high = float(known[cut]), float(known[-1 - cut])
    return Interval(min(low, found), max(high, found))


def trust_limits(federation: Federation, trust: Trust) -> tuple[Limit, ...]:
    """The limit on the deadline that ``trust`` asks for."""
    if not isinstance(trust, str) or trust not in TRUSTS:
        hint = did_you_mean(str(trust), TRUSTS)
        raise InputError(f"trust must be 'auto', 'fitted' or 'observed'. Got {trust!r}. {hint}")
    if trust != "observed":
        return ()
    if federation.evidence is None:
        raise InputError(
            "trust='observed' needs a federation that was fitted to a log, so that the longest "
            "observed time is known. Got one without evidence: make it with cafe fit --output or "
            "Fit.by_client().federation(), or set the limit itself (at_most, --at-most deadline=)."
        )
    return (Limit("deadline", +1, federation.evidence.longest),)


def extra_cost_beyond(beyond: Plan, within: Plan) -> float:
    """How much more a plan beyond the observations costs than one within them, as a share.

    Both costs are means over the alternatives. NaN if neither plan is possible in all of them.
    """
    evidence = beyond.federation.evidence
    if evidence is None or not evidence.alternatives:
        return np.nan
    means = []
    for each in (beyond, within):
        costs = [
            each.goal.cost(
                replace(each.search, federation=other).expect(each.quorum, each.deadline)
            )
            for other in evidence.alternatives
        ]
        means.append(float(np.mean(np.nan_to_num(costs, nan=np.inf, posinf=np.inf))))
    if np.isinf(means[1]):
        return np.nan
    return means[0] / means[1] - 1


def describe_stay(beyond: Plan, extra: float) -> str:
    """Why the plan stays within the observations, as a warning."""
    return (
        f"The plan stays within the observed times. By the best fit alone, {beyond.deadline:.4g} s "
        "would be the best deadline; but over all federations that explain the observations about "
        f"as well, it costs {format_percent(extra)} more on average. trust='fitted' (--trust "
        "fitted) plans with the best fit alone."
    )


def describe_intervals(plan: Plan) -> str:
    """The intervals of the main costs as a sentence that begins with a space, or nothing."""
    found = plan.intervals
    if not found:
        return ""
    waste, age, worst = (
        format_interval(*(float(f"{x:.3g}") for x in found[name]))
        for name in ("waste", "age", "worst_age")
    )
    return (
        f" 90 % intervals from the observations: waste {waste}, mean age {age} s, "
        f"worst age {worst} s."
    )


def evidence_warnings(plan: Plan) -> tuple[str, ...]:
    """What the observations cannot tell about this plan."""
    evidence = plan.federation.evidence
    if evidence is None:
        return ()
    if not plan.extrapolates:
        return evidence.warnings
    reach = format_number(float(f"{evidence.longest:.4g}"))
    beyond = (
        f"The plan goes beyond the observations: its deadline is {plan.deadline:.4g} s, but no "
        f"client was ever waited for longer than {reach} s. What happens after {reach} s is an "
        "extrapolation of the fitted family. It can be wrong by more than the intervals say. Wait "
        "longer in some rounds and fit again, or plan within the observed range "
        "(trust='observed', --trust observed)."
    )
    return (beyond, *evidence.warnings)
