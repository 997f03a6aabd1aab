"""A live run is the engine's run: the same fates, the same times, the same model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cafe
from cafe.learn.server_optimisers import Adam, Momentum
from cafe.presence import Battery, DayNight, OnOff
from cafe.rounds import Policy
from cafe.testing import VirtualWire, contract
from tests.support.policies import EVERY, SEEING, federation, over, task
from tests.support.virtual_runs import live

pytestmark = pytest.mark.slow

# A real server is told which jobs are lost, and does not wait for them if it waits for all.
WAITING = [policy for policy in EVERY if policy.target != "all"]
LEARNERS = [*EVERY, *SEEING]
SERVERS = [None, Adam(rate=0.05), Momentum(0.5, 0.5)]


def setting(policy: Policy, **given: Any) -> contract.CheckSetup:
    usual: dict[str, Any] = {"federation": federation(), "task": None, "rounds": 12, "seed": 3}
    return contract.CheckSetup(lambda: policy, **usual | given)


@over(EVERY)
@pytest.mark.parametrize("notices", [0.0, 1.0])
def test_same_books(policy: Policy, notices: float) -> None:
    contract.check_live(setting(policy), notices)


@over(WAITING)
def test_same_books_with_absent_and_crashed_clients(policy: Policy) -> None:
    contract.check_live(setting(policy, federation=federation(0.7), seed=5, crash=0.25), 0.0)


# A policy that waits for more reports than can arrive ends with an error message.
COMING_AND_GOING = [
    policy
    for policy in WAITING
    if policy.name != "counting" and not getattr(policy.close, "all_in", False)
]
PRESENCES = [
    DayNight(day=3.0, share=0.6, spread=0.5),
    OnOff(on=1.2, off=0.7),
    Battery(capacity=3.0, cost=1.0, harvest=0.5, slot=0.3),
]


@over(COMING_AND_GOING)
@pytest.mark.parametrize("presence", PRESENCES, ids=["day-night", "on-off", "battery"])
def test_same_books_with_presence(policy: Policy, presence: Any) -> None:
    who = replace(federation(), presence=presence)
    contract.check_live(setting(policy, federation=who))


latencies = st.one_of(
    st.floats(0.2, 5.0).map(cafe.Exponential),
    st.tuples(st.floats(0.01, 0.5), st.floats(0.3, 3.0)).map(
        lambda p: cafe.ShiftedExponential(shift=p[0], rate=p[1])
    ),
    st.tuples(st.floats(-2, 0.5), st.floats(0.1, 1.0)).map(lambda p: cafe.LogNormal(*p)),
)


@given(
    policy=st.sampled_from(EVERY),
    latency=latencies,
    clients=st.integers(10, 16),
    seed=st.integers(0, 2**40),
    notices=st.floats(0, 1),
)
@settings(max_examples=40, deadline=None)
@pytest.mark.slow
def test_same_books_for_any_latency(
    policy: Policy, latency: Any, clients: int, seed: int, notices: float
) -> None:
    who = cafe.Federation(clients, latency)
    contract.check_live(setting(policy, federation=who, seed=seed), notices)


@over(LEARNERS)
def test_same_model(policy: Policy) -> None:
    optimiser = SERVERS[LEARNERS.index(policy) % 3] if policy.server is None else None
    lossy: dict[str, Any] = {}
    if policy.target != "all":
        lossy = {"federation": federation(0.8), "crash": 0.1}
    contract.check_live(setting(policy, task=task(server=optimiser), seed=7, **lossy))


def test_client_keeps_local_models_that_the_server_may_refer_to() -> None:
    """It keeps what it was told to keep through a job that began from the global model."""
    policy = replace(cafe.policies.agu(quorum=3, deadline=1.0), name="switching")

    def invite(ledger: Any, rng: Any) -> Any:
        own = ledger.local[ledger.idle] & (ledger.round != 1)
        return cafe.rounds.Invitation(ledger.idle, local=own)

    def carry(ledger: Any, closed: Any) -> Any:
        code = cafe.rounds.LOCAL if ledger.round == 0 else cafe.rounds.DROP
        return cafe.rounds.Carried(code, kept=True)

    policy = replace(policy, invite=invite, carry=carry)
    who = cafe.Federation(2, cafe.Constant(0.5))
    wire = VirtualWire(who)
    run = live(wire, policy)
    played = [run.step() for _ in range(3)]
    assert [order.keeps for order in wire.orders] == [(), (), (0,), (0,), (0,), (0,)]
    assert [order.after for order in wire.orders] == [None, None, None, None, 0, 0]
    assert not any(round_.lost_carries for round_ in played)


def test_rounds_without_a_target_close_when_lost_clients_are_known() -> None:
    policy = cafe.policies.fedavg(fraction=1.0, deadline=100.0)
    wire = VirtualWire(cafe.Federation(5, cafe.Uniform(0.5, 1.5)))
    wire.behave = lambda order: ("lost", "lost", "unreachable", "report", "report")[order.number]
    outcome = live(wire, policy).step().outcome
    assert outcome.closed < 1.5
    assert outcome.succeeded
    assert (outcome.reports, outcome.used, outcome.fates.sum()) == (2, 2, 5)
