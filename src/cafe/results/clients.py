"""``clients.npz``: age, updates and weight of each client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cafe.latency.base import Floats
from cafe.rounds.history import History
from cafe.rounds.jobs import Whole

NAME = "clients.npz"


@dataclass(frozen=True, eq=False)
class Clients:
    """The part of a history that is kept per client.

    Attributes:
        age: each client's age, averaged over the time so far.
        merged: the number of updates that used a report of each client.
        weight: the sum of each client's coefficients in the updates.
        open_jobs: the number of jobs of all clients that have no fate yet.
        accuracy: the accuracy of the last model for each client; None if it was not measured.
    """

    age: Floats
    merged: Whole
    weight: Floats
    open_jobs: int
    accuracy: Floats | None = None

    @classmethod
    def of(cls, history: History) -> Self:
        """The values per client of a history."""
        return cls(
            history.age_by_client,
            history.merged_by_client,
            history.weight_by_client,
            history.open_jobs,
            history.accuracy_by_client,
        )

    @classmethod
    def unknown(cls, clients: int) -> Self:
        """Placeholders for a run without a checkpoint: ages and weights are NaN."""
        nothing = np.full(clients, np.nan)
        return cls(nothing, np.zeros(clients, dtype=np.int64), nothing, 0)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of :meth:`arrays`."""
        open_jobs, accuracy = int(arrays["open_jobs"]), arrays.get("accuracy")
        return cls(arrays["age"], arrays["merged"], arrays["weight"], open_jobs, accuracy)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The values as arrays, to be written to a file."""
        known = {name: value for name, value in vars(self).items() if value is not None}
        return {name: np.asarray(value) for name, value in known.items()}
