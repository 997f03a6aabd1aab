"""What a policy's decisions return: when to stop waiting, how to merge, what to carry over."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, did_you_mean, is_finite_number
from cafe.federation import Indices
from cafe.latency.base import Floats, to_floats
from cafe.rounds.jobs import Mask


@dataclass(frozen=True)
class Wait:
    """What ``close`` returns to keep a round open: ask again later.

    Attributes:
        until: a time on the ledger's clock at which ``close`` is called again.
        reports: ``close`` is called earlier, as soon as this many reports arrived in this round.
    """

    until: float = float("inf")
    reports: int | None = None


class Verdict(Enum):
    """What ``close`` returns to end a round: commit an update, or fail."""

    COMMIT = "commit"
    FAIL = "fail"


COMMIT, FAIL = Verdict.COMMIT, Verdict.FAIL


@dataclass(frozen=True, eq=False)
class Merge:
    """The next model: ``keep * w + sum over reports of coefficient * (update or model) + add``.

    A report with coefficient 0 is not used.

    ``offset``, ``common`` and ``frozen`` apply to jobs that start later, until another merge
    replaces them; None leaves them unchanged. They need a task, and cannot be combined with local
    models.

    Attributes:
        coefficient: a number for each report.
        keep: the factor of the current model.
        of: what the coefficients multiply: each report's "update", or its "model".
        offset: a row for each report, of shape (reports, parameters). The report's client adds it
            to each of its gradients. If a client has several reports, the last one counts. The
            policy must need "updates".
        common: a vector of shape (parameters,) that every client adds to each of its gradients, in
            addition to its offset. Vectors count as one more model in the bytes sent to a client.
        frozen: a mask of shape (parameters,): the parameters that clients do not change. Bytes are
            counted as before unless ``Work.download`` and ``Work.upload`` are lowered.
        add: a vector of shape (parameters,) that is added to the model; None adds nothing. The
            policy must need "updates" or "models".
        memory: an array of numbers that the server keeps for the policy: all later decisions see it
            as ``ledger.memory``, and checkpoints contain it. None keeps the present one.
        memory_rows: the rows of ``ledger.memory`` that ``memory`` replaces, each once; None: all.
            A long memory of which few rows change is then not copied.
    """

    coefficient: Floats
    keep: float = 1.0
    of: Literal["update", "model"] = "update"
    offset: NDArray[np.float32] | Floats | None = None
    common: NDArray[np.float32] | Floats | None = None
    frozen: Mask | None = None
    add: NDArray[np.float32] | Floats | None = None
    memory: NDArray[np.float32] | Floats | None = None
    memory_rows: Indices | None = None

    def __post_init__(self) -> None:
        given = self.coefficient
        plain = isinstance(given, np.ndarray) and given.dtype == float
        coefficient = given if plain else to_floats(given)
        keep = type(self.keep) is float and -np.inf < self.keep < np.inf
        if coefficient is None or not (keep or is_finite_number(self.keep)):
            raise InputError(
                "A Merge needs a coefficient for each report and a finite number as keep. "
                f"Got {self.coefficient!r} and keep={self.keep!r}."
            )
        object.__setattr__(self, "coefficient", coefficient)
        if self.of not in ("update", "model"):
            hint = did_you_mean(self.of, ["update", "model"])
            raise InputError(f"A Merge needs of='update' or of='model'. Got of='{self.of}'. {hint}")
        if not np.isfinite(coefficient).all():
            raise InputError(f"A Merge needs finite coefficients. Got {coefficient!r}.")


class Carry(IntFlag):
    """What happens to a job when its round closes; flags can be combined."""

    DROP = 0  # it ends
    RUN = 1  # a job that has not reported keeps running
    HOLD = 2  # a report is offered to the next merge as well
    LOCAL = 4  # the client keeps the local model that it reported, and may continue from it


DROP, RUN, HOLD, LOCAL = Carry.DROP, Carry.RUN, Carry.HOLD, Carry.LOCAL


@dataclass(frozen=True, eq=False)
class Carried:
    """What ``carry`` returns.

    Attributes:
        jobs: a :class:`Carry` for all of the closed round's jobs, or an array with one for each.
            If a client has reported twice in the round, only its last report can be kept.
        kept: whether reports and local models that were kept in earlier rounds are still kept:
            True or False for all, or one for each client of the federation. A held report is
            offered to every merge for as long as it is kept, used or not. A newer report of the
            same client replaces it.
    """

    jobs: Carry | NDArray[np.int64] = DROP
    kept: bool | Mask = False
