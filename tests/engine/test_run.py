"""Properties of every run: seeds, numbers, scores."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.policies import agu, awu, fedavg, mcu
from tests.support.small_tasks import logistic_task


def test_all_results_depend_on_the_seed() -> None:
    who = cafe.Federation(10, cafe.Exponential(1.0), availability=0.9)
    what = logistic_task(10)
    for policy in (mcu(quorum=2, deadline=0.5), fedavg(fraction=0.5, deadline=1.0)):
        ran = [cafe.simulate(who, policy, what, rounds=20, seed=s, crash=0.1) for s in (1, 1, 2)]
        for name in ("work", "fates"):
            first, same, other = (h.by_round[name] for h in ran)
            np.testing.assert_array_equal(first, same)
            assert not np.array_equal(first, other)
        first_model, same_model, other_model = (h.model for h in ran)
        np.testing.assert_array_equal(first_model, same_model)
        assert first_model is not None
        assert other_model is not None
        assert not np.array_equal(first_model, other_model)


def test_the_global_generator_is_neither_used_nor_touched() -> None:
    who, what = cafe.Federation(10, cafe.Exponential(1.0)), logistic_task(10)
    policy = mcu(quorum=2, deadline=0.5)
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()  # noqa: NPY002
    first = cafe.simulate(who, policy, what, rounds=10, seed=5)
    after = np.random.get_state()  # noqa: NPY002
    assert before[1].tobytes() == after[1].tobytes()  # type: ignore[index]
    np.random.seed(2)  # noqa: NPY002
    again = cafe.simulate(who, policy, what, rounds=10, seed=5)
    np.testing.assert_array_equal(first.model, again.model)


def test_policies_that_invite_all_clients_see_the_same_times() -> None:
    """Paired comparisons: if all are invited, times depend only on seed, round and client."""
    who = cafe.Federation(20, cafe.Exponential(1.0), availability=0.8)
    kinds = (mcu(quorum=1, deadline=0.5), mcu(quorum=12, deadline=0.5), awu(deadline=0.5),
             agu(quorum=12, deadline=0.5))  # fmt: skip
    reports = [cafe.simulate(who, p, rounds=50, seed=1).by_round["reports"] for p in kinds]
    for other in reports[1:]:
        np.testing.assert_array_equal(reports[0], other)


def test_logging_does_not_change_the_run(caplog: pytest.LogCaptureFixture) -> None:
    who, what = cafe.Federation(8, cafe.Exponential(1.0)), logistic_task(8)
    quiet = cafe.simulate(who, mcu(quorum=1, deadline=0.5), what, rounds=15, seed=1)
    shares: list[float] = []
    with caplog.at_level(logging.DEBUG):
        loud = cafe.simulate(
            who, mcu(quorum=1, deadline=0.5), what, rounds=15, seed=1, progress=shares.append
        )
    np.testing.assert_array_equal(quiet.model, loud.model)
    assert shares == sorted(shares)
    assert len(shares) == 15


def test_a_run_without_success_has_infinite_costs() -> None:
    who = cafe.Federation(10, cafe.ShiftedExponential(shift=2.0, rate=1.0))
    history = cafe.simulate(who, mcu(quorum=5, deadline=0.5), logistic_task(10), rounds=20)
    assert history.updates == 0
    assert history.waste_per_update == float("inf")
    assert history.broadcasts_per_update == float("inf")
    assert history.mean_age == pytest.approx(5.0)  # half of the ten time units that went by


def test_numpy_numbers_are_accepted() -> None:
    who = cafe.Federation(5, cafe.Exponential(1.0))
    plain = cafe.simulate(who, mcu(quorum=2, deadline=0.1), rounds=200, seed=3)
    policy = mcu(quorum=int(np.int64(2)), deadline=float(np.float64(0.1)))
    given: Any = (np.int64(200), np.int64(3))
    same = cafe.simulate(who, policy, rounds=given[0], seed=given[1])
    assert same.virtual_time == plain.virtual_time
    short: Any = np.float32(0.1)
    # If times were added up in single precision, the sum would be wrong by 1e-6 or more.
    history = cafe.simulate(who, mcu(quorum=2, deadline=short), rounds=2000, seed=3)
    assert history.virtual_time == pytest.approx(2000 * float(short), rel=1e-9)


def test_diverged_model_has_no_accuracy() -> None:
    who = cafe.Federation(5, cafe.Exponential(1.0))
    history = cafe.simulate(
        who, mcu(quorum=1, deadline=0.5), logistic_task(5, rate=1e30), rounds=30
    )
    assert history.loss is not None
    assert not np.isfinite(history.loss)
    assert history.accuracy is None


def test_unchanged_model_is_not_evaluated_again() -> None:
    who = cafe.Federation(20, cafe.Exponential(1.0))
    what = logistic_task(20)
    measured: list[int] = []
    score = what.learner.score

    def counting(*given: Any) -> Any:
        measured.append(1)
        return score(*given)

    object.__setattr__(what.learner, "score", counting)
    history = cafe.simulate(
        who, mcu(quorum=12, deadline=0.5), what, rounds=300, seed=1, evaluate_every=1
    )
    classes = what.data.classes  # the last model is evaluated on each of them too
    assert history.updates <= len(measured) - classes <= history.updates + 1 < 300
    assert history.curve is not None
    assert len(history.curve) == 300
    object.__delattr__(what.learner, "score")
    by_updates = cafe.simulate(who, mcu(quorum=12, deadline=0.5), what, updates=7, seed=1)
    assert by_updates.curve is not None
    assert len(by_updates.curve) == 7
