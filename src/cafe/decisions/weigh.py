"""How much each report counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cafe.errors import InputError, did_you_mean
from cafe.latency.base import Floats
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Reports
from cafe.rounds.ledger import Ledger

Weight = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Mean:
    """All reports alike: one over their number each (the paper's eq. 2)."""

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        """1 / |S| each."""
        _some("Mean", reports)
        return Merge(np.full(len(reports), 1.0 / len(reports)))


@dataclass(frozen=True)
class BySize:
    """By examples held (FedAvg).

    Attributes:
        divisor: "reported": the examples of those who reported, so that the coefficients add up to
            1. "all": those of all clients, as if who did not report had sent the model back
            unchanged. A client that has not said yet how many it holds counts as the mean of those
            that have.
    """

    divisor: Literal["reported", "all"] = "reported"

    def __post_init__(self) -> None:
        _known("divisor", self.divisor, ["reported", "all"])

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        """Each client's share of the examples."""
        _some("BySize", reports)
        held = ledger.examples[reports.client].astype(float)
        if np.any(held < 0):
            raise InputError(
                f"BySize must know how many examples each client holds. Client "
                f"{reports.client[int(np.argmin(held))]} has reported and has not said so: let the "
                'policy say needs={"sizes"}.'
            )
        whole = held.sum() if self.divisor == "reported" else _all(ledger)
        return Merge(held / whole)


@dataclass(frozen=True)
class ByAge:
    """By a function of the client's age, taken before the merge resets it (Sec. 7.1).

    Attributes:
        weight: the paper's Q, from an array of ages to an array of weights.
        unit: ages in "time", or in "rounds": R + 1 where the client was last merged R rounds ago,
            which is the age over T where all rounds last T (and one more before the client's first
            merge, since it is not 0 then). "rounds since": R itself.
        divisor: "sum" of the weights, as in the paper; or the number of "clients", a constant.
    """

    weight: Weight
    unit: Literal["time", "rounds", "rounds since"] = "time"
    divisor: Literal["sum", "clients"] = "sum"

    def __post_init__(self) -> None:
        _known("unit", self.unit, ["time", "rounds", "rounds since"])
        _known("divisor", self.divisor, ["sum", "clients"])

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        """Q(age), divided."""
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
                "The weight function must give every age a finite weight from 0 up. Got "
                f"{weight!r} for ages {age!r}."
            )
        whole = weight.sum() if self.divisor == "sum" else float(ledger.clients)
        if whole == 0:
            raise InputError(
                "The weight function gave every report the weight 0: none would count."
            )
        return Merge(weight / whole)


def _some(what: str, reports: Reports) -> None:
    if not len(reports):
        raise InputError(
            f"{what} weighs at least one report, and its policy has committed a round without "
            "any. Let close answer FAIL where there are no reports."
        )


def _all(ledger: Ledger) -> float:
    """The examples of all clients; who has not said how many counts as the mean of the others."""
    known = ledger.examples >= 0
    if known.all():
        return float(ledger.examples.sum())
    return float(ledger.examples[known].mean()) * ledger.clients


def _known(what: str, got: str, known: list[str]) -> None:
    if got not in known:
        raise InputError(f"Unknown {what} '{got}'. {did_you_mean(got, known)}")
