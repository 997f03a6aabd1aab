"""The history of a run: all rounds as arrays, and their totals and means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.latency.base import Floats
from cafe.rounds.jobs import Whole
from cafe.rounds.outcome import Fate, Outcome
from cafe.rounds.policy_changes import PolicyChange

Column = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Curve:
    """The evaluations of the model during a run.

    Attributes:
        round: number of rounds before each evaluation.
        time: virtual time of each evaluation.
        updates: number of updates before it.
        work: client time spent before it, used or not.
        loss: mean loss on the test examples.
        accuracy: fraction of correct predictions; NaN for tasks without classes.
    """

    round: Whole
    time: Floats
    updates: Whole
    work: Floats
    loss: Floats
    accuracy: Floats

    def __len__(self) -> int:
        return len(self.round)

    @classmethod
    def of(
        cls,
        scores: Sequence[tuple[int, tuple[float, float | None]]],
        by_round: dict[str, Column],
    ) -> Curve:
        """The curve of a run.

        Args:
            scores: for each evaluation, the number of rounds before it, and (loss, accuracy).
            by_round: the run's rounds, as in :attr:`History.by_round`.
        """
        after = np.array([rounds for rounds, _ in scores], dtype=np.int64)
        time, work, updates = (
            np.concatenate([[0.0], column])[after]
            for column in (
                by_round["closed"],
                np.cumsum(by_round["work"]),
                np.cumsum(by_round["succeeded"]),
            )
        )
        loss, accuracy = np.array([score for _, score in scores], dtype=float).reshape(-1, 2).T
        return cls(after, time, updates.astype(np.int64), work, loss, accuracy)


@dataclass(frozen=True, eq=False)
class History:
    """The rounds of a run and their cost.

    Attributes:
        policy: the policy as text, such as ``mcu(quorum=1, deadline=0.5)``.
        seed: seed of the run.
        by_round: an array for each field of :class:`Outcome`, with an entry per round; ``fates``
            and ``work_by_fate`` have a column per fate.
        age_by_client: age of each client, averaged over the virtual time of the run.
        merged_by_client: number of reports of each client that were used.
        weight_by_client: sum of each client's coefficients.
        open_jobs: number of jobs without a fate when the run ended.
        curve: evaluations of the model; None without a task.
        model: parameters of the last model; None without a task.
        accuracy_by_client: accuracy of the last model for each client: the mean over its examples
            of the accuracy of their classes on the test examples; None if it was not measured.
        policy_changes: the rounds in which the run's controller changed the policy, with the
            deadline, the quorum and the reason, beginning with the first round; empty without a
            controller.
    """

    policy: str
    seed: int
    by_round: dict[str, Column]
    age_by_client: Floats
    merged_by_client: Whole
    weight_by_client: Floats
    open_jobs: int
    curve: Curve | None = None
    model: NDArray[np.float32] | None = None
    accuracy_by_client: Floats | None = None
    policy_changes: tuple[PolicyChange, ...] = ()

    @property
    def rounds(self) -> int:
        """Number of rounds, failed ones included."""
        return len(self.by_round["round"])

    @property
    def updates(self) -> int:
        """Number of rounds that succeeded."""
        return int(np.count_nonzero(self.by_round["succeeded"]))

    @property
    def virtual_time(self) -> float:
        """Time at which the last round closed."""
        return float(self.by_round["closed"][-1]) if self.rounds else 0.0

    @property
    def reports_used(self) -> int:
        """Number of reports that updates used."""
        return int(self.by_round["used"].sum())

    @property
    def reports_reused(self) -> int:
        """Number of used reports that an earlier update had already used."""
        return int(self.by_round["reused"].sum())

    @property
    def downloads(self) -> int:
        """Number of times the model was sent to a client; the paper's broadcasts count rounds."""
        return int(self.by_round["downloads"].sum())

    @property
    def bytes_down(self) -> float:
        """Bytes sent to clients; 0 without a task."""
        return float(self.by_round["bytes_down"].sum())

    @property
    def bytes_up(self) -> float:
        """Bytes of the reports that arrived, used or not; 0 without a task."""
        return float(self.by_round["bytes_up"].sum())

    @property
    def waste(self) -> float:
        """Total wasted client time, where a discarded job counts until its round closes."""
        return float(self.by_round["waste"].sum())

    @property
    def processing_waste(self) -> float:
        """Total wasted client time, where a discarded job counts until its own report."""
        return float(self.by_round["processing_waste"].sum())

    @property
    def client_seconds(self) -> float:
        """Total client time, used or not."""
        return float(self.by_round["work"].sum())

    @property
    def waste_per_update(self) -> float:
        """C_w: waste per update (Theorem 1); infinite if no round succeeded."""
        return _over(self.waste, self.updates)

    @property
    def processing_waste_per_update(self) -> float:
        """Processing waste per update; infinite if no round succeeded."""
        return _over(self.processing_waste, self.updates)

    @property
    def absent_waste_per_update(self) -> float:
        """The part of both wastes per update that is charged for absent clients."""
        return _over(float(self.by_round["absent_waste"].sum()), self.updates)

    @property
    def waste_per_gradient(self) -> float:
        """Waste per used report; infinite if none was used."""
        return _over(self.waste, self.reports_used)

    @property
    def processing_waste_per_gradient(self) -> float:
        """Processing waste per used report; infinite if none was used."""
        return _over(self.processing_waste, self.reports_used)

    @property
    def waste_per_time(self) -> float:
        """Waste per virtual time: the mean number of clients whose work is wasted."""
        return _over(self.waste, self.virtual_time)

    @property
    def processing_waste_per_time(self) -> float:
        """Processing waste per virtual time."""
        return _over(self.processing_waste, self.virtual_time)

    @property
    def client_seconds_per_update(self) -> float:
        """Client time per update, used or not; infinite if no round succeeded."""
        return _over(self.client_seconds, self.updates)

    @property
    def broadcasts_per_update(self) -> float:
        """C_b: rounds per update; infinite if no round succeeded."""
        return _over(self.rounds, self.updates)

    @property
    def mean_age(self) -> float:
        """Age averaged over virtual time and over clients (Theorem 2)."""
        return float(self.age_by_client.mean())

    @property
    def fates(self) -> dict[str, int]:
        """Number of jobs that ended with each fate, by its name."""
        return {f.name.lower(): int(self.by_round["fates"][:, f].sum()) for f in Fate}

    @property
    def work_by_fate(self) -> dict[str, float]:
        """Client time of the jobs that ended with each fate; NaN if the log does not have it."""
        return {f.name.lower(): float(self.by_round["work_by_fate"][:, f].sum()) for f in Fate}

    @property
    def jobs(self) -> int:
        """Number of jobs that were started."""
        return int(self.by_round["invited"].sum())

    @property
    def accuracy(self) -> float | None:
        """Accuracy of the last evaluation; None without evaluations or classes."""
        if self.curve is None or not len(self.curve) or np.isnan(self.curve.accuracy[-1]):
            return None
        return float(self.curve.accuracy[-1])

    @property
    def loss(self) -> float | None:
        """Mean loss of the last evaluation; None without evaluations."""
        return float(self.curve.loss[-1]) if self.curve is not None and len(self.curve) else None

    def __repr__(self) -> str:
        learned = "" if self.accuracy is None else f", accuracy {self.accuracy:.4f}"
        return f"History({self.policy}: {self.rounds} rounds, {self.updates} updates{learned})"


def outcome_columns(outcomes: Sequence[Outcome]) -> dict[str, Column]:
    """The rounds as a dictionary with an array per field of :class:`Outcome`."""
    found = {f.name: np.array([getattr(o, f.name) for o in outcomes]) for f in fields(Outcome)}
    if not outcomes:
        found["fates"] = np.zeros((0, len(Fate)), dtype=np.int64)
        found["work_by_fate"] = np.zeros((0, len(Fate)))
    return found


class RoundColumns:
    """The :func:`outcome_columns` of a growing run; each round is converted once."""

    def __init__(self) -> None:
        self._known, self._count = outcome_columns([]), 0

    def of(self, outcomes: Sequence[Outcome]) -> dict[str, Column]:
        """The columns of all rounds; they must begin with the rounds of the last call."""
        more = outcome_columns(outcomes[self._count :])
        if self._count == 0:
            self._known = more
        elif len(outcomes) > self._count:
            self._known = {n: np.concatenate([old, more[n]]) for n, old in self._known.items()}
        self._count = len(outcomes)
        return dict(self._known)


def _over(amount: float, count: float) -> float:
    return amount / count if count > 0 else float("inf")
