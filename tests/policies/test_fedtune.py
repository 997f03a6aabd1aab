"""FedTune: how the numbers of participants and passes move, worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.errors import InputError
from cafe.federation import Indices
from cafe.learn.quadratic import Quadratic
from cafe.policies import fedtune
from cafe.rounds import Closed, Ledger, Policy
from cafe.rounds.jobs import Running, constant_column
from cafe.rounds.ledger import ModelScore
from cafe.rounds.outcome import Outcome

PURE: dict[str, dict[str, Any]] = {
    "alpha": {"alpha": 1.0, "beta": 0.0, "gamma": 0.0, "delta": 0.0},
    "beta": {"alpha": 0.0, "beta": 1.0, "gamma": 0.0, "delta": 0.0},
    "gamma": {"alpha": 0.0, "beta": 0.0, "gamma": 1.0, "delta": 0.0},
    "delta": {"alpha": 0.0, "beta": 0.0, "gamma": 0.0, "delta": 1.0},
}


def closed_round(clients: Indices, reported: bool = True) -> Closed:
    """A round in which these clients were invited, and all or none of them reported."""
    names, n = Running.__dataclass_fields__, len(clients)
    columns: list[Any] = [clients if k == "client" else constant_column(0, n) for k in names]
    jobs = Running(*columns)
    used = np.arange(n) if reported else np.arange(0)
    return Closed.of(reported, jobs, np.full(n, reported), used, None)


def play(
    policy: Policy, accuracies: Sequence[float], clients: int = 100, held: int = 10
) -> list[tuple[int, int]]:
    """M and E in each round, if the model has these accuracies when the rounds open.

    If all clients hold ten examples, a round costs 10 E, 1, 10 E M and M.
    """
    ledger, chosen = Ledger.new(np.full(clients, held)), []
    for number, accuracy in enumerate(accuracies):
        ledger.round = number
        ledger.score = ModelScore(1.0, accuracy, number)
        with np.errstate(all="raise"):
            invitation = policy.invite(ledger, np.random.default_rng(0))
            assert invitation.work.epochs is not None
            chosen.append((len(invitation.clients), invitation.work.epochs))
            assert policy.observe is not None
            closed = closed_round(invitation.clients)
            state = policy.observe(ledger, Outcome(number, 0.0, 1.0, True), closed)
        ledger.state = json.loads(json.dumps(state, allow_nan=False))
    return chosen


@pytest.mark.parametrize(
    ("preference", "moved"),
    [
        ("alpha", (21, 19)),  # computation time: more participants, fewer passes
        ("beta", (21, 21)),  # transmission time: both make the rounds fewer
        ("gamma", (19, 19)),  # computation load: less of both
        ("delta", (19, 21)),  # transmission load: fewer participants, more passes
    ],
)
def test_direction_of_each_preference(preference: str, moved: tuple[int, int]) -> None:
    """The first rise, to 0.12, gives the overheads to compare with; the second, to 0.16, moves."""
    policy = fedtune(**PURE[preference])
    assert play(policy, [0.10, 0.12, 0.16]) == [(20, 20), (20, 20), moved]


def test_change_that_made_things_worse_is_reversed() -> None:
    """alpha = 1/4 and delta = 3/4; t is the computation time and v the transmission load.

    Until 0.12: one round of 200 and 20 for a rise of 0.02, t = 10000 and v = 1000.
    Until 0.16: one round, 0.04: t = 5000 and v = 500. The changes relative to the new values are 1
        and 1. M: 1/4 - 3/4 < 0, so 19. E: -1/4 + 3/4 > 0, so 21.
    0.165 is too small a rise. Until 0.18: two rounds of 210 and 19, 0.02: t = 21000, v = 1900.
        Relative changes 16/21 and 14/19: worse. The slope of v is 1400 / 500 = 2.8. That of t
        counts against both moves, and is 10 instead of 1.
        M: 1/4 * 10 * 16/21 - 3/4 * 2.8 * 14/19 = 1.905 - 1.547 > 0, so 20. E: the opposite: 20.
    The published code compares v with the transmission time, 100, and finds no harm.
    """
    policy = fedtune(alpha=0.25, beta=0.0, gamma=0.0, delta=0.75)
    found = play(policy, [0.10, 0.12, 0.16, 0.165, 0.18])
    assert found == [(20, 20), (20, 20), (19, 21), (19, 21), (20, 20)]
    # With 4 instead of 10, 0.762 - 1.547 < 0: the moves go on. With the slope 1 they would not.
    mild = fedtune(alpha=0.25, beta=0.0, gamma=0.0, delta=0.75, penalty=4.0)
    assert play(mild, [0.10, 0.12, 0.16, 0.165, 0.18])[-1] == (18, 22)


def test_change_that_helped_goes_on() -> None:
    """As above until 0.16. Then one round of 210 and 19 raises the accuracy by 0.08: both overheads
    fall. Relative changes of t = 2625 and v = 237.5: 2375/2625 and 262.5/237.5. The slope of v is
    262.5 / 500 = 0.525, that of t stays 1.
    M: 1/4 * 0.905 - 3/4 * 0.525 * 1.105 = 0.226 - 0.435 < 0, so 18. E: the opposite, so 22.
    """
    policy = fedtune(alpha=0.25, beta=0.0, gamma=0.0, delta=0.75)
    assert play(policy, [0.10, 0.12, 0.16, 0.24]) == [(20, 20), (20, 20), (19, 21), (18, 22)]


def test_nothing_moves_if_the_suggestions_cancel_out() -> None:
    """At 0.16 the relative changes are all 1: the four preferences cancel out."""
    assert play(fedtune(), [0.10, 0.12, 0.16]) == [(20, 20)] * 3


def test_equal_overheads_do_not_divide_by_zero() -> None:
    """Rises of 1/8 in one round, and then in two rounds each: the times are 8, 16, 16, 16.

    From the fourth rise on the last change of the transmission time is 0. The computation load
    decides.
    """
    eighths = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 5])
    found = play(fedtune(alpha=0.0, beta=0.25, gamma=0.75, delta=0.0), (eighths / 8).tolist())
    assert found == [(20, 20)] * 3 + [(19, 19)] * 2 + [(18, 18)] * 2 + [(17, 17)] * 2 + [(16, 16)]


def test_clients_of_unknown_size_do_not_divide_by_zero() -> None:
    """All sizes are unknown, and so are both computation overheads."""
    assert play(fedtune(**PURE["beta"]), [0.10, 0.12, 0.16], held=-1)[-1] == (21, 21)


@pytest.mark.parametrize(
    ("preference", "clients", "start", "end"),
    [
        ("alpha", 4, (3, 3), (4, 1)),
        ("beta", 4, (3, 3), (4, 13)),
        ("gamma", 100, (3, 3), (1, 1)),
        ("delta", 100, (3, 3), (1, 13)),
        ("delta", 2, (3, 3), (1, 13)),  # at most all clients are invited at the start
    ],
)
def test_limits(
    preference: str, clients: int, start: tuple[int, int], end: tuple[int, int]
) -> None:
    """M stays between 1 and the number of clients, and E stays at least 1: after ten moves."""
    rises = [0.1, 0.02, *[0.04, 0.03] * 5]
    policy = fedtune(cohort=start[0], epochs=start[1], **PURE[preference])
    found = play(policy, np.cumsum(rises).tolist(), clients)
    assert found[1] == (min(start[0], clients), start[1])
    assert found[-1] == end


def test_participants_do_not_fall_below_the_quorum() -> None:
    """Otherwise no round would succeed, no score would change, and M would stay as it is."""
    rises = [0.1, 0.02, *[0.04, 0.03] * 5]
    policy = fedtune(cohort=5, epochs=3, quorum=4, **PURE["gamma"])
    assert play(policy, np.cumsum(rises).tolist())[-1] == (4, 1)
    with pytest.raises(InputError, match=r"quorum must be at most cohort \(5\).* Got 6"):
        fedtune(cohort=5, quorum=6)


def test_first_move_starts_from_all_clients_if_the_cohort_is_larger() -> None:
    """Of two clients, one is left after one move, although the cohort is 20."""
    found = play(fedtune(**PURE["delta"]), [0.10, 0.12, 0.16], clients=2)
    assert found == [(2, 20), (2, 20), (1, 21)]


def test_overheads_of_clients_of_different_size() -> None:
    """Clients with 2, 6, 4 and an unknown number of examples pass over them 5 times.

    The overheads of a failed round count, too.
    """
    ledger = Ledger.new(np.array([2, 6, 4, -1]))
    policy = fedtune(cohort=4, epochs=5)
    ledger.score = ModelScore(1.0, 0.1, 0)
    assert policy.observe is not None
    closed = closed_round(np.arange(4), reported=False)
    state: dict[str, Any] = policy.observe(ledger, Outcome(0, 0.0, 1.0, False), closed)
    assert state["spent"] == [30.0, 1.0, 60.0, 4.0]


def test_task_without_classes_is_refused() -> None:
    point = Examples(np.ones((2, 1)), np.zeros(2))
    what = cafe.Task(point, Shards.of([np.array([0]), np.array([1])]), Quadratic(1), rate=0.5)
    who = cafe.Federation(2, cafe.Constant(1.0))
    with pytest.raises(InputError, match=r"needs the accuracy .* Give it a task with classes"):
        cafe.simulate(who, fedtune(cohort=2), what, rounds=1)


def test_preferences_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(InputError, match=r"must add up to 1\. Got alpha=0\.5.* up to 1\.25"):
        fedtune(alpha=0.5)


def test_it_saves_transmissions_in_a_run() -> None:
    """In a simulation with scores, few participants are left if only the load counts."""
    what = cafe.testing.check.small_task(10)
    who = cafe.Federation(10, cafe.Exponential(1.0))
    policy = fedtune(cohort=9, epochs=4, deadline=4.0, gain=0.005, **PURE["delta"])
    run = cafe.simulate(who, policy, what, rounds=25, seed=1)
    invited = run.by_round["invited"]
    assert invited[0] == 9
    assert invited[-1] < 7
