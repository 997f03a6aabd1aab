"""Decisions for ``merge``: the coefficient of each report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cafe.errors import InputError, check_callable, check_choice
from cafe.latency.base import Floats
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Reports
from cafe.rounds.ledger import Ledger

Weight = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Mean:
    """The mean of the reports: every coefficient is 1 / number of reports (the paper's eq. 2)."""

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        _some("Mean", reports)
        return Merge(np.full(len(reports), 1.0 / len(reports)))


@dataclass(frozen=True)
class BySize:
    """Weigh reports by the number of examples that their clients hold (FedAvg).

    Attributes:
        divisor: "reported" divides by the examples of the clients that reported, so that the
            coefficients add up to 1. "all" divides by those of all clients, as if the other clients
            had sent the model back unchanged. A client whose number is unknown counts as the mean
            of the others.
    """

    divisor: Literal["reported", "all"] = "reported"

    def __post_init__(self) -> None:
        check_choice("divisor", self.divisor, ["reported", "all"])

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        _some("BySize", reports)
        held = ledger.examples[reports.client].astype(float)
        if np.any(held < 0):
            raise InputError(
                "BySize needs the number of examples of each client. Client "
                f"{reports.client[int(np.argmin(held))]} has reported without it. Make the policy "
                'with Policy(..., needs=frozenset({"sizes"})).'
            )
        whole = held.sum() if self.divisor == "reported" else float(known_sizes(ledger).sum())
        return Merge(held / whole)


@dataclass(frozen=True)
class ByAge:
    """Weigh reports by a function of the client's age before the merge (Sec. 7.1).

    Attributes:
        weight: the paper's Q, from an array of ages to an array of weights.
        unit: the unit of the age. "time": the latency's unit. "rounds since": R, the number of
            rounds since the client was last merged. "rounds": R + 1, which is the age divided by
            T if all rounds last T, and one more than that before the client's first merge.
        divisor: what the weights are divided by: their "sum", as in the paper, or the number of
            "clients".
    """

    weight: Weight
    unit: Literal["time", "rounds", "rounds since"] = "time"
    divisor: Literal["sum", "clients"] = "sum"

    def __post_init__(self) -> None:
        check_callable("weight", self.weight, "a function from ages to weights")
        check_choice("unit", self.unit, ["time", "rounds", "rounds since"])
        check_choice("divisor", self.divisor, ["sum", "clients"])

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        _some("ByAge", reports)
        age: Floats
        if self.unit == "time":
            age = ledger.age(reports.client)
        else:
            age = ledger.rounds_since(reports.client).astype(float)
            age += self.unit == "rounds"
        weight = np.asarray(self.weight(age), dtype=float)
        if weight.shape != age.shape or not np.all(np.isfinite(weight) & (weight >= 0)):
            raise InputError(
                "The weight function must return a finite weight >= 0 for each age. Got "
                f"{weight!r} for ages {age!r}."
            )
        whole = weight.sum() if self.divisor == "sum" else float(ledger.clients)
        if whole == 0:
            raise InputError(
                "The weight function must return a weight above 0 for some report. Got 0 for all."
            )
        return Merge(weight / whole)


def proportional(age: Floats) -> Floats:
    """The age itself: weights that are proportional to the age."""
    return age


# Every client's coefficients add up to 1/N per round, however rarely it reports: R counts each
# round exactly once, in the merge that follows it.
INVERSE_PARTICIPATION = ByAge(proportional, "rounds since", "clients")


def _some(what: str, reports: Reports) -> None:
    if not len(reports):
        raise InputError(
            f"{what} needs at least one report, but close returned COMMIT without any. Return FAIL "
            "in close if there are no reports."
        )


def known_sizes(ledger: Ledger) -> Floats:
    """The examples of each client; a client of unknown size counts as the mean of the others.

    If no client has any examples, or no number is known, all clients count 1.

    Example:
        >>> import numpy as np
        >>> from cafe.decisions.weigh import known_sizes
        >>> from cafe.rounds import Ledger
        >>> known_sizes(Ledger.new(np.array([10, -1, 30])))
        array([10., 20., 30.])
    """
    sizes: Floats = ledger.examples.astype(float)
    known = sizes >= 0
    if not known.all():
        sizes[~known] = sizes[known].mean() if known.any() else 1.0
    return sizes if sizes.any() else np.ones(len(sizes))
