"""Sentences: what is to be gained, what was assumed, what prices mean, who is left out."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cafe
from cafe.federation import Federation
from cafe.latency import Exponential, LogNormal
from cafe.planner import plan
from cafe.theory import expect

WHO = Federation(100, Exponential(1.0))


def test_gains_name_the_best_and_the_worst_guess() -> None:
    made = plan(WHO)
    finite = [r for r in made.rivals if np.isfinite(r.cost)]
    best, worst = (f(finite, key=lambda r: r.cost) for f in (min, max))
    text = made.explanation[3]
    assert f"({best.name}, quorum {best.expected.quorum})" in text
    assert f"({worst.name}, quorum {worst.expected.quorum})" in text
    assert f"{best.cost / made.cost - 1:.1%} more" in text


def test_huge_ratios_are_not_spelt_out() -> None:
    made = plan(Federation(500, Exponential(1.0), availability=0.8))
    assert "over 1,000 times as much" in made.explanation[3]
    assert not re.search(r"e\+\d", " ".join(made.explanation))


def test_noise_ratios_in_the_note_give_the_deadlines_it_says() -> None:
    note = plan(WHO).goal_notes[-1]
    ratios = [float(x) for x in re.findall(r"(?:of|one of) ([\d.]+) (?:would|about)", note)]
    said = [float(x) for x in re.findall(r"about ([\d.]+) s", note)]
    assert ratios == [0.1, 10.0]
    for ratio, deadline in zip(ratios, said, strict=True):
        true = plan(WHO, goal=cafe.planner.ToAccuracy(noise_ratio=ratio)).deadline
        assert deadline == pytest.approx(true, rel=0.08)


def test_prices_are_translated_into_changes() -> None:
    made = plan(WHO, waste_price=1.0, broadcast_price=20.0)
    (note,) = made.goal_notes
    assert "1 client-second of waste = 1 s of mean age and 1 broadcast = 20 s" in note
    here = made.expected
    shorter = expect(WHO, quorum=1, deadline=0.9 * made.deadline)
    longer = expect(WHO, quorum=1, deadline=1.1 * made.deadline)
    for other in (shorter, longer):
        changed = abs(other.waste - here.waste)
        assert f"{changed:.2g} client-seconds" in note
        worse = made.goal.cost(other) - made.cost
        assert f"in all {worse:.2g} s worse" in note


def test_a_shorter_deadline_may_leave_a_client_out() -> None:
    made = plan(cafe.Federation(10, cafe.Constant(2.0)), waste_price=1.0, broadcast_price=1.0)
    assert "shorter leaves a client out" in made.goal_notes[-1]


def test_clients_that_hardly_report_are_counted() -> None:
    mu = np.r_[np.zeros(95), np.full(5, np.log(100.0))]
    made = plan(Federation(100, LogNormal(mu, np.full(100, 0.3))))
    assert any(w.startswith("5 of 100 clients report less") for w in made.warnings)
    assert not any("hundredth" in w for w in plan(WHO).warnings)
    assert "infinite" not in plan(WHO).explanation[1]
    assert "the worst infinite" in plan(cafe.phones(50)).explanation[1]
