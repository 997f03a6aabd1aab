"""Evaluation as Flower's strategies do it: by the clients, by a function of the server, or both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flwr.app import ArrayRecord, MetricRecord, RecordDict

from cafe.flower.array_records import pack_arrays
from cafe.flower.stock_messages import as_metrics
from cafe.flower.stock_wire import StockWire
from cafe.learn.base import Score
from cafe.live.evaluation import ServerEvaluator, ask_clients, wait_for_idle
from cafe.live.live_run import LiveRun
from cafe.live.model_layout import Arrays
from cafe.live.wire import ClientScore, Reply
from cafe.randomness import Stream

EvaluateFn = Callable[[int, ArrayRecord], "MetricRecord | None"]
Aggregate = Callable[[list[RecordDict]], "MetricRecord | None"]
Keep = Callable[[str, int, MetricRecord], None]
USUAL_SECONDS = 60.0  # for clients, if the policy has no deadline


class ClientMetrics:
    """Evaluates the model on a share of the clients.

    Args:
        wire: the connection to the clients.
        share: the share of the idle clients that evaluate.
        seconds: how long they may take; None: as long as the policy's deadline.
        most: an upper limit on these seconds.
        aggregate: from replies to the metrics of the round.
    """

    def __init__(
        self,
        wire: StockWire,
        share: float,
        seconds: float | None,
        most: float,
        aggregate: Aggregate,
    ) -> None:
        self._wire, self._share, self._aggregate = wire, share, aggregate
        self._seconds, self._most = seconds, most

    def __call__(self, run: LiveRun) -> tuple[MetricRecord | None, str]:
        """The metrics and ""; or None and a reason."""
        usual = run.policy.deadline or USUAL_SECONDS
        seconds = min(self._most, usual if self._seconds is None else self._seconds)
        until = run.now() + seconds
        asked = self._choose(run, wait_for_idle(run, until))
        self._wire.server_round = run.ledger.version
        answers = ask_clients(run, asked, until)
        limit, found = run.validator.limits.examples, self._wire.evaluations
        replies = [
            found[answer.ticket]
            for answer in answers
            if isinstance(answer, ClientScore) and 1 <= answer.examples <= limit
        ]
        found.clear()
        if replies:
            return self._aggregate(replies), ""
        lost = [answer.lost for answer in answers if isinstance(answer, Reply)]
        why = f"none of {len(asked)} clients evaluated it within {seconds:g} s"
        return None, f"{why} ({lost[-1]})" if lost else why

    def _choose(self, run: LiveRun, idle: list[str]) -> list[str]:
        count = min(max(round(self._share * len(idle)), 1), len(idle))
        rng = Stream(run.seed, "evaluate").at(run.ledger.version)
        return [idle[k] for k in np.sort(rng.choice(len(idle), count, replace=False))]


class ServerMetrics:
    """Evaluates the model by a function of the server.

    Args:
        evaluate: the function, as in Flower: from a round and arrays to metrics, or None.
        seconds: how long it may take.
    """

    def __init__(self, evaluate: EvaluateFn, seconds: float) -> None:
        self._evaluate, self._found = evaluate, dict[int, MetricRecord | None]()
        self._version = 0
        self._evaluator = ServerEvaluator(self._call, seconds)

    def _call(self, model: Arrays) -> tuple[float, None]:
        version = self._version
        self._found[version] = as_metrics(self._evaluate(version, pack_arrays(model)))
        return 0.0, None

    def __call__(self, run: LiveRun) -> tuple[MetricRecord | None, str]:
        """The metrics and ""; or None and a reason."""
        self._version = run.ledger.version
        _, why = self._evaluator(run)
        return self._found.pop(run.ledger.version, None), why


class StrategyEvaluator:
    """Evaluates by clients and by the server, keeps the metrics, and returns a score for the books.

    The score is that of the server's function if it returns a loss, otherwise that of the clients.

    Args:
        by_clients: evaluates on clients; None: they do not evaluate.
        by_server: evaluates by the server's function; None: there is none.
        keep: called with the kind, the round and the metrics.
        say: called with a sentence if an evaluation fails.
    """

    def __init__(
        self,
        by_clients: ClientMetrics | None,
        by_server: ServerMetrics | None,
        keep: Keep,
        say: Callable[[str], None],
    ) -> None:
        self._ways = {"evaluate": by_clients, "server": by_server}
        self._keep, self._say = keep, say

    def __call__(self, run: LiveRun) -> tuple[Score | None, str]:
        score: Score | None = None
        reasons = []
        for kind, way in self._ways.items():
            if way is None:
                continue
            metrics, why = way(run)
            if why:
                reasons.append(why)
            if metrics is not None:
                self._keep(kind, run.ledger.version, metrics)
                score = find_score(metrics) or score
        if score is not None and reasons:  # a run that gets a score does not log the other reason
            self._say(f"Version {run.ledger.version}: {'; '.join(reasons)}.")
        return score, "; ".join(reasons)


def find_score(metrics: MetricRecord) -> Score | None:
    """The loss and the accuracy among some metrics, by their names; None without a finite loss.

    Example:
        >>> from flwr.app import MetricRecord
        >>> from cafe.flower.strategy_evaluation import find_score
        >>> find_score(MetricRecord({"eval_loss": 0.5, "eval_acc": 0.75}))
        Score(loss=0.5, accuracy=0.75)
    """
    loss = _find(metrics, "loss")
    accuracy = _find(metrics, "accuracy", "acc")
    if loss is None or not np.isfinite(loss):
        return None
    return Score(loss, accuracy if accuracy is not None and 0 <= accuracy <= 1 else None)


def _find(metrics: MetricRecord, *endings: str) -> float | None:
    """The first metric whose name ends with one of these words."""
    for ending in endings:
        for name, value in metrics.items():
            if name.lower().endswith(ending) and not isinstance(value, list):
                return float(value)
    return None
