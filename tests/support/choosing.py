"""A controller with a state and reasons: the deadline doubles after each round that failed."""

from __future__ import annotations

from dataclasses import dataclass

from cafe.controllers import Choice
from cafe.fitting import Observations
from cafe.policies import mcu
from cafe.rounds import Ledger


@dataclass(frozen=True)
class Doubling:
    """The quorum is fixed. Only the state tells how often the deadline was doubled.

    Attributes:
        quorum: reports that a round needs.
        first: the first deadline, in seconds.
    """

    quorum: int
    first: float = 0.1

    def __call__(self, ledger: Ledger, seen: Observations | None) -> Choice:
        rounds, version, doubled = ledger.control or (0, 0, 0)
        failed = ledger.round > rounds and ledger.version == version
        doubled += failed
        policy = mcu(quorum=self.quorum, deadline=self.first * 2**doubled)
        why = f"Round {ledger.round - 1} failed: the deadline doubles." if failed else ""
        return Choice(policy, [ledger.round, ledger.version, doubled], why)
