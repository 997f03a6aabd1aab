"""What a watched Grid knows about its clients, as a controller sees it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cafe.controllers import Choice, policy_change
from cafe.engine.response_times import MAX_RESPONSES
from cafe.federation import Indices
from cafe.fitting.observations import Observations
from cafe.rounds.ledger import UNKNOWN, Ledger, LedgerColumns
from cafe.rounds.policy_changes import PolicyChange


@dataclass
class _Merges:
    """A client's merged reports."""

    last_start: float = 0.0
    last_round: int = -1
    count: int = 0


@dataclass
class WatchState:
    """The clients that were invited so far, their last merged reports, and their response times.

    Attributes:
        round: attempts so far: what CAFe's controllers call the round, failed rounds included.
        version: attempts that succeeded.
        control: the state that the controller returned last; None before, or without one.
        policy_changes: how the controller changed the policy.
    """

    round: int = 0
    version: int = 0
    control: Any = None
    policy_changes: list[PolicyChange] = field(default_factory=list)
    _clients: dict[int, _Merges] = field(default_factory=dict)
    _responses: deque[tuple[int, float, float]] = field(
        default_factory=lambda: deque(maxlen=MAX_RESPONSES)
    )

    def invite(self, nodes: Iterable[int]) -> None:
        """Add the clients that are new."""
        for node in nodes:
            self._clients.setdefault(node, _Merges())

    def ledger(self, online: Collection[int], now: float) -> Ledger:
        """What a server knows: an entry per invited client, in the order of the first invitation.

        The number of examples of a client is not known, and the updates are not seen.
        """
        columns = LedgerColumns.new(np.full(len(self._clients), UNKNOWN, dtype=np.int64))
        for k, (node, merges) in enumerate(self._clients.items()):
            columns.last_start[k] = merges.last_start
            columns.last_round[k] = merges.last_round
            columns.merged[k] = merges.count
            columns.away[k] = node not in online
        ledger = Ledger(columns)
        ledger.round = ledger.invitations = self.round
        ledger.version, ledger.control = self.version, self.control
        ledger.now = ledger.opened = now
        return ledger

    def numbers(self, nodes: Iterable[int]) -> Indices:
        """The numbers of some invited clients in the ledger."""
        number = {node: k for k, node in enumerate(self._clients)}
        return np.array([number[node] for node in nodes], dtype=np.intp)

    def adopt(self, choice: Choice) -> PolicyChange | None:
        """Keep the state for the next call, and return how the choice changes the policy, if so."""
        self.control = choice.state
        change = policy_change(self.policy_changes, self.round, choice)
        self.policy_changes += [] if change is None else [change]
        return change

    def add_response(self, node: int, seconds: float | None, waited: float) -> None:
        """Add a response time, or None if there was no report in the time waited."""
        self._responses.append((node, np.nan if seconds is None else seconds, waited))

    def close(self, reported: Iterable[int], started: float, succeeded: bool) -> None:
        """Note that an attempt has ended, with the reports of some clients."""
        if succeeded:
            self.version += 1
            for node in reported:
                merges = self._clients[node]
                merges.last_start, merges.last_round = started, self.round
                merges.count += 1
        self.round += 1

    def observations(self) -> Observations | None:
        """The last response times, as in the log; None if there are none yet."""
        if not self._responses:
            return None
        nodes, seconds, waited = zip(*self._responses, strict=True)
        return Observations([*seconds], [*waited], [f"{node}" for node in nodes])
