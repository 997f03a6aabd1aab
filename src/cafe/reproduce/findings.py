"""What an experiment found: claims with their verdicts, a table, pictures, what was left open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import median
from typing import TYPE_CHECKING, TypeVar

from cafe.analysis.statistics import Estimate
from cafe.report.cells import Cells
from cafe.reproduce.trials import Row, TrialProgress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Sequence[Row]
T = TypeVar("T")
TRAINED, FAR = 0.9, 0.02  # accuracy of a model that has learned, and more than seeds differ then
LEVEL = 0.05  # how often chance alone may look like an effect


class ClaimVerdict(Enum):
    """Whether a claim of the paper holds here."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    FAILS = "does not hold"


@dataclass(frozen=True)
class Claim:
    """A statement, and what became of it.

    Attributes:
        text: the statement, in our words.
        verdict: whether it holds.
        effect: what was measured, in a sentence with its error.
    """

    text: str
    verdict: ClaimVerdict
    effect: str


@dataclass(frozen=True)
class Finding:
    """What follows from an experiment's rows, and from nothing else.

    Attributes:
        claims: with their verdicts.
        tables: for people.
        pictures: by name, each drawn when asked for.
        notes: what the paper leaves open, what was chosen, what to keep in mind.
    """

    claims: Sequence[Claim]
    tables: Sequence[Cells] = ()
    pictures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Effort:
    """How much is run: all, or just enough to see that everything works.

    Attributes:
        quick: whether it is the second.
    """

    quick: bool = False

    @property
    def rounds(self) -> int | None:
        """Rounds of a trial; None: as many as the scenario says."""
        return 30 if self.quick else None

    def seeds(self, count: int) -> range:
        """Seeds 0, 1, ...: so many, or two."""
        return range(2 if self.quick else count)

    def thin(self, values: Sequence[T]) -> Sequence[T]:
        """All of the values, or the first, the middle and the last."""
        if not self.quick or len(values) <= 3:
            return values
        return [values[0], values[len(values) // 2], values[-1]]


@dataclass(frozen=True)
class Experiment:
    """A figure or a table of the paper, or something beyond it.

    Attributes:
        name: of its folder.
        source: where in the paper it is.
        title: what it shows.
        run: makes its rows. They are kept as ``runs.csv``.
        conclude: what follows from them. Kept rows give the same findings as new ones.
        printed: what the paper prints, as rows; empty where it prints only a picture.
        scenario: whether it has one, under its own name.
    """

    name: str
    source: str
    title: str
    run: Callable[[Effort, TrialProgress], list[Row]]
    conclude: Callable[[Rows], Finding]
    printed: Rows = ()
    scenario: bool = True


def above(lead: Estimate, level: float = LEVEL) -> bool:
    """Whether a difference is above 0 beyond chance; runs that are the same are not."""
    return lead.mean > 0 and lead.chance(0.0) < level


def below(lead: Estimate, level: float = LEVEL) -> bool:
    """Whether a difference is below 0 beyond chance."""
    return lead.mean < 0 and lead.chance(0.0) < level


def judge_differences(leads: Sequence[Estimate]) -> ClaimVerdict:
    """Whether every one of some differences is above 0: beyond chance, or at least in part.

    It holds where all are positive and those beyond chance are more than half, holds in part where
    some are beyond chance and positive, and does not hold where none is.
    """
    beyond = [above(lead) for lead in leads]
    if all(lead.mean > 0 for lead in leads) and sum(beyond) * 2 > len(beyond):
        return ClaimVerdict.HOLDS
    return ClaimVerdict.IN_PART if any(beyond) else ClaimVerdict.FAILS


def outlier_notes(rows: Rows, *place: str) -> list[str]:
    """A note on runs that ended far below the others at their place; none if there are none."""
    found: dict[tuple[object, ...], list[float]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in place), []).append(row["accuracy"])
    low = [
        value
        for values in found.values()
        for value in values
        if median(values) > TRAINED and value < median(values) - FAR
    ]
    if not low:
        return []
    return [
        f"Of {len(rows)} runs {len(low)} ended more than {FAR:g} below the median of their place, "
        f"the lowest at {min(low):.3f}: at this rate a run is now and then thrown back. Such runs "
        "are in the means, and make their errors large."
    ]


def shown(estimate: Estimate, digits: int = 3) -> str:
    """A mean with its standard error."""
    if not estimate.error >= 0:
        return f"{estimate.mean:.{digits}f}"
    return f"{estimate.mean:.{digits}f} ± {estimate.error:.{digits}f}"
