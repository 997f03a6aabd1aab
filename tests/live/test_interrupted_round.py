"""A server is killed in an open round: its jobs are booked, and the clock goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cafe
from cafe.live.order_log import NAME as ORDERS
from cafe.live.replay import replay
from cafe.live.run_log import read_jobs, read_rounds
from cafe.live.server import serve
from cafe.live.wire import Order, Reply, Report
from cafe.policies import agu, mcu
from cafe.results import load
from cafe.rounds.policy import Policy
from tests.support.chaos import picky
from tests.support.policies import refilling
from tests.support.serving import Killed, assert_sound, config, read_status, record_status, wire
from tests.support.virtual_runs import VirtualWire, random_step, start

RESTARTED = "the server was restarted"
POLICIES = [
    mcu(quorum=2, deadline=0.5),
    mcu(quorum=2, deadline=0.3, late="keep"),
    agu(quorum=4, deadline=0.4, pool="union"),
    refilling(4, 3),
    picky(),
]


def killed_in(round_: int, polls: int, folder: Path, at: VirtualWire, given: Any) -> None:
    """Serve, and kill the server at a poll of an open round; then nobody serves for 100 s."""
    original, left = at.sleep, polls

    def sleep(seconds: float) -> None:
        nonlocal left
        if at.orders and at.orders[-1].round == round_:
            left -= 1
            if left < 0:
                raise Killed
        original(seconds)

    at.sleep = sleep  # type: ignore[method-assign]
    with pytest.raises(Killed):
        serve(at, given, folder)
    at.sleep = original  # type: ignore[method-assign]
    at.t += 100.0


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("round_", [0, 3])
def test_jobs_of_a_killed_round_have_a_fate(tmp_path: Path, policy: Policy, round_: int) -> None:
    at, given = wire(seed=2), config(policy, rounds=8, seed=2)
    killed_in(round_, 2, tmp_path, at, given)
    shown = read_status(tmp_path)["now"]
    sent = {(order.number, order.invitation) for order in at.orders if order.round == round_}
    history = serve(at, given, tmp_path)
    assert history.rounds == 8
    assert history.virtual_time < 50.0
    assert_sound(tmp_path)
    outcome = read_rounds(tmp_path)[round_]
    assert not outcome.succeeded
    assert outcome.invited == outcome.downloads == len(sent)
    assert outcome.closed >= shown
    mine = [job for job in read_jobs(tmp_path) if job.booked == round_]
    lost = [job for job in mine if job.reason == RESTARTED]
    assert sent <= {job.key for job in lost}
    assert {job.fate for job in lost} == {"crashed"}
    waste = sum(outcome.closed - job.start for job in lost)
    assert outcome.waste == pytest.approx(waste)
    assert outcome.processing_waste == pytest.approx(waste)
    assert outcome.bytes_down == len(sent) * at.orders[0].work.download * 8 * 4
    ever = [(order.number, order.invitation) for order in at.orders]
    assert len(set(ever)) == len(ever)
    assert len(set(ever) - {job.key for job in read_jobs(tmp_path)}) == history.open_jobs


@pytest.mark.parametrize("policy", POLICIES[:4], ids=str)
def test_replay_after_kills_gives_the_same_model(tmp_path: Path, policy: Policy) -> None:
    at, given = wire(seed=2), config(policy, rounds=14, seed=2)
    for round_ in (2, 5, 6, 11):
        killed_in(round_, 1, tmp_path, at, given)
    history = serve(at, given, tmp_path)
    assert_sound(tmp_path)
    found = replay(tmp_path, start(), random_step, lambda name: {}, seed=2)
    assert history.model is not None
    assert history.updates > 1
    assert found.model.tobytes() == history.model.tobytes()
    assert not found.differing


def test_clock_and_ages_go_on_from_the_last_known_time(tmp_path: Path) -> None:
    """Also while the server waits for clients, and for a client that has just joined."""
    at, given = (
        VirtualWire(cafe.Federation(3, cafe.Constant(9.0))),
        config(mcu(quorum=2, deadline=30.0), rounds=3),
    )
    killed_in(1, 30, tmp_path, at, given)
    before = read_status(tmp_path)
    last = json.loads((tmp_path / ORDERS).read_text().splitlines()[-1])["now"]
    assert 3.0 < last - before["opened"] < 9.0
    at.names.append("c003")
    seen = record_status(at, tmp_path)
    serve(at, given, tmp_path)
    after = seen[0]
    assert (after["state"], after["round"], after["present"]) == ("open", 2, 4)
    assert before["now"] <= last <= after["now"] < last + 1.0
    for old, new in zip(before["clients"], after["clients"], strict=False):
        assert new["age"] - old["age"] == pytest.approx(after["now"] - before["now"])
    assert read_rounds(tmp_path)[1].closed == last


def test_time_of_waiting_for_clients_is_not_lost(tmp_path: Path) -> None:
    at, given = wire(), config(mcu(quorum=4, deadline=0.5), clients=6)
    at.names = at.names[:5]

    def kill(wire_: VirtualWire) -> None:
        if wire_.t > 20:
            raise Killed

    at.on_poll = kill
    with pytest.raises(Killed):
        serve(at, given, tmp_path)
    shown = read_status(tmp_path)
    assert shown["now"] > 15
    at.on_poll, at.names = None, [*at.names, "c005"]
    serve(at, given, tmp_path)
    assert read_rounds(tmp_path)[0].opened >= shown["now"]
    assert load(tmp_path).history.age_by_client[5] < load(tmp_path).history.age_by_client[0]


def test_failed_rounds_in_a_row_do_not_include_interrupted_ones(tmp_path: Path) -> None:
    """A killed server says nothing about the clients."""
    at, given = wire(seed=2), config(POLICIES[0], rounds=9, patience=2, seed=2)
    for round_ in (1, 2, 3, 4):
        killed_in(round_, 1, tmp_path, at, given)
    assert serve(at, given, tmp_path).rounds == 9


def test_local_models_outlive_an_interrupted_round(tmp_path: Path) -> None:
    """A lost job that continued from a local model does not cost that model."""
    at, given = wire(seed=5), config(agu(quorum=5, deadline=0.8), rounds=12, seed=5)
    serve(at, given, tmp_path / "whole")
    first = next(order.round for order in at.orders if order.after is not None)
    at = wire(seed=5)
    killed_in(first, 1, tmp_path, at, given)
    lost = next(order for order in at.orders if order.after is not None)
    count = len(at.orders)
    serve(at, given, tmp_path)
    again = next(order for order in at.orders[count:] if order.number == lost.number)
    assert (again.after, again.began) == (lost.after, lost.began)
    assert_sound(tmp_path)


def test_replies_to_orders_of_a_killed_server_are_refused(tmp_path: Path) -> None:
    at, given = wire(seed=2), config(POLICIES[0], rounds=6, seed=2)
    old: list[Report] = []

    def tamper(report: Report, order: Order) -> Report:
        if order.number == 1 and old:
            return old[0]  # sent again, as the answer to a later order
        if order.number == 1 and order.round == 2:
            old.append(report)
        return report

    at.tamper = tamper
    killed_in(2, 3, tmp_path, at, given)
    assert old
    at.strays = [Reply(f"{n:06d}", replace(old[0])) for n in range(30)]  # with old tickets
    serve(at, given, tmp_path)
    assert_sound(tmp_path)
    later = [job for job in read_jobs(tmp_path) if job.client == 1 and job.round > 2]
    assert len(later) == 3
    assert {job.fate for job in later} <= {"refused", "late", "cancelled"}
    refused = [job.reason for job in later if job.fate == "refused"]
    assert refused
    assert all("it answers invitation 2 instead of" in reason for reason in refused)
