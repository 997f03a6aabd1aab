"""Forecasts of presence on a real server, estimated from which clients were present."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.controllers import Fixed
from cafe.errors import InputError
from cafe.live.aggregation import GlobalModel
from cafe.live.live_run import LiveRun
from cafe.live.server import RunHooks, serve
from cafe.live.snapshot import restore, save
from cafe.live.stay_estimate import StayEstimate
from cafe.policies import mcu
from cafe.presence import OnOff
from cafe.rounds import Invitation, Ledger, Policy
from tests.support.policies import forecasting
from tests.support.serving import assert_sound, config, stopped_after
from tests.support.virtual_runs import VirtualWire, exponential, live, start

HERE, GONE = True, False


def after(*looks: tuple[float, list[bool]]) -> StayEstimate:
    """An estimate after looks at these times."""
    estimate = StayEstimate()
    for now, here in looks:
        estimate.look(now, np.array(here))
    return estimate


def test_counts_and_rates_by_hand() -> None:
    """Client 0 is always there. Client 1 leaves in (10, 30), is back at 40, and stays until 60.

    Client 2 is first seen at 30. Client 1 was present for 10 + 20 / 2 + 20 seconds. All clients
    were present for 60 + 40 + 30 = 130 seconds, with one departure: 130 seconds per departure.
    """
    estimate = after(
        (0.0, [HERE, HERE]),
        (10.0, [HERE, HERE]),
        (30.0, [HERE, GONE, HERE]),
        (40.0, [HERE, HERE, HERE]),
        (60.0, [HERE, HERE, HERE]),
    )
    assert estimate.departures.tolist() == [0, 1, 0]
    assert estimate.seconds.tolist() == [60.0, 40.0, 30.0]
    expected = [1 / (60 + 130), 2 / (40 + 130), 1 / (30 + 130)]
    np.testing.assert_allclose(estimate.rates(np.arange(3)), expected)
    some = np.array([2, 1])
    found = estimate.forecast(some, 60.0, 76.0)
    np.testing.assert_allclose(found, [math.exp(-16 / 160), math.exp(-16 * 2 / 170)])
    assert estimate.forecast(some, 60.0, np.inf).tolist() == [0.0, 0.0]
    assert estimate.forecast(some, 60.0, 60.0).tolist() == [1.0, 1.0]
    with pytest.raises(InputError, match="must not end before it begins"):
        estimate.forecast(some, 60.0, 59.0)


def test_a_client_without_history_has_the_rate_of_all() -> None:
    """Two clients leave after 100 s each on average, so a third has the rate 1 / 100."""
    estimate = after((0.0, [HERE, HERE]), (200.0, [GONE, GONE, HERE]))
    assert estimate.rates(np.array([2])).tolist() == [0.01]


def test_everybody_stays_until_the_first_departure() -> None:
    estimate = after((0.0, [HERE, GONE]), (50.0, [HERE, HERE]), (60.0, [HERE, HERE]))
    assert estimate.forecast(np.arange(2), 60.0, np.inf).tolist() == [1.0, 1.0]


def test_two_looks_at_one_moment_are_one_look() -> None:
    estimate = after((0.0, [HERE, HERE]), (5.0, [HERE, HERE]), (5.0, [HERE, GONE]))
    assert estimate.departures.tolist() == [0, 0]
    assert estimate.seconds.tolist() == [5.0, 5.0]


def test_estimate_approaches_the_truth() -> None:
    """Half of the clients stay for 100 s on average, the others for 400 s.

    A rate from n departures has the relative standard error 1 / sqrt(n). Looks are five seconds
    apart on average, so about 5 / 2 / 2000 of the departures are not seen.
    """
    clients, on = 2000, np.repeat([100.0, 400.0], 1000)
    state = OnOff(on=on, off=2000.0).begin(clients, 3)
    estimate, rng, now = StayEstimate(), np.random.default_rng(1), 0.0
    while now < 20_000.0:
        now += float(rng.uniform(0.0, 10.0))
        estimate.look(now, ~state.away(now))
    for mean, own in ((100.0, slice(0, 1000)), (400.0, slice(1000, 2000))):
        departures = estimate.departures[own].sum()
        assert departures > 5000
        rate = departures / estimate.seconds[own].sum()
        assert abs(rate * mean - 1) < 3 / math.sqrt(departures)
    # Single clients: the squared errors, in units of their variances, have the mean 1.
    expected = estimate.seconds / on
    mean_square = float(np.mean((estimate.departures - expected) ** 2 / expected))
    assert abs(mean_square - 1) < 5 * math.sqrt(2 / clients)
    stays = estimate.forecast(np.arange(clients), now, now + 60.0)
    error = np.abs(stays - np.exp(-60.0 / on))
    assert error.mean() < 0.09
    guess = np.abs(stays.mean() - np.exp(-60.0 / on))
    assert error.mean() < guess.mean() / 2


def asking(seen: list[Any]) -> Policy:
    """A policy that notes its forecasts for all clients, half a second ahead."""
    base = mcu(quorum=1, deadline=0.5)

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        everybody = np.arange(ledger.clients)
        seen.append((ledger.forecast(everybody, ledger.now + 0.5), ledger.away.copy()))
        return base.invite(ledger, rng)

    return replace(base, invite=invite, needs=frozenset({"forecasts"}))


def coming_and_going() -> cafe.Federation:
    return replace(exponential(12, 2.0), presence=OnOff(on=[0.8, 50.0] * 6, off=2.0))


def served(folder: Path, policy: Policy, rounds: int) -> VirtualWire:
    who = coming_and_going()
    assert who.presence is not None
    wire = VirtualWire(who, 1, presence=who.presence.begin(12, 1))
    serve(wire, config(policy, rounds=rounds), folder)
    return wire


def test_live_run_estimates_forecasts(tmp_path: Path) -> None:
    seen: list[Any] = []
    served(tmp_path, asking(seen), 150)
    assert_sound(tmp_path)
    assert seen[0][0].tolist() == [1.0] * len(seen[0][0])  # nobody has left yet
    stays, away = seen[-1]
    assert away.any()
    assert np.all(stays[away] == 0)
    assert np.all((stays[~away] > 0) & (stays[~away] < 1))
    mean = [np.mean([s[k] for s, gone in seen[50:] if not gone[k]]) for k in range(12)]
    # Numbers are given in the order of joining, so the two kinds are recognised by their rates.
    assert min(sorted(mean)[6:]) > max(sorted(mean)[:6]) + 0.1


def test_policies_with_forecasts_run_on_a_live_server(tmp_path: Path) -> None:
    served(tmp_path, forecasting(), 40)
    assert_sound(tmp_path)


def test_other_policies_and_controllers_see_no_forecasts() -> None:
    run = live(VirtualWire(exponential()), mcu(quorum=1, deadline=0.5))
    with pytest.raises(InputError, match="only by a policy that declares it"):
        run.ledger.forecast(np.arange(2), 1.0)

    def controller(ledger: Ledger, seen: Any) -> Policy:
        assert ledger.forecasts is None
        return forecasting() if ledger.round % 2 else mcu(quorum=1, deadline=0.5)

    again = LiveRun(VirtualWire(exponential()), controller, GlobalModel(start()))
    for _ in range(4):
        again.refresh_clients()
        again.step()
        assert (again.ledger.forecasts is not None) == ("forecasts" in again.policy.needs)


def test_forecasts_may_be_given() -> None:
    given = VirtualWire(exponential(2))
    seen: list[Any] = []
    run = live(given, asking(seen), forecast=lambda clients, now, until: clients + until - now)
    run.step()
    np.testing.assert_allclose(seen[0][0], [0.5, 1.5])


def test_counts_are_saved_and_the_time_without_a_server_does_not_count() -> None:
    wire, policy = VirtualWire(exponential(3)), forecasting()
    run = live(wire, policy)
    wire.t, wire.names = 10.0, wire.names[:2]
    run.refresh_clients()
    again = LiveRun(wire, Fixed(policy), GlobalModel(start()), seed=wire.seed)
    restore(again, save(run))
    assert again.stay_estimate.departures.tolist() == [0, 0, 1]
    assert again.stay_estimate.seconds.tolist() == [10.0, 10.0, 5.0]
    wire.t, wire.names = 17.0, wire.names[:1]
    again.refresh_clients()
    assert again.stay_estimate.departures.tolist() == [0, 0, 1]
    assert again.stay_estimate.seconds.tolist() == [10.0, 10.0, 5.0]
    wire.t = 20.0
    again.refresh_clients()
    assert again.stay_estimate.seconds.tolist() == [13.0, 10.0, 5.0]


def test_a_run_of_an_older_version_is_resumed_without_counts() -> None:
    wire = VirtualWire(exponential(3))
    run = live(wire, forecasting())
    old = {name: array for name, array in save(run).items() if not name.startswith("stay.")}
    again = LiveRun(wire, Fixed(forecasting()), GlobalModel(start()), seed=wire.seed)
    restore(again, old)
    again.refresh_clients()
    assert again.stay_estimate.seconds.tolist() == [0.0] * 3


def test_resumed_server_continues_to_estimate(tmp_path: Path) -> None:
    who, runs = coming_and_going(), list[LiveRun]()
    assert who.presence is not None
    wire = VirtualWire(who, 1, presence=who.presence.begin(12, 1))
    given = config(forecasting(), rounds=61)
    stopped_after(60, tmp_path, wire, given)
    serve(wire, given, tmp_path, hooks=RunHooks(begin=runs.append))
    assert runs[0].stay_estimate.departures.sum() > 20
