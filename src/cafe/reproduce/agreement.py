"""Whether a formula agrees with what was measured, in one setting and in many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from statistics import median

import numpy as np

from cafe.analysis.statistics import Estimate
from cafe.reproduce.claims import ClaimVerdict, judge

LEVEL = 0.01  # significance level of all tests of a formula together
CLOSE = 0.01  # a relative difference that would not matter even if it were real


@dataclass(frozen=True)
class Comparison:
    """A measured quantity beside its formula, in one setting.

    Attributes:
        measured: the mean over the seeds.
        expected: the formula's value.
        tested: whether the quantity varies enough for a test.
        constant: whether the quantity should not vary at all.
    """

    measured: Estimate
    expected: float
    tested: bool = True
    constant: bool = False

    @property
    def difference(self) -> float:
        """The relative difference of the measured mean from the expected value."""
        return self.measured.mean / self.expected - 1

    @property
    def z(self) -> float:
        """The difference as a z-score: Student's t over the seeds, on the normal scale."""
        from scipy.special import ndtri

        chance = max(self.measured.chance(self.expected), 1e-300)
        return float(np.sign(self.difference) * -ndtri(chance / 2))

    def __str__(self) -> str:
        z = f"{self.z:+.1f}" if self.tested else "not tested"
        return f"{self.measured.mean:.4g} ± {self.measured.error:.2g}, {self.expected:.4g} ({z})"


@dataclass(frozen=True)
class Agreement:
    """How well a formula agrees with measurements in many settings.

    Attributes:
        tests: how many settings were tested.
        beyond: how many differ by more than two standard errors.
        chance: the chi-square p-value of the z-scores.
        difference: the median absolute relative difference.
        error: the median relative standard error.
        constants_agree: whether quantities that should not vary are close to the formula.
    """

    tests: int
    beyond: int
    chance: float
    difference: float
    error: float
    constants_agree: bool

    @classmethod
    def of(cls, comparisons: Sequence[Comparison]) -> Agreement:
        """The agreement in independent settings."""
        from scipy.special import chdtrc

        tested = [one for one in comparisons if one.tested]
        z = np.array([one.z for one in tested])
        return cls(
            tests=len(tested),
            beyond=int(np.count_nonzero(np.abs(z) > 2)),
            # Without tests a formula does not hold: comparisons with NaN are false.
            chance=float(chdtrc(len(tested), float((z**2).sum()))) if tested else nan,
            difference=median(abs(one.difference) for one in tested) if tested else nan,
            error=median(one.measured.error / one.expected for one in tested) if tested else nan,
            constants_agree=all(abs(one.difference) < CLOSE for one in comparisons if one.constant),
        )

    def verdict(self, family: int) -> ClaimVerdict:
        """Holds if chance explains the differences, in part if they are too small to matter.

        Args:
            family: the number of formulas tested together, which share the significance level.
        """
        return judge(
            self.constants_agree and self.chance >= LEVEL / family,
            self.constants_agree and self.difference < CLOSE,
        )

    def __str__(self) -> str:
        return (
            f"{self.beyond} of {self.tests} settings are more than 2 standard errors off; "
            f"chi-square p = {self.chance:.2g}; the median difference is {self.difference:.2%} and "
            f"the median standard error {self.error:.2%}"
        )
