"""The rounds in which a controller changed the policy, with the deadline, the quorum and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from cafe.wording import format_number


@dataclass(frozen=True)
class PolicyChange:
    """A round whose policy differs from that of the round before, or has a reason of its own.

    Attributes:
        round: number of the round, from 0.
        policy: the policy as text, such as ``mcu(quorum=1, deadline=0.5)``.
        deadline: longest duration of the round; None if there is no limit.
        quorum: number of reports that the round needs.
        reason: why the controller chose this policy; empty if it did not say.

    Example:
        >>> from cafe.rounds import PolicyChange
        >>> policy, why = "mcu(quorum=2, deadline=4.0)", "Half of the rounds fail."
        >>> change = PolicyChange(3, policy, deadline=4.0, quorum=2, reason=why)
        >>> print(change)
        deadline 4 s, quorum 2. Half of the rounds fail.
    """

    round: int
    policy: str
    deadline: float | None
    quorum: int
    reason: str = ""

    def __str__(self) -> str:
        limit = (
            "no deadline" if self.deadline is None else f"deadline {format_number(self.deadline)} s"
        )
        return f"{limit}, quorum {self.quorum}. {' '.join(self.reason.split())}".rstrip()


def reasons_in(changes: Iterable[PolicyChange]) -> list[tuple[int, str]]:
    """The reasons of the changes that have one, with the numbers of their rounds."""
    return [(change.round, change.reason) for change in changes if change.reason]


def change_from_json(found: dict[str, Any]) -> PolicyChange:
    """The policy change in a JSON object; the inverse of ``dataclasses.asdict``.

    Raises:
        KeyError: if a field is missing.
        TypeError: if a field has the wrong type.
        ValueError: if the deadline is not a positive number.
    """
    deadline = None if found["deadline"] is None else float(found["deadline"])
    texts, numbers = (found["policy"], found["reason"]), (found["round"], found["quorum"])
    if not all(type(each) is str for each in texts) or not all(type(n) is int for n in numbers):
        raise TypeError("a policy change must have texts and whole numbers")
    if deadline is not None and not (isfinite(deadline) and deadline > 0):
        raise ValueError("a deadline must be a positive number")
    return PolicyChange(found["round"], found["policy"], deadline, found["quorum"], found["reason"])
