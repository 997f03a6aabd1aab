"""Comparison of two runs; the first difference is raised as an error with its usual cause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cafe.errors import CafeError, InfeasibleError
from cafe.rounds.history import History
from cafe.rounds.outcome import Fate, Outcome
from cafe.rounds.policy import Policy

STATE = (
    "a decision uses its own random generator, or keeps state between calls in a closure, a list "
    "or an attribute. Draw from ledger.rng, and return state from observe."
)
WRITES = "a decision changes its arguments. Copy an array before changing it."
# A live server adds up times in another order than a simulation.
ROUNDING = 1e-9


class CheckFailed(CafeError, AssertionError):  # noqa: N818 - a failed check is not an error of the program
    """A policy violates the contract. The message names the check and the first difference."""


@dataclass(frozen=True, eq=False)
class Check:
    """A check of a policy, with the usual cause of its failure.

    Attributes:
        policy: the policy that is checked.
        name: name of the check.
        means: usual cause of a failure, to follow "This usually means that".
    """

    policy: Policy
    name: str
    means: str = STATE

    def failed(self, what: str) -> CheckFailed:
        """The error for a difference."""
        return CheckFailed(
            f"The policy {self.policy.name} failed the check '{self.name}': {what} This usually "
            f"means that {self.means}"
        )

    def require(self, right: Any, what: str) -> None:
        """Raise :class:`CheckFailed` unless a condition is true."""
        if not right:
            raise self.failed(what)

    @contextmanager
    def running(self, where: str) -> Iterator[None]:
        """Convert errors inside the context to :class:`CheckFailed`, except InfeasibleError."""
        try:
            yield
        except (CheckFailed, InfeasibleError):
            raise
        except CafeError as error:
            raise CheckFailed(
                f"The policy {self.policy.name} failed the check '{self.name}': {where} ended with "
                f"an error: {error}"
            ) from error

    def same_outcome(
        self, mine: Outcome, theirs: Outcome, who: tuple[str, str], rounding: float = 0.0
    ) -> None:
        """Raise :class:`CheckFailed` for the first field of a round that differs.

        Args:
            mine: the round in the first run.
            theirs: the same round in the second run.
            who: names of the two runs in an error.
            rounding: allowed relative difference of times.
        """
        for field in fields(Outcome):
            one, other = getattr(mine, field.name), getattr(theirs, field.name)
            if field.name == "fates":
                for fate in Fate:
                    if one[fate] != other[fate]:
                        column = f"the number of {fate.name.lower()} jobs"
                        raise self._differ(mine.round, column, (one[fate], other[fate]), who)
            elif field.name == "work_by_fate":
                for fate in Fate:
                    if not _near(one[fate], other[fate], rounding):
                        column = f"the client time of {fate.name.lower()} jobs"
                        raise self._differ(mine.round, column, (one[fate], other[fate]), who)
            elif not _near(one, other, rounding):
                raise self._differ(mine.round, field.name, (one, other), who)

    def _differ(
        self, round_: int, column: str, values: tuple[Any, Any], who: tuple[str, str]
    ) -> CheckFailed:
        one, other = (f"{value!r} in {name}" for value, name in zip(values, who, strict=True))
        return self.failed(f"in round {round_}, {column} is {one} and {other}.")

    def same_clients(
        self,
        mine: History,
        theirs: History,
        who: tuple[str, str],
        rounding: float = 0.0,
        weights: float = 0.0,
    ) -> None:
        """Raise :class:`CheckFailed` if the totals of a client or the open jobs differ.

        Args:
            mine: history of the first run.
            theirs: history of the second run.
            who: names of the two runs in an error.
            rounding: allowed relative difference of ages.
            weights: allowed relative difference of the sums of coefficients.
        """
        for name, most in (
            ("merged_by_client", 0.0),
            ("age_by_client", rounding),
            ("weight_by_client", max(weights, rounding)),
        ):
            one, other = getattr(mine, name), getattr(theirs, name)
            wrong = [k for k in range(len(one)) if not _near(one[k], other[k], most)]
            if wrong:
                k = wrong[0]
                values = f"{one[k]!r} in {who[0]} and {other[k]!r} in {who[1]}"
                raise self.failed(f"after the last round, {name} of client {k} is {values}.")
        if mine.open_jobs != theirs.open_jobs:
            values = f"{mine.open_jobs} in {who[0]} and {theirs.open_jobs} in {who[1]}"
            raise self.failed(f"after the last round, the number of open jobs is {values}.")

    def same_model(
        self, mine: Any, theirs: Any, after: int, who: tuple[str, str], share: float = 0.0
    ) -> None:
        """Raise :class:`CheckFailed` if two models differ.

        Args:
            mine: the first model as a vector.
            theirs: the second model as a vector.
            after: round after which they are compared.
            who: names of the two runs in an error.
            share: allowed difference, relative to the largest parameter or to 1.
        """
        most = share * max(float(np.abs(theirs).max(initial=0.0)), 1.0)
        apart = np.abs(np.asarray(mine, dtype=float) - np.asarray(theirs, dtype=float))
        if not np.all(apart <= most):
            k = int(np.argmax(apart))
            raise self.failed(
                f"after round {after}, parameter {k} of the model is {float(mine[k])!r} in "
                f"{who[0]} and {float(theirs[k])!r} in {who[1]}."
            )


def _near(one: Any, other: Any, most: float) -> bool:
    if isinstance(one, float | np.floating):
        return bool(one == other or abs(one - other) <= most * max(1.0, abs(other)))
    return bool(one == other)
