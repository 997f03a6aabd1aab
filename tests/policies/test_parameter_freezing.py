"""Adaptive parameter freezing: which parameters are frozen when, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.engine import Run
from cafe.learn.quadratic import Quadratic
from cafe.policies import parameter_freezing
from tests.support.federations import taking

# Both parameters start at 0 and are drawn to 1. A step halves the distance of the first one. It
# makes the distance of the second one -1/2 times as large, so its changes alternate.
HESSIAN = np.array([1.0, 3.0])
STEADY = 1 - 0.5 ** np.arange(1, 13)
MODEL = 8  # bytes


def two_parameters() -> cafe.Task:
    point = Examples(np.ones((1, 2)), np.zeros(1))
    return cafe.Task(
        point,
        Shards.of([np.array([0]), np.array([0])]),
        Quadratic(2, HESSIAN),
        rate=0.5,
        batch=None,
    )


def play(rounds: int, **options: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The second parameter's distance to 1, the first parameter, and the bytes, by round."""
    run = Run(taking(1.0, 1.0), parameter_freezing(deadline=2.0, **options), two_parameters())
    first, second = [], []
    for _ in range(rounds):
        run.step()
        model = run.history().model
        assert model is not None
        first.append(float(model[0]))
        second.append(1.0 - float(model[1]))
    down, up = run.by_round["bytes_down"], run.by_round["bytes_up"]
    np.testing.assert_array_equal(down, up)
    return np.array(second), np.array(first), np.asarray(down) / (2 * MODEL)


def test_twelve_rounds_by_hand() -> None:
    """With averages that keep one half, and the threshold 1/4.

    The distance d of the second parameter, its change, the moving averages e of the change and a
    of its absolute value, the perturbation |e| / a, and the freezing period:

        round   d          change     e          a          |e| / a   period
        1       -1/2       3/2        3/4        3/4        1         0
        2       1/4        -3/4       0          3/4        0         1, frozen in round 3
        4       -1/8       3/8        3/16       9/16       1/3       1 // 2 = 0
        5       1/16       -3/16      0          3/8        0         1, frozen in round 6
        7       -1/32      3/32       3/64       15/64      1/5       2, frozen in rounds 8 and 9
        10      1/64       -3/64      0          9/64       0         3, frozen in rounds 11 to 13
    """
    second, first, bytes_ = play(12, decay=0.5, threshold=0.25, most=1.0)
    d = [-1 / 2, 1 / 4, 1 / 4, -1 / 8, 1 / 16, 1 / 16, -1 / 32, -1 / 32, -1 / 32] + [1 / 64] * 3
    assert second.tolist() == d
    np.testing.assert_allclose(first, STEADY, rtol=1e-6)
    frozen = [3, 6, 8, 9, 11, 12]
    assert bytes_.tolist() == [0.5 if round_ in frozen else 1.0 for round_ in range(1, 13)]


def test_stricter_threshold_freezes_less() -> None:
    """With the threshold 1/10 the perturbation 1/5 of round 7 is not stable: no freeze in 8."""
    second, _, bytes_ = play(8, decay=0.5, threshold=0.1, most=1.0)
    assert second[-1] == 1 / 64
    assert bytes_.tolist() == [1, 1, 0.5, 1, 1, 0.5, 1, 1]


def test_threshold_is_halved_when_most_parameters_are_frozen() -> None:
    """Half of the parameters are frozen after updates 2 and 5, and more than 0.4 is too many.

    The threshold falls from 1/4 to 1/16. So the perturbation 1/5 after update 7 is not stable.
    """
    second, _, bytes_ = play(8, decay=0.5, threshold=0.25, most=0.4)
    assert second[-1] == 1 / 64
    assert bytes_[7] == 1.0


def test_freezing_period_is_halved() -> None:
    """The threshold is 0.9, and halved after each check that leaves the second parameter frozen.

    round   |e| / a   period, and threshold after the check
    2       0         1: 0.45, frozen in round 3
    4       1/3       2: 0.225, frozen in rounds 5 and 6; 0.1125 after 5
    7       0         3: frozen in rounds 8 to 10; 0.0140625 after 9
    11      1/5       3 // 2 = 1: frozen in round 12
    """
    _, _, bytes_ = play(13, decay=0.5, threshold=0.9, most=0.4)
    frozen = [3, 5, 6, 8, 9, 10, 12]
    assert bytes_.tolist() == [0.5 if round_ in frozen else 1.0 for round_ in range(1, 14)]


def test_without_stable_parameters_it_is_mcu() -> None:
    """A parameter that has changed once is never below a threshold that is almost 0."""
    what, who = cafe.testing.check.small_task(14), cafe.Federation(14, cafe.Exponential(1.0))
    same: dict[str, Any] = {"quorum": 5, "deadline": 0.9, "cohort": 8, "steps": 2}
    ours = cafe.simulate(who, parameter_freezing(threshold=1e-9, **same), what, rounds=30)
    plain = cafe.simulate(who, cafe.policies.mcu(**same), what, rounds=30)
    assert plain.model is not None
    assert ours.model == pytest.approx(plain.model, rel=1e-4, abs=1e-6)
    assert 0 < ours.updates == plain.updates < 30
    assert ours.by_round["bytes_down"].tolist() == plain.by_round["bytes_down"].tolist()


def test_check_interval() -> None:
    """With checks after every second update, the changes between checks are 3/4, 3/16, ...

    They have one sign, so the parameter moves effectively, and is not frozen.
    """
    _, _, bytes_ = play(8, decay=0.5, threshold=0.25, interval=2)
    assert bytes_.tolist() == [1.0] * 8


def test_changes_between_checks_are_added_up() -> None:
    """After two updates the changes are 3/4 in all: 1/2 + 1/4, and 3/2 - 3/4."""
    options: dict[str, Any] = {"decay": 0.5, "interval": 2}
    run = Run(taking(1.0, 1.0), parameter_freezing(deadline=2.0, **options), two_parameters())
    for _ in range(2):
        run.step()
    assert run.ledger.memory is not None
    assert run.ledger.memory[0].tolist() == [3 / 8, 3 / 8]
    assert run.ledger.memory[1].tolist() == [3 / 8, 3 / 8]


def test_parameter_that_never_changes_is_stable() -> None:
    """The second one starts at its optimum. It is frozen in rounds 2, 4 and 5, 7 to 9."""
    point = Examples(np.array([[1.0, 0.0]]), np.zeros(1))
    what = cafe.Task(point, Shards.of([np.array([0])]), Quadratic(2), rate=0.5, batch=None)
    policy = parameter_freezing(deadline=2.0, decay=0.5, threshold=0.25, most=1.0)
    history = cafe.simulate(taking(1.0), policy, what, rounds=10)
    sent = history.by_round["bytes_down"] / MODEL
    assert sent.tolist() == [1, 0.5, 1, 0.5, 0.5, 1, 0.5, 0.5, 0.5, 1]


def test_freezing_lasts_whole_intervals() -> None:
    """Three updates per check. Changes: 3/2 - 3/4 + 3/8 = 9/8 and -3/16 + 3/32 - 3/64 = -9/64.

    |e| / a is 1 after the first check, and (9/32 - 9/128) / (9/32 + 9/128) = 3/5 after the second.
    With the threshold 4/5 the parameter is frozen for three updates then.
    """
    second, _, bytes_ = play(10, decay=0.5, threshold=0.8, interval=3)
    assert bytes_.tolist() == [1.0] * 6 + [0.5] * 3 + [1.0]
    assert len(set(second[5:9].tolist())) == 1


def test_frozen_parameters_stay_equal_to_the_bit_and_bytes_fall() -> None:
    """On a larger task, with random batches and lost clients."""
    what = cafe.testing.check.small_task(14)
    who = cafe.Federation(14, cafe.Exponential(1.0))
    policy = parameter_freezing(deadline=1.5, decay=0.7, threshold=0.4)
    run, still = Run(who, policy, what, seed=2, crash=0.1), 0
    for _ in range(80):
        before = run.history().model
        memory = run.ledger.memory
        outcome = run.step()
        after = run.history().model
        assert before is not None
        assert after is not None
        frozen = np.zeros(len(before), dtype=bool)
        if memory is not None:
            frozen = memory[3] > run.ledger.version - 1  # the check from which it may change
        assert before[frozen].tobytes() == after[frozen].tobytes()
        if outcome.succeeded:
            assert np.all(before[~frozen] != after[~frozen])
        share = 1 - frozen.mean()
        assert outcome.bytes_down == pytest.approx(outcome.downloads * share * before.nbytes)
        assert outcome.bytes_up == pytest.approx(outcome.reports * share * before.nbytes)
        still += int(frozen.sum())
    assert still > 80  # of 15 parameters in 80 rounds
