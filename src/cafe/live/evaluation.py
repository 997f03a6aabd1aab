"""Evaluation of the global model within a time limit: by the server, or by its clients."""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cafe.learn.base import Score
from cafe.live.live_run import POLL, LiveRun
from cafe.live.model_layout import Arrays
from cafe.live.wire import ClientScore, Reply

Evaluate = Callable[[Arrays], Any]


class Evaluator(Protocol):
    """Evaluates a run's global model."""

    def __call__(self, run: LiveRun) -> tuple[Score | None, str]:
        """The score and ""; or None and a reason, if evaluating failed or took too long.

        None and "": the model was evaluated, and the result has no loss.
        """


class ServerEvaluator:
    """Runs your function in a thread. If it hangs, the server waits its time limit only once.

    Args:
        evaluate: from the model's arrays to its loss and accuracy.
        seconds: how long it may take.
    """

    def __init__(self, evaluate: Evaluate, seconds: float) -> None:
        self._evaluate, self._seconds = evaluate, seconds
        self._answers: queue.Queue[Any] = queue.Queue()
        self._thread: threading.Thread | None = None

    def __call__(self, run: LiveRun) -> tuple[Score | None, str]:
        if self._thread is not None and self._thread.is_alive():
            return None, "an earlier evaluation is still running"
        answers = self._answers = queue.Queue()
        model = run.arrays
        self._thread = threading.Thread(
            target=_evaluate, args=(self._evaluate, model, answers), daemon=True
        )
        self._thread.start()
        try:
            answer = answers.get(timeout=self._seconds)
        except queue.Empty:
            return None, f"it took longer than {self._seconds:g} s"
        if isinstance(answer, Exception):
            return None, f"it failed: {type(answer).__name__}: {answer}"
        return answer, ""


def _evaluate(evaluate: Evaluate, model: Arrays, answers: queue.Queue[Any]) -> None:
    try:
        loss, accuracy = evaluate(model)
        answers.put(_score(float(loss), None if accuracy is None else float(accuracy)))
    except Exception as error:  # an error of the user's function is logged; the run continues
        answers.put(error)


class ClientEvaluator:
    """The mean of the clients' results on their own examples, weighted by numbers of examples.

    Args:
        seconds: how long they may take.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __call__(self, run: LiveRun) -> tuple[Score | None, str]:
        until = run.now() + self._seconds
        asked = wait_for_idle(run, until)
        answers = ask_clients(run, asked, until)
        scores = [a for a in answers if isinstance(a, ClientScore) and self._is_valid(a, run)]
        if not scores:
            return None, f"none of {len(asked)} clients answered within {self._seconds:g} s"
        examples = sum(score.examples for score in scores)
        loss = sum(score.loss * score.examples for score in scores) / examples
        known = [score for score in scores if score.accuracy is not None]
        right = sum((score.accuracy or 0.0) * score.examples for score in known)
        accuracy = right / sum(score.examples for score in known) if known else None
        return _score(loss, accuracy), ""

    @staticmethod
    def _is_valid(score: ClientScore, run: LiveRun) -> bool:
        accuracy = 0.0 if score.accuracy is None else score.accuracy
        return (
            math.isfinite(score.loss)
            and 0 <= accuracy <= 1
            and 1 <= score.examples <= run.validator.limits.examples
        )


def wait_for_idle(run: LiveRun, until: float) -> list[str]:
    """The clients that are present and have no job; if there are none, wait for one."""
    while True:
        run.refresh_clients()
        idle = [run.clients.names[k] for k in run.ledger.idle.tolist()]
        if idle or run.now() >= until:
            return idle
        run.wire.sleep(POLL)  # as after a restart, with no client yet


def ask_clients(run: LiveRun, clients: Sequence[str], until: float) -> list[ClientScore | Reply]:
    """Let clients evaluate the global model, and return what they answer until a moment."""
    tickets = run.wire.request_scores(clients, run.arrays, max(until - run.now(), POLL))
    waiting = {ticket for ticket in tickets if ticket is not None}
    answers: list[ClientScore | Reply] = []
    while waiting:
        last = run.now() >= until
        for answer in run.wire.receive_scores(waiting):
            if answer.ticket in waiting:
                waiting.discard(answer.ticket)
                answers.append(answer)
        if last:
            break
        run.wire.sleep(POLL)
    return answers


def _score(loss: float, accuracy: float | None) -> Score:
    known = accuracy is not None and math.isfinite(loss) and math.isfinite(accuracy)
    return Score(loss, accuracy if known else None)
