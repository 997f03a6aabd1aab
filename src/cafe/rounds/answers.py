"""What a policy's decisions answer: when to stop waiting, how to merge, what to carry over."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, did_you_mean, is_finite_number
from cafe.latency.base import Floats, to_floats
from cafe.rounds.jobs import Mask


@dataclass(frozen=True)
class Wait:
    """Wait until a time, or until so many have reported in this round, whichever is first."""

    until: float = float("inf")
    reports: int | None = None


class Verdict(Enum):
    """What ``close`` answers when it has waited enough."""

    COMMIT = "commit"
    FAIL = "fail"


COMMIT, FAIL = Verdict.COMMIT, Verdict.FAIL


@dataclass(frozen=True, eq=False)
class Merge:
    """The next model: ``keep * w + sum over reports of coefficient * (update or model)``.

    A report with coefficient 0 is not used.

    The last three attributes hold from now on, for jobs that start later, until a merge answers
    others; None leaves things as they are. They need a task. Clients that use them cannot go on
    from local models.

    Attributes:
        coefficient: one for each report.
        keep: the factor of the present model.
        of: what is added up: the reports' "update", or their "model".
        offset: a vector for the client of each report, of shape (reports, parameters), which it
            adds to each of its gradients. Of several reports of a client, the last one counts. The
            policy needs "updates".
        common: a vector, of shape (parameters,), which every client adds to each of its gradients
            besides. A client that adds any vector is sent another model's size for it.
        frozen: which parameters no client moves, of shape (parameters,). Fewer bytes are counted
            only where ``Work.download`` and ``Work.upload`` say so.
    """

    coefficient: Floats
    keep: float = 1.0
    of: Literal["update", "model"] = "update"
    offset: NDArray[np.float32] | Floats | None = None
    common: NDArray[np.float32] | Floats | None = None
    frozen: Mask | None = None

    def __post_init__(self) -> None:
        given = self.coefficient
        plain = isinstance(given, np.ndarray) and given.dtype == float
        coefficient = given if plain else to_floats(given)
        keep = type(self.keep) is float and -np.inf < self.keep < np.inf
        if coefficient is None or not (keep or is_finite_number(self.keep)):
            raise InputError(
                f"A merge needs numbers: a coefficient for each report, and keep. "
                f"Got {self.coefficient!r} and keep={self.keep!r}."
            )
        object.__setattr__(self, "coefficient", coefficient)
        if self.of not in ("update", "model"):
            hint = did_you_mean(self.of, ["update", "model"])
            raise InputError(f"A merge is of updates or of models. Got of='{self.of}'. {hint}")
        if not np.isfinite(coefficient).all():
            raise InputError(f"A merge needs finite coefficients. Got {coefficient!r}.")


class Carry(IntFlag):
    """What becomes of a job when its round closes."""

    DROP = 0
    RUN = 1  # a job that has not reported goes on
    HOLD = 2  # a report is offered to the next merge too
    LOCAL = 4  # the client keeps the local model it reported, to go on from


DROP, RUN, HOLD, LOCAL = Carry.DROP, Carry.RUN, Carry.HOLD, Carry.LOCAL


@dataclass(frozen=True, eq=False)
class Carried:
    """What ``carry`` answers.

    Attributes:
        jobs: a :class:`Carry` for all of the closed round's jobs, or one for each. Where a client
            has reported twice in the round, only its last report can be kept.
        kept: whether clients that kept a report or a local model earlier keep it further; for all,
            or one for each client of the federation. A report that is held is offered to every
            merge for as long as this is answered, whether or not it has been used; a newer report
            of its client takes its place.
    """

    jobs: Carry | NDArray[np.int64] = DROP
    kept: bool | Mask = False
