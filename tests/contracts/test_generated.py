"""Engine, reference and live stay equal under randomly generated policies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cafe
from cafe.learn.server_optimisers import Momentum
from cafe.presence import OnOff
from cafe.testing import contract
from cafe.testing.check import small_task
from tests.support.generated_policies import generated

CLIENTS = 7


def federation(timed: bool, ties: bool) -> cafe.Federation:
    """Some clients are fast, some slow; with ties, three have the same constant latency."""
    slow = cafe.Federation.exponential(np.linspace(0.7, 4.0, CLIENTS - 3), None)
    last = cafe.Constant(0.25) if ties else cafe.Exponential(2.0)
    per_step = 0.07 if timed else 0.0
    joined = cafe.Federation.join(slow, cafe.Federation(3, last))
    return replace(joined, per_step=per_step)


@given(
    seed=st.integers(0, 2**32),
    late=st.booleans(),
    timed=st.booleans(),
    ties=st.booleans(),
    observes=st.booleans(),
    comes_and_goes=st.booleans(),
)
@settings(max_examples=50, deadline=None, derandomize=True)
@pytest.mark.slow
def test_engine_reference_and_live_runs_are_equal(
    seed: int, late: bool, timed: bool, ties: bool, observes: bool, comes_and_goes: bool
) -> None:
    policy = generated(seed, late, timed, observes)
    who, what = federation(timed, ties), small_task(CLIENTS)
    if seed % 3 == 0:
        what = replace(what, server=Momentum(0.5, 0.5))
    plain = contract.CheckSetup(lambda: policy, who, what, rounds=10, seed=seed % 1000)
    contract.check_live(plain, notices=1.0)
    lossy = replace(who, availability=0.8)
    if not comes_and_goes:
        contract.check_reference(plain)
        contract.check_reference(replace(plain, federation=lossy, crash=0.2))
    else:
        coming = replace(lossy, presence=OnOff(on=2.0, off=0.5))
        contract.check_reference(replace(plain, federation=coming, crash=0.1))


@given(seed=st.integers(0, 2**32), late=st.booleans(), timed=st.booleans())
@settings(max_examples=15, deadline=None, derandomize=True)
@pytest.mark.slow
def test_saved_and_restored_run_equals_an_uninterrupted_one(
    seed: int, late: bool, timed: bool
) -> None:
    policy = generated(seed, late, timed)
    who = replace(federation(timed, True), availability=0.9, presence=OnOff(on=3.0, off=0.5))
    what = small_task(CLIENTS)
    contract.check_saving(
        contract.CheckSetup(lambda: policy, who, what, rounds=9, seed=1, crash=0.1)
    )
