"""Mistakes seen in other simulators; none of them here."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Rows, Shards
from cafe.engine import Run
from cafe.errors import CafeError, InfeasibleError, InputError
from cafe.learn.linear import Logistic
from cafe.learn.local_steps import LocalSteps, Weights
from cafe.policies import agu, awu, fedavg, mcu
from cafe.rounds import COMMIT, Ledger, Verdict, Wait, Waiting


class ill:  # noqa: N801
    """The functions without their types, to be called wrongly."""

    simulate: Any = staticmethod(cafe.simulate)
    mcu: Any = staticmethod(mcu)
    awu: Any = staticmethod(awu)
    agu: Any = staticmethod(agu)
    fedavg: Any = staticmethod(fedavg)


class Counting(Logistic):
    """Counts the examples whose gradient is taken."""

    def counted(self) -> int:
        return int(getattr(self, "_count", 0))

    def gradient(self, model: Any, data: Examples, rows: Rows, weight: Weights) -> Any:
        object.__setattr__(self, "_count", self.counted() + len(rows))
        return super().gradient(model, data, rows, weight)


def task(clients: int, learner: Logistic | None = None, **changes: Any) -> cafe.Task:
    rng = np.random.default_rng(8)
    data = Examples(rng.normal(size=(200, 3)), rng.integers(2, size=200))
    shards = Shards.of([rng.choice(200, 20) for _ in range(clients)])
    return cafe.Task(data, shards, learner or Logistic(3, 2, l2=0.1), batch=5, **changes)


def test_nothing_is_computed_that_is_thrown_away() -> None:
    """Late clients and failed rounds cost no gradient, nor do clients that crash."""
    who = cafe.Federation(30, cafe.Exponential(1.0))
    learner = Counting(3, 2, l2=0.1)
    history = cafe.simulate(
        who, mcu(quorum=14, deadline=0.5), task(30, learner), rounds=200, seed=1, crash=0.1
    )
    assert 0 < history.updates < history.rounds
    assert history.fates["late"] > 0
    assert history.fates["failed"] > 0
    assert learner.counted() == history.reports_used * 5


def test_a_rare_success_costs_what_it_trains() -> None:
    """MCU at M=35, T=0.3 succeeds in 2.8 % of rounds, and trains so much less than M=1."""
    who = cafe.Federation(100, cafe.Exponential(1.0))
    counts = {}
    for quorum in (1, 35):
        learner = Counting(3, 2, l2=0.1)
        cafe.simulate(
            who, mcu(quorum=quorum, deadline=0.3), task(100, learner), rounds=1500, seed=2
        )
        counts[quorum] = learner.counted()
    expected = {q: cafe.expect(who, quorum=q, deadline=0.3) for q in counts}
    share = {q: e.success_probability * e.reports_per_update for q, e in expected.items()}
    assert counts[35] / counts[1] == pytest.approx(share[35] / share[1], rel=0.4)
    assert counts[35] < 0.06 * counts[1]


def test_carried_work_is_computed_once_it_counts() -> None:
    who = cafe.Federation(30, cafe.Exponential(1.0))
    learner = Counting(3, 2, l2=0.1)
    policy = agu(quorum=14, deadline=0.5)
    history = cafe.simulate(who, policy, task(30, learner), rounds=200, seed=1)
    jobs = history.fates["fresh"]
    assert jobs > history.reports_used  # chains of several jobs were merged
    taken = learner.counted()
    assert taken <= 5 * 14 * jobs  # plain loops pad short local to the longest
    plain = Counting(3, 2, l2=0.1)
    cafe.simulate(who, mcu(quorum=14, deadline=0.5), task(30, plain), rounds=200, seed=1)
    assert plain.counted() < taken


def test_the_seed_reaches_everything() -> None:
    who = cafe.Federation(10, cafe.Exponential(1.0), availability=0.9)
    what = task(10)
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
    who, what = cafe.Federation(10, cafe.Exponential(1.0)), task(10)
    policy = mcu(quorum=2, deadline=0.5)
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()  # noqa: NPY002
    first = cafe.simulate(who, policy, what, rounds=10, seed=5)
    after = np.random.get_state()  # noqa: NPY002
    assert before[1].tobytes() == after[1].tobytes()  # type: ignore[index]
    np.random.seed(2)  # noqa: NPY002
    again = cafe.simulate(who, policy, what, rounds=10, seed=5)
    np.testing.assert_array_equal(first.model, again.model)


def test_policies_that_invite_everybody_meet_the_same_times() -> None:
    """Paired comparisons: where all are invited, times depend on seed, round and client alone."""
    who = cafe.Federation(20, cafe.Exponential(1.0), availability=0.8)
    kinds = (mcu(quorum=1, deadline=0.5), mcu(quorum=12, deadline=0.5), awu(deadline=0.5),
             agu(quorum=12, deadline=0.5))  # fmt: skip
    reports = [cafe.simulate(who, p, rounds=50, seed=1).by_round["reports"] for p in kinds]
    for other in reports[1:]:
        np.testing.assert_array_equal(reports[0], other)


def test_a_deadline_below_every_latency_ends() -> None:
    slow = cafe.Federation(5, cafe.ShiftedExponential(shift=2.0, rate=1.0))
    with pytest.raises(InfeasibleError) as refused:
        cafe.simulate(slow, mcu(quorum=1, deadline=0.5), updates=3, patience=40)
    message = str(refused.value)
    assert "40 rounds in a row" in message
    assert "deadline=0.5" in message
    run = Run(slow, mcu(quorum=1, deadline=0.5), patience=10**6)
    latencies = []
    for _ in range(40):
        run.step()
        latencies.append(run.failures.fastest)
    assert f"took {min(latencies):.4g}" in message
    assert f"client {run.failures.client}" in message
    assert min(latencies) > 2.0


def test_nobody_ever_there_ends_too() -> None:
    gone = cafe.Federation(3, cafe.Exponential(1.0), availability=1e-9)
    with pytest.raises(InfeasibleError, match="No client reported in them"):
        cafe.simulate(gone, mcu(quorum=1, deadline=0.5), updates=3, patience=10)


def test_failures_must_be_in_a_row() -> None:
    who = cafe.Federation(4, cafe.Exponential(1.0))
    history = cafe.simulate(who, mcu(quorum=3, deadline=0.7), rounds=400, patience=60)
    assert history.rounds - history.updates > 60


def test_one_lost_client_does_not_stop_a_round_for_ever() -> None:
    who = cafe.Federation(6, cafe.Exponential(1.0))
    with pytest.raises(InputError, match="absent or crashes would make it"):
        cafe.simulate(who, fedavg(fraction=1.0), rounds=50, crash=0.2)

    def until_all(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        return COMMIT if waiting.reports == 6 else Wait(reports=6)

    patient = replace(fedavg(fraction=1.0), close=until_all, target=None)
    with pytest.raises(InfeasibleError, match="would never end"):
        cafe.simulate(who, patient, rounds=50, crash=0.2)
    absent = cafe.Federation(6, cafe.Exponential(1.0), availability=0.9)
    with pytest.raises(InputError, match="absent or crashes would make it"):
        cafe.simulate(absent, fedavg(fraction=1.0), rounds=50)
    safe = fedavg(fraction=1.0, deadline=5.0)
    assert cafe.simulate(absent, safe, rounds=50, crash=0.2).rounds == 50
    # Nobody is lost: waiting for all is fine, and a round lasts as long as its slowest client.
    history = cafe.simulate(who, fedavg(fraction=1.0), rounds=50)
    assert history.updates == 50
    assert history.fates["fresh"] == 300


@pytest.mark.parametrize(
    ("attempt", "why"),
    [
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1.0)), "time is required"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1.0), rounds=0), "from 1 up"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1.0), rounds=2.5), "whole number"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1.0), time=-1), "positive number"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=6, deadline=1), rounds=1), "at most the number"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=3, deadline=1.0, cohort=2), rounds=1), r"\(2\)"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=3, deadline=1.0, cohort=9), rounds=1), "cohort"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1.0), rounds=1, seed=-1), "seed"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1), rounds=1, crash=1.0), "crash"),
        (lambda f: ill.simulate(f, ill.mcu, rounds=1), "Expected a policy"),
        (lambda f: ill.simulate(7, ill.mcu(quorum=1, deadline=1.0), rounds=1), "A federation"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1), task(4), rounds=1), "4 clients"),
        (lambda _: ill.mcu(quorum=0, deadline=1.0), "quorum must be a whole number"),
        (lambda _: ill.mcu(quorum=True, deadline=1.0), "quorum must be a whole number"),
        (lambda _: ill.mcu(quorum=1, deadline=0.0), "deadline must be a positive number"),
        (lambda _: ill.mcu(quorum=1, deadline=float("inf")), "must be finite. Got inf"),
        (lambda _: ill.mcu(quorum=1, deadline=float("nan")), "deadline must be a positive number"),
        (lambda _: ill.mcu(quorum=3, deadline=1.0, target=2), "at least the quorum"),
        (lambda _: ill.mcu(quorum=1, deadline=1.0, late="kep"), "Did you mean 'keep'"),
        (lambda _: ill.mcu(quorum=1, deadline=1.0, steps=0), "steps"),
        (lambda _: ill.awu(deadline=1.0, weight="unbiassed"), "Did you mean 'unbiased'"),
        (lambda _: ill.awu(deadline=1.0, unit="hours"), "Unknown unit"),
        (lambda _: ill.awu(deadline=1.0, weight="linear", unit="hours"), "Unknown unit"),
        (lambda _: ill.awu(deadline=1.0, weight=3), "Unknown weight '3'"),
        (lambda _: ill.awu(deadline=1.0, weight=["age"]), "Unknown weight"),
        (lambda _: ill.awu(deadline=1.0, unit=None), "Unknown unit"),
        (lambda _: ill.agu(quorum=1, deadline=1.0, pool=None), "Unknown pool"),
        (lambda _: ill.mcu(quorum=1, deadline=1.0, late=True), "late must be 'drop' or 'keep'"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1), "digits", rounds=1), "A task is"),
        (lambda _: ill.agu(quorum=1, deadline=1.0, pool="onion"), "Did you mean 'union'"),
        (lambda _: ill.fedavg(fraction=0.0), "fraction"),
        (lambda _: ill.fedavg(fraction="all"), "fraction"),
        (lambda _: ill.fedavg(epochs=5, steps=3), "needs one of steps, epochs and seconds"),
        (lambda _: ill.mcu(quorum=1, deadline=1.0, cohort=True), "A cohort"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1), time=float("inf")), "time must"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1), time="long"), "time must"),
        (lambda f: ill.simulate(f, ill.mcu(quorum=1, deadline=1), rounds=1, patience=1.5), "pati"),
        (lambda _: ill.fedavg(divisor="al"), "Did you mean 'all'"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_in_a_sentence(attempt: Any, why: str) -> None:
    with pytest.raises(CafeError, match=why):
        attempt(cafe.Federation(5, cafe.Exponential(1.0)))


def test_a_weight_that_is_not_one_is_refused() -> None:
    who = cafe.Federation(5, cafe.Exponential(1.0))
    for weight, why in ((lambda age: -age, "finite weight"), (lambda age: age[:1], "for each age"),
                        (lambda age: 0 * age, "weight above 0")):  # fmt: skip
        with pytest.raises(InputError, match=why):
            cafe.simulate(who, awu(deadline=1.0, weight=weight), rounds=5)


def test_logging_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    who, what = cafe.Federation(8, cafe.Exponential(1.0)), task(8)
    quiet = cafe.simulate(who, mcu(quorum=1, deadline=0.5), what, rounds=15, seed=1)
    shares: list[float] = []
    with caplog.at_level(logging.DEBUG):
        loud = cafe.simulate(
            who, mcu(quorum=1, deadline=0.5), what, rounds=15, seed=1, progress=shares.append
        )
    np.testing.assert_array_equal(quiet.model, loud.model)
    assert shares == sorted(shares)
    assert len(shares) == 15


def test_limits_end_a_run() -> None:
    who = cafe.Federation(10, cafe.Exponential(1.0))
    policy = mcu(quorum=5, deadline=0.5)
    by_rounds = cafe.simulate(who, policy, rounds=30, seed=1)
    assert by_rounds.rounds == 30
    by_updates = cafe.simulate(who, policy, updates=7, seed=1)
    assert by_updates.updates == 7
    assert by_updates.by_round["succeeded"][-1]
    by_time = cafe.simulate(who, policy, time=6.2, seed=1)
    assert by_time.virtual_time == 6.5
    both = cafe.simulate(who, policy, rounds=30, updates=7, seed=1)
    assert both.rounds == by_updates.rounds


def test_a_time_limit_is_met_in_spite_of_rounding() -> None:
    assert sum([0.1] * 10) < 1.0
    who = cafe.Federation(5, cafe.Exponential(1.0))
    for limit in (1.0, 100.0):
        history = cafe.simulate(who, mcu(quorum=1, deadline=0.1), time=limit)
        assert history.rounds == round(limit / 0.1)


def test_a_run_without_success_has_infinite_costs() -> None:
    who = cafe.Federation(10, cafe.ShiftedExponential(shift=2.0, rate=1.0))
    history = cafe.simulate(who, mcu(quorum=5, deadline=0.5), task(10), rounds=20)
    assert history.updates == 0
    assert history.waste_per_update == float("inf")
    assert history.broadcasts_per_update == float("inf")
    assert history.mean_age == pytest.approx(5.0)  # half of the ten time units that went by


def test_numbers_of_numpy_are_numbers() -> None:
    who = cafe.Federation(5, cafe.Exponential(1.0))
    plain = cafe.simulate(who, mcu(quorum=2, deadline=0.1), rounds=200, seed=3)
    policy = mcu(quorum=int(np.int64(2)), deadline=float(np.float64(0.1)))
    given: Any = (np.int64(200), np.int64(3))
    same = cafe.simulate(who, policy, rounds=given[0], seed=given[1])
    assert same.virtual_time == plain.virtual_time
    short: Any = np.float32(0.1)
    history = cafe.simulate(who, mcu(quorum=2, deadline=short), rounds=20_000, seed=3)
    assert history.virtual_time == pytest.approx(20_000 * float(short), rel=1e-9)


def test_a_model_that_diverged_gets_nothing_right() -> None:
    who = cafe.Federation(5, cafe.Exponential(1.0))
    history = cafe.simulate(who, mcu(quorum=1, deadline=0.5), task(5, rate=1e30), rounds=30)
    assert history.loss is not None
    assert not np.isfinite(history.loss)
    assert history.accuracy is None


def test_a_model_that_did_not_move_is_not_measured_again() -> None:
    who = cafe.Federation(20, cafe.Exponential(1.0))
    what = task(20)
    measured: list[int] = []
    score = what.learner.score

    def counting(*given: Any) -> Any:
        measured.append(1)
        return score(*given)

    object.__setattr__(what.learner, "score", counting)
    history = cafe.simulate(
        who, mcu(quorum=12, deadline=0.5), what, rounds=300, seed=1, evaluate_every=1
    )
    assert history.updates <= len(measured) <= history.updates + 1 < 300
    assert history.curve is not None
    assert len(history.curve) == 300
    object.__delattr__(what.learner, "score")
    by_updates = cafe.simulate(who, mcu(quorum=12, deadline=0.5), what, updates=7, seed=1)
    assert by_updates.curve is not None
    assert len(by_updates.curve) == 7


def test_walks_have_the_promised_shape() -> None:
    local = LocalSteps(np.zeros((2, 3, 4), dtype=np.intp), np.ones((2, 3, 4), dtype=np.float32),
                  np.ones((2, 3), dtype=np.float32))  # fmt: skip
    longer = local.then(
        LocalSteps(np.zeros((2, 1, 6), dtype=np.intp), np.ones((2, 1, 6), dtype=np.float32),
              np.ones((2, 1), dtype=np.float32))
    )  # fmt: skip
    assert longer.rows.shape == (2, 4, 6)
    assert longer.weight[:, :3, 4:].sum() == 0
