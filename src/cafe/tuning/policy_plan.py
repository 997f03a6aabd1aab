"""The plan of a policy that no formula covers: its numbers, chosen by simulation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter, signature
from typing import Any

from cafe.analysis.statistics import Estimate
from cafe.errors import InputError, check_progress, check_type, check_whole, did_you_mean
from cafe.federation import Federation
from cafe.keywords import explain_keywords
from cafe.planner.goal_choice import GoalWord, choose_goal
from cafe.planner.goals import Goal, Prices
from cafe.planner.limits import build_limits
from cafe.planner.to_accuracy import ToAccuracy
from cafe.policies import recipes, resolve, scheme_of
from cafe.progress import ProgressCallback
from cafe.randomness import check_seed
from cafe.rounds.hierarchy import Hierarchy
from cafe.rounds.policy import Policy
from cafe.task import Task
from cafe.theory.setting import check_federation
from cafe.tuning.halving import SEED_BLOCK, HalvingSearch, SearchResult, SearchSize, find_best
from cafe.tuning.measured_setting import MeasuredSetting, SearchGoal, check_limits, interval_of
from cafe.tuning.run_totals import RunLength, RunRequest
from cafe.tuning.search_points import (
    MOST_NUMBERS,
    PolicySetting,
    Ranges,
    make_setting,
    sequence_of_settings,
)
from cafe.tuning.spaces import space_of
from cafe.tuning.stand_in_task import unmet_needs
from cafe.workers import LocalProcesses

_NO_LENGTH = RunLength(0.0, 1)  # every stage of the search sets it


@explain_keywords
def plan_policy(
    federation: Federation,
    policy: str,
    *,
    waste_price: float | None = None,
    broadcast_price: float | None = None,
    goal: Goal | GoalWord | None = None,
    at_most: Mapping[str, float] | str | None = None,
    at_least: Mapping[str, float] | str | None = None,
    keep: Mapping[str, Any] | None = None,
    steps: int = 1,
    task: Task | None = None,
    tries: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: ProgressCallback | None = None,
) -> PolicyPlan:
    """Choose the numbers of any policy by simulation: its deadline, quorum, cohort, buffer.

    Settings are simulated without a model, all with the same seeds. The best third is simulated
    longer and with more seeds, the best of them is refined, and finalists get fresh seeds. Use
    :func:`cafe.planner.plan` for MCU: it calculates the same in milliseconds.

    Args:
        federation: the clients.
        policy: the name of a recipe, such as ``"fedbuff"`` or ``"my_policies:own"``.
        waste_price: extra mean age you accept to save one client-second of waste.
        broadcast_price: extra mean age you accept to save one broadcast.
        goal: what to minimise: ``"time"`` (the default), ``"client-seconds"``, ``"j"`` (needs
            prices), or a :class:`~cafe.planner.Prices` or :class:`~cafe.planner.ToAccuracy`.
        at_most: upper limits by name of quantity, such as ``{"waste": 30}``, or as text.
        at_least: lower limits, such as ``{"success_probability": 0.9}``.
        keep: arguments of the recipe that are not searched, by name.
        steps: gradient steps that a client takes in a round, if the recipe has ``steps``.
        task: what is trained for policies that look at training; a small stand-in if left out.
        tries: settings of the first stage; 16 to 48 if left out, by how many numbers are searched.
        seed: chooses the random numbers of the runs.
        jobs: the number of processes.
        progress: called with the finished share of the work, from 0 to 1.

    Raises:
        InfeasibleError: if no setting works.

    Example:
        >>> import cafe
        >>> federation = cafe.Federation(clients=20, latency=cafe.Exponential(rate=1.0))
        >>> found = cafe.plan_policy(federation, "salvage", tries=4)
        >>> found.name, sorted(found.parameters)
        ('salvage', ['deadline'])
        >>> found.low < found.cost < found.high
        True
    """
    check_federation(federation)
    check_progress(progress)
    check_type("task", task, (Task, type(None)), "a cafe.Task, or None")
    check_whole("tries", 1 if tries is None else tries)
    check_whole("jobs", jobs)
    recipe = resolve(policy)
    kept = _checked_keep(policy, recipe, keep)
    steady = federation.at_steps(steps).steady
    cost, assumptions = _measurable(*choose_goal(steady, goal, waste_price, broadcast_price))
    scheme = scheme_of(recipe)
    if scheme is not None and scheme.kind == "hierarchical":
        raise _two_levels(policy)
    asynchronous = scheme is not None and scheme.kind == "asynchronous"
    ranges = Ranges(steady, kept, _work(policy, recipe, federation, steps, kept), asynchronous)
    space = space_of(policy, recipe, kept)

    def at(point: Sequence[float]) -> PolicySetting:
        return make_setting(space, ranges, point)

    middle = at([0.5] * MOST_NUMBERS)
    needs = _needs(policy, recipe, middle)
    limits = build_limits(at_most, at_least)
    check_limits(limits, policy, [*middle.parameters])
    if needs and task is None:
        assumptions = (*assumptions, _stand_in(policy, needs))
    request = RunRequest(federation, policy, {}, task, _NO_LENGTH, 0)
    with LocalProcesses(jobs).open() as calls:
        search = HalvingSearch(
            request, SearchGoal(cost, limits, asynchronous), calls, check_seed(seed) * SEED_BLOCK
        )
        size = SearchSize.of(federation.clients, len(middle.asked), tries)
        found = find_best(search, sequence_of_settings(space, ranges), at, size, progress)
    return PolicyPlan(policy, federation, found, assumptions)


@dataclass(frozen=True, eq=False)
class PolicyPlan:
    """The numbers of a policy, with their measured cost and what was compared.

    Attributes:
        name: the name of the policy.
        federation: the clients.
        found: the finalists of the search, and how much was simulated.
        assumptions: what the plan assumes because it was not given, in sentences.
    """

    name: str
    federation: Federation
    found: SearchResult
    assumptions: tuple[str, ...] = ()

    @property
    def best(self) -> MeasuredSetting:
        """The chosen setting, as measured with seeds that no choice used before."""
        return self.found.finalists[0]

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the recipe."""
        return self.best.parameters

    @property
    def policy(self) -> Policy:
        """The policy with these arguments."""
        made = resolve(self.name)(**self.parameters)
        assert isinstance(made, Policy)
        return made

    @property
    def goal(self) -> Prices | ToAccuracy:
        """The goal that was minimised."""
        return self.best.goal.cost

    @property
    def cost(self) -> float:
        """The measured value of the goal."""
        return self.best.cost

    @property
    def low(self) -> float:
        """The lower end of the 90 % interval of the cost."""
        return self.best.interval[0]

    @property
    def high(self) -> float:
        """The upper end of the 90 % interval of the cost."""
        return self.best.interval[1]

    @property
    def quantities(self) -> dict[str, Estimate]:
        """The measured quantities by name."""
        return self.best.quantities

    @property
    def runner_up(self) -> MeasuredSetting | None:
        """The second best finalist; None if all others were equal."""
        return self.found.finalists[1] if len(self.found.finalists) > 1 else None

    @cached_property
    def equals(self) -> tuple[MeasuredSetting, ...]:
        """The other finalists that are not significantly worse than the chosen setting."""
        return tuple(x for x in self.found.finalists[1:] if not x.is_worse_than(self.best))

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know before trusting the plan."""
        from cafe.tuning.plan_sentences import policy_plan_warnings

        return policy_plan_warnings(self)

    @property
    def python(self) -> str:
        """The policy as a line of Python."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        if self.name in recipes():
            return f"cafe.policies.{self.name}({given})"
        return f'cafe.policies.resolve("{self.name}")({given})'

    @property
    def toml(self) -> str:
        """The policy as a table of a scenario."""
        lines = [
            f"{name} = {json.dumps(value)}"
            for name, value in self.parameters.items()
            if value is not None
        ]
        return "\n".join(["[policy]", f'name = "{self.name}"', *lines])

    def to_dict(self) -> dict[str, object]:
        """The plan as plain values, ready for JSON."""
        found = self.found
        return {
            "policy": self.name,
            "parameters": self.parameters,
            "cost": self.cost,
            "interval": [self.low, self.high],
            "goal": self.goal.describe(),
            "measured": {name: x.mean for name, x in self.quantities.items()},
            "intervals": {name: [*interval_of(x)] for name, x in self.quantities.items()},
            "finalists": [
                {
                    "parameters": each.parameters,
                    "cost": each.cost,
                    "difference": each.minus(self.best).mean,
                    "interval": [*interval_of(each.minus(self.best))],
                    "worse": each.is_worse_than(self.best),
                }
                for each in found.finalists[1:]
            ],
            "tried": found.tried,
            "invalid": found.invalid,
            "stuck": found.stuck,
            "rounds": found.rounds,
            "runs": found.runs,
            "warnings": list(self.warnings),
            "assumptions": list(self.assumptions),
            "python": self.python,
            "toml": self.toml,
        }


def _measurable(
    goal: Goal, assumptions: tuple[str, ...]
) -> tuple[Prices | ToAccuracy, tuple[str, ...]]:
    if not isinstance(goal, Prices | ToAccuracy):
        raise InputError(
            "A plan by simulation measures J or the time or client-seconds per full update. Got "
            f"the goal {goal!r}, which needs formulas: give prices, 'time' or 'client-seconds'."
        )
    return goal, assumptions


def _checked_keep(
    name: str, recipe: Callable[..., Any], keep: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The kept arguments; an error for those that the recipe does not have."""
    if keep is None:
        return {}
    if not isinstance(keep, Mapping):
        raise InputError(
            f"keep must map arguments of the policy to values, such as {{'cohort': 10}}. Got "
            f"{keep!r}."
        )
    known = signature(recipe).parameters
    for each in keep:
        if each not in known:
            raise InputError(
                f"The policy {name} has no argument '{each}' to keep. {did_you_mean(each, known)}"
            )
    return dict(keep)


def _work(
    name: str,
    recipe: Callable[..., Any],
    federation: Federation,
    steps: int,
    kept: Mapping[str, Any],
) -> dict[str, Any]:
    """The argument for the number of steps, if the recipe has one and it matters."""
    if "steps" in kept or "epochs" in kept:
        return {}
    if "steps" not in signature(recipe).parameters:
        if steps != 1:
            raise InputError(
                f"The policy {name} has no argument 'steps', so a plan cannot be for {steps} "
                "steps. Leave --steps out."
            )
        return {}
    default = signature(recipe).parameters["steps"].default
    if steps == default or (steps == 1 and not federation.has_step_time):
        return {}
    return {"steps": steps}


def _needs(name: str, recipe: Callable[..., Any], setting: PolicySetting) -> tuple[str, ...]:
    """What the policy needs that exists only with a task; an error if it cannot be planned."""
    missing = [
        each.name
        for each in signature(recipe).parameters.values()
        if each.default is Parameter.empty
        and each.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        and each.name not in setting.parameters
    ]
    if missing:
        values = " ".join(f"--keep {each}=VALUE" for each in missing)
        raise InputError(
            f"{' and '.join(missing)} of the policy {name} cannot be planned: without a task "
            f"nothing depends on it, or it depends on your model. Give a value: {values}."
        )
    try:
        made = recipe(**setting.parameters)
    except InputError:  # of this one setting; the search counts such settings
        return ()
    if isinstance(made, Hierarchy):
        raise _two_levels(name)
    return unmet_needs(made)


def _two_levels(name: str) -> InputError:
    return InputError(
        f"The policy {name} has two levels, whose costs no goal of a plan describes. Simulate some "
        "settings of it in a sweep: cafe sweep."
    )


def _stand_in(name: str, needs: tuple[str, ...]) -> str:
    return (
        f"The policy {name} needs {' and '.join(needs)}, so a small stand-in model was trained. If "
        "the policy chooses clients by them, your task may lead to other costs."
    )
