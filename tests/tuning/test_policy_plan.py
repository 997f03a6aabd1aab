"""Plans by simulation: against the formulas for MCU, and with every kind of policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.errors import InfeasibleError, InputError
from cafe.planner import ToGap
from cafe.tuning import PolicyPlan, halving, plan_policy

FLEET = cafe.Federation(15, cafe.Exponential(rate=1.0))
FLEETS: dict[str, Callable[[], cafe.Federation]] = {
    "equal exponential": lambda: cafe.Federation(20, cafe.Exponential(rate=1.0)),
    "phones": lambda: cafe.phones(15, seed=1, batch=20),
    "unequal log-normal": lambda: cafe.Federation(15, cafe.LogNormal(np.linspace(0, 1, 15), 0.5)),
}
GOALS: dict[str, dict[str, Any]] = {
    "time": {},
    "j": {"waste_price": 0.1, "broadcast_price": 1.0},
}


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    """Few seeds and few refinements, except where a cost must be precise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(halving, "CHOICE_SEEDS", (4,))
        patch.setattr(halving, "REPORT_SEEDS", (4,))
        patch.setattr(halving, "MORE_SEEDS", 4)
        patch.setattr(halving, "FACTORS", (1.3,))
        yield


@pytest.fixture(scope="module")
def salvage(quick: None) -> PolicyPlan:
    return plan_policy(FLEET, "salvage", tries=6)


@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("fleet", FLEETS)
def test_mcu_agrees_with_the_formulas(
    fleet: str, goal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The formula's cost of the chosen setting is in the interval, and hardly above the least."""
    monkeypatch.setattr(halving, "REPORT_SEEDS", (16,))
    monkeypatch.setattr(halving, "FACTORS", (1.3, 1.1, 1.03))
    federation, given = FLEETS[fleet](), GOALS[goal]
    by_formula = cafe.plan(federation, **given)
    found = plan_policy(federation, "mcu", tries=20, **given)
    exact = cafe.expect(federation, **found.parameters)
    cost = by_formula.goal.cost(exact)
    assert found.low < cost < found.high
    assert cost < 1.03 * by_formula.cost
    for name in ("round_duration", "success_probability", "client_seconds", "waste", "age"):
        measured = found.quantities[name]
        assert measured.mean == pytest.approx(
            getattr(exact, name), abs=4 * max(measured.error, 0.0) + 0.01 * getattr(exact, name)
        )


def test_a_plan_is_deterministic_and_complete(salvage: PolicyPlan) -> None:
    again = plan_policy(FLEET, "salvage", tries=6)
    assert again.to_dict() == salvage.to_dict()
    assert salvage.low < salvage.cost < salvage.high
    made = salvage.to_dict()
    assert made["python"] == f"cafe.policies.salvage(deadline={salvage.parameters['deadline']})"
    assert salvage.policy.name == "salvage"
    assert made["measured"]["waste"] == 0, "salvage wastes nothing"  # type: ignore[index]
    assert [*salvage.equals] == [
        each for each in salvage.found.finalists[1:] if not each.is_worse_than(salvage.best)
    ]
    assert salvage.goal.describe() == "time per full update"


def test_processes_change_nothing(salvage: PolicyPlan) -> None:
    assert plan_policy(FLEET, "salvage", tries=6, jobs=2).to_dict() == salvage.to_dict()


def test_another_seed_is_another_sample(salvage: PolicyPlan) -> None:
    other = plan_policy(FLEET, "salvage", tries=6, seed=1)
    assert other.cost != salvage.cost
    assert other.low < salvage.high
    assert salvage.low < other.high


def test_a_deadline_shorter_than_the_plan_costs_more(salvage: PolicyPlan) -> None:
    short = salvage.parameters["deadline"] / 8
    kept = plan_policy(FLEET, "salvage", keep={"deadline": short})
    assert kept.parameters == {"deadline": short}
    assert kept.found.tried == 1
    assert kept.runner_up is None
    assert kept.low > salvage.high


def test_limits_are_kept(salvage: PolicyPlan) -> None:
    most = 0.5 * salvage.quantities["client_seconds"].mean
    found = plan_policy(FLEET, "salvage", tries=6, at_most={"client_seconds": most})
    assert found.quantities["client_seconds"].mean <= 1.02 * most
    assert found.cost > salvage.cost
    assert found.parameters["deadline"] < salvage.parameters["deadline"]
    limit = f"deadline={0.6 * salvage.parameters['deadline']}"
    capped = plan_policy(FLEET, "salvage", tries=6, at_most=limit)
    assert capped.parameters["deadline"] <= 0.6 * salvage.parameters["deadline"]


def test_a_limit_that_cannot_be_kept_is_a_warning() -> None:
    kept: dict[str, Any] = {"keep": {"deadline": 0.5}}
    found = plan_policy(FLEET, "salvage", **kept, at_most={"round_duration": 0.4})
    assert any("No setting keeps all limits" in warning for warning in found.warnings)
    age = found.quantities["age"].mean
    close = plan_policy(FLEET, "salvage", **kept, at_most={"age": 0.999 * age})
    assert any("may be broken" in warning for warning in close.warnings)


def test_policies_that_look_at_training_get_a_stand_in() -> None:
    found = plan_policy(FLEET, "tifl", tries=2, keep={"tiers": 3, "deadline": 3.0, "interval": 5})
    assert "needs losses, so a small stand-in model was trained" in found.assumptions[-1]
    task = cafe.testing.check.small_task(15)
    given = {"tiers": 3, "deadline": 3.0, "interval": 5, "cohort": 2}
    own = plan_policy(FLEET, "tifl", keep=given, task=task)
    assert not any("stand-in" in sentence for sentence in own.assumptions)


def test_asynchronous_policies_and_client_seconds() -> None:
    found = plan_policy(FLEET, "fedasync", tries=3, goal="client-seconds")
    assert found.quantities["success_probability"].mean == 1
    assert found.parameters.keys() == {"concurrency", "deadline"}


def test_steps_are_part_of_the_policy_if_they_take_time() -> None:
    slow = replace(FLEET, per_step=0.1)
    given: dict[str, Any] = {"concurrency": 5, "goal": 2}
    found = plan_policy(slow, "fedbuff", keep=given, steps=5)
    assert found.parameters["steps"] == 5
    assert "steps" not in plan_policy(FLEET, "fedbuff", keep=given).parameters
    assert plan_policy(slow, "fedbuff", keep=given).parameters["steps"] == 1


def test_own_policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "import cafe",
        "def patient(*, quorum, deadline):",
        "    return cafe.policies.mcu(quorum=quorum, deadline=deadline)",
    ]
    (tmp_path / "planned_policies.py").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    found = plan_policy(FLEET, "planned_policies:patient", tries=6)
    assert found.python.startswith('cafe.policies.resolve("planned_policies:patient")(deadline=')


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "unknown policy": ("fedbuf", {}, "Did you mean 'fedbuff'"),
    "two levels": ("hierarchical", {}, "has two levels"),
    "unknown number": ("mcu", {"keep": {"quorumm": 3}}, "Did you mean 'quorum'"),
    "kept text": ("mcu", {"keep": "quorum=3"}, "keep must map"),
    "number of the model": ("flanp", {}, "--keep threshold=VALUE"),
    "goal with constants": (
        "mcu",
        {"goal": ToGap.from_ratio(1.0)},
        "measures J or the time or client-seconds",
    ),
    "limit of the formulas": ("mcu", {"at_most": {"worst_age": 3}}, "has no limit on worst_age"),
    "limit on what is not there": ("salvage", {"at_least": {"quorum": 3}}, "has no quorum"),
    "steps of nothing": ("fedtune", {"steps": 5}, "has no argument 'steps'"),
    "no tries": ("mcu", {"tries": 0}, "tries must be a whole number from 1 up"),
}


@pytest.mark.parametrize(("name", "given", "words"), WRONG.values(), ids=WRONG)
def test_mistakes(name: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        plan_policy(FLEET, name, **given)


def test_numbers_that_do_not_fit_together() -> None:
    with pytest.raises(InfeasibleError, match=r"The first reason: .*concurrency"):
        plan_policy(FLEET, "fedbuff", keep={"concurrency": 16, "goal": 2})


def test_progress_reaches_the_end() -> None:
    shares = list[float]()
    plan_policy(FLEET, "salvage", tries=3, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
