"""Which jobs and reports are kept when a round closes."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.decisions import DropAll, FailedReports, KeepRunning
from cafe.rounds import DROP, HOLD, LOCAL, RUN, Carried, Closed, Ledger
from tests.support.jobs import running

LEDGER = Ledger.new(np.ones(2, dtype=int))


def closed(succeeded: bool) -> Closed:
    return Closed.of(succeeded, running([0, 1]), np.array([True, False]), np.array([0]), None)


@pytest.mark.parametrize("succeeded", [True, False])
def test_rules_that_do_not_depend_on_the_round(succeeded: bool) -> None:
    assert vars(DropAll()(LEDGER, closed(succeeded))) == vars(Carried(DROP))
    assert vars(KeepRunning()(LEDGER, closed(succeeded))) == vars(Carried(RUN))


@pytest.mark.parametrize(("pool", "codes"), [(False, LOCAL), (True, LOCAL | HOLD)])
def test_reports_of_failed_rounds_are_kept_until_a_success(pool: bool, codes: int) -> None:
    rule = FailedReports(pool)
    assert vars(rule(LEDGER, closed(False))) == {"jobs": codes, "kept": True}
    assert vars(rule(LEDGER, closed(True))) == {"jobs": DROP, "kept": False}
