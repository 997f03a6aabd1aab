"""The steps of a controller's deadline and quorum are those of the rounds that were played."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cafe.analysis.policy_steps import dated_changes, policy_steps
from cafe.policies import mcu
from cafe.rounds import PolicyChange
from tests.support.choosing import Doubling
from tests.support.runs import played


def test_steps_give_the_length_of_every_round() -> None:
    history = played(Doubling(18), rounds=20).history
    steps = policy_steps(history)
    assert steps is not None
    assert 2 < len(steps.time) - 1 < history.rounds
    rows = history.by_round
    now = np.searchsorted(steps.time, rows["opened"], side="right") - 1
    np.testing.assert_allclose(steps.deadline[now], rows["closed"] - rows["opened"])
    assert steps.quorum.tolist() == [18.0] * len(steps.time)
    assert steps.time[-1] == history.virtual_time
    assert steps.deadline[-1] == steps.deadline[-2]


def test_fixed_policies_have_no_steps() -> None:
    assert policy_steps(played(mcu(quorum=1, deadline=0.5), rounds=2).history) is None


def test_changes_of_rounds_that_did_not_close_are_left_out() -> None:
    history = played(mcu(quorum=1, deadline=0.5), rounds=2).history
    changes = tuple(PolicyChange(n, "p", None, 3) for n in (0, 1, 2))
    found = dated_changes(replace(history, policy_changes=changes))
    assert [(change.round, time) for change, time in found] == [(0, 0.0), (1, pytest.approx(0.5))]
    steps = policy_steps(replace(history, policy_changes=changes))
    assert steps is not None
    assert np.isnan(steps.deadline).all()
