"""The plan: the quorum and deadline to use, what they will cost, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cafe.errors import InfeasibleError, InputError
from cafe.federation import Federation, total
from cafe.planner.deadline_search import DeadlineSearch, Optimum, Progress
from cafe.planner.goals import Goal, Prices
from cafe.planner.limits import Limit, build_limits
from cafe.theory import Expectation, expect
from cafe.theory.counts import check_quorum
from cafe.theory.presence_warnings import presence_warnings
from cafe.theory.setting import check_federation

RATE_ERRORS = (-0.5, -0.1, 0.1, 0.5)


def plan(
    federation: Federation,
    *,
    waste_price: float | None = None,
    broadcast_price: float | None = None,
    quorum: int | None = None,
    goal: Goal | None = None,
    at_most: Mapping[str, float] | None = None,
    at_least: Mapping[str, float] | None = None,
    close_when_all: bool = False,
    steps: int = 1,
    progress: Progress | None = None,
) -> Plan:
    """Choose the deadline and, unless it is given, the quorum.

    Args:
        federation: who takes part; a presence counts by its long-run share of time.
        waste_price: age one would bear to save one client-second of waste, the paper's alpha_w.
        broadcast_price: age one would bear to save one broadcast, the paper's alpha_b.
        quorum: keep this quorum and choose the deadline only.
        goal: what to make small instead of J: a :class:`~cafe.planner.ToGap`.
        at_most: upper limits by name of quantity, such as ``{"waste": 30, "deadline": 2}``.
        at_least: lower limits, such as ``{"success_probability": 0.9}``.
        close_when_all: rounds close as soon as everybody has reported, instead of lasting until the
            deadline.
        steps: gradient steps that a client takes in a round; they take time where the federation's
            ``per_step`` is above 0.
        progress: called with the finished share of the search.

    Raises:
        InfeasibleError: where no choice keeps the limits; the message names the one that binds.
    """
    check_federation(federation)
    federation = federation.at_steps(steps)
    if quorum is not None:
        check_quorum(quorum, federation.clients)
    if goal is None:
        if waste_price is None or broadcast_price is None:
            raise InputError(
                "A plan needs to know what waste and broadcasts are worth: give both prices, in "
                "seconds of age one would bear "
                "to save a client-second or a broadcast, or another goal."
            )
        goal = Prices(waste_price, broadcast_price)
    elif waste_price is not None or broadcast_price is not None:
        raise InputError("Give either prices or a goal, not both: prices are the goal J.")
    search = DeadlineSearch(
        federation.steady, goal, build_limits(at_most, at_least), quorum, close_when_all
    )
    return Plan(search, tuple(search.optima(progress)), presence_warnings(federation))


@dataclass(frozen=True)
class Rival:
    """A choice that people make without a plan, and the limits that it would break."""

    name: str
    cost: float
    expected: Expectation
    breaks: tuple[Limit, ...]


@dataclass(frozen=True)
class Robustness:
    """What the plan loses if true rates are ``1 + rate_error`` times the assumed ones.

    Attributes:
        rate_error: the relative error of the rates.
        cost: of the plan, at the true rates.
        best_cost: of the best plan for the true rates within the same limits; NaN where none is.
        breaks: the limits that the plan breaks at the true rates.
    """

    rate_error: float
    cost: float
    best_cost: float
    breaks: tuple[Limit, ...] = ()

    @property
    def loss(self) -> float:
        """The plan's excess cost, as a share of the best."""
        return self.cost / self.best_cost - 1


@dataclass(frozen=True, eq=False)
class Plan:
    """A quorum and a deadline, with what to expect and why.

    Attributes:
        search: what was searched, and for what.
        local_optima: every local optimum, the best first.
        federation_warnings: warnings that hold for any plan of the federation.
    """

    search: DeadlineSearch
    local_optima: tuple[Optimum, ...]
    federation_warnings: tuple[str, ...] = ()

    @property
    def quorum(self) -> int:
        """M, reports needed for a round to succeed."""
        return self.local_optima[0].quorum

    @property
    def deadline(self) -> float:
        """T, how long to wait."""
        return self.local_optima[0].deadline

    @property
    def cost(self) -> float:
        """The goal's value here: J unless another goal was asked for."""
        return self.local_optima[0].cost

    @property
    def federation(self) -> Federation:
        """Whom the plan is for: steps are part of its latency, presence of its availability."""
        return self.search.federation

    @property
    def goal(self) -> Goal:
        """What was made small."""
        return self.search.goal

    @cached_property
    def expected(self) -> Expectation:
        """What to expect of the plan."""
        return self.search.expect(self.quorum, self.deadline)

    @cached_property
    def binding(self) -> tuple[Limit, ...]:
        """The limits that hold the plan back: those it just keeps."""
        return tuple(x for x in self.search.limits if abs(x.excess(self.expected)) < 1e-6)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Where the plan leaves the ground its model stands on."""
        from cafe.planner.explain import plan_warnings

        return plan_warnings(self)

    @cached_property
    def explanation(self) -> tuple[str, str, str]:
        """The plan in three sentences: what, what it costs, why."""
        from cafe.planner.explain import explain_plan

        return explain_plan(self)

    @cached_property
    def rivals(self) -> tuple[Rival, ...]:
        """The choices people make without a plan, at the same goal."""
        clients, choices = self.federation.clients, []
        means = np.broadcast_to(self.federation.latency.mean(), (self.federation.kinds,))
        mean = total(self.federation.number, means) / clients
        target = clients if self.search.close_when_all else None
        if np.isfinite(mean):
            choices.append(("quorum 1, deadline = mean", 1, mean, target))
        choices.append(
            ("quorum 1, deadline = p95", 1, pooled_quantile(self.federation, 0.95), target)
        )
        last = float(np.max(self.federation.latency.quantile(1 - 1e-3 / clients)))
        choices.append(("wait for all, closing early", clients, last, clients))
        rivals = []
        for name, quorum, deadline, closing in choices:
            expected = expect(self.federation, quorum=quorum, deadline=deadline, target=closing)
            broken = tuple(x for x in self.search.limits if not x.keeps(expected))
            rivals.append(Rival(name, self.goal.cost(expected), expected, broken))
        return tuple(rivals)

    def sensitivity(self, progress: Progress | None = None) -> tuple[Robustness, ...]:
        """What the plan loses if rates are off by 10 or 50 %, either way."""
        rows = []
        for start, error in enumerate(RATE_ERRORS):

            def share(done: float, start: int = start) -> None:
                if progress:
                    progress((start + done) / len(RATE_ERRORS))

            truth = replace(self.search, federation=self.federation.scaled(1 / (1 + error)))
            expected = truth.expect(self.quorum, self.deadline)
            cost = self.goal.cost(expected)
            broken = tuple(limit for limit in self.search.limits if not limit.keeps(expected))
            try:
                best = truth.optima(share)[0].cost
            except InfeasibleError:
                best = float("nan")
            # What keeps every limit cannot be beaten by more than the search's own precision.
            rows.append(Robustness(error, cost, best if broken else min(best, cost), broken))
        return tuple(rows)

    def to_dict(self) -> dict[str, object]:
        """The plan as plain values, ready for JSON."""
        return {
            "quorum": self.quorum,
            "deadline": self.deadline,
            "cost": self.cost,
            "goal": self.goal.describe(),
            "expected": self.expected.to_dict(),
            "local_optima": [
                {"quorum": o.quorum, "deadline": o.deadline, "cost": o.cost}
                for o in self.local_optima
            ],
            "warnings": list(self.warnings),
            "explanation": list(self.explanation),
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


def pooled_quantile(federation: Federation, share: float) -> float:
    """The time by which that share of all reports that ever come has come."""
    weight = federation.number * np.broadcast_to(federation.availability, (federation.kinds,))
    low, high = 0.0, float(np.max(federation.latency.quantile(share)))
    for _ in range(60):
        middle = 0.5 * (low + high)
        enough = total(weight, federation.latency.cdf(middle))
        low, high = (low, middle) if enough >= share * weight.sum() else (middle, high)
    return high
