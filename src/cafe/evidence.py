"""What a fitted federation was estimated from, and how far the estimates can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cafe.errors import InputError, is_finite_number

if TYPE_CHECKING:
    from cafe.federation import Federation


@dataclass(frozen=True, eq=False)
class Evidence:
    """The observations behind a fitted federation.

    Attributes:
        longest: the longest time, in seconds, that any client was waited for or took. Nothing is
            known about longer times except what the fitted family says.
        reports: the number of reports.
        misses: the number of missed deadlines.
        alternatives: federations that explain the observations about as well as the fitted one.
            The spread of a quantity over them is its uncertainty.
        warnings: sentences about the fit that matter to a plan.

    Example:
        >>> import cafe
        >>> found = cafe.fit([0.8, 1.5, 2.1, 0.4, float("nan"), 1.1], deadline=3.0)
        >>> evidence = found.by_client().federation().evidence
        >>> evidence.longest, evidence.reports, evidence.misses
        (3.0, 5, 1)
    """

    longest: float
    reports: int
    misses: int
    alternatives: tuple[Federation, ...] = ()
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (is_finite_number(self.longest) and self.longest > 0):
            raise InputError(
                "longest must be a positive, finite number: the longest time that any client was "
                f"waited for or took. Got {self.longest!r}."
            )
        for name in ("alternatives", "warnings"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def changed(
        self, change: Callable[[Federation], Federation], longest: float | None = None
    ) -> Evidence:
        """A copy with a change of the federation made to each alternative, too.

        Args:
            change: the change.
            longest: the longest observed time after the change; as before if left out.
        """
        return replace(
            self,
            longest=self.longest if longest is None else longest,
            alternatives=tuple(change(each) for each in self.alternatives),
        )


def joined_evidence(
    groups: Sequence[Federation], join: Callable[..., Federation]
) -> Evidence | None:
    """The evidence of joined federations: None if no group has any.

    The longest observed time is the shortest of the groups' longest times: up to there, all groups
    were observed. A group without evidence counts as known exactly.
    """
    known = [group.evidence for group in groups if group.evidence is not None]
    if not known:
        return None
    number = min(len(each.alternatives) for each in known)
    alternatives = [
        join(
            *(
                group if group.evidence is None else group.evidence.alternatives[i]
                for group in groups
            )
        )
        for i in range(number)
    ]
    return Evidence(
        min(each.longest for each in known),
        sum(each.reports for each in known),
        sum(each.misses for each in known),
        tuple(alternatives),
        tuple(dict.fromkeys(warning for each in known for warning in each.warnings)),
    )
