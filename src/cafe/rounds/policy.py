"""What a policy is: five decisions and a list of what they need to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from cafe.errors import InputError, check_positive, check_whole
from cafe.federation import Federation
from cafe.rounds import policy_text
from cafe.rounds.answers import Carried, Merge, Verdict, Wait
from cafe.rounds.identity import digest, identify
from cafe.rounds.jobs import Invitation, Reports
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Outcome
from cafe.rounds.round_views import Closed, Waiting

NEEDS = {
    "forecasts": "how likely each client is to stay present, from the federation's presence",
    "labels": "how many examples of each class the client of each report holds",
    "local models": "clients keep their own model from one round to the next",
    "losses": "the mean loss of each report's first batch",
    "offsets": "the vectors that clients added to their gradients, as earlier merges answered them",
    "rms losses": "the root of the mean squared loss of each report's first batch",
    "scores": "loss and accuracy of the model, evaluated every ``score_every`` updates",
    "sizes": "how many examples each client holds: a report that does not say so is refused",
    "updates": "each client's update in the clear, which secure aggregation forbids",
}
# What reports must bring for a policy that needs it, and secure aggregation cannot give.
PER_CLIENT_NEEDS = frozenset({"updates", "losses", "rms losses", "labels", "offsets"})


class _Unstated(dict[str, Any]):
    """No parameters were stated. A recipe that was told nothing states an empty dictionary."""


@dataclass(frozen=True)
class Policy:
    """How a server runs its rounds: a value, made by a recipe such as :func:`cafe.policies.mcu`.

    The last six attributes say in advance what the decisions will do. Servers and simulators use
    them to refuse what cannot work, to tell real clients how long they may work, and to wait for
    enough clients before a round.

    Attributes:
        name: of the recipe.
        invite: whom to ask. ``invite(ledger, rng)``.
        close: when to stop waiting, and with which verdict, or whom to invite while the round is
            open. ``close(ledger, waiting)``.
        merge: how reports move the model. ``merge(ledger, reports)``.
        carry: what outlives the round. ``carry(ledger, closed)``.
        observe: the policy's next state, ``observe(ledger, outcome, closed)``, of numbers, texts,
            lists and dictionaries with texts for keys; None for a policy that has no state.
        needs: what it must know beyond who reported when; keys of ``NEEDS``.
        parameters: what the recipe was told, other than its defaults. Where they are left out, the
            policy prints what its decisions close over.
        quorum: reports without which no round succeeds. A round begins when so many clients are
            present.
        deadline: how long a round lasts at most; None: no limit is known in advance.
        target: a round closes at so many reports, or when "all" that were invited have reported;
            left out where it may be more than the clients, as they may report twice in a round.
        cohort: how many clients are invited at most: a number, or a fraction of all (a float);
            None: everybody.
        late: what becomes of a job that misses the deadline: "drop", or "keep" running. With
            "drop", real clients stop at the deadline.
        score_every: how many updates old a score may be, for a policy that needs scores.
    """

    name: str
    invite: Callable[[Ledger, np.random.Generator], Invitation]
    close: Callable[[Ledger, Waiting], Wait | Verdict | Invitation]
    merge: Callable[[Ledger, Reports], Merge]
    carry: Callable[[Ledger, Closed], Carried]
    observe: Callable[[Ledger, Outcome, Closed], Any] | None = None
    needs: frozenset[str] = frozenset()
    parameters: Mapping[str, Any] = field(default_factory=_Unstated)
    quorum: int = 1
    deadline: float | None = None
    target: int | Literal["all"] | None = None
    cohort: int | float | None = None
    late: Literal["drop", "keep"] = "drop"
    score_every: int = 1

    def __post_init__(self) -> None:
        self._check_parts()
        unknown = self.needs - NEEDS.keys()
        if unknown:
            raise InputError(
                f"A policy may need {', '.join(NEEDS)}. Got {', '.join(sorted(unknown))}."
            )
        check_whole("The quorum", self.quorum)
        check_whole("score_every", self.score_every)
        if self.deadline is not None:
            check_positive("The deadline", self.deadline)
        target: Any = self.target
        if isinstance(target, str) and target != "all":
            raise InputError(f"A target is a number or 'all'. Got '{target}'.")
        if target is not None and target != "all":
            check_whole("The target", target)
        if isinstance(self.cohort, float) and not 0 < self.cohort <= 1:
            raise InputError(
                f"A cohort is a number of clients, or as a float a fraction of all, above 0 and at "
                f"most 1. Got {self.cohort}."
            )
        if self.cohort is not None and not isinstance(self.cohort, float):
            check_whole("A cohort", self.cohort)
        if self.late not in ("drop", "keep"):
            raise InputError(
                f"late must be 'drop' or 'keep'. Got {self.late!r}: it says what becomes of jobs "
                "that miss the deadline."
            )

    def _check_parts(self) -> None:
        """Refuse parts of the wrong type."""
        for name in ("invite", "close", "merge", "carry", "observe"):
            decision = getattr(self, name)
            if not callable(decision) and not (name == "observe" and decision is None):
                raise InputError(
                    f"The policy {self.name} must have a function as {name}. Got {decision!r}."
                )
        needs: Any = self.needs
        if not isinstance(needs, set | frozenset):
            raise InputError(
                f'needs must be a set of texts, such as frozenset({{"losses"}}). Got {needs!r}.'
            )
        object.__setattr__(self, "needs", frozenset(needs))
        if not isinstance(self.parameters, Mapping):
            raise InputError(
                "parameters must be a dictionary of what the recipe was told, such as "
                f"{{'quorum': 3}}. Got {self.parameters!r}."
            )

    def invites(self, clients: int) -> int:
        """How many of so many clients are invited at most."""
        if self.cohort is None:
            return clients
        if isinstance(self.cohort, float):
            return max(round(self.cohort * clients), 1)
        if self.cohort > clients:
            raise InputError(
                f"A cohort must be at most the number of clients ({clients}). "
                f"Got {self.cohort}: invite fewer."
            )
        return self.cohort

    def check(self, federation: Federation, crash: float = 0.0) -> None:
        """Refuse a federation for which no round could succeed, or a round may never end."""
        invited = self.invites(federation.clients)
        # A policy that lets jobs run on can collect more reports than it invites at once.
        limited = self.deadline is not None or self.target == "all"
        for name, value in (("quorum", self.quorum), ("target", self.target)):
            if limited and isinstance(value, int) and value > invited:
                raise InputError(
                    f"The {name} must be at most the number of clients invited ({invited}). "
                    f"Got {value}: it could never be met."
                )
        absent = federation.presence is not None or np.any(np.less(federation.availability, 1))
        if crash > 0 or absent:
            self.check_lost()

    def check_lost(self) -> None:
        """Refuse a policy whose rounds may never end where clients get lost."""
        if self.deadline is None and self.target == "all":
            raise InputError(
                "Without a deadline a round waits for everybody, and a client that is absent or "
                "crashes would make it last for ever. Give the policy a deadline."
            )

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
            told = policy_text.describe_decisions(self._decisions())
        else:
            told = policy_text.describe_parameters(self.parameters)
        return f"{self.name}({', '.join(f'{k}={v}' for k, v in told.items())})"
