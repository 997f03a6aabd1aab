"""Vectors for clients, and frozen parameters, on real clients: the engine's, to rounding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.controllers import Fixed
from cafe.engine import Run
from cafe.errors import InputError
from cafe.live.aggregation import GlobalModel
from cafe.live.client_work import ClientContext, Job, Trained, work
from cafe.live.live_run import LiveRun
from cafe.live.model_layout import Arrays
from cafe.live.snapshot import restore, save
from cafe.live.validation import ReportLimits
from cafe.live.wire import Order, Report
from cafe.policies import agu
from cafe.randomness import Stream
from cafe.rounds import Merge, Policy, Work
from cafe.testing import engine_trainer, split_in_two
from cafe.testing.comparison import ROUNDING, Check
from tests.support.policies import federation, task
from tests.support.vectors import POLICIES, bad, everybody, freezing, once, points, steady
from tests.support.virtual_runs import VirtualWire, live, random_step, start


def begin(what: cafe.Task, seed: int) -> Arrays:
    return split_in_two(what.learner.save(what.learner.start(Stream(seed, "start").at(0))))


@pytest.mark.parametrize("policy", [*POLICIES, freezing(0.02)], ids=lambda p: p.name)
def test_same_books_and_same_model(policy: Policy) -> None:
    seed, what, who = 7, task(), federation(0.8)
    wire = VirtualWire(who, seed, train=engine_trainer(what, seed), task=what, crash=0.1)
    limits = ReportLimits(clip=None)  # the engine does not clip
    mine = live(wire, policy, model=begin(what, seed), report_limits=limits)
    theirs = Run(who, policy, what, seed=seed, crash=0.1)
    moved, check = 0.0, Check(policy, "live = engine")
    for _ in range(12):
        ours, its = mine.step().outcome, theirs.step()
        check.same_outcome(ours, its, ("the live run", "the engine"), ROUNDING)
        expected = theirs.history().model
        assert expected is not None
        moved = max(moved, float(np.abs(expected).max()))
        np.testing.assert_allclose(mine.model, expected, atol=1e-5 * max(moved, 1.0))
    assert moved > 0.01
    assert any(order.offset or order.frozen for order in wire.orders)


@pytest.mark.parametrize("after", [1, 2, 6])
def test_restarted_server_has_its_vectors(after: int) -> None:
    seed, what, policy = 3, task(), everybody(5)

    def made(wire: VirtualWire) -> LiveRun:
        return live(wire, policy, model=begin(what, seed))

    def wire() -> VirtualWire:
        return VirtualWire(federation(), seed, train=engine_trainer(what, seed), task=what)

    whole = made(wire())
    for _ in range(9):
        whole.step()
    first_wire = wire()
    first = made(first_wire)
    for _ in range(after):
        first.step()
    state = save(first)
    second = LiveRun(first_wire, Fixed(policy), GlobalModel(begin(what, seed)), seed=seed)
    restore(second, state)
    assert {k: v.tobytes() for k, v in save(second).items()} == {
        k: v.tobytes() for k, v in state.items()
    }
    assert any(name.startswith("vector.") for name in state)
    second.refresh_clients()
    for _ in range(after, 9):
        second.step()
    np.testing.assert_allclose(second.model, whole.model, rtol=1e-5, atol=1e-6)


def test_run_without_vectors_saves_none() -> None:
    run = live(wire := VirtualWire(federation(), 1), cafe.policies.mcu(quorum=2, deadline=0.5))
    run.step()
    assert not any("vector" in name for name in save(run))
    assert b"vectors" not in bytes(save(run)["meta"])
    assert all(order.offset is None is order.frozen for order in wire.orders)


def test_offsets_are_split_like_the_model() -> None:
    """Client k adds 10 k + 1 to 8 entries, beside 100 for all."""
    own = np.arange(8.0) + 10.0 * np.arange(3)[:, None] + 1.0
    policy = once(offset=own, common=np.full(8, 100.0), frozen=np.arange(8) == 6)
    wire = VirtualWire(steady(3), 1, train=still)
    run = live(wire, policy)
    run.step()
    assert all(order.offset is None is order.frozen for order in wire.orders)
    wire.orders.clear()
    outcome = run.step().outcome
    assert outcome.bytes_down == 2 * 3 * 8 * 4
    for order in wire.orders:
        assert order.offset is not None
        assert order.frozen is not None
        assert [*order.offset] == [*order.frozen] == ["weight", "bias"]
        first = 101.0 + 10.0 * order.number
        expected = first + np.arange(6).reshape(2, 3)
        np.testing.assert_array_equal(order.offset["weight"], expected)
        np.testing.assert_array_equal(order.offset["bias"], [first + 6, first + 7])
        assert order.offset["bias"].dtype == np.float32
        assert not order.frozen["weight"].any()
        assert order.frozen["bias"].tolist() == [True, False]


def still(model: Arrays, job: Job) -> Trained:
    """Training that changes nothing."""
    return Trained(model, 1, steps=1)


def test_clients_without_vectors_of_their_own_share_one_object() -> None:
    wire = VirtualWire(steady(3), 1, train=still)
    run = live(wire, once(common=np.ones(8)))
    run.step()
    wire.orders.clear()
    run.step()
    assert len({id(order.offset) for order in wire.orders}) == 1


CONTEXT = ClientContext(run="r")
ORDER = Order("c", 0, 1, 1, 0, work=Work(prox=0.5))
MODEL: Arrays = {"w": np.array([1.0, 2.0], np.float32), "n": np.array(3)}


def test_pull_adds_prox_and_offset() -> None:
    """0.5 (5 - 1) + 10 = 12 and 0.5 (6 - 2) - 1 = 1."""
    seen: list[Any] = []

    def train(model: Arrays, job: Job) -> Arrays:
        seen.append(job.pull("w", np.array([5.0, 6.0])))
        return model

    work(train, replace(ORDER, offset={"w": np.array([10.0, -1.0], np.float32)}), MODEL, CONTEXT)
    work(train, ORDER, MODEL, CONTEXT)
    assert [each.tolist() for each in seen] == [[12.0, 1.0], [2.0, 2.0]]


def test_frozen_parameters_are_reported_as_unmoved() -> None:
    """Even if the training function changes them."""
    order = replace(ORDER, frozen={"w": np.array([True, False])}, carry=True)
    report, kept = work(lambda model, job: {**model, "w": model["w"] + 9}, order, MODEL, CONTEXT)
    assert report is not None
    assert report.update["w"].tolist() == [0.0, 9.0]
    assert report.update["w"].dtype == np.float32
    assert kept[0].model["w"].tolist() == [1.0, 11.0]


@pytest.mark.parametrize(
    "vectors",
    [
        {"offset": {"w": np.zeros(3, np.float32)}},
        {"offset": {"v": np.zeros(2, np.float32)}},
        {"offset": {"w": np.zeros(2, np.int64)}},
        {"frozen": {"w": np.zeros((2, 1), bool)}},
        {"frozen": {"w": np.zeros(2, np.float32)}},
    ],
)
def test_vectors_of_another_model_are_refused(vectors: Any) -> None:
    with pytest.raises(InputError, match="must have the shapes of the arrays that are learned"):
        work(lambda model, job: model, replace(ORDER, **vectors), MODEL, CONTEXT)


def test_a_report_that_moves_frozen_parameters_is_refused() -> None:
    def tamper(report: Report, order: Order) -> Report:
        moved = {name: array + np.float32(0.1) for name, array in report.update.items()}
        return replace(report, update=moved) if order.number == 1 else report

    wire = VirtualWire(steady(3), 1, train=random_step, tamper=tamper)
    run = live(wire, once(frozen=np.arange(8) == 6))
    assert run.step().outcome.used == 3
    before = run.model.copy()
    played = run.step()
    assert played.outcome.used == 2
    assert [r.reason for r in played.records if r.fate == "refused"] == [
        "it changes parameters of bias that are frozen"
    ]
    assert (run.model == before).tolist() == [k == 6 for k in range(8)]


@pytest.mark.parametrize("name", ["offset", "common", "frozen"])
def test_vectors_exclude_local_models(name: str) -> None:
    base = agu(quorum=6, deadline=0.4, pool="union")

    def merge(ledger: Any, reports: Any) -> Merge:
        vectors: Any = {
            "offset": np.zeros((len(reports), 8)),
            "common": np.zeros(8),
            "frozen": np.zeros(8, dtype=bool),
        }
        return replace(base.merge(ledger, reports), **{name: vectors[name]})

    policy = replace(base, name="union", merge=merge, needs=base.needs | {"updates"}, parameters={})
    run = live(VirtualWire(federation(), 1), policy)
    with pytest.raises(InputError, match="union must not combine local models"):
        [run.step() for _ in range(50)]


def test_wrong_vectors_are_refused_and_nothing_of_a_failed_round_is_kept() -> None:
    run = live(VirtualWire(steady(2), 1), bad(common=np.ones(7)))
    with pytest.raises(InputError, match=r"numbers of shape \(8,\) as common"):
        run.step()

    def merge(ledger: Any, reports: Any) -> Merge:
        return Merge(np.full(len(reports), 1e300), common=np.ones(8))

    run = live(VirtualWire(steady(2), 1), replace(once(), merge=merge))
    assert not run.step().outcome.succeeded
    assert not run.vectors.used


def test_secure_aggregation_refuses_offsets() -> None:
    policy = replace(once(), needs=frozenset({"offsets"}))
    with pytest.raises(InputError, match="needs offsets of single clients"):
        LiveRun(
            VirtualWire(steady(2)), Fixed(policy), GlobalModel(start()), secure_aggregation=True
        )


def test_two_vectors_by_hand() -> None:
    """Points 0 and 4, vectors 2 and 4 of their own and 1 for both, as in the engine's test."""
    what = points(0.0, 4.0)
    policy = once(offset=np.array([[2.0], [4.0]]), common=np.array([1.0]))
    wire = VirtualWire(steady(2), 1, train=engine_trainer(what, 1), task=what)
    run = live(wire, policy, model={"w": np.zeros(1, np.float32)})
    found = []
    for _ in range(4):
        run.step()
        found.append(run.model.tolist())
    assert found == [[1.0], [-0.5], [-1.25], [-1.625]]
