"""``clients.npz``: what has become of each client."""

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
    """What a history holds beside its rounds, an entry per client.

    Attributes:
        age: averaged over the time so far.
        merged: in how many updates each had a part.
        weight: the sum of each one's coefficients.
        open_jobs: jobs of all of them that have no fate yet.
    """

    age: Floats
    merged: Whole
    weight: Floats
    open_jobs: int

    @classmethod
    def of(cls, history: History) -> Self:
        """Those of a history."""
        return cls(
            history.age_by_client,
            history.merged_by_client,
            history.weight_by_client,
            history.open_jobs,
        )

    @classmethod
    def unknown(cls, clients: int) -> Self:
        """Of a run that has left no word of its clients yet."""
        nothing = np.full(clients, np.nan)
        return cls(nothing, np.zeros(clients, dtype=np.int64), nothing, 0)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Back from :meth:`arrays`."""
        return cls(arrays["age"], arrays["merged"], arrays["weight"], int(arrays["open_jobs"]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a file."""
        return {name: np.asarray(value) for name, value in vars(self).items()}
