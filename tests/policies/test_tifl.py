"""TiFL: tiers from response times, credits, and the chances of tiers, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.errors import InputError
from cafe.policies import tifl
from cafe.policies.tifl import chances, tiers_of
from cafe.rounds import Policy
from tests.support.federations import taking
from tests.support.ledgers import ledger_of

TIMES = [3.0, 1.0, 2.0, 6.0, 5.0, 4.0]
TIERS = [1, 0, 0, 2, 2, 1]  # in the order of TIMES: 1 and 2, 3 and 4, 5 and 6


def runs(policy: Policy, times: list[float], seed: int = 0) -> Run:
    return Run(taking(*times), policy, cafe.testing.check.small_task(len(times)), seed=seed)


def merged_in(run: Run) -> list[int]:
    """The clients that are merged in the next round."""
    before = run.ledger.merged.copy()
    run.step()
    return np.flatnonzero(run.ledger.merged - before).tolist()


def test_tiers_are_clients_of_similar_speed() -> None:
    run = runs(tifl(tiers=3, cohort=2, deadline=7.0), TIMES)
    assert merged_in(run) == [0, 1, 2, 3, 4, 5]  # the profiling round
    assert tiers_of(run.ledger, 3).tolist() == TIERS
    assert {tuple(merged_in(run)) for _ in range(30)} == {(1, 2), (0, 5), (3, 4)}
    # A round of one tier lasts as long as the slower of its two clients.
    rounds = run.by_round
    assert {*np.round(rounds["closed"] - rounds["opened"], 6)[1:].tolist()} == {2.0, 4.0, 6.0}


def test_clients_that_miss_the_deadline_of_the_profiling_are_left_out() -> None:
    """Times above 5.5 are not measured: tiers of two, two and one client are left."""
    run = runs(tifl(tiers=3, cohort=2, deadline=5.5), TIMES)
    run.step()
    assert tiers_of(run.ledger, 3).tolist() == [1, 0, 0, -1, 2, 1]
    assert all(3 not in merged_in(run) for _ in range(30))


def test_the_mean_of_several_profiling_rounds_counts() -> None:
    ledger = ledger_of(4, memory=np.array([[6.0, 8.0, 3.0, 0.0], [2, 4, 1, 0]]))
    # Means of 3, 2 and 3: the tie goes to the lower number.
    assert tiers_of(ledger, 3).tolist() == [1, 0, 2, -1]
    run = runs(tifl(tiers=3, cohort=2, profiling=3, renew=10, deadline=7.0), TIMES)
    invited = [run.step().invited for _ in range(14)]
    assert invited == [6, 6, 6] + [2] * 7 + [6, 6, 6] + [2]
    assert run.ledger.memory is not None
    assert run.ledger.memory[1].tolist() == [6] * 6
    assert tiers_of(run.ledger, 3).tolist() == TIERS


def test_all_clients_of_a_tier_have_equal_chances() -> None:
    ledger = ledger_of(5, round=1, memory=np.array([[1.0, 1, 1, 1, 1], [1, 1, 1, 1, 1]]))
    policy, times = tifl(tiers=1, cohort=2), np.zeros(5)
    for seed in range(1000):
        times[policy.invite(ledger, np.random.default_rng(seed)).clients] += 1
    assert np.abs(times - 400).max() < 80  # five standard deviations


@pytest.mark.parametrize("seed", range(4))
def test_credits_decrease_and_a_tier_without_credits_is_not_drawn(seed: int) -> None:
    """Three tiers with two credits each: after six rounds each has worked twice."""
    run = runs(tifl(tiers=3, cohort=2, credits=2, interval=50, deadline=7.0), TIMES, seed)
    run.step()
    worked = [0, 0, 0]
    for _ in range(6):
        tier = TIERS[merged_in(run)[0]]
        worked[tier] += 1
        assert run.ledger.state is not None
        assert run.ledger.state["credits"] == [2 - n for n in worked]
    assert worked == [2, 2, 2]
    assert merged_in(run)  # without any credits, tiers are drawn as before
    assert run.ledger.state["credits"] == [0, 0, 0]


def test_worse_tiers_have_higher_chances() -> None:
    """Ranks 3, 2 and 1 of a sum of 6; without the first tier, 2 and 1 of 3."""
    assert chances([1.0, 3.0, 2.0], None) == pytest.approx([1 / 6, 3 / 6, 2 / 6])
    assert chances([1.0, None, 2.0], [1, 1, 1]) == pytest.approx([1 / 6, 3 / 6, 2 / 6])
    assert chances([4.0, 3.0, 2.0], [0, 5, 1]) == pytest.approx([0, 2 / 3, 1 / 3])
    assert chances([4.0, 3.0, 2.0], [0, 5, 0]) == [0, 1, 0]
    assert chances([4.0, 3.0, 2.0], [0, 0, 0]) == [0, 0, 0]


def test_tiers_are_drawn_with_their_chances() -> None:
    state = {"chances": [1 / 6, 3 / 6, 2 / 6], "credits": None}
    ledger = ledger_of(3, round=1, memory=np.array([[1.0, 2, 3], [1, 1, 1]]), state=state)
    policy = tifl(tiers=3, cohort=1)
    drawn = [policy.invite(ledger, np.random.default_rng(seed)) for seed in range(3000)]
    times = np.bincount([invitation.clients[0] for invitation in drawn])
    assert np.abs(times - [500, 1500, 1000]).max() < 140
    assert all(invitation.note == [invitation.clients[0]] for invitation in drawn)


def played(policy: Policy, tiers: list[int], losses: list[float | None]) -> list[dict[str, Any]]:
    """The states after rounds of these tiers, with these mean losses; None: the round failed."""
    assert policy.observe is not None
    ledger, states = ledger_of(4), []
    for tier, loss in zip(tiers, losses, strict=True):
        reports: Any = None
        if loss is not None:
            reports = SimpleNamespace(losses=np.array([loss - 0.5, loss + 0.5]))
        note = np.full(2, float(tier))
        closed: Any = SimpleNamespace(jobs=SimpleNamespace(note=note), reports=reports)
        ledger.state = policy.observe(ledger, cast(Any, None), closed)
        states.append(ledger.state)
    return states


def test_chances_change_when_the_present_tier_does_not_improve() -> None:
    """Checks after the rounds 2, 4 and 6: tier 1 is new, has improved, and has become worse."""
    policy = tifl(tiers=2, interval=2, credits=9)
    states = played(policy, [0, 1, 0, 1, 0, 1], [3.0, 2.0, 1.5, 1.9, 1.0, 1.95])
    assert [s["losses"] for s in states[:2]] == [[3.0, None], [3.0, 2.0]]
    assert [s["chances"] for s in states[:5]] == [[0.5, 0.5]] * 5
    assert states[5]["chances"] == pytest.approx([1 / 3, 2 / 3])
    assert states[5]["credits"] == [6, 6]


def test_a_failed_round_costs_a_credit_and_teaches_nothing() -> None:
    states = played(tifl(tiers=2, interval=1, credits=3), [0, 0], [2.0, None])
    assert [s["credits"] for s in states] == [[2, 3], [1, 3]]
    assert [s["chances"] for s in states] == [[0.5, 0.5]] * 2
    assert [s["losses"] for s in states] == [[2.0, None]] * 2  # that of its last reports


def test_profiling_in_every_round_is_refused() -> None:
    with pytest.raises(InputError, match=r"renew must be above profiling \(2\)\. Got 2"):
        tifl(profiling=2, renew=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tiers": 7, "cohort": 1}, r"tiers must be at most .* \(6\)\. Got 7\. Lower tiers"),
        ({"tiers": 2, "cohort": 7}, r"cohort must be at most .* \(6\)\. Got 7\. Lower cohort"),
        ({"tiers": 3, "quorum": 3}, r"tiers times quorum must be at most .* \(6\)\. Got 9"),
        ({"cohort": 2, "quorum": 3}, r"quorum must be at most cohort \(2\).* Got 3"),
    ],
)
def test_tiers_that_could_never_work_are_refused(options: dict[str, int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        runs(tifl(**cast(Any, options)), TIMES)
    runs(tifl(tiers=6, cohort=6), TIMES)
    runs(tifl(tiers=3, cohort=2, quorum=2), TIMES)


def test_profiling_rounds_cost_no_credits() -> None:
    states = played(tifl(tiers=2, interval=1, credits=3), [-1], [2.0])
    assert states[0]["credits"] == [3, 3]
    assert states[0]["worked"] == 0
