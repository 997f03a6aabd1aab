"""A Grid that gives any strategy of Flower a deadline, a quorum and a log of response times."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flwr.app import Message, MessageType, RecordDict
from flwr.serverapp import Grid

from cafe.controllers import Choice, Controller
from cafe.errors import InfeasibleError, InputError, check_positive, check_whole
from cafe.fitting.observations import Observations
from cafe.flower.attempt import Attempt
from cafe.flower.early_close import AtTarget, ByPolicy, EarlyClose
from cafe.flower.exchange import Exchange
from cafe.flower.grid_connection import GRACE
from cafe.flower.response_log import ResponseLog
from cafe.flower.retry import Retry
from cafe.flower.round_terms import ChooseTerms, Terms, read_terms
from cafe.flower.watch_state import WatchState
from cafe.keywords import explain_keywords
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy
from cafe.rounds.policy_changes import PolicyChange

MAX_ALL_FAILED = 3  # attempts in a row in which every client fails: more would fail, too
POLL_NODES = 1.0  # seconds between two looks at which nodes are online
Deadline = float | Callable[[Ledger, Observations | None], float]


@explain_keywords
def watch(
    grid: Grid,
    deadline: Deadline | None = None,
    quorum: int | None = None,
    log: str | Path | None = None,
    *,
    controller: Controller | Policy | None = None,
    target: int | None = None,
    patience: int = 100,
    wait: float = 300.0,
) -> WatchedGrid:
    """A Grid for Flower's strategies that keeps a deadline and a quorum in every training round.

    The strategy and the ClientApps stay as they are. A round closes when every client has answered,
    at the latest at the deadline. With fewer reports than the quorum it fails: the strategy does
    not see its replies, so the model stays as it is, and the same content is sent again. It goes to
    the same clients. A client that is offline by then is replaced by another one, drawn at random,
    if the strategy sent all clients the same content.

    Messages that are not for training are passed on, with the strategy's own timeout.

    Args:
        grid: the Grid that Flower passes to the ServerApp's main function.
        deadline: seconds, from the sending of the model, that a round waits for reports; or a
            function of the ledger and of the response times so far that returns this number for the
            next round.
        quorum: reports that a round needs to succeed; 1 if left out.
        log: a CSV file for the response times, which ``cafe fit`` reads. Rows are appended if it
            exists.
        controller: instead of deadline, quorum and target, a controller: it chooses a policy before
            each round, of which these three and its ``close`` are used, and nothing else. It sees
            no updates. A quorum above the number of invited clients counts as that number.
        target: close a round as soon as this many reports have arrived.
        patience: this many failed attempts of one round stop the run.
        wait: seconds to wait before a retry until enough clients are online, then the run stops.

    Raises:
        InputError: if an argument cannot be used. The returned Grid raises it, too, if the strategy
            invites fewer clients than the quorum; and InfeasibleError if a round fails too often.

    Example:
        >>> from flwr.app import ArrayRecord, Context
        >>> from flwr.serverapp import Grid, ServerApp
        >>> from flwr.serverapp.strategy import FedAvg
        >>> from cafe.flower import watch
        >>> app = ServerApp()
        >>> @app.main()
        ... def main(grid: Grid, context: Context) -> None:
        ...     grid = watch(grid, deadline=8.0, quorum=3, log="responses.csv")
        ...     FedAvg(min_train_nodes=3).start(grid=grid, initial_arrays=ArrayRecord())
        ...     for change in grid.policy_changes:  # empty without controller=
        ...         print(change)
    """
    if not isinstance(grid, Grid):
        raise InputError(
            "grid must be the Grid that Flower passes to the function with @app.main(). "
            f"Got {grid!r:.80}."
        )
    terms = read_terms(deadline, quorum, target, controller)
    check_whole("patience", patience)
    check_positive("wait", wait)
    if log is not None and not isinstance(log, str | Path):
        raise InputError(f"log must be the path of a CSV file. Got {log!r:.80}.")
    return WatchedGrid(grid, terms, log, patience, wait)


class WatchedGrid(Grid):
    """What :func:`watch` returns: a Grid whose ``send_and_receive`` plays watched rounds."""

    def __init__(
        self,
        grid: Grid,
        terms: Terms | ChooseTerms,
        log: str | Path | None = None,
        patience: int = 100,
        wait: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._grid, self._terms = grid, terms
        self._patience, self._wait = patience, wait
        self._say = logging.getLogger("flwr").info
        self._warn = logging.getLogger("flwr").warning
        self._exchange = Exchange(grid, self._say, clock, sleep)
        self._listing = Retry(self._say)
        self._log = None if log is None else ResponseLog(log, self._warn)
        self._state, self._rounds, self._zero = WatchState(), 0, clock()
        if self._log is not None:
            self._say("The clients' response times are appended to %s.", self._log.path)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send messages and return the replies; messages for training are a watched round.

        Args:
            messages: what is sent.
            timeout: seconds to wait for replies to messages that are not for training; None: until
                all have arrived.
        """
        ready = [*messages]
        kinds = {_is_training(message) for message in ready}
        if kinds == {True}:
            return self._play(ready)
        if kinds == {True, False}:
            raise InputError(
                "Messages for training and other messages must be sent by separate calls of "
                "send_and_receive: only training has the deadline and the quorum."
            )
        answers = self._exchange.run(ready, timeout) if ready else []
        for answer in answers:
            if answer.message is None:
                node = ready[answer.position].metadata.dst_node_id
                self._say("Client %s sent no reply: %s.", node, answer.reason)
        return [answer.message for answer in answers if answer.message is not None]

    def _play(self, ready: list[Message]) -> list[Message]:
        """Play a round, and repeat it until it succeeds; return the replies."""
        self._rounds += 1
        asked = [(message, message.metadata.dst_node_id) for message in ready]
        number, all_failed = 1, 0
        while True:
            self._state.invite(node for _, node in asked)
            terms, early = self._next_terms([node for _, node in asked], len(ready))
            attempt = self._attempt(asked, terms, early, number)
            if attempt.succeeded:
                return attempt.replies()
            all_failed = all_failed + 1 if attempt.all_failed else 0
            if number >= self._patience or all_failed >= MAX_ALL_FAILED:
                raise InfeasibleError(
                    f"Round {self._rounds} failed {number} time{'s' * (number > 1)} in a row. "
                    f"{attempt.describe_last()}"
                )
            asked = self._ask_again(ready, attempt.terms.quorum)
            number += 1

    def _next_terms(self, nodes: Sequence[int], invited: int) -> tuple[Terms, EarlyClose]:
        """The terms of the next attempt of a round to which the strategy invited some clients."""
        terms = self._terms
        if not isinstance(terms, Terms):
            online = {*self._listing.call(self._grid.get_node_ids)}
            now = self._exchange.clock() - self._zero
            ledger = self._state.ledger(online, now)
            terms = terms(ledger, self._state.observations())
            if terms.choice is not None:
                early = ByPolicy(terms.choice.policy, ledger, self._state.numbers(nodes))
                return self._adopt(terms, terms.choice, invited), early
        needed = max(terms.quorum, terms.target or 0)
        if needed > invited:
            name = "quorum" if terms.quorum > invited else "target"
            raise InputError(
                f"The strategy sent the model to {invited} client{'s' * (invited > 1)}, but the "
                f"{name} is {needed}: no round could {'succeed' if name == 'quorum' else 'close'} "
                f"with it. Set the strategy's min_train_nodes to at least {needed}, or lower the "
                f"{name}."
            )
        return terms, AtTarget(terms.target)

    def _adopt(self, terms: Terms, choice: Choice, invited: int) -> Terms:
        """The terms that a controller has chosen; only the strategy knows how many it invites."""
        change, possible = self._state.adopt(choice), terms.at_most(invited)
        if change is not None:
            note = "" if possible == terms else f" The strategy invites only {invited}."
            self._say("Round %s: %s%s", self._rounds, change, note)
        return possible

    @property
    def policy_changes(self) -> tuple[PolicyChange, ...]:
        """How the controller changed the policy; their rounds count attempts, from 0."""
        return (*self._state.policy_changes,)

    def _attempt(
        self, asked: list[tuple[Message, int]], terms: Terms, early: EarlyClose, number: int
    ) -> Attempt:
        """Send the messages once, and book what comes back."""
        sent = datetime.now(UTC).isoformat(timespec="milliseconds")
        began = self._exchange.clock()
        messages = [
            Message(
                message.content,
                node,
                message.metadata.message_type,
                ttl=terms.deadline + GRACE,
                group_id=message.metadata.group_id,
            )
            for message, node in asked
        ]
        answers = self._exchange.run(messages, terms.deadline, early)
        lasted = min(self._exchange.clock() - began, terms.deadline)
        attempt = Attempt([node for _, node in asked], answers, terms, lasted, early.closed)
        if self._log is not None:
            self._log.add(attempt.rows(sent, self._rounds, number))
        for node, seconds, waited in attempt.responses():
            self._state.add_response(node, seconds, waited)
        self._state.close(attempt.reported, began - self._zero, attempt.succeeded)
        which = f"Round {self._rounds}" + (f", attempt {number}" if number > 1 else "")
        self._say("%s: %s", which, attempt.describe())
        return attempt

    def _ask_again(self, ready: list[Message], quorum: int) -> list[tuple[Message, int]]:
        """The messages of a retry and their clients, as soon as enough are online."""
        chosen = {message.metadata.dst_node_id for message in ready}
        shared = all(message.content is ready[0].content for message in ready)
        began = said = self._exchange.clock()
        while True:
            online = {*self._listing.call(self._grid.get_node_ids)}
            again = [(m, m.metadata.dst_node_id) for m in ready if m.metadata.dst_node_id in online]
            others = sorted(online - chosen) if shared else []
            missing = min(len(ready) - len(again), len(others))
            again += [(ready[0], node) for node in random.sample(others, missing)]
            if len(again) >= quorum:
                return again
            now = self._exchange.clock()
            sentence = f"{len(again)} of {quorum} required clients are online"
            if now - began >= self._wait:
                raise InfeasibleError(
                    f"Round {self._rounds} failed, and cannot be repeated: {sentence}, and no more "
                    f"connected within {self._wait:g} s. Start more clients, or lower the quorum."
                )
            if now - said >= 10.0:
                self._say("Waiting: %s.", sentence)
                said = now
            self._exchange.sleep(POLL_NODES)

    # Everything else is passed on to the Grid of Flower.

    def set_run(self, run: Any) -> None:
        """Set the run of the Grid."""
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        """The run of the Grid."""
        return self._grid.run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Create a message."""
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        """The ids of the nodes that are online."""
        return self._listing.call(self._grid.get_node_ids)

    def get_nodes(self) -> Iterable[Any]:
        """The nodes that are online."""
        return self._listing.call(self._grid.get_nodes)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Send messages, without a deadline."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies that have arrived."""
        return self._grid.pull_messages(message_ids)

    def __getattr__(self, name: str) -> Any:
        if name == "_grid":  # not set yet
            raise AttributeError(name)
        return getattr(self._grid, name)


def _is_training(message: Message) -> bool:
    return message.metadata.message_type.partition(".")[0] == MessageType.TRAIN
