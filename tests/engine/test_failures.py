"""Failed rounds in a row, and rounds that would never end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.errors import InfeasibleError, InputError
from cafe.policies import fedavg, mcu
from cafe.rounds import COMMIT, Invitation, Ledger, Verdict, Wait, Waiting
from tests.support.small_tasks import taking


def test_deadline_below_every_latency_ends_the_run() -> None:
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


def test_clients_that_are_always_absent_end_the_run() -> None:
    gone = cafe.Federation(3, cafe.Exponential(1.0), availability=1e-9)
    with pytest.raises(InfeasibleError, match="No client reported in them"):
        cafe.simulate(gone, mcu(quorum=1, deadline=0.5), updates=3, patience=10)


def test_only_consecutive_failures_end_a_run() -> None:
    who = cafe.Federation(4, cafe.Exponential(1.0))
    history = cafe.simulate(who, mcu(quorum=3, deadline=0.7), rounds=400, patience=60)
    assert history.rounds - history.updates > 60


def test_one_lost_client_does_not_block_a_round() -> None:
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
    # No job is lost: the policy may wait for all, and a round lasts as long as its slowest client.
    history = cafe.simulate(who, fedavg(fraction=1.0), rounds=50)
    assert history.updates == 50
    assert history.fates["fresh"] == 300


def test_message_names_the_shortest_response_time_not_the_first_report() -> None:
    """Client 0 starts at 0 and would report at 2.5; client 1 starts at 1 and would report at 3."""

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        return Invitation(np.array([ledger.round]))

    policy = replace(mcu(quorum=1, deadline=1.0, late="keep"), invite=invite)
    with pytest.raises(InfeasibleError, match=r"fastest report in them took 2 \(client 1\)"):
        cafe.simulate(taking(2.5, 2.0), policy, rounds=9, patience=2)
