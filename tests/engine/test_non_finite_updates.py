"""Training that diverges: the round fails and nothing of it is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.errors import InfeasibleError
from cafe.policies import mcu
from cafe.reference import Reference
from cafe.rounds import HOLD, Carried, Fate, Ledger, Merge, Reports
from cafe.testing import contract
from cafe.testing.check import small_task

WHO = cafe.Federation(3, cafe.Constant(0.2))


def test_diverging_task_ends_with_advice() -> None:
    what = replace(small_task(3), rate=1e38)
    policy = mcu(quorum=1, deadline=0.5, steps=5)
    with pytest.raises(
        InfeasibleError, match=r"put NaN or infinity in the model\. Lower the learning rate\."
    ):
        cafe.simulate(WHO, policy, what, rounds=50, patience=7)


def test_nothing_is_kept_of_a_round_with_a_non_finite_update() -> None:
    """Round 1 makes the model overflow; later rounds continue from version 1."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        factor = 1e300 if ledger.round == 1 else 0.1
        return Merge(np.full(len(reports), factor))

    base = mcu(quorum=1, deadline=0.5)
    policy = replace(base, merge=merge, carry=lambda *_: Carried(HOLD, kept=True))
    what = small_task(3)
    setting = contract.CheckSetup(lambda: policy, WHO, what, rounds=4)
    contract.check_reference(setting)
    contract.check_live(setting)
    run = Run(WHO, policy, what)
    outcomes = [run.step() for _ in range(4)]
    assert [o.succeeded for o in outcomes] == [True, False, True, True]
    assert [o.version for o in outcomes] == [1, 1, 2, 3]
    assert outcomes[1].fates[Fate.FAILED] == 3
    assert outcomes[1].used == 0
    assert outcomes[2].reused == 0  # reports held since round 0 are dropped too
    assert np.isfinite(run.history().model).all()  # type: ignore[arg-type]


def test_losses_of_a_diverging_model_raise_no_numeric_warnings() -> None:
    """The parameters are finite, but their squares in Logistic's l2 term are not."""
    seen = []

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.losses is not None
        seen.append(bool(np.isfinite(reports.losses).all()))
        return Merge(np.full(len(reports), 1e25))

    needs = frozenset({"losses"})
    policy = replace(mcu(quorum=1, deadline=0.5), merge=merge, needs=needs)
    for kind in (Run, Reference):
        run = kind(WHO, policy, small_task(3))
        with np.errstate(all="raise"):
            run.step()
            run.step()
    assert seen == [True, False] * 2
