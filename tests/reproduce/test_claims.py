"""The rules by which measurements decide whether a claim holds."""

from __future__ import annotations

from math import nan

import pytest

from cafe.analysis.statistics import Estimate
from cafe.reproduce.claims import (
    FAILS,
    HOLDS,
    IN_PART,
    ClaimVerdict,
    is_negative,
    is_positive,
    joint_chance,
    judge,
    judge_all,
    judge_at_most,
    judge_differences,
    negate,
    worst,
)


@pytest.mark.parametrize(
    ("leads", "verdict"),
    [
        ([(0.1, 0.01), (0.2, 0.01)], HOLDS),
        ([(0.1, 0.01), (0.2, 0.01), (0.01, 0.1)], HOLDS),
        ([(0.1, 0.01), (-0.01, 0.1)], IN_PART),
        ([(0.1, 0.01), (0.01, 0.1)], IN_PART),
        ([(0.01, 0.1), (0.01, 0.1)], FAILS),
        ([(-0.1, 0.01)], FAILS),
    ],
)
def test_judging_differences(leads: list[tuple[float, float]], verdict: ClaimVerdict) -> None:
    assert judge_differences([Estimate(mean, error, 5) for mean, error in leads]) is verdict


def test_judging_conditions() -> None:
    assert [judge(True), judge(False, True), judge(False)] == [HOLDS, IN_PART, FAILS]
    assert [judge_all(good) for good in ([True, True], [True, False], [False])] == [
        HOLDS, IN_PART, FAILS
    ]  # fmt: skip
    assert [judge_at_most(x, 1, 2) for x in (1, 2, 3, nan)] == [HOLDS, IN_PART, FAILS, FAILS]


def test_the_worst_verdict_counts() -> None:
    assert worst([HOLDS, HOLDS]) is HOLDS
    assert worst([HOLDS, IN_PART]) is IN_PART
    assert worst([IN_PART, FAILS, HOLDS]) is FAILS


def test_a_difference_without_spread_is_not_significant() -> None:
    clear = Estimate(0.1, 0.01, 5)
    assert is_positive(clear)
    assert is_negative(negate(clear))
    assert not is_positive(negate(clear))
    assert not is_positive(Estimate(0.1, 0.0, 5))


def test_joint_chance_ignores_missing_p_values() -> None:
    assert joint_chance([0.01, 0.5, nan]) == 0.02
    assert joint_chance([0.6, 0.7]) == 1.0
    assert joint_chance([nan]) == 1.0
