"""What the corrections and the bound share: verdicts, a table, a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cafe.analysis.statistics import Estimate
from cafe.report.plotting import line_style
from cafe.reproduce.findings import Claim, ClaimVerdict, Rows
from cafe.reproduce.pictures import figure, ticks, tidy
from cafe.reproduce.trials import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRINTED, PRINTED_AGE = "Theorem 3 as printed", "Corollary 3 as printed, by age"
CORRECTED = "corrected theorem"
FORMULAS = {  # and how a claim about one begins
    PRINTED: "Theorem 3 as printed",
    PRINTED_AGE: "Corollary 3 as printed, through the age,",
    CORRECTED: "Beyond the paper: the corrected theorem",
}
HALF = 0.5  # the paper's deadline, with which others are compared
RULE = (
    "The rule for how a gap changes with the deadline: against T=0.5, a formula holds where it is "
    "within a quarter of every measured gap, and in part where within a factor 2; two standard "
    "errors of what was measured are first taken off its distance."
)
Gaps = Mapping[float, Estimate]  # by deadline
Lines = Mapping[str, Mapping[float, float]]  # what each formula says, by deadline


def part(rows: Rows, name: str) -> list[Row]:
    """The rows of one part of an experiment."""
    return [row for row in rows if row["part"] == name]


def off(ratios: Iterable[float]) -> float:
    """By what factor the worst of some ratios differs from 1, to either side."""
    return float(np.exp(max(abs(np.log(ratio)) for ratio in ratios)))


def within(factor: float, good: float = 1.25, fair: float = 2.0) -> ClaimVerdict:
    """Whether a prediction that is off by a factor holds: within a quarter, or within twofold."""
    if factor <= good:
        return ClaimVerdict.HOLDS
    return ClaimVerdict.IN_PART if factor <= fair else ClaimVerdict.FAILS


def share_of(good: Sequence[bool]) -> ClaimVerdict:
    """A claim about several places holds in all of them, in some, or in none."""
    if all(good):
        return ClaimVerdict.HOLDS
    return ClaimVerdict.IN_PART if any(good) else ClaimVerdict.FAILS


def precise(estimate: Estimate) -> str:
    """A mean with its standard error, whatever its size."""
    if not estimate.error >= 0:
        return f"{estimate.mean:.3g}"
    return f"{estimate.mean:.3g} ± {estimate.error:.1g}"


# ------------------------------------------------------ how a gap changes with the deadline


def predicting(names: Mapping[str, str], gaps: Gaps, lines: Lines) -> list[Claim]:
    """For each named formula: whether its change with the deadline is the true one.

    Two standard errors of what was measured are not held against it.
    """
    low, high = min(gaps), max(gaps)
    true = gaps[low].mean / gaps[high].mean
    error = max(_relative(gaps, t) for t in gaps)
    claims = []
    for name, who in names.items():
        line = lines[name]
        ratios = {
            t: (line[t] / line[HALF]) / (gap.mean / gaps[HALF].mean) for t, gap in gaps.items()
        }
        factor = off(ratios.values())
        sure = max(off([ratio]) / np.exp(2 * _relative(gaps, t)) for t, ratio in ratios.items())
        effect = (
            f"From T={low:g} to T={high:g} the gap falls {true:.0f}-fold; the formula says "
            f"{line[low] / line[high]:.1f}-fold. Against T={HALF:g} it is off by at most a factor "
            f"{factor:.2f} (gaps against it are known to {error:.0%})."
        )
        text = f"{who} says how the gap changes with the deadline"
        claims.append(Claim(text, within(sure), effect))
    return claims


def _relative(gaps: Gaps, deadline: float) -> float:
    """The relative standard error of a gap against that at T = 0.5."""
    if deadline == HALF:
        return 0.0
    one, half = (gaps[t].error / gaps[t].mean for t in (deadline, HALF))
    return float(np.hypot(one, half))


def compared(gaps: Gaps, lines: Lines) -> list[list[str]]:
    """A row per deadline: what was measured, and each formula; in brackets against T = 0.5."""
    return [
        [f"{t:g}", f"{precise(gap)} ({gap.mean / gaps[HALF].mean:.3g})"]
        + [f"{line[t]:.3g} ({line[t] / line[HALF]:.3g})" for line in lines.values()]
        for t, gap in gaps.items()
    ]


def two_views(gaps: Gaps, lines: Lines, ylabel: str, relative: Sequence[str] = ()) -> Figure:
    """Gaps and formulas over the deadline: as they are, and against T = 0.5.

    The formulas in ``relative`` are only in the second view.
    """
    drawn = figure(9.6, 4.6)
    left, right = drawn.subplots(1, 2)
    for axes, scaled in ((left, False), (right, True)):
        dots(axes, gaps, gaps[HALF].mean if scaled else 1.0)
        for index, (name, line) in enumerate(lines.items()):
            if scaled or name not in relative:
                by = line[HALF] if scaled else 1.0
                axes.plot([*line], [v / by for v in line.values()], **line_style(index), label=name)
        axes.set(xscale="log", yscale="log", xlabel="deadline T")
        ticks(axes, [*gaps])
        axes.set_xticks([], minor=True)
    left.set_ylabel(ylabel)
    right.set_ylabel(f"the same, against T = {HALF:g}")
    legend_above(drawn, right, left)
    return drawn


def dots(axes: Axes, found: Mapping[Any, Estimate], by: float = 1.0) -> None:
    """What was measured, with its standard errors, divided by a number."""
    means, errors = ([getattr(e, name) / by for e in found.values()] for name in ("mean", "error"))
    axes.errorbar([*found], means, errors, fmt="o", color="#222222", ms=5, capsize=2.5,
                  label="measured", zorder=5)  # fmt: skip


def legend_above(drawn: Figure, named: Axes, *others: Axes) -> None:
    """One legend for all panels, above them, with the names of the first."""
    drawn.legend(*named.get_legend_handles_labels(), loc="outside upper center", ncols=3,
                 frameon=False, fontsize=8)  # fmt: skip
    for axes in (named, *others):
        tidy(axes)
        legend = axes.get_legend()
        if legend is not None:
            legend.remove()
