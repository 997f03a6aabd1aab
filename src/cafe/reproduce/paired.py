"""Two schemes compared along an axis, on the same seeds, beside the paper's values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cafe.analysis.statistics import Estimate, mean, paired
from cafe.report.cells import Cells
from cafe.reproduce.claims import Claim, judge_at_most
from cafe.reproduce.measured_tables import table, with_error
from cafe.reproduce.pictures import draw_lines, single_panel, tidy
from cafe.reproduce.rows import Rows, column, levels, select

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLOSE, CLOSE_IN_PART = 0.03, 0.1  # largest difference in accuracy from the printed value


@dataclass(frozen=True)
class PairedComparison:
    """A table of the paper, and the runs that reproduce it.

    Attributes:
        rows: the rows of the runs.
        printed: the rows of the paper.
        axis: the column along which the schemes are compared.
        schemes: the labels of the two policies.
        label: formats a value of the axis.
    """

    rows: Rows
    printed: Rows
    axis: str
    schemes: tuple[str, str]
    label: Callable[[Any], str]

    @cached_property
    def points(self) -> list[Any]:
        """The values of the axis at which the schemes are compared."""
        return levels(self.rows, self.axis)

    def accuracies(self, point: Any, scheme: str) -> list[float]:
        """A scheme's accuracies at a point, one per seed."""
        return column(self.rows, "accuracy", **{self.axis: point}, policy=scheme)

    def accuracy(self, point: Any, scheme: str) -> Estimate:
        """A scheme's mean accuracy at a point."""
        return mean(self.accuracies(point, scheme))

    def printed_accuracy(self, point: Any, scheme: str) -> float:
        """The accuracy that the paper prints."""
        (row,) = select(self.printed, **{self.axis: point}, policy=scheme)
        return float(row["accuracy"])

    def lead(self, point: Any, scheme: str, other: str) -> Estimate:
        """How much more accurate a scheme is than the other."""
        return paired(self.accuracies(point, scheme), self.accuracies(point, other))

    def losses(self, scheme: str) -> list[float]:
        """What a scheme loses from the first point to the last, one value per seed."""
        first, last = (
            self.accuracies(point, scheme) for point in (self.points[0], self.points[-1])
        )
        return [high - low for high, low in zip(first, last, strict=True)]

    def claim_as_printed(self) -> Claim:
        """The claim that the printed accuracies are reproduced."""
        off = {
            (point, scheme): abs(
                self.accuracy(point, scheme).mean - self.printed_accuracy(point, scheme)
            )
            for point in self.points
            for scheme in self.schemes
        }
        (point, scheme), most = max(off.items(), key=lambda entry: entry[1])
        return Claim(
            f"The printed accuracies are reproduced within {CLOSE:g} everywhere (in part: within "
            f"{CLOSE_IN_PART:g})",
            judge_at_most(most, CLOSE, CLOSE_IN_PART),
            f"The largest difference is {most:.3f}, of {scheme.upper()} at {self.label(point)}, "
            f"where the mean has a standard error of {self.accuracy(point, scheme).error:.3f}.",
        )

    def list_leads(self, points: Sequence[Any]) -> str:
        """A sentence with the second scheme's leads over the first."""
        first, second = self.schemes
        parts = [f"{with_error(self.lead(p, second, first))} at {self.label(p)}" for p in points]
        return f"{second.upper()} minus {first.upper()}: {', '.join(parts)}."

    def table(self, more: Callable[[Any], dict[str, str]] = lambda point: {}) -> Cells:
        """Both schemes at each point, measured and printed; ``more`` gives further columns."""
        first, second = self.schemes
        lines = []
        for point in self.points:
            line = {self.axis: self.label(point), **more(point)}
            for scheme in self.schemes:
                line[scheme.upper()] = with_error(self.accuracy(point, scheme))
                line[f"{scheme.upper()} printed"] = f"{self.printed_accuracy(point, scheme):.3f}"
            line[f"{second.upper()} - {first.upper()}"] = with_error(
                self.lead(point, second, first)
            )
            apart = self.printed_accuracy(point, second) - self.printed_accuracy(point, first)
            lines.append({**line, "difference printed": f"{apart:+.3f}"})
        return table("Accuracy after 1000 rounds, mean ± standard error", lines)

    def draw(self, xlabel: str) -> Figure:
        """Both schemes along the axis; the paper's values are hollow marks."""
        measured = {s.upper(): {p: self.accuracy(p, s) for p in self.points} for s in self.schemes}
        printed = {
            s.upper(): {p: self.printed_accuracy(p, s) for p in self.points} for s in self.schemes
        }
        picture, axes = single_panel()
        draw_lines(axes, measured, printed)
        axes.set(xlabel=xlabel, ylabel="accuracy after 1000 rounds")
        tidy(axes)
        return picture
