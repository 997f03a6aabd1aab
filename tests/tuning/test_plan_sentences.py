"""A plan by simulation in words and as a table, from runs that are made up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.planner import Prices, ToAccuracy
from cafe.tuning import MeasuredSetting, PolicyPlan, SearchResult
from cafe.tuning.measured_setting import SearchGoal
from cafe.tuning.plan_sentences import (
    cost_sentence,
    counts_sentence,
    policy_plan_warnings,
    runner_up_sentence,
)
from cafe.tuning.policy_plan_table import policy_plan_table
from cafe.tuning.run_totals import RunTotals
from cafe.tuning.search_points import Asked, PolicySetting
from tests.support.terminal import text_of

J = SearchGoal(Prices(1.0, 0.0), (), False)


def measured(
    deadline: float, waste: float, share: float = 0.5, goal: SearchGoal = J, **more: Any
) -> MeasuredSetting:
    asked = (Asked("deadline", share, 0.1, 10.0, "log"),)
    names = "rounds updates time work jobs held used processing_waste"
    amounts = dict.fromkeys(names.split(), 10.0)
    runs = []
    for seed in range(8):
        noise = 0.1 * np.cos(seed)
        own = amounts | {"area": 10.0, "waste": 10 * (waste + noise)} | more
        runs.append(RunTotals(own, np.full(4, more.get("merged", 10.0)), seed))
    return MeasuredSetting(PolicySetting({"deadline": deadline}, asked), goal, (*runs,))


def plan(*finalists: MeasuredSetting, **counts: Any) -> PolicyPlan:
    given: dict[str, Any] = {"tried": 9, "invalid": 0, "stuck": 0, "reason": ""} | counts
    found = SearchResult((*finalists,), rounds=1234, runs=56, **given)
    return PolicyPlan("salvage", cafe.Federation(4, cafe.Exponential(rate=1.0)), found)


def test_sentences() -> None:
    made = plan(measured(0.5, 2.0), measured(0.7, 3.0))
    assert "90 % interval" in cost_sentence(made)
    assert "J = 1 x waste" in cost_sentence(made)
    said = runner_up_sentence(made)
    assert "the cost of the runner-up (deadline 0.7) is 1 higher, 90 % interval" in said
    assert said.endswith("It is clearly worse, as are all others.")
    same = plan(measured(0.5, 2.0), measured(0.7, 2.0))
    assert "1 setting does not differ significantly" in runner_up_sentence(same)
    assert "exactly the same" in runner_up_sentence(plan(measured(0.5, 2.0)))
    goal = SearchGoal(ToAccuracy("client-seconds", 1.0, 0.0), (), False)
    assert "client-seconds for as much progress" in cost_sentence(
        plan(measured(1.0, 1.0, goal=goal))
    )


def test_counts() -> None:
    assert counts_sentence(plan(measured(0.5, 2.0))) == (
        "Simulated: 9 settings in 56 runs with 1,234 rounds."
    )
    more = plan(measured(0.5, 2.0), invalid=1, stuck=2, reason="The goal is too large.")
    assert "1 setting skipped because" in counts_sentence(more)
    assert "The goal is too large." in counts_sentence(more)
    assert "2 settings left out because a round never ends" in counts_sentence(more)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (measured(0.1, 2.0, share=0.01), "deadline = 0.1 is the shortest that was searched"),
        (measured(10.0, 2.0, share=0.99), "is the longest that was searched"),
        (measured(0.5, 2.0, merged=0.5), "4 clients were merged fewer than 5 times"),
        (measured(0.5, 2.0, updates=4.0), "Most rounds fail: only 40.00% succeed"),
    ],
)
def test_warnings(setting: MeasuredSetting, words: str) -> None:
    assert any(words in warning for warning in policy_plan_warnings(plan(setting)))


def test_no_warning_without_a_reason() -> None:
    assert policy_plan_warnings(plan(measured(0.5, 2.0))) == ()


def test_table() -> None:
    made = plan(measured(0.5, 2.0), measured(0.7, 3.0), measured(0.6, 2.0))
    shown = text_of(policy_plan_table(made))
    for words in (
        "salvage   deadline 0.5   cost",
        "In Python: cafe.policies.salvage(deadline=0.5)",
        '[policy]\nname = "salvage"\ndeadline = 0.5',
        "clearly worse",
        "not clearly worse",
        "client-s per update",
        "1,234 rounds",
    ):
        assert words in shown
