"""A policy: five decisions, and a declaration of what they need and do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cafe.errors import InputError, check_choice, check_positive, check_type, check_whole
from cafe.federation import Federation
from cafe.keywords import explain_keywords
from cafe.rounds import policy_text
from cafe.rounds.answers import Carried, Merge, Verdict, Wait
from cafe.rounds.identity import digest, identify
from cafe.rounds.jobs import Invitation, Reports
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Outcome
from cafe.rounds.round_views import Closed, Waiting

if TYPE_CHECKING:
    from cafe.learn.server_optimisers import ServerOptimiser

NEEDS = {
    "forecasts": "how likely each client is to stay present; on real clients this is estimated",
    "labels": "how many examples of each class the client of each report holds",
    "local models": "clients keep their own model from one round to the next",
    "losses": "the mean loss of each report's first batch",
    "models": "each client's model and update in the clear, which secure aggregation forbids",
    "offsets": "the vectors from earlier merges that clients added to their gradients",
    "rates": "the learning rate of each report's steps",
    "rms losses": "the root of the mean squared loss of each report's first batch",
    "scores": "loss and accuracy of the model, evaluated every ``score_every`` updates",
    "sizes": "how many examples each client holds: a report without this number is rejected",
    "steps": "how many steps each client took: a report without this number is rejected",
    "updates": "each client's update in the clear, which secure aggregation forbids",
}
# Needs that each report must contain. Secure aggregation cannot provide them.
PER_CLIENT_NEEDS = frozenset(
    {"updates", "models", "losses", "rms losses", "labels", "offsets", "rates"}
)


class _Unstated(dict[str, Any]):
    """The default of ``Policy.parameters``: none were given, not even an empty dictionary."""


@explain_keywords
@dataclass(frozen=True)
class Policy:
    """How a server runs its rounds: a value, made by a recipe such as :func:`cafe.policies.mcu`.

    The attributes from ``quorum`` on declare in advance what the decisions will do. Servers and
    simulators use them to reject settings that cannot work, to send real clients their deadline,
    and to wait for enough clients before a round.

    Attributes:
        name: name of the recipe.
        invite: which clients start a job. ``invite(ledger, rng)``.
        close: when the round ends and whether it succeeds, or which clients to invite while it is
            open. ``close(ledger, waiting)``.
        merge: how reports change the model. ``merge(ledger, reports)``.
        carry: which jobs and reports are kept for later rounds. ``carry(ledger, closed)``.
        observe: returns the policy's next state, ``observe(ledger, outcome, closed)``, which must
            survive a JSON round trip; None for a policy without state.
        needs: what the decisions must know in addition to who reported when; keys of ``NEEDS``.
        parameters: the recipe's arguments that differ from its defaults. If they are left out, the
            policy's text shows the closure variables and fields of its decisions.
        server: the server optimiser, which turns the merged update into a step of the model; None:
            that of the task or of the live server. Only one of the two may be given.
        quorum: number of reports below which no round succeeds.
        present: number of clients that must be present for a round to open; None: the quorum.
        deadline: longest duration of a round; None if there is no limit.
        target: number of reports at which a round closes, or "all" if it closes when all invited
            clients have reported. Leave it out if it may exceed the number of clients, which is
            possible if clients report twice in a round.
        cohort: largest number of clients invited: a number, or a fraction of all clients (a
            float); None: all clients.
        late: what happens to a job that misses the deadline: "drop", or "keep" it running. With
            "drop", real clients stop at the deadline.
        score_every: how many updates old a score may be, for a policy that needs scores.
        up_to_clients: the recipe's arguments that must be at most the number of clients, in
            addition to the cohort.
    """

    name: str
    invite: Callable[[Ledger, np.random.Generator], Invitation]
    close: Callable[[Ledger, Waiting], Wait | Verdict | Invitation]
    merge: Callable[[Ledger, Reports], Merge]
    carry: Callable[[Ledger, Closed], Carried]
    observe: Callable[[Ledger, Outcome, Closed], Any] | None = None
    needs: frozenset[str] = frozenset()
    parameters: Mapping[str, Any] = field(default_factory=_Unstated)
    server: ServerOptimiser | None = None
    quorum: int = 1
    present: int | None = None
    deadline: float | None = None
    target: int | Literal["all"] | None = None
    cohort: int | float | None = None
    late: Literal["drop", "keep"] = "drop"
    score_every: int = 1
    up_to_clients: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_parts()
        unknown = self.needs - NEEDS.keys()
        if unknown:
            raise InputError(
                f"The policy {self.name} may need {', '.join(NEEDS)}. Got "
                f"{', '.join(sorted(map(str, unknown)))}. Correct its needs."
            )
        check_whole("The quorum", self.quorum)
        check_whole("score_every", self.score_every)
        if self.present is not None:
            check_whole("present", self.present)
        if self.deadline is not None:
            check_positive("The deadline", self.deadline)
        target: Any = self.target
        if isinstance(target, str) and target != "all":
            raise InputError(f"The target must be a number of reports or 'all'. Got '{target}'.")
        if target is not None and not isinstance(target, str):
            check_whole("The target", target)
        if isinstance(self.cohort, float) and not 0 < self.cohort <= 1:
            raise InputError(
                "A cohort must be a whole number of clients, or a float above 0 and at most 1, a "
                f"fraction of all clients. Got {self.cohort}."
            )
        if self.cohort is not None and not isinstance(self.cohort, float):
            check_whole("A cohort", self.cohort)
        check_choice("late", self.late, ["drop", "keep"])

    def _check_parts(self) -> None:
        """Raise an error for a part of the wrong type."""
        check_type("The name of a policy", self.name, str, "a text")
        for name in ("invite", "close", "merge", "carry", "observe"):
            decision = getattr(self, name)
            if not callable(decision) and not (name == "observe" and decision is None):
                raise InputError(
                    f"The policy {self.name} must have a function as {name}. Got {decision!r}."
                )
        needs: Any = self.needs
        if not isinstance(needs, set | frozenset):
            raise InputError(
                f'needs must be a set of strings, such as frozenset({{"losses"}}). Got {needs!r}.'
            )
        object.__setattr__(self, "needs", frozenset(needs))
        server: Any = self.server
        if server is not None and (isinstance(server, type) or not hasattr(server, "step")):
            raise InputError(
                f"The policy {self.name} must have a server optimiser as server, such as "
                f"cafe.learn.server_optimisers.Adam(), or None. Got {server!r}."
            )
        if not isinstance(self.parameters, Mapping):
            raise InputError(
                "parameters must be a dictionary of the recipe's arguments, such as "
                f"{{'quorum': 3}}. Got {self.parameters!r}."
            )
        if not isinstance(self.up_to_clients, Mapping):
            raise InputError(
                "up_to_clients must be a dictionary of the recipe's arguments, such as "
                f"{{'tiers': 3}}. Got {self.up_to_clients!r}."
            )

    def invites(self, clients: int) -> int:
        """The largest number of clients invited in a federation of this many clients."""
        if self.cohort is None:
            return clients
        if isinstance(self.cohort, float):
            return max(round(self.cohort * clients), 1)
        if self.cohort > clients:
            raise InputError(self._too_many(clients))
        return self.cohort

    def _too_many(self, clients: int) -> str:
        """The message for a cohort above the number of clients, with the argument that set it."""
        most = f"must be at most the number of clients ({clients})"
        for name, value in self.parameters.items():
            if type(value) is int and value == self.cohort and name != "cohort":
                return f"{name} {most}, because as many are invited. Got {value}. Lower {name}."
        if "cohort" in self.parameters or isinstance(self.parameters, _Unstated):
            return f"A cohort {most}. Got {self.cohort}. Lower the cohort."
        given = [name for name in ("goal", "extra") if name in self.parameters]
        return (
            f"The policy {self.name} invites {self.cohort} clients, but the federation has "
            f"{clients}. Lower {' or '.join(given) or 'its goal'}."
        )

    def check(self, federation: Federation, crash: float = 0.0) -> None:
        """Raise an error if no round could succeed, or a round might never end.

        Args:
            federation: the clients.
            crash: the probability that a job crashes.
        """
        invited = self.invites(federation.clients)
        for name, number in self.up_to_clients.items():
            if number > federation.clients:
                raise InputError(
                    f"{name} must be at most the number of clients ({federation.clients}). Got "
                    f"{number}. Lower {name}."
                )
        # A policy that keeps jobs running can collect more reports than it invites at once.
        limited = self.deadline is not None or self.target == "all"
        if self.present is not None and self.present > federation.clients:
            raise InputError(
                f"A round of the policy {self.name} opens when {self.present} clients are present, "
                f"but the federation has {federation.clients}."
            )
        for name, value in (("quorum", self.quorum), ("target", self.target)):
            if limited and isinstance(value, int) and value > invited:
                raise InputError(
                    f"The {name} must be at most the number of invited clients ({invited}). Got "
                    f"{value}: it could never be met."
                )
        absent = federation.presence is not None or np.any(np.less(federation.availability, 1))
        if crash > 0 or absent:
            self.check_lost()

    def check_lost(self) -> None:
        """Raise an error if a round might never end when a client is lost."""
        if self.deadline is None and self.target == "all":
            raise InputError(
                "Without a deadline a round waits for all clients, and a client that is absent or "
                "crashes would make it last for ever. Give the policy a deadline."
            )

    @property
    def opens_with(self) -> int:
        """The number of clients that must be present for a round to open."""
        return self.quorum if self.present is None else self.present

    @property
    def identity(self) -> str:
        """Text that differs for policies that may decide differently: ``str(policy)`` and a hash.

        The SHA-256 hash covers all decisions and ``needs``. The code of decisions is part of it,
        except for functions and classes of CAFe. If a part of a decision cannot be identified but
        ``parameters`` are given, the hash covers the parameters instead.

        Raises:
            InputError: if neither the decisions nor the parameters can be identified completely.
        """
        decisions = {**self._decisions(), "needs": self.needs}
        try:
            return f"{self} sha256:{digest(decisions)}"
        except InputError:
            if not self.parameters:
                raise
            identify({**self.parameters})  # raises an error if they cannot be identified either
            return f"{self} sha256:{digest((decisions, {**self.parameters}), lenient=True)}"

    def _decisions(self) -> dict[str, Any]:
        """The decisions and declared attributes that are not None, by name."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        others = ("name", "needs", "parameters", "up_to_clients")
        return {k: v for k, v in values.items() if k not in others and v is not None}

    def __str__(self) -> str:
        if isinstance(self.parameters, _Unstated):
            shown = policy_text.describe_decisions(self._decisions())
        else:
            shown = policy_text.describe_parameters(self.parameters)
        return f"{self.name}({', '.join(f'{k}={v}' for k, v in shown.items())})"
