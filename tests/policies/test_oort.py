"""Oort: the score, the pacer, the blacklist, exploration and over-commitment, by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.engine import Run
from cafe.errors import InputError
from cafe.learn.linear import Logistic
from cafe.policies import mcu, oort, refl, tifl
from cafe.rounds import Ledger, Policy, Work
from tests.support.federations import taking
from tests.support.jobs import reported
from tests.support.ledgers import ledger_of


def invited(policy: Policy, ledger: Ledger, seed: int) -> list[int]:
    found: list[int] = policy.invite(ledger, np.random.default_rng(seed)).clients.tolist()
    return found


def score(policy: Policy, ledger: Ledger) -> list[float]:
    found: list[float] = cast(Any, policy.invite).score(ledger, np.arange(ledger.clients)).tolist()
    return found


def explored(utility: list[float], seconds: list[float], **given: Any) -> Ledger:
    """A ledger of clients that have all reported."""
    memory = np.array([utility, seconds])
    return ledger_of(len(utility), memory=memory, **({"merged": 1, "last_round": 0} | given))


def test_the_score_of_slow_clients() -> None:
    """Round 10, clients last used in round 5: sqrt(0.1 ln 10 / 5) = 0.214597 is added to 8.

    Three times slower than preferred: a factor of (1/3)^2.
    """
    ledger = explored([8.0, 8.0, 8.0, 2.0], [1.0, 2.0, 6.0, 12.0], round=9, last_round=4)
    raw, low = 8.214597, 2.214597
    assert score(oort(goal=2, preferred=2.0), ledger) == pytest.approx(
        [raw, raw, raw / 9, low / 36], rel=1e-6
    )
    linear = oort(goal=2, preferred=2.0, penalty=1.0)
    assert score(linear, ledger) == pytest.approx([raw, raw, raw / 3, low / 6], rel=1e-6)
    blind = oort(goal=2, preferred=2.0, penalty=0)
    assert score(blind, ledger) == pytest.approx([raw, raw, raw, low], rel=1e-6)
    ledger.state = {"preferred": 6.0, "sums": []}  # the pacer has moved it
    assert score(oort(goal=2, preferred=2.0), ledger)[2] == pytest.approx(raw, rel=1e-6)


def test_clients_used_long_ago_are_more_uncertain() -> None:
    """Round 20: sqrt(0.1 ln 20 / 2) = 0.387023 and sqrt(0.1 ln 20 / 18) = 0.129008."""
    ledger = explored([1.0, 1.0], [1.0, 1.0], round=19, last_round=[1, 17])
    found = score(oort(goal=1, preferred=2.0), ledger)
    assert found == pytest.approx([1.387023, 1.129008], rel=1e-6)


def test_the_highest_utilities_are_cut_to_the_95_percent_quantile() -> None:
    ledger = explored([*map(float, range(1, 21)), 1000.0], [1.0] * 21)
    assert score(oort(goal=1, preferred=2.0), ledger)[-2:] == [20.0, 20.0]


def test_slow_clients_are_not_chosen_until_the_preferred_duration_allows_it() -> None:
    """The scores are 10, 10, 10/16 and 10/16, and only those above 9.5 may be drawn."""
    ledger = explored([10.0] * 4, [1.0, 1.0, 4.0, 4.0])
    policy = oort(goal=2, preferred=1.0, explore=0.0, extra=1.0)
    assert {*map(tuple, (invited(policy, ledger, seed) for seed in range(40)))} == {(0, 1)}
    ledger.state = {"preferred": 4.0, "sums": []}
    assert {k for seed in range(40) for k in invited(policy, ledger, seed)} == {0, 1, 2, 3}


def test_draws_among_the_best_are_in_proportion_to_the_score() -> None:
    """One place: the best has 10, and 9.6 is above 95 % of it, but 9.4 is not."""
    ledger = explored([10.0, 9.6, 9.4], [1.0, 1.0, 1.0])
    policy = oort(goal=1, preferred=1.0, explore=0.0, extra=1.0)
    times = np.bincount([invited(policy, ledger, seed)[0] for seed in range(3000)], minlength=3)
    assert times[2] == 0
    assert times[0] == pytest.approx(3000 * 10 / 19.6, abs=140)


def test_draws_are_in_proportion_to_the_score_also_if_one_is_far_above() -> None:
    """Two of the scores 100, 10 and 10 are drawn, and all three are above 95 % of the second one.

    The first is left out with probability 2 * 10/120 * 10/110 = 0.015, and not 1/3.
    """
    ledger = explored([10.0, 100.0, 10.0], [1.0, 1.0, 1.0])
    policy = oort(goal=2, preferred=1.0, explore=0.0, extra=1.0)
    without = sum(1 not in invited(policy, ledger, seed) for seed in range(1000))
    assert without == pytest.approx(15, abs=14)


def test_a_new_report_replaces_what_was_known() -> None:
    """Losses of 2 and 3 for clients with 10 and 20 examples."""
    ledger = ledger_of(3, examples=[10, 20, 30], memory=np.array([[7.0, 8, 9], [4.0, 5, 6]]))
    reports = replace(reported([0, 1]), rms_losses=np.array([2.0, 3.0]))
    memory = oort(goal=2, preferred=1.0).merge(ledger, reports).memory
    assert memory is not None
    assert memory[0].tolist() == [20.0, 60.0, 9.0]
    assert memory[1].tolist() == [*(reports.arrived - reports.start), 6.0]


def test_the_share_of_new_clients_decays_to_a_fifth() -> None:
    """Of 20 clients: 18 new ones at first; 0.9 * 0.98^10 * 20 = 14.7; at last 20 %, 4."""
    memory = np.repeat([[1.0, 0.0], [1.0, 0.0]], 30, axis=1)
    for number, new in ((0, 18), (10, 15), (1000, 4)):
        ledger = ledger_of(60, memory=memory, merged=[1] * 30 + [0] * 30, last_round=0)
        ledger.round = number
        chosen = np.array(invited(oort(goal=20, preferred=1.0, extra=1.0), ledger, number))
        assert len(chosen) == 20
        assert (chosen >= 30).sum() == new
    memory[:, :59] = 1.0
    few = ledger_of(60, memory=memory, merged=[1] * 59 + [0], last_round=0)
    assert len(invited(oort(goal=20, preferred=1.0, extra=1.0), few, 0)) == 20


def test_clients_that_another_policy_has_merged_are_new() -> None:
    """A controller chooses mcu first. Without the clients' losses, they have no score."""

    def controller(ledger: Ledger, seen: Any) -> Policy:
        return mcu(quorum=1, deadline=9.0) if ledger.round < 2 else oort(goal=3, preferred=1.0)

    who, what = small()
    history = cafe.simulate(who, controller, what, rounds=6)
    assert history.by_round["used"].tolist() == [8, 8, 3, 3, 3, 3]


def test_the_pacer_allows_more_time_when_utility_falls() -> None:
    """Sums of the windows of two rounds: 10, 6, 8, 7; T grows after the second and the fourth."""
    policy = oort(goal=1, preferred=3.0, increment=0.5, window=2)
    ledger, found = ledger_of(1, examples=1), []
    assert policy.observe is not None
    for utility in (5.0, 5.0, 4.0, 2.0, 4.0, 4.0, 7.0, None):
        reports: Any = None  # the round failed
        if utility is not None:
            reports = SimpleNamespace(client=np.array([0]), rms_losses=np.array([utility]))
        closed: Any = SimpleNamespace(reports=reports)
        ledger.state = policy.observe(ledger, cast(Any, None), closed)
        found.append(ledger.state["preferred"])
    assert found == [3.0, 3.0, 3.0, 3.5, 3.5, 3.5, 3.5, 4.0]
    assert ledger.state["sums"] == [7.0, 0.0]  # the history is bounded


def test_clients_on_the_blacklist_are_not_chosen() -> None:
    ledger = explored([9.0] * 10, [1.0] * 10, merged=[5, 7, 4, 1, 1, 1, 1, 1, 1, 1])
    policy = oort(goal=4, preferred=1.0, blacklist=5)
    found = {k for seed in range(60) for k in invited(policy, ledger, seed)}
    assert found == {2, 3, 4, 5, 6, 7, 8, 9}


def test_at_most_three_tenths_of_the_clients_are_on_the_blacklist() -> None:
    ledger = explored([9.0] * 10, [1.0] * 10, merged=[9, 8, 7, 6, 6, 6, 6, 6, 6, 6])
    policy = oort(goal=10, preferred=1.0, blacklist=5)
    assert invited(policy, ledger, 0) == [3, 4, 5, 6, 7, 8, 9]


def small() -> tuple[cafe.Federation, cafe.Task]:
    """Eight clients with 2, 3, ... 9 examples; client k takes k + 1."""
    counts = np.arange(2, 10)
    data = Examples(np.zeros((44, 2)), np.arange(44) % 3)
    shards = Shards.of(np.split(np.arange(44), np.cumsum(counts)[:-1]))
    task = cafe.Task(data, shards, Logistic(2, 3, l2=0.01), batch=None, rate=0.1)
    return taking(*np.arange(1.0, 9.0)), task


def test_more_clients_are_invited_than_used_and_what_is_learned_of_them() -> None:
    """The first model has a loss of ln 3 = 1.0986 for every example. All eight are new."""
    who, task = small()
    run = Run(who, oort(goal=6, preferred=3.0), task, seed=3)
    outcome = run.step()
    assert (outcome.invited, outcome.used, outcome.closed) == (8, 6, 6.0)  # 1.3 * 6 = 7.8
    assert outcome.fates[cafe.rounds.Fate.CANCELLED] == 2
    memory = run.ledger.memory
    assert memory is not None
    utility = [2.197, 3.296, 4.394, 5.493, 6.592, 7.690, 0, 0]
    assert memory[0].tolist() == pytest.approx(utility, rel=1e-9)
    assert memory[1].tolist() == [1, 2, 3, 4, 5, 6, 0, 0]
    assert run.ledger.state == {"preferred": 3.0, "sums": [pytest.approx(29.662)]}


def test_reports_are_weighed_by_size() -> None:
    who, task = small()
    run = Run(who, oort(goal=6, preferred=3.0), task, seed=3)
    run.step()
    shares = np.array([2, 3, 4, 5, 6, 7, 0, 0]) / 27
    np.testing.assert_allclose(run.history().weight_by_client, shares)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"explore": 1.5}, "at most 1"),
        ({"extra": 0.9}, "at least 1"),
        ({"quorum": 3}, r"quorum must be at most the goal \(2\).* Got 3"),
    ],
)
def test_shares_outside_their_range(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        oort(goal=2, preferred=1.0, **cast(Any, wrong))


@pytest.mark.parametrize(
    ("options", "work"),
    [
        ({}, Work(epochs=1, scaled=False)),
        ({"epochs": 3}, Work(epochs=3, scaled=False)),
        ({"steps": 5}, Work(steps=5, scaled=False)),
    ],
)
def test_local_work(options: dict[str, int], work: Work) -> None:
    for policy in (oort(goal=2, preferred=1.0, **cast(Any, options)), tifl(**cast(Any, options))):
        assert policy.invite(ledger_of(4), np.random.default_rng(0)).work == work
    late = refl(**cast(Any, options)).invite(ledger_of(4), np.random.default_rng(0))
    assert late.work == replace(work, scaled=True)  # it weighs new reports equally
