"""Rounds on real clients: slow polls, waits that cannot end, clients that come and go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.controllers import Fixed
from cafe.errors import InfeasibleError, InputError
from cafe.fitting import read_observations
from cafe.live.aggregation import GlobalModel, Median
from cafe.live.live_run import LiveRun
from cafe.live.run_log import RESPONSES, read_jobs
from cafe.live.server import serve
from cafe.policies import agu, mcu
from cafe.rounds import Ledger, Verdict, Wait, Waiting
from tests.support.policies import fedbuff
from tests.support.serving import assert_sound, config
from tests.support.virtual_runs import VirtualWire, exponential, live, start


def held_up() -> VirtualWire:
    """A wire whose first poll takes 20 s, during which all clients report."""
    at = VirtualWire(cafe.Federation(3, cafe.Constant(5.0)))
    original, first = at.receive, [True]

    def receive(tickets: Any) -> Any:
        if first:
            first.clear()
            at.t += 20.0
        return [replace(reply, at=at.clock()) for reply in original(tickets)]

    at.receive = receive  # type: ignore[method-assign]
    return at


def test_delayed_poll_does_not_accept_late_reports(tmp_path: Path) -> None:
    """Late reports do not count as quick ones either: the response times would be wrong."""
    with pytest.raises(InfeasibleError, match=r"Of 3 jobs, 3 were late. No client reported."):
        serve(held_up(), config(mcu(quorum=1, deadline=1.0), rounds=1), tmp_path)
    assert {job.fate for job in read_jobs(tmp_path)} == {"late"}
    assert_sound(tmp_path)
    seen = read_observations(tmp_path / RESPONSES)
    assert not seen.reported.any()
    np.testing.assert_allclose(seen.deadline, 1.0)


def test_delayed_poll_accepts_reports_that_may_be_late(tmp_path: Path) -> None:
    given = config(mcu(quorum=1, deadline=1.0, late="keep"), rounds=2)
    history = serve(held_up(), given, tmp_path)
    assert_sound(tmp_path)
    assert history.by_round["used"].tolist() == [0, 3]


def test_lost_clients_are_not_awaited_without_a_deadline() -> None:
    wire = VirtualWire(cafe.Federation(9, cafe.Uniform(0.1, 0.4)))
    wire.behave = lambda order: "lost" if order.number < 4 and order.round == 0 else "report"
    run = live(wire, fedbuff(3))
    outcome = run.step().outcome
    assert (outcome.reports, outcome.used) == (3, 3)
    wire.behave = lambda order: "lost"
    with pytest.raises(InfeasibleError, match="waits for more reports than can arrive"):
        [run.step() for _ in range(9)]


@pytest.mark.parametrize("answer", [Wait(-1.0), Wait(float("nan")), Wait(reports=1)])
def test_policy_must_not_wait_for_a_past_time_or_count(answer: Wait) -> None:
    asked = 0

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        nonlocal asked
        asked += 1
        return Wait(reports=2) if asked <= 2 else answer

    policy = replace(mcu(quorum=1, deadline=0.5), close=close)
    with pytest.raises(InputError, match="must wait for a later time or for more reports"):
        live(VirtualWire(exponential()), policy).step()


def test_local_models_must_be_declared_in_needs() -> None:
    policy = replace(agu(quorum=6, deadline=0.1), needs=frozenset())
    run = live(VirtualWire(exponential(6, 9.0)), policy)
    with pytest.raises(InputError, match='Add "local models" to its needs'):
        [run.step() for _ in range(9)]


def test_clients_may_join_and_leave() -> None:
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


def test_round_has_five_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    run, steps = live(VirtualWire(exponential(3, 9.0)), mcu(quorum=1, deadline=2.0)), list[str]()
    for name in ("_open", "_invite", "_wait", "_merge", "_settle"):
        original = getattr(run, name)

        def step(*given: Any, name: str = name, original: Any = original, **more: Any) -> Any:
            steps.append(name)
            return original(*given, **more)

        monkeypatch.setattr(run, name, step)
    assert run.step().outcome.succeeded
    assert steps == ["_open", "_invite", "_wait", "_merge", "_settle"]
    assert run.open is None


def test_observer_is_called_on_every_change_and_every_second() -> None:
    run, seen = live(VirtualWire(exponential(3, 9.0)), mcu(quorum=1, deadline=2.0)), list[int]()
    run.on_change = lambda: seen.append(0 if run.open is None else int(run.open.arrived.sum()))
    run.step()
    assert seen == [0, 1, 2, 3, 3]


def test_secure_aggregation_and_a_robust_rule_exclude_each_other() -> None:
    model = GlobalModel(start(), Median())
    with pytest.raises(InputError, match=r"Median.* needs single updates"):
        LiveRun(
            VirtualWire(exponential(3)),
            Fixed(mcu(quorum=1, deadline=1.0)),
            model,
            secure_aggregation=True,
        )
