"""Whether formulas predict how the gap to the optimum changes with the deadline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cafe.analysis.statistics import Estimate
from cafe.report.cells import Cells
from cafe.reproduce.claims import Claim, ClaimVerdict, judge_at_most
from cafe.reproduce.measured_tables import table, with_error
from cafe.reproduce.pictures import draw_measured, figure, legend_above, line_style, set_log_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED, PRINTED_AGE = "Theorem 3 as printed", "Corollary 3 as printed, by age"
CORRECTED = "corrected theorem"
FORMULAS = {  # formulas, and the first words of the claim about each
    PRINTED: "Theorem 3 as printed",
    PRINTED_AGE: "Corollary 3 as printed, which uses the age,",
    CORRECTED: "Beyond the paper: the corrected theorem",
}
HALF = 0.5  # the paper's deadline, with which others are compared
RULE = (
    "The rule for how the gap changes with the deadline: gaps and formulas are divided by their "
    "values at T=0.5. A formula holds where it is within a quarter of every measured gap, and in "
    "part where it is within a factor 2. Two standard errors of the measured gaps do not count "
    "against it."
)
Gaps = Mapping[float, Estimate]  # by deadline
Formulas = Mapping[str, Mapping[float, float]]  # each formula's values, by deadline


def worst_factor(ratios: Iterable[float]) -> float:
    """The largest factor by which a ratio differs from 1, in either direction."""
    return float(np.exp(max(abs(np.log(ratio)) for ratio in ratios)))


def judge_factor(factor: float) -> ClaimVerdict:
    """Holds if a prediction is off by a factor of at most 1.25, in part if at most 2."""
    return judge_at_most(factor, 1.25, 2.0)


def prediction_claims(names: Mapping[str, str], gaps: Gaps, formulas: Formulas) -> list[Claim]:
    """For each named formula, the claim that it changes with the deadline as the gap does.

    Two standard errors of the measured gaps do not count against a formula.
    """
    low, high = min(gaps), max(gaps)
    fall = gaps[low].mean / gaps[high].mean
    error = max(_relative_error(gaps, t) for t in gaps)
    claims = []
    for name, subject in names.items():
        formula = formulas[name]
        ratios = {
            t: (formula[t] / formula[HALF]) / (gap.mean / gaps[HALF].mean)
            for t, gap in gaps.items()
        }
        certain = max(
            worst_factor([ratio]) / np.exp(2 * _relative_error(gaps, t))
            for t, ratio in ratios.items()
        )
        effect = (
            f"From T={low:g} to T={high:g} the gap falls by a factor of {fall:.0f}; the formula "
            f"gives {formula[low] / formula[high]:.1f}. Relative to T={HALF:g} it is off by a "
            f"factor of at most {worst_factor(ratios.values()):.2f} (relative gaps have a standard "
            f"error of at most {error:.0%})."
        )
        text = f"{subject} predicts how the gap changes with the deadline"
        claims.append(Claim(text, judge_factor(certain), effect))
    return claims


def _relative_error(gaps: Gaps, deadline: float) -> float:
    """The relative standard error of a gap divided by that at T = 0.5."""
    if deadline == HALF:
        return 0.0
    one, half = (gaps[t].error / gaps[t].mean for t in (deadline, HALF))
    return float(np.hypot(one, half))


def gap_table(title: str, gaps: Gaps, formulas: Formulas) -> Cells:
    """The measured gap and each formula by deadline; in brackets divided by that at T = 0.5."""
    return table(
        title,
        (
            {
                "T": f"{t:g}",
                "measured": f"{with_error(gap, None)} ({gap.mean / gaps[HALF].mean:.3g})",
            }
            | {name: f"{by[t]:.3g} ({by[t] / by[HALF]:.3g})" for name, by in formulas.items()}
            for t, gap in gaps.items()
        ),
    )


def draw_gaps(gaps: Gaps, formulas: Formulas, ylabel: str, relative: Sequence[str] = ()) -> Figure:
    """Gaps and formulas over the deadline: as they are, and divided by those at T = 0.5.

    The formulas in ``relative`` are only in the second panel.
    """
    picture = figure(9.6, 4.6)
    left, right = picture.subplots(1, 2)
    for axes, scaled in ((left, False), (right, True)):
        draw_measured(axes, gaps, gaps[HALF].mean if scaled else 1.0)
        for index, (name, by) in enumerate(formulas.items()):
            if scaled or name not in relative:
                unit = by[HALF] if scaled else 1.0
                axes.plot([*by], [v / unit for v in by.values()], **line_style(index), label=name)
        axes.set(yscale="log", xlabel="deadline T")
        set_log_axis(axes, [*gaps])
    left.set_ylabel(ylabel)
    right.set_ylabel(f"the same, against T = {HALF:g}")
    legend_above(picture, right, left)
    return picture
