"""Whatever clients do, every job has one record with one fate, and the books count the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cafe
from cafe.learn.base import Score
from cafe.live import Job, Trained
from cafe.live.job_records import REUSED, JobRecord, OpenRound, changed_fields, count_fates, digest
from cafe.live.live_run import LiveRun
from cafe.live.wire import Order, Reply, Report
from cafe.policies import agu, awu, mcu
from cafe.rounds import (
    Policy,
)
from cafe.rounds.jobs import Running, Status, Work
from cafe.rounds.outcome import Fate, Outcome
from tests.support.chaos import Chaos, picky, play
from tests.support.policies import EVERY, RECIPES, SEEING, greedy, tolerant
from tests.support.virtual_runs import WAYS, VirtualWire, exponential, live, random_step

MERGED = ("fresh", "stale")


POLICIES = [
    picky(),
    *(policy for some in RECIPES.values() for policy in some),
    *(replace(p, needs=frozenset({"local models"})) for p in (greedy(0.4), tolerant(0.5, 3))),
]


def assert_conserved(run: LiveRun, wire: VirtualWire, records: list[JobRecord]) -> None:
    sent = Counter((order.number, order.invitation) for order in wire.orders)
    open_ = [record for chain in run.kept_records.chains.values() for record in chain]
    open_ += run.records
    assert [r.client for r in run.records] == run.running.client.tolist()
    ended = [record for record in records if record.fate != REUSED]
    assert all(record.fate == "" for record in open_)
    assert Counter((record.client, record.invitation) for record in [*ended, *open_]) == sent
    assert max(sent.values(), default=1) == 1
    history = run.history()
    assert history.open_jobs == len(open_)
    assert history.fates == count_fates(records)
    assert history.jobs == len(wire.orders)

    assert all((r.merged is not None) == (r.fate in (*MERGED, REUSED)) for r in records)
    assert all((r.fate == "refused") <= bool(r.reason) for r in records)
    assert sum(r.fate == "refused" for r in records) == sum(run.clients.refusals)
    reused = Counter(record.booked for record in records if record.fate == REUSED)
    assert [reused[k] for k in range(len(run.outcomes))] == [o.reused for o in run.outcomes]
    assert_weights(run, records)


def assert_weights(run: LiveRun, records: list[JobRecord]) -> None:
    """The coefficients in the records are those in the books."""
    used = [record for record in records if record.coefficient is not None]
    merges = [outcome.used for outcome in run.outcomes]
    assert [sum(r.booked == k for r in used) for k in range(len(merges))] == merges
    weight = np.zeros(run.ledger.clients)
    np.add.at(weight, [r.client for r in used], [r.coefficient or 0.0 for r in used])
    np.testing.assert_allclose(weight, run.books.weight, atol=1e-9)
    merged = np.bincount([r.client for r in used], minlength=run.ledger.clients)
    np.testing.assert_array_equal(merged, run.ledger.merged)


def assert_waste(run: LiveRun, records: list[JobRecord]) -> None:
    """Every job that was discarded is charged from its start to the close of its round."""
    closed = np.array([outcome.closed for outcome in run.outcomes])
    waste = np.zeros(len(closed))
    for record in records:
        if record.fate not in (*MERGED, REUSED):
            at = record.booked
            if record.arrived is not None:
                at = int(np.searchsorted(closed, record.arrived - 1e-9))
            waste[record.booked] += closed[at] - record.start
    np.testing.assert_allclose([o.waste for o in run.outcomes], waste, atol=1e-6)


@given(
    policy=st.sampled_from(POLICIES),
    seed=st.integers(0, 2**32),
    share=st.floats(0, 1),
    notices=st.sampled_from([0.0, 0.7, 1.0]),
)
@settings(max_examples=40, deadline=None)
@pytest.mark.slow
def test_every_job_has_one_fate(policy: Policy, seed: int, share: float, notices: float) -> None:
    chaos = Chaos(seed, share)
    wire = VirtualWire(exponential(7, 2.0), seed, notices=notices)
    wire.behave, wire.on_poll = chaos, chaos.look
    run = live(wire, policy)
    records = play(run, 14)
    assert_conserved(run, wire, records)
    assert_waste(run, records)
    assert np.isfinite(run.model).all()
    assert run.ledger.version == sum(outcome.succeeded for outcome in run.outcomes)


def test_report_dropped_later_keeps_its_fate() -> None:
    wire = VirtualWire(exponential(7, 2.0), 1)
    run = live(wire, picky())
    records = play(run, 20)
    assert_conserved(run, wire, records)
    assert {"over", "fresh", "stale"} <= {record.fate for record in records}


FATES = {
    "report": {"fresh", "over", "late"},
    "twice": {"fresh", "over", "late"},
    "lost": {"crashed"},
    "unreachable": {"absent"},
    "stopped": {"late"},
    "silent": {"late"},
    "late": {"late"},
    "malformed": {"refused"},
    "not finite": {"refused"},
}


@pytest.mark.parametrize("way", WAYS)
def test_behaviour_of_a_client_determines_its_fate(way: str) -> None:
    wire = VirtualWire(cafe.Federation(4, cafe.Uniform(0.1, 0.4)))
    wire.behave = lambda order: way if order.number == 2 else "report"
    run = live(wire, mcu(quorum=1, deadline=0.5))
    (record,) = [r for r in run.step().records if r.client == 2]
    assert record.fate in FATES[way]
    others = run.outcomes[0].fates[Fate.FRESH]
    assert others == (4 if way in ("report", "twice") else 3)
    # A job that is not merged is charged the whole round; no other job is charged.
    assert run.outcomes[0].waste == pytest.approx(0.5 * (4 - others))
    assert run.outcomes[0].absent_waste == pytest.approx(0.5 * (record.fate == "absent"))


@pytest.mark.parametrize("policy", EVERY, ids=str)
def test_replies_without_an_open_job_are_ignored(policy: Policy) -> None:
    policy = replace(policy, needs=policy.needs | {"local models"})

    def outcomes(noisy: bool) -> tuple[list[str], bytes]:
        wire = VirtualWire(exponential(12, 2.0), 4)
        wire.behave = lambda order: "twice" if noisy else "report"
        run = live(wire, policy)
        said = []
        for n in range(6):
            if noisy:
                old = [Reply(f"{k:06d}", lost="long ago") for k in range(len(wire.orders) // 2)]
                known = set(run.dispatcher.tickets)
                wire.strays = [reply for reply in old if reply.ticket not in known]
                wire.strays.append(Reply(f"never-{n}", stopped=True))
            said.append(f"{run.step().outcome}")
        return said, run.model.tobytes()

    assert outcomes(noisy=True) == outcomes(noisy=False)


def test_second_reply_does_not_replace_the_first() -> None:
    wire = VirtualWire(cafe.Federation(2, cafe.Constant(0.1)))
    run = live(wire, mcu(quorum=2, deadline=1.0))
    first: list[str] = []

    def tamper(report: Report, order: Order) -> Report:
        first.append(f"{len(first) + 1:06d}")
        return report

    wire.tamper = tamper
    original = wire.receive

    def receive(tickets: Any) -> Any:
        # Known tickets as well, though they have been answered.
        return [*original(tickets), *(Reply(t, lost="too late") for t in first if wire.t > 0.15)]

    wire.receive = receive  # type: ignore[method-assign]
    assert run.step().outcome.fates[Fate.FRESH] == 2


@pytest.mark.parametrize(
    "policy", [mcu(quorum=1, deadline=0.5, late="keep"), awu(deadline=0.5, late="keep")], ids=str
)
def test_client_that_gives_up_does_not_block_the_round(policy: Policy) -> None:
    """A client may report that it has stopped although it was not asked to."""
    wire = VirtualWire(cafe.Federation(3, cafe.Uniform(0.1, 0.4)))
    wire.behave = lambda order: "stopped" if order.round == 0 and order.number else "report"
    run = live(wire, policy)
    records = play(run, 3)
    assert_conserved(run, wire, records)
    assert [r.fate for r in records if r.round == 0] == ["fresh", "late", "late"]
    assert run.ledger.merged.tolist() == [3, 2, 2]
    assert set(run.global_model.versions) == {3}


def test_lost_local_model_is_detected_and_the_run_continues() -> None:
    """A client that lost its local model starts from the global one; its earlier job fails."""
    wire = VirtualWire(cafe.Federation(3, cafe.Uniform(0.1, 0.4)))
    wire.behave = lambda order: "silent" if order.round == 0 and order.number == 2 else "report"
    run = live(wire, agu(quorum=3, deadline=0.5))
    assert not run.step().outcome.succeeded
    del wire.local_models["c000"]
    played = run.step()
    assert played.lost_carries == ["c000"]
    fates = Counter((r.client, r.round, r.fate, r.carried) for r in played.records)
    assert fates == Counter(
        [
            (0, 0, "failed", False), (0, 1, "fresh", False),
            (1, 0, "fresh", False), (1, 1, "fresh", True),
            (2, 1, "fresh", False),
        ]
    )  # fmt: skip


REPORT = Report({}, invitation=3, version=1, took=0.2, steps=4, vector=np.ones(2, np.float32))


def open_round(*records: JobRecord, local: bool = False) -> OpenRound:
    """An open round with one job per record."""
    n = len(records)
    jobs = Running(
        client=np.array([record.client for record in records]),
        start=np.zeros(n),
        version=np.full(n, 2),
        round=np.zeros(n, dtype=np.int64),
        local=np.full(n, local),
        invitation=np.array([record.invitation for record in records]),
        steps=np.ones(n, dtype=np.int64),
        note=np.zeros(n),
        arrival=np.full(n, np.inf),
        stop=np.full(n, np.inf),
        status=np.zeros(n, dtype=np.int8),
        trained=np.zeros(n),
    )
    round_ = OpenRound(Outcome(0, 0.0, 0.0, False), Running.empty(), [])
    round_.add(jobs, [*records])
    return round_


def job(client: int) -> JobRecord:
    return JobRecord(client, f"c{client}", 0, 1, True, 0.0, invitation=3)


def test_an_accepted_report_is_in_the_table_and_in_the_record() -> None:
    round_ = open_round(job(4), job(7))
    assert round_.awaited.tolist() == [True, True]
    round_.accept(1, REPORT, 0.5)
    assert round_.row((7, 3)) == 1
    assert round_.awaited.tolist() == [True, False]
    assert round_.arrived_by(0.5).tolist() == [False, True]
    assert round_.arrived_by(0.4).tolist() == [False, False]
    assert round_.arrived_by(np.inf).tolist() == [False, True]
    assert (round_.jobs.steps[1], round_.jobs.trained[1], round_.jobs.stop[1]) == (4, 0.2, 0.5)
    record = round_.records[1]
    assert (record.arrived, record.took, record.steps) == (0.5, 0.2, 4)
    assert record.digest == digest(np.ones(2, np.float32))
    assert round_.lost == 0


def test_a_report_that_did_not_continue_from_its_local_model() -> None:
    round_ = open_round(job(4), local=True)
    round_.accept(0, REPORT, 0.5)
    assert round_.lost_carries == ["c4"]
    assert (round_.records[0].carried, round_.records[0].version) == (False, 2)
    assert not round_.jobs.local[0]


def test_a_job_that_ends_without_a_report() -> None:
    round_ = open_round(job(4), job(7))
    round_.end(0, Status.REFUSED, 0.5, "too large")
    assert round_.awaited.tolist() == [False, True]
    assert (round_.lost, round_.records[0].reason, round_.records[0].arrived) == (
        1,
        "too large",
        None,
    )


def test_a_digest_changes_with_every_bit() -> None:
    one = np.array([1.0, 2.0], np.float32)
    assert digest(one) == digest(one.copy())
    assert digest(one) != digest(np.nextafter(one, np.float32(9)))
    assert digest(one) != digest(one.astype(float))


def test_only_values_that_differ_from_the_defaults_are_written() -> None:
    assert changed_fields(Work()) == {}
    assert changed_fields(Work(epochs=2, upload=0.5)) == {"epochs": 2, "upload": 0.5}


def complete(model: Any, job: Job) -> Trained:
    """A random step with everything that a policy may need to know."""
    moved = random_step(model, job)
    return replace(moved, rms_loss=1.0, labels=[1, 2, 3], rate=0.1)


@pytest.mark.parametrize("policy", EVERY + SEEING, ids=str)
def test_clients_may_join_later(policy: Policy) -> None:
    """A policy must not take for granted that all clients are there from the beginning."""
    wire = VirtualWire(exponential(16, 2.0), 4, train=complete)
    everybody, wire.names = wire.names, wire.names[:11]
    run = live(wire, policy)
    run.add_score(Score(1.0, 0.5))
    for _ in range(8):
        run.step()
    wire.names = everybody
    run.refresh_clients()
    before = run.ledger.version
    for _ in range(12):
        run.step()
    assert run.ledger.clients == 16
    assert run.ledger.version > before
