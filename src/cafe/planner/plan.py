"""The plan: which quorum and deadline to use, what they cost, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from cafe.errors import InfeasibleError, InputError, check_flag, check_progress
from cafe.federation import Federation
from cafe.keywords import explain_keywords
from cafe.planner.cohort_search import Size, choose_cohort
from cafe.planner.deadline_search import DeadlineSearch, Optimum
from cafe.planner.goal_choice import GoalWord, choose_goal
from cafe.planner.goals import Goal
from cafe.planner.good_deadlines import good_deadlines
from cafe.planner.intervals import (
    Interval,
    Trust,
    describe_stay,
    extra_cost_beyond,
    plan_intervals,
    trust_limits,
)
from cafe.planner.limits import Limit, build_limits
from cafe.planner.rivals import Rival, usual_guesses
from cafe.planner.safe_quorum import with_safe_quorum
from cafe.planner.to_accuracy import ToAccuracy
from cafe.progress import ProgressCallback
from cafe.theory import Expectation
from cafe.theory.counts import check_quorum
from cafe.theory.presence_warnings import presence_warnings
from cafe.theory.setting import check_federation

RATE_ERRORS = (-0.5, -0.1, 0.1, 0.5)


@explain_keywords
def plan(
    federation: Federation,
    *,
    waste_price: float | None = None,
    broadcast_price: float | None = None,
    quorum: int | None = None,
    cohort: Size = None,
    target: Size = None,
    goal: Goal | GoalWord | None = None,
    at_most: Mapping[str, float] | str | None = None,
    at_least: Mapping[str, float] | str | None = None,
    close_when_all: bool = False,
    steps: int = 1,
    trust: Trust = "auto",
    progress: ProgressCallback | None = None,
) -> Plan:
    """Choose the deadline and, unless one is given, the quorum.

    Only the federation is needed. Without prices and without a goal, the plan needs the least time
    to a given accuracy: see :class:`~cafe.planner.ToAccuracy`.

    Args:
        federation: the clients; a presence is replaced by its long-run share of time.
        waste_price: extra mean age you accept to save one client-second of waste, the paper's
            alpha_w. If only one price is given, the other is 0.
        broadcast_price: extra mean age you accept to save one broadcast, the paper's alpha_b.
        quorum: keep this quorum and choose the deadline only.
        cohort: how many clients to invite in a round, drawn at random: a number, ``"auto"`` to let
            the plan choose it, or ``"all"``. If left out, all clients are invited; but if a number
            is given as target, the cohort is chosen.
        target: at how many reports to close a round: a number, ``"auto"`` to let the plan choose
            it, or ``"all"`` to close when all invited clients have reported. If left out, a round
            lasts until its deadline. A number must be reached in 90 % of rounds.
        goal: what to minimise: ``"time"`` (the default), ``"client-seconds"``, ``"j"`` (the
            paper's cost, which needs prices), or a goal such as a :class:`~cafe.planner.ToGap`.
        at_most: upper limits by name of quantity, such as ``{"waste": 30, "deadline": 2}``, or as
            text, ``"waste=30, deadline=2"``.
        at_least: lower limits, such as ``{"success_probability": 0.9}``.
        close_when_all: rounds close as soon as all clients have reported, instead of lasting until
            the deadline.
        steps: gradient steps that a client takes in a round; they take time if the federation's
            ``per_step`` is above 0.
        trust: for a fitted federation, ``"observed"`` limits the deadline to the longest observed
            time; ``"fitted"`` allows longer deadlines, which rest on the fitted family alone;
            ``"auto"`` allows them if they cost less on average over all federations that explain
            the observations about as well.
        progress: called with the finished share of the search, from 0 to 1.

    Raises:
        InfeasibleError: if no choice keeps the limits; the message names the limit that cannot be
            kept.

    Example:
        >>> import cafe
        >>> federation = cafe.Federation(clients=100, latency=cafe.Exponential(rate=1.0))
        >>> found = cafe.plan(federation)
        >>> found.quorum, round(found.deadline, 2)
        (35, 1.24)
        >>> found = cafe.plan(federation, waste_price=0.1, broadcast_price=1.0)
        >>> found.quorum, round(found.deadline, 3), round(found.cost, 3)
        (1, 0.026, 2.38)

        To get 10 reports in each round, invite more than 10 clients:

        >>> federation = cafe.Federation(clients=500, latency=cafe.LogNormal(mu=2.0, sigma=0.5))
        >>> found = cafe.plan(federation, waste_price=1.0, broadcast_price=10.0, target=10)
        >>> found.cohort, found.target, round(found.expected.round_duration, 1)
        (31, 10, 5.8)
    """
    check_federation(federation)
    check_flag("close_when_all", close_when_all)
    check_progress(progress)
    federation = federation.at_steps(steps)
    if quorum is not None:
        check_quorum(quorum, federation.clients)
    steady = federation.steady
    chosen, assumptions = choose_goal(steady, goal, waste_price, broadcast_price)
    limits = (*build_limits(at_most, at_least), *trust_limits(federation, trust))
    search = DeadlineSearch(steady, chosen, limits, quorum, close_when_all)
    warnings = presence_warnings(federation)
    if cohort is not None or target is not None:
        if close_when_all:
            raise InputError(
                "Give close_when_all, or a cohort or a target, not both. A target of 'all' closes "
                "a round when all invited clients have reported."
            )
        choosing, searching = _halves(progress)
        search = choose_cohort(search, cohort, target, choosing)
        warnings, progress = presence_warnings(federation, search.cohort), searching
    found = Plan(search, _optima(search, progress), warnings, assumptions)
    return _within_observed(found) if trust == "auto" and found.extrapolates else found


def _optima(search: DeadlineSearch, progress: ProgressCallback | None) -> tuple[Optimum, ...]:
    optima = tuple(search.optima(progress))
    if isinstance(search.goal, ToAccuracy) and search.quorum is None:
        return tuple(with_safe_quorum(search, optimum) for optimum in optima)
    return optima


def _within_observed(found: Plan) -> Plan:
    """The best plan within the observed times, if it costs less on average; else ``found``."""
    limits = (*found.search.limits, *trust_limits(found.federation, "observed"))
    search = replace(found.search, limits=limits)
    try:
        within = replace(found, search=search, local_optima=_optima(search, None))
    except InfeasibleError:
        return found
    extra = extra_cost_beyond(found, within)
    if not extra > 0:
        return found
    return replace(
        within, federation_warnings=(*found.federation_warnings, describe_stay(found, extra))
    )


def _halves(
    progress: ProgressCallback | None,
) -> tuple[ProgressCallback | None, ProgressCallback | None]:
    """Progress in two halves of the work."""
    if progress is None:
        return None, None
    return (lambda done: progress(done / 2)), (lambda done: progress((1 + done) / 2))


@dataclass(frozen=True)
class Robustness:
    """The plan's loss if the true rates are ``1 + rate_error`` times the assumed ones.

    Attributes:
        rate_error: the relative error of the rates.
        cost: the cost of the plan at the true rates.
        best_cost: the cost of the best plan for the true rates within the same limits; NaN if
            there is none.
        breaks: the limits that the plan breaks at the true rates.
    """

    rate_error: float
    cost: float
    best_cost: float
    breaks: tuple[Limit, ...] = ()

    @property
    def loss(self) -> float:
        """The plan's excess cost, as a share of the best cost."""
        return self.cost / self.best_cost - 1


@dataclass(frozen=True, eq=False)
class Plan:
    """A quorum and a deadline, with their expected quantities and an explanation.

    Attributes:
        search: the search that found the plan.
        local_optima: every local optimum, the best first.
        federation_warnings: warnings that hold for any plan of the federation.
        assumptions: what the plan assumes because it was not given, in sentences.
    """

    search: DeadlineSearch
    local_optima: tuple[Optimum, ...]
    federation_warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def quorum(self) -> int:
        """M, the reports needed for a round to succeed."""
        return self.local_optima[0].quorum

    @property
    def cohort(self) -> int:
        """C, how many clients to invite in a round: all of them unless a cohort was planned."""
        return self.search.invited

    @property
    def target(self) -> int | None:
        """K, the number of reports at which to close a round; None to wait until the deadline."""
        return self.search.closing

    @property
    def rules(self) -> dict[str, int | float]:
        """The arguments of :func:`cafe.policies.mcu` that run the plan: ``mcu(**plan.rules)``."""
        found: dict[str, int | float] = {"quorum": self.quorum, "deadline": self.deadline}
        if self.cohort < self.federation.clients:
            found["cohort"] = self.cohort
        if self.search.target is not None:
            found["target"] = self.search.target
        if self.search.close_when_all:
            found["close_when_all"] = True
        return found

    @property
    def deadline(self) -> float:
        """T, how long to wait."""
        return self.local_optima[0].deadline

    @property
    def cost(self) -> float:
        """The value of the goal: J unless another goal was given."""
        return self.local_optima[0].cost

    @property
    def federation(self) -> Federation:
        """The federation that was planned for.

        The time of gradient steps is part of its latency, and the presence part of its
        availability.
        """
        return self.search.federation

    @property
    def goal(self) -> Goal:
        """The goal that was minimised."""
        return self.search.goal

    @cached_property
    def expected(self) -> Expectation:
        """The expected quantities of the plan."""
        return self.search.expect(self.quorum, self.deadline)

    @cached_property
    def intervals(self) -> dict[str, Interval]:
        """The 90 % intervals of the cost and of the main quantities, by name.

        They say how well the observations behind a fitted federation determine the quantities;
        empty if the federation was not fitted.
        """
        return plan_intervals(self)

    @property
    def extrapolates(self) -> bool:
        """Whether the deadline is longer than the longest time that was observed."""
        evidence = self.federation.evidence
        return evidence is not None and self.deadline > (1 + 1e-9) * evidence.longest

    @cached_property
    def binding(self) -> tuple[Limit, ...]:
        """The active limits: those that the plan keeps with equality."""
        return tuple(x for x in self.search.limits if abs(x.excess(self.expected)) < 1e-6)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the ways in which the model behind the plan fits badly."""
        from cafe.planner.explain import plan_warnings

        return plan_warnings(self)

    @cached_property
    def explanation(self) -> tuple[str, ...]:
        """The plan in four sentences: what to do, what it costs, why, and what is to be gained."""
        from cafe.planner.explain import explain_plan

        return explain_plan(self)

    @cached_property
    def goal_notes(self) -> tuple[str, ...]:
        """The goal in words: what was assumed and how much it matters, or what the prices mean."""
        from cafe.planner.explain import explain_goal

        return explain_goal(self)

    @cached_property
    def good_deadlines(self) -> tuple[float, float]:
        """The shortest and longest deadline, in seconds, with a cost at most 5 % above the least.

        They surround the plan's deadline, at the plan's quorum. The second is infinite if longer
        deadlines never cost more than that.
        """
        return good_deadlines(self.search, self.local_optima[0])

    @cached_property
    def rivals(self) -> tuple[Rival, ...]:
        """Usual guesses and their costs, for comparison."""
        return usual_guesses(self.search)

    def sensitivity(self, progress: ProgressCallback | None = None) -> tuple[Robustness, ...]:
        """The plan's losses if the true rates are 10 or 50 % lower or higher than assumed.

        Args:
            progress: called with the finished share of the work, from 0 to 1.
        """
        rows = []
        for start, error in enumerate(RATE_ERRORS):

            def share(done: float, start: int = start) -> None:
                if progress:
                    progress((start + done) / len(RATE_ERRORS))

            model = self.search.sketch
            truth = replace(
                model,
                federation=model.federation.scaled(1 / (1 + error)),
                turnouts=None if model.turnouts is None else {},
            )
            expected = truth.expect(self.quorum, self.deadline)
            cost = self.goal.cost(expected)
            broken = tuple(limit for limit in self.search.limits if not limit.keeps(expected))
            try:
                best = truth.optima(share)[0].cost
            except InfeasibleError:
                best = float("nan")
            # A plan that keeps every limit is at least as good, up to the search's precision.
            rows.append(Robustness(error, cost, best if broken else min(best, cost), broken))
        return tuple(rows)

    def to_dict(self) -> dict[str, object]:
        """The plan as plain values, ready for JSON."""
        extra = {k: value for k, value in self.rules.items() if k in ("cohort", "target")}
        return {
            "quorum": self.quorum,
            "deadline": self.deadline,
            **extra,
            "cost": self.cost,
            "goal": self.goal.describe(),
            "expected": self.expected.to_dict(),
            "intervals": {name: [x.low, x.high] for name, x in self.intervals.items()},
            "extrapolates": self.extrapolates,
            "local_optima": [
                {"quorum": o.quorum, "deadline": o.deadline, "cost": o.cost}
                for o in self.local_optima
            ],
            "warnings": list(self.warnings),
            "explanation": list(self.explanation),
            "goal_notes": list(self.goal_notes),
            "good_deadlines": list(self.good_deadlines),
            "binding": [str(limit) for limit in self.binding],
            "rivals": [
                {
                    "name": r.name,
                    "quorum": r.expected.quorum,
                    "deadline": r.expected.deadline,
                    "cost": r.cost,
                    "breaks": [str(limit) for limit in r.breaks],
                }
                for r in self.rivals
            ],
        }
