"""A plan by simulation in sentences: what was compared, and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cafe.planner.to_accuracy import ToAccuracy
from cafe.tuning.measured_setting import SEEN, MeasuredSetting, interval_of
from cafe.wording import format_count, format_interval, format_number

if TYPE_CHECKING:
    from cafe.tuning.policy_plan import PolicyPlan

RARELY = 0.5  # the share of successful rounds below which a warning says that most fail


def cost_sentence(plan: PolicyPlan) -> str:
    """The cost with its interval, and what it means."""
    text = f"The cost is {format_number(plan.cost)}, 90 % interval {_interval(plan.best)}"
    if not isinstance(plan.goal, ToAccuracy):
        return f"{text}: {plan.goal.describe()}."
    unit = "seconds" if plan.goal.spend == "time" else "client-seconds"
    return f"{text}: {unit} for as much progress as one update by all clients."


def runner_up_sentence(plan: PolicyPlan) -> str:
    """How much the second best setting costs more; what the others are."""
    other = plan.runner_up
    if other is None:
        return "All other settings that were simulated longest cost exactly the same."
    difference = other.minus(plan.best)
    low, high = interval_of(difference)
    way = "higher" if difference.mean >= 0 else "lower"
    return (
        f"With the same seeds, the cost of the runner-up ({describe_setting(other)}) is "
        f"{abs(difference.mean):.3g} {way}, 90 % interval "
        f"{low:.3g} to {high:.3g}. {_equals_sentence(plan)}"
    )


def counts_sentence(plan: PolicyPlan) -> str:
    """How much was simulated, and what was skipped."""
    found = plan.found
    text = (
        f"Simulated: {format_count(found.tried, 'setting')} in {format_count(found.runs, 'run')} "
        f"with {format_count(found.rounds, 'round')}."
    )
    if found.invalid:
        text += (
            f" {format_count(found.invalid, 'setting')} skipped because the numbers do not fit "
            f"together, the first with the reason: {found.reason}"
        )
    if found.stuck:
        text += f" {format_count(found.stuck, 'setting')} left out because a round never ends."
    return text


def describe_setting(setting: MeasuredSetting) -> str:
    """The searched numbers of a setting."""
    names = {each.name for each in setting.setting.asked}
    shown = {k: v for k, v in setting.parameters.items() if k in names} or setting.parameters
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def policy_plan_warnings(plan: PolicyPlan) -> tuple[str, ...]:
    """What a user should know before trusting the plan."""
    best, found = plan.best, []
    for asked in best.setting.asked:
        if asked.kind == "log" and asked.at_edge:
            found.append(
                f"{asked.name} = {best.parameters[asked.name]:g} is the {asked.at_edge} that was "
                f"searched, from {asked.low:.3g} to {asked.high:.3g}: a better one may lie beyond. "
                f"Try one with --keep {asked.name}=VALUE."
            )
    if best.excess > 0:
        found.append(
            f"No setting keeps all limits ({', '.join(map(str, best.goal.limits))}). This one "
            "breaks them least."
        )
    found += [
        f"The limit '{limit}' lies within the interval of what was measured, so it may be broken."
        for limit in best.uncertain_limits
    ]
    if best.unseen:
        found.append(
            f"{format_count(best.unseen, 'client')} were merged fewer than {SEEN:g} times in all "
            "runs, so the cost is a lower bound: in the long run it may be much higher. A longer "
            "deadline includes such clients; a limit on age makes the plan choose it."
        )
    success = plan.quantities["success_probability"].mean
    if success < RARELY:
        found.append(f"Most rounds fail: only {success:.2%} succeed.")
    low, high = best.interval
    if high - low > 0.1 * abs(best.cost):
        found.append("The cost is known to 5 % only. More clients or a limit make it clearer.")
    return tuple(found)


def _interval(setting: MeasuredSetting) -> str:
    return format_interval(*setting.interval)


def _equals_sentence(plan: PolicyPlan) -> str:
    count = len(plan.equals)
    if not count:
        return "It is clearly worse, as are all others."
    others = "; ".join(describe_setting(each) for each in plan.equals)
    return (
        f"{format_count(count, 'setting')} {'does' if count == 1 else 'do'} not differ "
        f"significantly from the chosen one: {others}."
    )
