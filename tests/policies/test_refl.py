"""REFL: who is invited, how many, and how much late updates count, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.engine import Run
from cafe.errors import InputError
from cafe.learn.quadratic import Quadratic
from cafe.policies import refl
from cafe.presence import Trace
from cafe.rounds import Ledger, Policy, Reports
from tests.support.federations import taking
from tests.support.ledgers import ledger_of


def points(*values: float) -> cafe.Task:
    """Client k holds the k-th point. The model starts at 0, and a step goes half of the way."""
    data = Examples(np.array(values)[:, None], np.zeros(len(values)))
    shards = Shards.of([np.array([k]) for k in range(len(values))])
    return cafe.Task(data, shards, Quadratic(1), rate=0.5)


def invited(policy: Policy, ledger: Ledger, seed: int = 0) -> list[int]:
    found: list[int] = policy.invite(ledger, np.random.default_rng(seed)).clients.tolist()
    return found


def merged_in(run: Run) -> list[int]:
    """The clients that are merged in the next round."""
    before = run.ledger.merged.copy()
    run.step()
    return np.flatnonzero(run.ledger.merged - before).tolist()


FORECASTS = {12.0: [1.0, 1.0, 0.5, 0.8, 0.0], 14.0: [0.9, 0.1, 0.4, 0.0, 0.0]}


@pytest.mark.parametrize(
    ("goal", "chosen"), [(1, [3]), (2, [1, 3]), (3, [1, 2, 3]), (4, [0, 1, 2, 3])]
)
def test_the_least_available_clients_are_invited_first(goal: int, chosen: list[int]) -> None:
    """At 10, with rounds of 2: the chances of staying from 12 to 14 are 0.9, 0.1, 0.8, 0 and 1.

    Client 4 leaves before 12, so that nothing is known about the time from 12 to 14.
    """
    ledger = ledger_of(5, now=10.0, round=3, state={"duration": 2.0, "stragglers": 0})
    ledger.forecasts = lambda clients, until: np.array(FORECASTS[until])[clients]
    assert invited(refl(goal=goal, extra=1.0), ledger) == chosen


@pytest.mark.parametrize("seed", range(12))
def test_forecasts_come_from_the_presence(seed: int) -> None:
    """Rounds last 2. At 2, client 1 is the one that will leave between 4 and 6, at 5.

    It works in the second round, unless it has worked in the first.
    """
    windows = [[0, 0, 99], [1, 0, 5], [2, 0, 99], [3, 0, 99], [4, 0, 99]]
    who = cafe.Federation(5, cafe.Constant(2.0), presence=Trace(windows))
    run = Run(who, refl(goal=1, extra=1.0), points(1, 1, 1, 1, 1), seed=seed)
    assert 1 in merged_in(run) + merged_in(run)


def test_ties_are_broken_at_random() -> None:
    ledger = ledger_of(4, round=1, state={"duration": 2.0, "stragglers": 0})
    ledger.forecasts = lambda clients, until: np.ones(len(clients))
    times = np.bincount([invited(refl(goal=1), ledger, seed)[0] for seed in range(2000)])
    assert np.abs(times - 500).max() < 100  # five standard deviations


def test_clients_hold_off_for_five_rounds() -> None:
    """With one client per round, six in a row are different, and all seven work again later."""
    run = Run(taking(*[1.0] * 7), refl(goal=1, extra=1.0), points(*range(7)), seed=5)
    worked = [merged_in(run)[0] for _ in range(60)]
    assert all(len({*worked[k : k + 6]}) == 6 for k in range(55))
    assert any(
        len({*worked[k : k + 7]}) == 6 for k in range(54)
    )  # the sixth round after is allowed
    assert {*worked} == {*range(7)}


def test_too_few_rested_clients() -> None:
    """Clients 2 and 4 are rested. Of the others, those that were merged earliest come first."""
    last = [3, 6, -1, 5, 1, 4]
    ledger = ledger_of(6, round=7, last_round=last, merged=np.array(last) >= 0)
    ledger.forecasts = lambda clients, until: np.ones(len(clients))
    for goal, chosen in ((2, [2, 4]), (3, [0, 2, 4]), (5, [0, 2, 3, 4, 5])):
        assert invited(refl(goal=goal, extra=1.0), ledger) == chosen


@pytest.mark.parametrize(
    ("stragglers", "count"), [(0, 13), (3, 9), (8, 3), (9, 1), (10, 1), (40, 1)]
)
def test_the_target_falls_with_the_expected_late_reports(stragglers: int, count: int) -> None:
    """max(1, 10 - B), times 1.3 and rounded."""
    ledger = ledger_of(60, round=1, state={"duration": 1.0, "stragglers": stragglers})
    ledger.forecasts = lambda clients, until: np.ones(len(clients))
    assert len(invited(refl(), ledger)) == count


def test_late_clients_are_expected_by_their_last_response_time() -> None:
    """Rounds of two new reports, four clients invited; a response takes 1, 1.2, 3 or 9.

    The first round closes at 1.2. Clients 2 and 3 are not known, and are expected to take the
    mean, 1.1: both count, so that the next target is max(1, 2 - 2), and two are invited. It closes
    at 2.2, with a mean duration of 0.75 * 1 + 0.25 * 1.2 = 1.05. Client 1 is expected at 2.4. The
    clients 2 and 3 were expected at 1.1, which is longer ago than 1.05.
    """
    run = Run(taking(1.0, 1.2, 3.0, 9.0), refl(goal=2, extra=2.0, hold_off=0), points(1, 1, 1, 1))
    first = run.step()
    assert (first.invited, first.closed, first.used) == (4, 1.2, 2)
    assert run.ledger.state == {"duration": pytest.approx(1.2), "stragglers": 2}
    second = run.step()
    assert (second.invited, second.closed, second.used) == (2, 2.2, 1)
    assert run.ledger.state == {"duration": pytest.approx(1.05), "stragglers": 1}
    # At 3 client 2 reports, then it is known to take 3; client 0 works from 2.2 to 3.2.
    third = run.step()
    assert third.invited == 1
    assert third.closed == pytest.approx(3.2)
    assert run.ledger.memory is not None
    assert run.ledger.memory.tolist() == pytest.approx([1.0, 1.2, 3.0, 0.0])


def reports(updates: list[list[float]], version: list[int]) -> Reports:
    n = len(version)
    number, time = np.zeros(n, dtype=np.int64), np.zeros(n)
    return Reports(
        client=np.arange(n), start=time, version=np.array(version), round=number,
        local=number.astype(bool), invitation=number, steps=number + 1, note=time,
        arrived=time + 1, trained=time, used=number, updates=np.array(updates, dtype=np.float32),
    )  # fmt: skip


UPDATES = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [1.5, 0.5], [1.0, 0.5]]


def test_the_weights_of_late_updates() -> None:
    """The mean new update is (0.5, 0.5), of square 0.5, from two reports.

    The late updates (0.5, 0.5), (1.5, 0.5) and (1, 0.5) move it by 0, (1/3, 0) and (1/6, 0): the
    Lambdas are 0, 2/9 and 1/18. They are 1, 3 and 2 updates late:
    0.65/2 = 0.325, 0.65/4 + 0.35 (1 - 1/e) = 0.383742, 0.65/3 + 0.35 (1 - e^(-1/4)) = 0.294086.
    """
    ledger = ledger_of(5, version=7)
    merge = refl().merge(ledger, reports(UPDATES, [7, 7, 6, 4, 5]))
    weights = np.array([1, 1, 0.325, 0.383742, 0.294086])
    np.testing.assert_allclose(merge.coefficient, weights / 3.002828, rtol=1e-5)


@pytest.mark.parametrize(
    ("version", "weights"),
    [
        ([7, 7, 7, 7, 7], [1, 1, 1, 1, 1]),
        ([6, 6, 5, 4, 6], [0.325, 0.325, 0.65 / 3, 0.1625, 0.325]),  # nothing to deviate from
    ],
)
def test_only_new_or_only_late_updates(version: list[int], weights: list[float]) -> None:
    merge = refl().merge(ledger_of(5, version=7), reports(UPDATES, version))
    np.testing.assert_allclose(merge.coefficient, np.array(weights) / sum(weights))


def test_a_single_late_update_that_does_not_deviate() -> None:
    merge = refl().merge(ledger_of(2, version=1), reports([[1.0, 1.0], [1.0, 1.0]], [1, 0]))
    np.testing.assert_allclose(merge.coefficient, np.array([1, 0.325]) / 1.325)


def test_late_updates_are_added_to_the_model() -> None:
    """Client 0 takes 1 and holds 1; client 1 takes 1.5 and holds 3. The goal is one new report.

    Round 0 closes at 1 with the update 0.5. In round 1, client 0 goes from 0.5 by 0.25, and client
    1 reports its update from 0, which is 1.5. It counts 0.325 + 0.35 (1 - 1/e) = 0.546242.
    """
    policy = refl(goal=1, extra=2.0, hold_off=0)
    run = Run(taking(1.0, 1.5), policy, points(1, 3))
    outcomes = [run.step() for _ in range(2)]
    assert [(o.closed, o.used) for o in outcomes] == [(1.0, 1), (2.0, 2)]
    assert outcomes[1].fates[cafe.rounds.Fate.STALE] == 1
    expected = 0.5 + (0.25 + 0.546242 * 1.5) / 1.546242
    assert run.history().model == pytest.approx([expected], rel=1e-5)


def test_a_round_ends_at_its_deadline_and_late_clients_continue() -> None:
    """Both miss two deadlines. A round without new clients closes at the first late report."""
    run = Run(taking(5.0, 7.0), refl(goal=2, extra=1.0, deadline=2.0), points(1, 1))
    outcomes = [run.step() for _ in range(3)]
    assert [o.closed for o in outcomes] == [2.0, 4.0, 5.0]
    assert [o.invited for o in outcomes] == [2, 0, 0]
    assert [o.used for o in outcomes] == [0, 0, 1]
    assert not any(o.fates[cafe.rounds.Fate.LATE] for o in outcomes)
    assert run.ledger.busy.tolist() == [False, True]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"extra": 0.5}, "at least 1"),
        ({"quorum": 11}, r"quorum must be at most the goal \(10\).* Got 11"),
    ],
)
def test_wrong_numbers(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        refl(**wrong)
