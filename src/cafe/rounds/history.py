"""All rounds of a run, and what they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.latency.base import Floats
from cafe.rounds.jobs import Whole
from cafe.rounds.outcome import Fate, Outcome

Column = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Curve:
    """How good the model was, each time it was evaluated.

    Attributes:
        round: after how many rounds.
        time: at which virtual time.
        updates: after how many updates.
        work: after how much client time, used or not.
        loss: the mean loss on the test examples.
        accuracy: the share that was right; not a number for tasks without classes.
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
        """From loss and accuracy after so many rounds each, and what the rounds were like."""
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
    """What a run did and cost.

    Attributes:
        policy: the policy, as it is written: ``mcu(quorum=1, deadline=0.5)``.
        seed: of all that was random.
        by_round: an array per field of :class:`Outcome`, an entry per round; ``fates`` has a column
            per fate.
        age_by_client: each client's age, averaged over the whole virtual time from 0.
        merged_by_client: in how many updates each client had a part.
        weight_by_client: the sum of each client's coefficients.
        open_jobs: jobs that had no fate yet when the run ended.
        curve: how good the model was over time; None without a task.
        model: the parameters in the end; None without a task.
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

    @property
    def rounds(self) -> int:
        """How many rounds there were, failed ones included."""
        return len(self.by_round["round"])

    @property
    def updates(self) -> int:
        """How many rounds succeeded."""
        return int(np.count_nonzero(self.by_round["succeeded"]))

    @property
    def virtual_time(self) -> float:
        """When the last round closed."""
        return float(self.by_round["closed"][-1]) if self.rounds else 0.0

    @property
    def reports_used(self) -> int:
        """How many reports went into updates."""
        return int(self.by_round["used"].sum())

    @property
    def reports_reused(self) -> int:
        """How many of the used reports had already been in an earlier update."""
        return int(self.by_round["reused"].sum())

    @property
    def downloads(self) -> int:
        """How many times the model was sent to a client; the paper's broadcasts count rounds."""
        return int(self.by_round["downloads"].sum())

    @property
    def bytes_down(self) -> float:
        """Bytes sent to clients; 0 without a task, where there is no model."""
        return float(self.by_round["bytes_down"].sum())

    @property
    def bytes_up(self) -> float:
        """Bytes that came with reports, used or not; 0 without a task."""
        return float(self.by_round["bytes_up"].sum())

    @property
    def waste(self) -> float:
        """Client time thrown away in all, as the paper charges it."""
        return float(self.by_round["waste"].sum())

    @property
    def processing_waste(self) -> float:
        """Client time thrown away in all, as it was really spent."""
        return float(self.by_round["processing_waste"].sum())

    @property
    def client_seconds(self) -> float:
        """Client time in all, used or not."""
        return float(self.by_round["work"].sum())

    @property
    def waste_per_update(self) -> float:
        """C_w: waste over updates (Theorem 1); infinite where no round succeeded."""
        return _over(self.waste, self.updates)

    @property
    def processing_waste_per_update(self) -> float:
        """The same with true processing times."""
        return _over(self.processing_waste, self.updates)

    @property
    def absent_waste_per_update(self) -> float:
        """The part of both wastes that absent clients are charged."""
        return _over(float(self.by_round["absent_waste"].sum()), self.updates)

    @property
    def waste_per_gradient(self) -> float:
        """Waste per report that was used."""
        return _over(self.waste, self.reports_used)

    @property
    def processing_waste_per_gradient(self) -> float:
        """True processing time thrown away per report that was used."""
        return _over(self.processing_waste, self.reports_used)

    @property
    def waste_per_time(self) -> float:
        """How many clients worked for nothing at any moment."""
        return _over(self.waste, self.virtual_time)

    @property
    def processing_waste_per_time(self) -> float:
        """The same with true processing times."""
        return _over(self.processing_waste, self.virtual_time)

    @property
    def client_seconds_per_update(self) -> float:
        """Client time per update, used or not."""
        return _over(self.client_seconds, self.updates)

    @property
    def broadcasts_per_update(self) -> float:
        """C_b: rounds over updates; infinite where no round succeeded."""
        return _over(self.rounds, self.updates)

    @property
    def mean_age(self) -> float:
        """The mean over clients of the age averaged over continuous virtual time (Theorem 2)."""
        return float(self.age_by_client.mean())

    @property
    def fates(self) -> dict[str, int]:
        """How many jobs met each fate, by its name."""
        return {f.name.lower(): int(self.by_round["fates"][:, f].sum()) for f in Fate}

    @property
    def jobs(self) -> int:
        """How many jobs were started."""
        return int(self.by_round["invited"].sum())

    @property
    def accuracy(self) -> float | None:
        """The share of test examples that the final model gets right; None where none was asked."""
        if self.curve is None or not len(self.curve) or np.isnan(self.curve.accuracy[-1]):
            return None
        return float(self.curve.accuracy[-1])

    @property
    def loss(self) -> float | None:
        """The final model's mean loss on the test examples."""
        return float(self.curve.loss[-1]) if self.curve is not None and len(self.curve) else None

    def __repr__(self) -> str:
        learned = "" if self.accuracy is None else f", accuracy {self.accuracy:.4f}"
        return f"History({self.policy}: {self.rounds} rounds, {self.updates} updates{learned})"


def outcome_columns(outcomes: Sequence[Outcome]) -> dict[str, Column]:
    """Rounds as an array per field."""
    found = {f.name: np.array([getattr(o, f.name) for o in outcomes]) for f in fields(Outcome)}
    if not outcomes:
        found["fates"] = np.zeros((0, len(Fate)), dtype=np.int64)
    return found


class RoundColumns:
    """The rounds of a growing run as :func:`outcome_columns`: each is turned into numbers once."""

    def __init__(self) -> None:
        self._known, self._count = outcome_columns([]), 0

    def of(self, outcomes: Sequence[Outcome]) -> dict[str, Column]:
        """All rounds, which are those of the last time and more."""
        more = outcome_columns(outcomes[self._count :])
        if self._count == 0:
            self._known = more
        elif len(outcomes) > self._count:
            self._known = {n: np.concatenate([old, more[n]]) for n, old in self._known.items()}
        self._count = len(outcomes)
        return dict(self._known)


def _over(amount: float, count: float) -> float:
    return amount / count if count > 0 else float("inf")
