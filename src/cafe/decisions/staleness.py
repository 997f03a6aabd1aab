"""Weights that fall with staleness, and decisions for ``merge`` that use them.

The staleness of a report is the number of updates that the model has had since its job started.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.decisions.weigh import Weight
from cafe.errors import (
    InputError,
    check_callable,
    check_not_negative,
    check_positive,
    check_whole,
)
from cafe.latency.base import Floats
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Reports
from cafe.rounds.ledger import Ledger


@dataclass(frozen=True)
class PowerDamping:
    """A report that is s updates old counts (1 + s) ** -power; 1 for a power of 0.

    Attributes:
        power: how fast the weight falls.

    Example:
        >>> import numpy as np
        >>> from cafe.decisions import PowerDamping
        >>> PowerDamping(0.5)(np.array([0.0, 3.0, 8.0])).round(3).tolist()
        [1.0, 0.5, 0.333]
    """

    power: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "power", check_not_negative("power", self.power))

    def __call__(self, staleness: Floats) -> Floats:
        return np.asarray((1.0 + staleness) ** -self.power, dtype=float)


@dataclass(frozen=True)
class HingeDamping:
    """A report that is s updates old counts 1 up to a lag, then 1 / (slope * (s - lag) + 1).

    Attributes:
        slope: how fast the weight falls after the lag.
        lag: the staleness up to which reports count in full.

    Example:
        >>> import numpy as np
        >>> from cafe.decisions import HingeDamping
        >>> HingeDamping(slope=2.0, lag=1.0)(np.array([0.0, 1.0, 2.0, 3.0])).round(3).tolist()
        [1.0, 1.0, 0.333, 0.2]
    """

    slope: float = 10.0
    lag: float = 4.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "slope", check_not_negative("slope", self.slope))
        object.__setattr__(self, "lag", check_not_negative("lag", self.lag))

    def __call__(self, staleness: Floats) -> Floats:
        return 1.0 / (self.slope * np.maximum(staleness - self.lag, 0.0) + 1.0)


@dataclass(frozen=True)
class ByStaleness:
    """Weigh reports by a function of their staleness; the weights are divided by a fixed number.

    Attributes:
        weight: a function from an array of staleness to an array of weights.
        divisor: what the weights are divided by, such as the goal of a round. It does not depend
            on the reports, so stale reports make the step smaller.
        max_staleness: older reports are not used; None: all reports are used.
        factor: factor of the update, the server's learning rate.

    Example:
        >>> from cafe.decisions import ByStaleness, PowerDamping
        >>> ByStaleness(PowerDamping(0.5), divisor=10, max_staleness=20).factor
        1.0
    """

    weight: Weight
    divisor: float = 1.0
    max_staleness: int | None = None
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_callable("weight", self.weight, "a function from staleness to weights")
        object.__setattr__(self, "divisor", check_positive("divisor", self.divisor))
        object.__setattr__(self, "factor", check_positive("factor", self.factor))
        if self.max_staleness is not None:
            most = check_whole("max_staleness", self.max_staleness, 0)
            object.__setattr__(self, "max_staleness", most)

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        staleness = staleness_of(ledger, reports)
        weight = self.weight(staleness)
        if self.max_staleness is not None:
            weight = np.where(staleness <= self.max_staleness, weight, 0.0)
        return Merge(self.factor * weight / self.divisor)


@dataclass(frozen=True)
class MixModels:
    """Mix the models of clients into the global model, one after the other, as they arrived.

    Each report of staleness s replaces the model w by ``(1 - a) w + a x``, where x is the client's
    model and ``a = share * weight(s)``. All reports of a round have the staleness that they had
    when the round closed.

    Attributes:
        share: the share of a fresh model, above 0 and at most 1.
        weight: a function from an array of staleness to an array of weights.

    Example:
        >>> from cafe.decisions import HingeDamping, MixModels
        >>> MixModels(0.6, HingeDamping()).share
        0.6
    """

    share: float
    weight: Weight

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", check_positive("share", self.share))
        if self.share > 1:
            raise InputError(f"share must be at most 1. Got {self.share}: it is a part of 1.")
        check_callable("weight", self.weight, "a function from staleness to weights")

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        share = self.share * self.weight(staleness_of(ledger, reports))
        order = np.lexsort((reports.client, reports.arrived))
        # What is left of a report, and of the old model, after the reports that came later.
        kept = np.cumprod(1.0 - share[order][::-1])[::-1]
        coefficient = np.empty(len(reports))
        coefficient[order] = share[order] * np.append(kept[1:], 1.0)
        return Merge(coefficient, keep=float(kept[0]) if len(kept) else 1.0, of="model")


def staleness_of(ledger: Ledger, reports: Reports) -> Floats:
    """How many updates the model has had since each report's job started.

    Example:
        >>> import cafe
        >>> from cafe.decisions.staleness import staleness_of
        >>> policy = cafe.policies.mcu(quorum=1, deadline=0.5, late="keep")
        >>> def merge(ledger, reports):
        ...     return cafe.rounds.Merge(1 / (1 + staleness_of(ledger, reports)) / ledger.clients)
    """
    return (ledger.version - reports.version).astype(float)
