"""Claims of the paper, and the rules by which measurements decide whether they hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from cafe.analysis.statistics import Estimate

LEVEL = 0.05  # significance level for a difference


class ClaimVerdict(Enum):
    """Whether a claim of the paper holds here."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    FAILS = "does not hold"


HOLDS, IN_PART, FAILS = ClaimVerdict


@dataclass(frozen=True)
class Claim:
    """A statement with its verdict.

    Attributes:
        text: the statement, in our words.
        verdict: whether it holds.
        effect: what was measured, in a sentence with its error.
    """

    text: str
    verdict: ClaimVerdict
    effect: str


def judge(holds: bool, in_part: bool = False) -> ClaimVerdict:
    """The verdict from two conditions; the second matters only if the first is false."""
    if holds:
        return HOLDS
    return IN_PART if in_part else FAILS


def judge_all(conditions: Sequence[bool]) -> ClaimVerdict:
    """Holds if all conditions are true, and in part if some are."""
    return judge(all(conditions), any(conditions))


def judge_at_most(value: float, limit: float, limit_in_part: float) -> ClaimVerdict:
    """Holds if the value is at most the limit, and in part if it is at most the second limit."""
    return judge(value <= limit, value <= limit_in_part)


def judge_differences(differences: Sequence[Estimate]) -> ClaimVerdict:
    """Whether all differences are positive.

    The claim holds if all means are positive and more than half of the differences are
    significant, and holds in part if at least one is positive and significant.
    """
    significant = [is_positive(difference) for difference in differences]
    positive = all(difference.mean > 0 for difference in differences)
    return judge(positive and sum(significant) * 2 > len(significant), any(significant))


def worst(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """The worst of several verdicts."""
    return judge(all(one is HOLDS for one in verdicts), FAILS not in verdicts)


def is_positive(difference: Estimate, level: float = LEVEL) -> bool:
    """Whether a difference is significantly above 0; a difference without spread is not."""
    return difference.mean > 0 and difference.chance(0.0) < level


def is_negative(difference: Estimate, level: float = LEVEL) -> bool:
    """Whether a difference is significantly below 0."""
    return difference.mean < 0 and difference.chance(0.0) < level


def negate(difference: Estimate) -> Estimate:
    """The same difference with the opposite sign."""
    return Estimate(-difference.mean, difference.error, difference.count)


def joint_chance(chances: Iterable[float]) -> float:
    """The p-value of several tests together (Bonferroni); tests without a p-value are left out."""
    known = [chance for chance in chances if chance == chance]
    return min([1.0, *(chance * len(known) for chance in known)])
