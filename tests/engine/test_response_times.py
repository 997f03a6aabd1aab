"""The response times that a controller sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.engine.response_times import MAX_RESPONSES, ResponseTimes
from cafe.fitting import Observations
from cafe.policies import mcu
from cafe.reference import Reference, loop
from cafe.rounds import Ledger, Policy

WHO = cafe.Federation.join(
    cafe.Federation(3, cafe.Constant(0.3)), cafe.Federation(2, cafe.Constant(5.0))
)


def test_response_times_are_censored() -> None:
    """Of a client that takes 5, a controller sees only that it took longer than 1."""
    shown: list[Any] = []

    def watching(ledger: Ledger, seen: Observations | None) -> Policy:
        shown.append(seen)
        return mcu(quorum=1, deadline=1.0)

    run = Run(WHO, watching)
    run.step()
    run.step()
    last = shown[-1]
    np.testing.assert_array_equal(np.isnan(last.seconds), [False] * 3 + [True] * 2)
    assert np.nanmax(last.seconds) == pytest.approx(0.3)
    assert np.asarray(last.deadline) == pytest.approx(1.0)


def test_round_of_length_0_has_no_observations() -> None:
    """A policy that fails at once has not waited for any client."""

    def impatient(ledger: Ledger, seen: Observations | None) -> Policy:
        base = mcu(quorum=1, deadline=1.0)
        return replace(base, close=lambda *_: cafe.rounds.FAIL) if ledger.round == 0 else base

    for kind in (Run, Reference):
        run = kind(WHO, impatient)
        run.step()
        assert len(run.responses) == 0
        assert run.step().succeeded


def test_engine_and_reference_keep_the_same_number_of_response_times() -> None:
    assert MAX_RESPONSES == loop.LAST_RESPONSES == 20_000


def test_only_the_last_response_times_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a round with more jobs than that, those of the last clients."""
    most = 300
    monkeypatch.setattr("cafe.engine.response_times.MAX_RESPONSES", most)
    monkeypatch.setattr(loop, "LAST_RESPONSES", most)
    many = most + 5
    who = cafe.Federation(many, cafe.Exponential(1.0))
    shown: dict[int, list[Any]] = {1: [], 2: []}

    def watching(ledger: Ledger, seen: Observations | None) -> Policy:
        if ledger.round:
            shown[ledger.round].append(seen)
        return mcu(quorum=1, deadline=1.0, cohort=10 if ledger.round else None)

    for kind in (Run, Reference):
        run = kind(who, watching, seed=2)
        for _ in range(3):
            run.step()
    for mine, *_, reference in shown.values():
        assert len(mine) == most
        np.testing.assert_array_equal(mine.seconds, reference.seconds)
        np.testing.assert_array_equal(mine.deadline, reference.deadline)
        assert mine.clients == reference.clients
        np.testing.assert_array_equal(mine.code, reference.code)


def test_rows_are_dropped_one_for_one() -> None:
    kept = ResponseTimes()
    for start in range(0, MAX_RESPONSES + 30, 10):
        kept.add(np.full((10, 3), float(start)))
    assert len(kept) == MAX_RESPONSES
    assert kept.rows[0, 0] == 30.0
    assert kept.rows[-1, 0] == MAX_RESPONSES + 20.0
