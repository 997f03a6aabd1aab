"""Clipping: an update that is much longer than those of other clients is scaled down.

The round's own reports count too, so the first round is protected as well. The model does not
change by a single bit as long as no update is clipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cafe.live.job_records import Key, OpenRound
from cafe.live.model_layout import Vector
from cafe.live.wire import Report

RECENT = 64  # clients whose last norms are kept, unless a round has more reports
_ENOUGH = 3  # clients whose norms must be known before their median is used


@dataclass(eq=False)
class UpdateClipper:
    """Scales long updates down to a multiple of the usual norm.

    The usual norm is the median over clients of the norm of their last update, so a client counts
    once however often it reports. If updates get longer in failed rounds, as in AGU, it follows.

    Attributes:
        times: the largest norm, as a multiple of the usual norm; None: updates are not clipped.
        norms: the norm of the last update that is not 0, by client, the oldest first.

    Example:
        >>> import numpy as np
        >>> from cafe.live.clipping import UpdateClipper
        >>> clipper = UpdateClipper(times=2.0)
        >>> clipper.factors([0, 1, 2], [1.0, 1.0, 8.0], model=np.zeros(4))
        [1.0, 1.0, 0.25]
    """

    times: float | None
    norms: dict[int, float] = field(default_factory=dict)

    def factors(self, clients: Sequence[int], norms: Sequence[float], model: Vector) -> list[float]:
        """The factor of each update of a round; 1 if it is not clipped.

        Args:
            clients: the number of the client of each update.
            norms: their norms.
            model: the global model. Its norm is used until three clients have reported.
        """
        for client, norm in zip(clients, norms, strict=True):
            if norm > 0:  # an update of zeros says nothing about the usual norm
                self.norms.pop(client, None)
                self.norms[client] = norm
        for client in [*self.norms][: -max(RECENT, len(clients))]:
            del self.norms[client]
        limit = self.limit(model)
        return [limit / norm if norm > limit else 1.0 for norm in norms]

    def limit(self, model: Vector) -> float:
        """The largest norm of an update; infinite if updates are not clipped."""
        if self.times is None:
            return float("inf")
        if len(self.norms) >= _ENOUGH:
            return self.times * float(np.median([*self.norms.values()]))
        return self.times * (1.0 + norm_of(model))

    def clip(self, open_: OpenRound, accepted: dict[Key, Report], model: Vector) -> list[int]:
        """Clip the reports of a round, and note it in their records.

        Args:
            open_: the round, whose wait is over.
            accepted: the accepted reports, by job.
            model: the global model.

        Returns:
            The number of the client of each report that was clipped.
        """
        rows = np.flatnonzero(open_.reported).tolist()
        clients = [open_.records[row].client for row in rows]
        reports = [accepted[open_.records[row].key] for row in rows]
        factors = self.factors(clients, [norm_of(report.vector) for report in reports], model)
        for row, report, factor in zip(rows, reports, factors, strict=True):
            if factor < 1:
                record = open_.records[row] = replace(open_.records[row], clipped=factor)
                accepted[record.key] = replace(report, vector=scaled(report.vector, factor))
        return [client for client, factor in zip(clients, factors, strict=True) if factor < 1]


def norm_of(vector: Any) -> float:
    """The norm, summed in float64, where the square of a float32 cannot overflow."""
    return float(np.linalg.norm(np.asarray(vector, dtype=np.float64)))


def scaled(vector: Any, factor: float) -> Vector:
    """A vector times a factor, computed in float64. A replay computes the same bits."""
    return np.asarray((vector.astype(np.float64) * factor).astype(vector.dtype))
