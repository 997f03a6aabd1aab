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
from cafe.decisions import Everyone, closing
from cafe.errors import InfeasibleError, InputError
from cafe.live.job_records import REUSED, JobRecord, count_fates
from cafe.live.live_run import LiveRun
from cafe.live.wire import Order, Reply, Report
from cafe.policies import agu, awu, mcu
from cafe.rounds import (
    HOLD,
    LOCAL,
    Carried,
    Closed,
    Ledger,
    Merge,
    Policy,
    Reports,
    Verdict,
    Wait,
    Waiting,
)
from cafe.rounds.outcome import Fate
from tests.support.policies import EVERY, RECIPES, fedbuff, greedy, tolerant
from tests.support.virtual_runs import WAYS, VirtualWire, exponential, live

MERGED = ("fresh", "stale")


def picky() -> Policy:
    """Holds all reports and uses those of every third client: the rest is dropped some day."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.where(reports.client % 3 == 0, 0.3, 0.0))

    def carry(ledger: Ledger, closed: Closed) -> Carried:
        return Carried(HOLD | LOCAL, kept=ledger.round % 3 > 0)

    needs = frozenset({"local models"})
    return Policy("picky", Everyone(), merge=merge, carry=carry, needs=needs, **closing(2, 0.4))


POLICIES = [
    picky(),
    *(policy for some in RECIPES.values() for policy in some),
    *(replace(p, needs=frozenset({"local models"})) for p in (greedy(0.4), tolerant(0.5, 3))),
]


class Chaos:
    """What each client does in each round, who is there, and who loses its memory."""

    def __init__(self, seed: int, share: float) -> None:
        self.seed, self.share = seed, share

    def __call__(self, order: Order) -> str:
        rng = np.random.default_rng([self.seed, order.round, order.number])
        return str(rng.choice(WAYS)) if rng.random() < self.share else "report"

    def look(self, wire: VirtualWire) -> None:
        rng = np.random.default_rng([self.seed, wire.polls])
        everyone = [f"c{k:03d}" for k in range(wire.federation.clients + wire.polls // 3)]
        stays = rng.random(len(everyone)) >= self.share / 2
        wire.names = [name for name, here in zip(everyone, stays, strict=True) if here]
        for name in list(wire.local_models):
            if rng.random() < self.share / 3:
                del wire.local_models[name]
        # Replies to orders of long ago, and to none.
        wire.strays = [Reply(f"{n:06d}", lost="long ago") for n in range(wire.polls * 3)]
        wire.strays += [Reply("nonsense", malformed="what?")]


def play(run: LiveRun, rounds: int) -> list[JobRecord]:
    """Play rounds, with a look at who is there before each; all records, checked as they come."""
    found: list[JobRecord] = []
    for _ in range(rounds):
        run.refresh_clients()
        played = run.step()
        assert [*count_fates(played.records).values()] == played.outcome.fates.tolist()
        assert all(record.booked == played.outcome.round for record in played.records)
        found += played.records
    return found


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
    """Every job that was thrown away is charged from its start to the close of its round."""
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


def test_what_is_dropped_later_keeps_the_fate_it_earned() -> None:
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
def test_what_a_client_does_is_its_fate(way: str) -> None:
    wire = VirtualWire(cafe.Federation(4, cafe.Uniform(0.1, 0.4)))
    wire.behave = lambda order: way if order.number == 2 else "report"
    run = live(wire, mcu(quorum=1, deadline=0.5))
    (record,) = [r for r in run.step().records if r.client == 2]
    assert record.fate in FATES[way]
    others = run.outcomes[0].fates[Fate.FRESH]
    assert others == (4 if way in ("report", "twice") else 3)
    # The whole round is lost for whoever is not merged, and only for them.
    assert run.outcomes[0].waste == pytest.approx(0.5 * (4 - others))
    assert run.outcomes[0].absent_waste == pytest.approx(0.5 * (record.fate == "absent"))


@pytest.mark.parametrize(
    "policy", [policy for policy in EVERY if "forecasts" not in policy.needs], ids=str
)
def test_replies_that_nobody_waits_for_change_nothing(policy: Policy) -> None:
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


def test_a_second_answer_does_not_take_back_the_first() -> None:
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
def test_who_gives_up_is_not_waited_for_for_ever(policy: Policy) -> None:
    """A client may say that it has stopped though nobody had asked it to."""
    wire = VirtualWire(cafe.Federation(3, cafe.Uniform(0.1, 0.4)))
    wire.behave = lambda order: "stopped" if order.round == 0 and order.number else "report"
    run = live(wire, policy)
    records = play(run, 3)
    assert_conserved(run, wire, records)
    assert [r.fate for r in records if r.round == 0] == ["fresh", "late", "late"]
    assert run.ledger.merged.tolist() == [3, 2, 2]
    assert set(run.global_model.versions) == {3}


def test_who_is_lost_does_not_count_where_nothing_limits_the_wait() -> None:
    wire = VirtualWire(cafe.Federation(9, cafe.Uniform(0.1, 0.4)))
    wire.behave = lambda order: "lost" if order.number < 4 and order.round == 0 else "report"
    run = live(wire, fedbuff(3))
    outcome = run.step().outcome
    assert (outcome.reports, outcome.used) == (3, 3)
    wire.behave = lambda order: "lost"
    with pytest.raises(InfeasibleError, match="waits for more reports than can arrive"):
        [run.step() for _ in range(9)]


@pytest.mark.parametrize("answer", [Wait(-1.0), Wait(float("nan")), Wait(reports=1)])
def test_a_policy_must_not_wait_for_what_has_passed(answer: Wait) -> None:
    asked = 0

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        nonlocal asked
        asked += 1
        return Wait(reports=2) if asked <= 2 else answer

    policy = replace(mcu(quorum=1, deadline=0.5), close=close)
    with pytest.raises(InputError, match="waits for a moment that has passed"):
        live(VirtualWire(exponential()), policy).step()


def test_local_models_must_be_asked_for() -> None:
    policy = replace(agu(quorum=6, deadline=0.1), needs=frozenset())
    run = live(VirtualWire(exponential(6, 9.0)), policy)
    with pytest.raises(InputError, match='Add "local models" to its needs'):
        [run.step() for _ in range(9)]


def test_a_lost_local_model_is_noticed_and_the_rest_goes_on() -> None:
    """Who was to carry on and cannot begins from the global model; its earlier job is failed."""
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


def test_clients_come_and_go() -> None:
    wire = VirtualWire(cafe.Federation(5, cafe.Uniform(0.1, 0.4)), names=["c000", "c001"])
    run = live(wire, mcu(quorum=1, deadline=0.5))
    assert run.step().outcome.invited == 2
    wire.names = ["c001", "c002", "c002"]
    wire.t += 10.0
    assert run.refresh_clients() == (["c002"], ["c000"])
    assert run.step().outcome.invited == 2
    assert run.clients.names == ["c000", "c001", "c002"]
    # Its age began when it joined.
    assert run.books.joined.tolist() == [0.0, 0.0, 10.5]
    assert run.history().age_by_client[2] <= 0.5
    wire.names = ["c002", "c000"]
    assert run.refresh_clients() == (["c000"], ["c001"])
    assert run.ledger.away.tolist() == [False, True, False]
    assert run.step().outcome.invited == 2
    wire.names = []
    run.refresh_clients()
    outcome = run.step().outcome
    assert (outcome.invited, outcome.succeeded) == (0, False)
