"""Rounds in the log of response times, presence, and changes of the clients."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.control.recent_rounds import RecentRounds, added_rows, find_change
from cafe.fitting import Observations


def log(rounds: int, clients: int, scale: list[float], deadline: float = 3.0) -> Observations:
    """Rounds of all clients with log-normal times, of which the scale of each round is given."""
    rng = np.random.default_rng(3)
    own = np.exp(0.5 * rng.standard_normal(clients))
    times = own * np.exp(0.4 * rng.standard_normal((rounds, clients))) * np.array(scale)[:, None]
    names = np.tile(np.arange(clients).astype(str), rounds).tolist()
    return Observations(np.where(times <= deadline, times, np.nan).ravel(), deadline, names)


def test_added_rows_are_counted_and_found_in_a_full_log() -> None:
    assert added_rows(None, 0) == 0
    assert added_rows(log(3, 10, [1.0] * 3), 20) == 10
    times = np.ones(20_000)
    names = [f"{k % 3000}" for k in range(18_500)] + [f"{k}" for k in range(1500)]
    assert added_rows(Observations(times, 2.0, names), 20_000) == 1500
    names = [f"{k % 4000}" for k in range(20_000)]
    waited = np.repeat([2.0, 2.5], [18_000, 2000])
    assert added_rows(Observations(times, waited, names), 20_000) == 2000


def test_rows_of_the_last_rounds() -> None:
    seen = Observations([1.0, 2.0, 3.0, 4.0, 5.0], client=["a", "b", "b", "a", "c"])
    recent = RecentRounds.of(seen, (9, 1, 0, 2))
    assert recent.seconds.tolist() == [3.0, 4.0, 5.0]
    assert recent.round.tolist() == [0, 2, 2]
    assert [recent.names[k] for k in recent.code] == ["b", "a", "c"]
    assert recent.rounds == 3
    assert recent.last.tolist() == [False, True, True]


def test_shares_of_presence() -> None:
    always = RecentRounds.of(log(5, 10, [1.0] * 5), (10,) * 5)
    assert always.shares().tolist() == [1.0] * 10
    rng = np.random.default_rng(4)
    true = np.repeat([0.9, 0.3], 50)
    here = [np.flatnonzero(rng.random(100) < true) for _ in range(40)]
    names = [f"{k}" for clients in here for k in clients]
    recent = RecentRounds.of(Observations(np.ones(len(names)), client=names), tuple(map(len, here)))
    found = recent.shares()
    wanted = true[[int(name) for name in recent.names]]
    assert np.mean(np.abs(found - wanted)) < 0.08
    equal = [np.flatnonzero(rng.random(100) < 0.5) for _ in range(6)]
    names = [f"{k}" for clients in equal for k in clients]
    recent = RecentRounds.of(
        Observations(np.ones(len(names)), client=names), tuple(map(len, equal))
    )
    assert np.std(recent.shares()) < 0.1  # chance alone spreads the counts by 0.2


@pytest.mark.parametrize(("factor", "longer"), [(3.0, True), (0.4, False)])
def test_a_change_is_found_and_dated(factor: float, longer: bool) -> None:
    scale = [1.0] * 12 + [factor] * 3
    change = find_change(RecentRounds.of(log(15, 20, scale), (20,) * 15))
    assert change is not None
    assert change.rounds == 3
    assert (change.factor > 1) == longer


def test_chance_is_no_change() -> None:
    seen = log(30, 10, [1.0] * 30)
    for rounds in range(2, 31):
        part = Observations(seen.seconds[: 10 * rounds], 3.0, seen.client[: 10 * rounds].tolist())
        assert find_change(RecentRounds.of(part, (10,) * rounds)) is None


def test_other_deadlines_and_other_clients_are_no_change() -> None:
    seen = log(12, 20, [1.0] * 12)
    deadline = np.repeat([3.0] * 8 + [1.2] * 4, 20)
    seconds = np.where(seen.seconds <= deadline, seen.seconds, np.nan)
    shorter = Observations(seconds, deadline, seen.client.tolist())
    assert find_change(RecentRounds.of(shorter, (20,) * 12)) is None
    slow = np.full(20, 2.5)
    more = Observations(
        np.concatenate([seen.seconds, slow]), 3.0,
        [*seen.client.tolist(), *(f"new {k}" for k in range(20))],
    )  # fmt: skip
    assert find_change(RecentRounds.of(more, (20,) * 13)) is None
