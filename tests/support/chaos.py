"""Clients that misbehave at random, and a policy that holds and drops reports."""

from __future__ import annotations

import numpy as np

from cafe.decisions import Everyone, closing
from cafe.live.job_records import JobRecord, count_fates
from cafe.live.live_run import LiveRun
from cafe.live.wire import Order, Reply
from cafe.rounds import HOLD, LOCAL, Carried, Closed, Ledger, Merge, Policy, Reports
from tests.support.virtual_runs import WAYS, VirtualWire


def picky() -> Policy:
    """A policy that holds all reports, uses those of every third client, and drops the rest."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.where(reports.client % 3 == 0, 0.3, 0.0))

    def carry(ledger: Ledger, closed: Closed) -> Carried:
        return Carried(HOLD | LOCAL, kept=ledger.round % 3 > 0)

    needs = frozenset({"local models"})
    return Policy("picky", Everyone(), merge=merge, carry=carry, needs=needs, **closing(2, 0.4))


class Chaos:
    """What each client does in each round, who is present, and who loses its local models."""

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
        # Replies to old orders, and replies to no order.
        wire.strays = [Reply(f"{n:06d}", lost="long ago") for n in range(wire.polls * 3)]
        wire.strays += [Reply("nonsense", malformed="what?")]


def play(run: LiveRun, rounds: int) -> list[JobRecord]:
    """Play rounds, refresh the clients before each, and return all records, checked."""
    found: list[JobRecord] = []
    for _ in range(rounds):
        run.refresh_clients()
        played = run.step()
        assert [*count_fates(played.records).values()] == played.outcome.fates.tolist()
        assert all(record.booked == played.outcome.round for record in played.records)
        found += played.records
    return found
