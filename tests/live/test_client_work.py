"""The client's side: it trains, stops at its deadline, and carries its local model."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cafe
from cafe.errors import InputError
from cafe.live.client_work import ClientContext, Job, LocalModel, TooLateError, Trained, work
from cafe.live.model_layout import Arrays
from cafe.live.validation import ReportLimits
from cafe.live.wire import Order
from cafe.policies import agu
from cafe.rounds.jobs import Work
from tests.support.virtual_runs import VirtualWire, live, start

CONTEXT = ClientContext(run="r")
ORDER = Order("c000", 4, round=7, version=3, seed=5, work=Work(2), seconds=10.0, invitation=9)
CARRY = replace(ORDER, carry=True)
GLOBAL: Arrays = {"w": np.array([10.0, 20.0], np.float32), "n": np.array(3)}


def plus(step: float) -> Callable[[Arrays, Job], Arrays]:
    """Training that adds a number; whole ones are exact in float32."""
    return lambda model, job: {"w": model["w"] + np.float32(step), "n": model["n"] + 1}


class Watch:
    """A clock that is moved by hand."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_a_report() -> None:
    report, kept = work(plus(2), ORDER, GLOBAL, replace(CONTEXT, label="me"))
    assert report is not None
    assert (report.invitation, report.version, report.carried, report.label) == (9, 3, False, "me")
    assert list(report.update) == ["w"]  # what is not learned is not sent
    assert report.update["w"].tolist() == [2.0, 2.0]
    assert report.update["w"].dtype == np.float32
    assert kept == ()
    assert GLOBAL["w"].tolist() == [10.0, 20.0]


def test_training_may_change_its_arrays_in_place() -> None:
    def train(model: Arrays, job: Job) -> Arrays:
        model["w"] += 1
        return model

    _, kept = work(train, CARRY, GLOBAL, CONTEXT)
    order = replace(CARRY, round=8, invitation=10, after=9, began=3)
    second, second_kept = work(train, order, GLOBAL, CONTEXT, local_models=kept)
    third, third_kept = work(train, order, GLOBAL, CONTEXT, local_models=kept)
    assert GLOBAL["w"].tolist() == [10.0, 20.0]
    for report, after in ((second, second_kept), (third, third_kept)):
        assert report is not None
        assert report.update["w"].tolist() == [2.0, 2.0]
        assert after[0].model["w"].tolist() == [11.0, 21.0]


def test_training_gets_the_job_and_the_settings() -> None:
    seen: list[Job] = []

    def train(model: Arrays, job: Job) -> Arrays:
        seen.append(job)
        return model

    work(train, ORDER, GLOBAL, replace(CONTEXT, settings={"path": "x"}, config={"rate": 0.1}))
    (job,) = seen
    assert (job.client, job.number, job.round, job.version, job.invitation) == ("c000", 4, 7, 3, 9)
    assert (job.work, job.seed, job.settings, job.config) == (
        Work(2),
        5,
        {"path": "x"},
        {"rate": 0.1},
    )
    assert job.rng().random() == job.rng().random()
    others = [replace(job, invitation=8), replace(job, number=5), replace(job, seed=6)]
    assert len({job.rng().random(), *(other.rng().random() for other in others)}) == 4


def job_of(work: Work, **more: Any) -> Job:
    usual: dict[str, Any] = {"clock": Watch(), "began": 0.0}
    return Job("c000", number=4, round=7, version=3, work=work, seed=5, **usual | more)


@pytest.mark.parametrize("asked", [Work(steps=7), Work(epochs=2), Work(seconds=60.0)], ids=str)
def test_batches_of_each_kind_of_work_are_the_same_passes(asked: Work) -> None:
    """Ten examples in batches of four: passes of three batches, each in another order."""
    found = [*itertools.islice(job_of(asked).batches(10, 4), 7)]
    sizes = [4, 4, 2, 4, 4, 2, 4]
    assert [len(rows) for rows in found] == sizes[: 6 if asked.epochs else 7]
    first, second = (np.concatenate(found[k : k + 3]) for k in (0, 3))
    assert sorted(first) == sorted(second) == [*range(10)]
    assert first.tolist() != second.tolist()
    # A replay takes the steps that a client reports, whatever limited them.
    again = [*job_of(Work(steps=len(found))).batches(10, 4)]
    assert [rows.tolist() for rows in again] == [rows.tolist() for rows in found]


@pytest.mark.parametrize(
    ("asked", "more"),
    [(Work(seconds=2.5), {}), (Work(epochs=9, partial=True), {"until": 2.5})],
    ids=["seconds", "partial"],
)
def test_batches_end_when_the_time_is_over(asked: Work, more: Any) -> None:
    watch = Watch()
    taken = 0
    for _ in job_of(asked, clock=watch, **more).batches(10, 4):
        watch.now += 1.0
        taken += 1
    assert taken == 3
    watch.now = 100.0
    assert len([*job_of(asked, clock=watch, **more).batches(10, 4)]) == 1


@given(now=st.floats(-1e9, 1e9), seconds=st.floats(0.5, 1e4), waited=st.floats(0, 1e4))
def test_deadline_is_measured_on_the_clients_clock(
    now: float, seconds: float, waited: float
) -> None:
    watch = Watch(now)

    def train(model: Arrays, job: Job) -> Arrays:
        watch.now = now + waited
        assert job.left() == pytest.approx(seconds - waited, abs=1e-6)
        assert job.go_on() == (watch.now < now + seconds)
        if job.go_on():
            job.check()
        else:
            with pytest.raises(TooLateError):
                job.check()
        return model

    order = replace(ORDER, seconds=seconds)
    report, _ = work(train, order, GLOBAL, replace(CONTEXT, clock=watch))
    assert (report is None) == (watch.now > now + seconds)


def test_wall_clock_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    for step in (1e6, -1e6):
        walls = itertools.count(1e9, step)  # the wall clock changes at every reading
        monkeypatch.setattr(time, "time", lambda walls=walls: next(walls))
        assert work(plus(1), ORDER, GLOBAL, CONTEXT)[0] is not None


def test_time_before_training_counts() -> None:
    watch = Watch(100.0)
    report, _ = work(plus(1), ORDER, GLOBAL, replace(CONTEXT, clock=watch), received=92.0)
    assert report is not None
    assert report.took == 0.0
    assert work(plus(1), ORDER, GLOBAL, replace(CONTEXT, clock=watch), received=89.0)[0] is None


def test_without_a_deadline_no_client_is_late() -> None:
    def train(model: Arrays, job: Job) -> Arrays:
        watch.now += 1e12
        job.check()
        return model

    watch = Watch()
    report, _ = work(train, replace(ORDER, seconds=None), GLOBAL, replace(CONTEXT, clock=watch))
    assert report is not None
    assert report.took == 1e12


def too_late(model: Arrays, job: Job) -> Arrays:
    raise TooLateError


def slow(watch: Watch) -> Callable[[Arrays, Job], Arrays]:
    def train(model: Arrays, job: Job) -> Arrays:
        watch.now += 11.0
        return model

    return train


def test_late_client_keeps_its_local_models() -> None:
    watch = Watch()
    before = LocalModel("r", 5, 2, GLOBAL, {"w": np.ones(2, np.float32)})
    order = replace(CARRY, after=5, began=2)
    for train in (too_late, slow(watch)):
        report, kept = work(
            train, order, GLOBAL, replace(CONTEXT, clock=watch), local_models=[before]
        )
        assert report is None
        assert kept == (before,)


def test_carried_updates_add_up() -> None:
    """10 + 1, then + 2 although the global model has changed, then + 4: exactly."""
    _, kept = work(plus(1), CARRY, GLOBAL, CONTEXT)
    assert [(m.invitation, m.began) for m in kept] == [(9, 3)]
    moved = {"w": np.array([500.0, 600.0], np.float32), "n": np.array(9)}
    order = replace(CARRY, round=8, invitation=10, version=4, after=9, began=3)
    two, two_kept = work(plus(2), order, moved, CONTEXT, local_models=kept)
    assert two is not None
    assert (two.carried, two.version) == (True, 3)
    assert two.update["w"].tolist() == [3.0, 3.0]
    assert [(m.invitation, m.began) for m in two_kept] == [(9, 3), (10, 3)]
    assert two_kept[1].model["w"].tolist() == [13.0, 23.0]
    # The server may name the newest, or the one before if it did not get the last report.
    for after, expected in ((10, 7.0), (9, 5.0)):
        order = replace(CARRY, round=9, invitation=11, version=4, after=after, began=3)
        three, three_kept = work(plus(4), order, moved, CONTEXT, local_models=two_kept)
        assert three is not None
        assert three.update["w"].tolist() == [expected, expected]
        assert [m.invitation for m in three_kept] == [after, 11]


@pytest.mark.parametrize(
    "local_model",
    [
        None,
        LocalModel("another", 9, 3, {"w": np.full(2, 99.0, np.float32)}, {}),
        LocalModel("r", 7, 3, {"w": np.full(2, 99.0, np.float32)}, {}),
        LocalModel("r", 9, 2, {"w": np.full(2, 99.0, np.float32)}, {}),
    ],
    ids=["none", "another run", "another job", "another version"],
)
def test_only_the_named_local_model_is_used(local_model: LocalModel | None) -> None:
    order = replace(CARRY, round=8, invitation=10, version=4, after=9, began=3)
    before = () if local_model is None else (local_model,)
    report, kept = work(plus(2), order, GLOBAL, CONTEXT, local_models=before)
    assert report is not None
    assert (report.carried, report.version) == (False, 4)
    assert report.update["w"].tolist() == [2.0, 2.0]
    assert [(m.invitation, m.began) for m in kept] == [(10, 4)]
    assert kept[0].model["w"].tolist() == [12.0, 22.0]


def test_client_starts_from_the_global_model_unless_told_to_continue() -> None:
    before = LocalModel(
        "r", 9, 3, {"w": np.full(2, 99.0, np.float32)}, {"w": np.ones(2, np.float32)}
    )
    report, _ = work(
        plus(2), replace(CARRY, round=8, invitation=10), GLOBAL, CONTEXT, local_models=[before]
    )
    assert report is not None
    assert report.update["w"].tolist() == [2.0, 2.0]
    assert not report.carried


def test_local_model_is_kept_only_if_the_order_carries() -> None:
    assert work(plus(2), ORDER, GLOBAL, CONTEXT)[1] == ()


def test_numpy_numbers_become_plain_numbers() -> None:
    trained = Trained(GLOBAL, examples=np.int64(9), loss=np.float32(0.5))  # type: ignore[arg-type]
    report = work(lambda model, job: trained, ORDER, GLOBAL, CONTEXT)[0]
    assert report is not None
    assert (type(report.examples), type(report.loss)) == (int, float)
    assert (report.examples, report.loss) == (9, 0.5)
    assert report.update["w"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({}, "must return the arrays that it was given, w, n. Got none"),
        ({"w": GLOBAL["w"]}, "Got w"),
        (GLOBAL | {"more": np.zeros(1)}, "Got w, n, more"),
        (GLOBAL | {"w": np.zeros(3)}, r"w has \(2,\). Got \(3,\)"),
    ],
)
def test_training_must_return_the_model(answer: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        work(lambda model, job: answer, ORDER, GLOBAL, CONTEXT)


def test_results_are_converted_to_the_types_of_the_model() -> None:
    answer = {"w": [11.0, 21.0], "n": 99}
    report, kept = work(lambda model, job: answer, CARRY, GLOBAL, CONTEXT)
    assert report is not None
    assert report.update["w"].dtype == np.float32
    assert kept[0].model["n"] == 3


def test_client_does_not_know_that_its_report_was_late() -> None:
    """The server did not get round 1's report: it names round 0's model, and sums are exact."""
    wire = VirtualWire(
        cafe.Federation(2, cafe.Constant(0.2)),
        train=lambda model, job: {n: a + np.float32(2.0**job.round) for n, a in model.items()},
    )
    heard: dict[int, list[Any]] = {}

    def behave(order: Order) -> str:
        if order.number == 1:
            return "silent" if order.round < 2 else "report"
        return "late" if order.round == 1 else "report"

    def tamper(report: Any, order: Order) -> Any:
        heard[order.round] = [report.update["bias"][0], order.after, report.carried]
        return report

    wire.behave, wire.tamper = behave, lambda r, o: tamper(r, o) if o.number == 0 else r
    run = live(wire, agu(quorum=2, deadline=0.5), report_limits=ReportLimits(clip=None))
    assert [run.step().outcome.succeeded for _ in range(3)] == [False, False, True]
    # Round 0 gave 1; round 1's 2 was lost on the way; round 2 adds 4 to what round 0 gave.
    assert heard == {0: [1.0, None, False], 1: [3.0, 0, True], 2: [5.0, 0, True]}
    # The other one reports 4 in round 2: the mean is 4.5 more than at the start.
    np.testing.assert_array_equal(run.arrays["bias"], start()["bias"] + np.float32(4.5))


def test_partial_work_stops_in_time_and_is_reported() -> None:
    """The server waits 10 s, 3 of them for transfers: steps of 2 s start at 0, 2, 4 and 6."""
    clock = Watch(100.0)

    def train(model: Arrays, job: Job) -> Trained:
        steps = 0
        while job.go_on():
            job.check()  # never leaves partial work
            clock.now += 2.0
            steps += 1
        job.check()
        return Trained({"w": model["w"] + np.float32(steps), "n": model["n"]}, steps=steps)

    order = replace(ORDER, work=Work(9, partial=True), reserve=3.0)
    report = work(train, order, GLOBAL, replace(CONTEXT, clock=clock))[0]
    assert report is not None
    assert (report.steps, report.took) == (4, 8.0)
    assert report.update["w"].tolist() == [4.0, 4.0]
    clock.now = 100.0
    timed = replace(ORDER, work=Work(seconds=5.0))  # begun at 0, 2 and 4
    report = work(train, timed, GLOBAL, replace(CONTEXT, clock=clock))[0]
    assert report is not None
    assert report.steps == 3
