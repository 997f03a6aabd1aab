"""What a run with unchanged ClientApps does besides its rounds: metrics, counters, refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import MetricRecord, RecordDict
from numpy.typing import NDArray

from cafe.flower.array_records import pack_arrays
from cafe.flower.metrics_file import MetricsFile
from cafe.flower.stock_messages import TrainedReply, as_metrics
from cafe.flower.stock_policy import check_policy
from cafe.flower.stock_wire import StockWire
from cafe.flower.strategy_evaluation import Aggregate, EvaluateFn
from cafe.live.job_records import PlayedRound
from cafe.live.live_run import LiveRun

MetricsFn = Callable[[list[RecordDict], str], "MetricRecord | None"]


class StockRun:
    """The hooks of a run with unchanged ClientApps.

    Args:
        wire: the connection to the clients.
        folder: the run's folder.
        aggregate: from the replies in an update to the training metrics of its round.
        evaluate_fn: the server's evaluation function, which is first called on the initial model;
            None: there is none.
        say: called with each line of the log.
    """

    def __init__(
        self,
        wire: StockWire,
        folder: Path,
        aggregate: Aggregate,
        evaluate_fn: EvaluateFn | None,
        say: Callable[[str], None],
    ) -> None:
        self._wire, self._folder, self._say = wire, folder, say
        self._aggregate, self._evaluate_fn = aggregate, evaluate_fn
        self._file: MetricsFile | None = None

    def begin(self, run: LiveRun) -> None:
        """Open the file of metrics. For a new run, evaluate the initial model.

        If the policy needs scores, the server evaluates the initial model before the first round.
        """
        check_policy(run.policy)
        self._file = MetricsFile(self._folder, run.ledger.version)
        scored = "scores" in run.policy.needs
        if self._evaluate_fn is not None and not run.outcomes and not scored:
            # Not caught: a mistake in the function shows before clients work for nothing.
            metrics = as_metrics(self._evaluate_fn(0, pack_arrays(run.arrays)))
            if metrics is not None:
                self.keep("server", 0, metrics)

    def played(self, run: LiveRun, played: PlayedRound) -> None:
        """Keep the metrics of a round, and update the arrays that are not learned."""
        check_policy(run.policy)  # a controller may have chosen another one
        merged = self._wire.take_merged(played.records)
        if not merged:
            return
        metrics = self._aggregate([reply.metrics for reply, _ in merged])
        if metrics is not None:
            self.keep("train", played.outcome.version, metrics)
        run.global_model.rest = average_rest(run.global_model.rest, merged)

    def keep(self, kind: str, server_round: int, metrics: MetricRecord) -> None:
        """Write the metrics of a round to the file and to the log."""
        assert self._file is not None
        self._file.add(kind, server_round, metrics)
        self._say(f"Metrics of version {server_round} ({kind}): {dict(metrics)}")

    def close(self) -> None:
        """Close the file of metrics."""
        if self._file is not None:
            self._file.__exit__(None, None, None)


def average_rest(rest: dict[str, Any], merged: list[tuple[TrainedReply, float]]) -> dict[str, Any]:
    """The arrays that are not learned, such as counters: weighted means, rounded to their type.

    Args:
        rest: the present arrays.
        merged: the replies in an update, with their coefficients.
    """
    weights = np.array([max(coefficient, 0.0) for _, coefficient in merged])
    if not rest or not weights.sum() > 0:
        return rest
    weights /= weights.sum()
    found = {}
    for name, array in rest.items():
        mean = sum(
            weight * reply.rest[name].astype(np.float64)
            for weight, (reply, _) in zip(weights, merged, strict=True)
        )
        found[name] = _rounded(np.asarray(mean), array.dtype)
    return found


def _rounded(mean: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    if kind.kind == "b":
        return np.asarray(mean > 0.5)
    limits = np.iinfo(kind)
    # The largest float64 that fits, as 2**63 - 1 itself does not exist in float64.
    highest = np.nextafter(float(limits.max), 0) if limits.bits > 53 else limits.max
    return np.asarray(np.clip(np.rint(mean), limits.min, highest).astype(kind))


def aggregate_with(
    aggregate: MetricsFn, key: str, what: str, say: Callable[[str], None]
) -> Aggregate:
    """An aggregation of metrics whose errors are logged, because clients can cause them.

    Args:
        aggregate: from replies and the key of their weights to metrics.
        key: the key of the weights.
        what: what is aggregated, for the log.
        say: called with a sentence about an error.
    """

    def call(replies: list[RecordDict]) -> MetricRecord | None:
        try:
            return as_metrics(aggregate(replies, key))
        except Exception as error:
            say(f"The {what} metrics were not aggregated: {type(error).__name__}: {error}")
            return None

    return call
