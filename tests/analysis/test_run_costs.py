"""What runs cost, per round and until an accuracy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cafe.analysis.run_costs import RATIOS, spent_until
from cafe.theory import expect
from tests.support.runs import federation, made_up


def test_costs_until_an_accuracy_is_reached() -> None:
    history = made_up("mcu(quorum=1, deadline=2)", 0, 100, 4)
    spent = spent_until(history, 0.45)
    assert spent.rounds == 50
    assert spent.time == history.by_round["closed"][49]
    assert spent.waste == pytest.approx(history.by_round["waste"][:50].sum())
    assert spent.processing_waste == pytest.approx(history.by_round["processing_waste"][:50].sum())
    assert spent.work == pytest.approx(history.by_round["work"][:50].sum())
    assert spent_until(history, 0.95).time == float("inf")
    assert spent_until(replace(history, curve=None), 0.1).time == float("inf")


def test_ratios_are_named_as_in_theory() -> None:
    extra = {"client_seconds_per_gradient", "client_seconds_per_time"}
    theory = expect(federation(), quorum=5, deadline=0.7)
    assert {name for name in RATIOS if not hasattr(theory, name)} == extra
