"""Two schemes side by side along an axis, on the same seeds, with what the paper prints of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cafe.analysis.statistics import Estimate, mean, paired
from cafe.report.cells import Cells
from cafe.reproduce.findings import Claim, ClaimVerdict, Rows, shown
from cafe.reproduce.pictures import one
from cafe.reproduce.trials import column

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CLOSE, NEAR = 0.03, 0.1  # of accuracy: to what is printed


@dataclass(frozen=True)
class PairedComparison:
    """A table of the paper, and the runs that reproduce it.

    Attributes:
        rows: of the runs.
        printed: of the paper.
        axis: the column along which the schemes are compared.
        schemes: the two.
        named: how a place on the axis is written.
    """

    rows: Rows
    printed: Rows
    axis: str
    schemes: tuple[str, str]
    named: Callable[[Any], str]

    @cached_property
    def places(self) -> list[Any]:
        """Where the schemes are compared."""
        return sorted({row[self.axis] for row in self.rows})

    def values(self, place: Any, scheme: str) -> list[float]:
        """A scheme's accuracies at a place, seed by seed."""
        return [*column(self.rows, "accuracy", **{self.axis: place}, policy=scheme)]

    def accuracy(self, place: Any, scheme: str) -> Estimate:
        """A scheme's mean accuracy at a place."""
        return mean(self.values(place, scheme))

    def theirs(self, place: Any, scheme: str) -> float:
        """The same as the paper prints it."""
        (value,) = (
            row["accuracy"]
            for row in self.printed
            if row[self.axis] == place and row["policy"] == scheme
        )
        return float(value)

    def lead(self, place: Any, ahead: str, behind: str) -> Estimate:
        """By how much one scheme is ahead of the other."""
        return paired(self.values(place, ahead), self.values(place, behind))

    def lost(self, scheme: str) -> list[float]:
        """What each seed loses from the first place to the last."""
        first, last = (self.values(place, scheme) for place in (self.places[0], self.places[-1]))
        return [high - low for high, low in zip(first, last, strict=True)]

    def faithful(self) -> Claim:
        """Whether the printed accuracies come out."""
        off = {
            (place, scheme): abs(self.accuracy(place, scheme).mean - self.theirs(place, scheme))
            for place in self.places
            for scheme in self.schemes
        }
        place, scheme = max(off, key=lambda at: off[at])
        worst = off[place, scheme]
        error = self.accuracy(place, scheme).error
        return Claim(
            f"The printed accuracies come out, within {CLOSE:g} everywhere (in part: {NEAR:g})",
            ClaimVerdict.HOLDS
            if worst <= CLOSE
            else ClaimVerdict.IN_PART
            if worst <= NEAR
            else ClaimVerdict.FAILS,
            f"The largest difference is {worst:.3f}, of {scheme.upper()} at {self.named(place)}, "
            f"where the mean has a standard error of {error:.3f}.",
        )

    def leads(self, places: Sequence[Any]) -> str:
        """How far the second scheme is ahead of the first, in a sentence."""
        first, second = self.schemes
        parts = [f"{shown(self.lead(p, second, first))} at {self.named(p)}" for p in places]
        return f"{second.upper()} minus {first.upper()}: {', '.join(parts)}."

    def table(self, more: Callable[[Any], dict[str, str]] = lambda place: {}) -> Cells:
        """A row per place: both schemes, ours and the paper's; ``more`` gives further columns."""
        first, second = self.schemes
        lines = []
        for place in self.places:
            line = {self.axis: self.named(place), **more(place)}
            for scheme in self.schemes:
                line[scheme.upper()] = shown(self.accuracy(place, scheme))
                line[f"{scheme.upper()} printed"] = f"{self.theirs(place, scheme):.3f}"
            line[f"{second.upper()} - {first.upper()}"] = shown(self.lead(place, second, first))
            theirs = self.theirs(place, second) - self.theirs(place, first)
            lines.append({**line, "difference printed": f"{theirs:+.3f}"})
        title = "Accuracy after 1000 rounds, mean ± standard error"
        return Cells(title, [*lines[0]], [[*line.values()] for line in lines])

    def drawn(self, xlabel: str) -> Figure:
        """Both schemes along the axis, with the paper's marks."""
        ours = {s.upper(): {p: self.accuracy(p, s) for p in self.places} for s in self.schemes}
        theirs = {s.upper(): {p: self.theirs(p, s) for p in self.places} for s in self.schemes}
        return one(xlabel, "accuracy after 1000 rounds", ours, printed=theirs)
