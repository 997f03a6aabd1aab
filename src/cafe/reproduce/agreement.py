"""Whether a formula agrees with what was measured, at one place and at many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from statistics import median

import numpy as np

from cafe.analysis.statistics import Estimate
from cafe.reproduce.findings import ClaimVerdict

LEVEL = 0.01  # of the whole family of tests: how often it may reject what is true
CLOSE = 0.01  # relatively, what would not matter even if it were real


@dataclass(frozen=True)
class Comparison:
    """A quantity at a place.

    Attributes:
        found: measured, over the seeds.
        expected: by theory.
        tested: whether enough of it varies to test it.
        sure: whether it ought not to vary at all.
    """

    found: Estimate
    expected: float
    tested: bool = True
    sure: bool = False

    @property
    def off(self) -> float:
        """Relatively, by how much theory is missed."""
        return self.found.mean / self.expected - 1

    @property
    def z(self) -> float:
        """How far off in standard errors, on the normal scale: few seeds allow for more."""
        from scipy.special import ndtri

        chance = max(self.found.chance(self.expected), 1e-300)
        return float(np.sign(self.off) * -ndtri(chance / 2))


@dataclass(frozen=True)
class Agreement:
    """How well a formula does at many places.

    Attributes:
        tests: how many.
        beyond: how many are more than two standard errors off.
        chance: how often true formulas have a sum of z squared this large.
        off: the median relative difference, whatever its sign.
        error: the median relative standard error.
        exact: whether what ought not to vary is as good as equal.
    """

    tests: int
    beyond: int
    chance: float
    off: float
    error: float
    exact: bool

    @classmethod
    def of(cls, compared: Sequence[Comparison]) -> Agreement:
        """Tests of independent places, together."""
        from scipy.special import chdtrc

        tested = [one for one in compared if one.tested]
        z = np.array([one.z for one in tested])
        return cls(
            tests=len(tested),
            beyond=int(np.count_nonzero(np.abs(z) > 2)),
            # What cannot be tested anywhere does not hold: nothing compares with "not a number".
            chance=float(chdtrc(len(tested), float((z**2).sum()))) if tested else nan,
            off=median(abs(one.off) for one in tested) if tested else nan,
            error=median(one.found.error / one.expected for one in tested) if tested else nan,
            exact=all(abs(one.off) < CLOSE for one in compared if one.sure),
        )

    def verdict(self, family: int) -> ClaimVerdict:
        """It holds where chance explains it, in part where it is off by next to nothing."""
        if self.exact and self.chance >= LEVEL / family:
            return ClaimVerdict.HOLDS
        return ClaimVerdict.IN_PART if self.exact and self.off < CLOSE else ClaimVerdict.FAILS

    def __str__(self) -> str:
        return (
            f"{self.beyond} of {self.tests} settings are more than 2 standard errors off; "
            f"chi-square p = {self.chance:.2g}; the median difference is {self.off:.2%} and the "
            f"median standard error {self.error:.2%}"
        )
