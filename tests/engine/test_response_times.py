"""The response times that a controller sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.fitting import Observations
from cafe.policies import mcu
from cafe.reference import Reference
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
        assert not run.responses
        assert run.step().succeeded
