"""The global model: its versions that somebody still needs, and how it moves on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cafe.errors import InputError
from cafe.learn.server_optimisers import Moments, ServerOptimiser
from cafe.live.aggregation import Combine, Sum, merged
from cafe.live.model_layout import Arrays, Layout, Vector
from cafe.rounds.answers import Merge


class GlobalModel:
    """A model that learns.

    Args:
        model: the arrays to begin with.
        combine: how updates are put together; None adds them up.
        optimiser: what is done with the update; None adds it.

    Attributes:
        layout: of the arrays.
        rest: those of them that are not learned.
        versions: the model as a vector, by version.
        moments: what the optimiser remembers.
    """

    def __init__(
        self, model: Arrays, combine: Combine | None, optimiser: ServerOptimiser | None
    ) -> None:
        self.layout = Layout.of(model)
        self.rest = {k: np.asarray(v) for k, v in model.items() if k not in self.layout.learned}
        self.versions: dict[int, Vector] = {0: self.layout.flat(model)}
        self.combine, self.optimiser = combine or Sum(), optimiser
        self.moments: Moments = ()
        if not np.isfinite(self.versions[0]).all():
            raise InputError("The model to begin with must have finite numbers. Got others.")

    def arrays(self, version: int) -> Arrays:
        """A version as it is sent."""
        return self.layout.unflat(self.versions[version], self.rest)

    def move(self, version: int, updates: Sequence[Vector], began: Any, merge: Merge) -> bool:
        """Make the next version; False, and nothing is changed, if it were not finite.

        Args:
            version: that it follows.
            updates: of all reports.
            began: from which version each was made.
            merge: what the policy makes of them.
        """
        used = np.flatnonzero(merge.coefficient)
        model = self.versions[version]
        rows = [updates[n] for n in used.tolist()]
        bases = [self.versions[int(began[n])] for n in used.tolist()] if merge.of == "model" else []
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below
            step: Any = merged(
                self.combine,
                np.stack(rows) if rows else np.empty((0, len(model))),
                merge.coefficient[used],
                bases,
                model,
                merge.keep,
            )
            moments = self.moments
            if self.optimiser is not None:
                step, moments = self.optimiser.step(step, moments)
            model = (model.astype(np.float64) + step).astype(self.layout.dtype)
            sent = self.layout.unflat(model, self.rest)  # some of it may hold less than the vector
        if not all(np.isfinite(array).all() for array in sent.values()):
            return False
        self.versions[version + 1], self.moments = model, moments
        return True

    def forget(self, needed: set[int]) -> None:
        """Keep these versions alone."""
        self.versions = {version: m for version, m in self.versions.items() if version in needed}
