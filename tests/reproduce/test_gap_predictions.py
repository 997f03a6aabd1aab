"""Formulas are judged by how they change with the deadline."""

from __future__ import annotations

import pytest

from cafe.analysis.statistics import Estimate
from cafe.reproduce.claims import FAILS, HOLDS, IN_PART
from cafe.reproduce.gap_predictions import judge_factor, prediction_claims, worst_factor


def test_a_prediction_is_judged_by_its_worst_factor() -> None:
    assert worst_factor([1.1, 0.5, 1.0]) == pytest.approx(2.0)
    assert [judge_factor(f) for f in (1.2, 1.3, 2.1)] == [HOLDS, IN_PART, FAILS]


def test_formula_proportional_to_the_gap_holds_and_a_constant_does_not() -> None:
    gaps = {t: Estimate(1 / t, 0.01, 30) for t in (0.1, 0.5, 2.0)}
    lines = {"follows": {t: 30 / t for t in gaps}, "flat": dict.fromkeys(gaps, 30.0)}
    first, second = prediction_claims({"follows": "a", "flat": "b"}, gaps, lines)
    assert (first.verdict, second.verdict) == (HOLDS, FAILS)
    assert "falls by a factor of 20" in first.effect
    assert "the formula gives 1.0" in second.effect
    unsure = {t: Estimate(gap.mean, 0.5 * gap.mean, 30) for t, gap in gaps.items()}
    (third,) = prediction_claims({"flat": "b"}, unsure, lines)
    assert third.verdict is HOLDS  # the measured gaps do not contradict it
