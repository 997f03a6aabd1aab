"""What a policy is: five decisions and a list of what they need to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, IntFlag
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, did_you_mean
from cafe.federation import Federation
from cafe.latency.base import Floats
from cafe.rounds import policy_text
from cafe.rounds.identity import digest, identify
from cafe.rounds.jobs import Invitation, Jobs, Mask, Reports
from cafe.rounds.ledger import Ledger, Waiting
from cafe.rounds.outcome import Outcome

NEEDS = {
    "local models": "clients keep their own model from one round to the next",
    "losses": "the mean loss of each report's first batch",
    "sizes": "how many examples each client holds",
    "updates": "each client's update in the clear, which secure aggregation forbids",
}


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
    """

    coefficient: Floats
    keep: float = 1.0
    of: Literal["update", "model"] = "update"

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficient", np.asarray(self.coefficient, dtype=float))
        if self.of not in ("update", "model"):
            hint = did_you_mean(self.of, ["update", "model"])
            raise InputError(f"A merge is of updates or of models. Got of='{self.of}'. {hint}")
        if not np.isfinite(self.keep) or not np.isfinite(self.coefficient).all():
            raise InputError(
                f"A merge needs finite coefficients. Got {self.coefficient!r} and keep={self.keep}."
            )


class Carry(IntFlag):
    """What becomes of a job when its round closes."""

    DROP = 0
    RUN = 1  # a job that has not reported goes on
    HOLD = 2  # a report is offered to the next merge too
    LOCAL = 4  # the client keeps the local model it reported, to go on from


DROP, RUN, HOLD, LOCAL = Carry.DROP, Carry.RUN, Carry.HOLD, Carry.LOCAL


@dataclass(frozen=True, eq=False)
class Closed:
    """A round that has just closed, for ``carry`` and ``observe``.

    Attributes:
        succeeded: whether the model moved.
        jobs: all that were open.
        reported: which of them have reported.
        used: which of them are in the update.
        arrived: when the reports came; not a number for jobs that have not reported.
        reports: what ``merge`` was given, held reports included; None where it was not asked.
    """

    succeeded: bool
    jobs: Jobs
    reported: Mask
    used: Mask
    arrived: Floats
    reports: Reports | None


@dataclass(frozen=True, eq=False)
class Carried:
    """What ``carry`` answers.

    Attributes:
        jobs: a :class:`Carry` for all of the closed round's jobs, or one for each.
        kept: whether clients that kept a report or a local model earlier may keep it further; for
            all, or one for each client of the federation.
    """

    jobs: Carry | NDArray[np.int64] = DROP
    kept: bool | Mask = False


class _Unstated(dict[str, Any]):
    """No parameters were stated. A recipe that was told nothing states an empty dictionary."""


@dataclass(frozen=True)
class Policy:
    """How a server runs its rounds: a value, made by a recipe such as :func:`cafe.policies.mcu`.

    Attributes:
        name: of the recipe.
        invite: whom to ask. ``invite(ledger, rng)``.
        close: when to stop waiting, and with which verdict. ``close(ledger, waiting)``.
        merge: how reports move the model. ``merge(ledger, reports)``.
        carry: what outlives the round. ``carry(ledger, closed)``.
        observe: the policy's next state, ``observe(ledger, outcome, closed)``, of numbers, texts,
            lists and dictionaries with texts for keys; None for a policy that has no state.
        needs: what it must know beyond who reported when; keys of ``NEEDS``.
        parameters: what the recipe was told, other than its defaults. Where they are left out, the
            policy prints what its decisions close over.
    """

    name: str
    invite: Callable[[Ledger, np.random.Generator], Invitation]
    close: Callable[[Ledger, Waiting], Wait | Verdict]
    merge: Callable[[Ledger, Reports], Merge]
    carry: Callable[[Ledger, Closed], Carried]
    observe: Callable[[Ledger, Outcome, Closed], Any] | None = None
    needs: frozenset[str] = frozenset()
    parameters: Mapping[str, Any] = field(default_factory=_Unstated)

    def __post_init__(self) -> None:
        unknown = self.needs - NEEDS.keys()
        if unknown:
            raise InputError(
                f"A policy may need {', '.join(NEEDS)}. Got {', '.join(sorted(unknown))}."
            )

    def check(self, federation: Federation, crash: float = 0.0) -> None:
        """Refuse a federation for which no round could succeed, where the decisions can tell."""
        size = getattr(self.invite, "size", None)
        refuse = getattr(self.close, "check", None)
        if size is not None and refuse is not None:
            lost = crash > 0 or bool(np.any(np.less(federation.availability, 1)))
            refuse(size(federation.clients), lost)

    @property
    def identity(self) -> str:
        """All that the policy's answers depend on, as a text: how it prints, and a SHA-256.

        The SHA-256 covers every decision, with its code unless that is CAFe's, and ``needs``. If
        something in them cannot be identified but ``parameters`` are given, the parameters must
        say it all: they are identified instead.

        Raises:
            InputError: if neither the decisions nor the parameters can be identified completely.
        """
        decisions = {**self._decisions(), "needs": self.needs}
        try:
            return f"{self} sha256:{digest(decisions)}"
        except InputError:
            if not self.parameters:
                raise
            identify({**self.parameters})  # refused if they cannot be identified either
            return f"{self} sha256:{digest((decisions, {**self.parameters}), lenient=True)}"

    def _decisions(self) -> dict[str, Any]:
        """What the policy decides with, by name; one that it does without is left out."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        others = ("name", "needs", "parameters")
        return {k: v for k, v in values.items() if k not in others and v is not None}

    def __str__(self) -> str:
        if isinstance(self.parameters, _Unstated):
            told = policy_text.found(self._decisions())
        else:
            told = policy_text.stated(self.parameters)
        return f"{self.name}({', '.join(f'{k}={v}' for k, v in told.items())})"
