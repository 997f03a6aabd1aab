"""Late reports are merged when they arrive: no work is wasted, and every client counts 1/N."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.policies import awu, salvage
from tests.support.federations import taking


def test_late_reports_are_merged_when_they_arrive() -> None:
    """Client 1 reports at 5, in the round that closes at 6, and at 11, in the one until 12.

    Each time it has last been merged three rounds before: 3/2. Client 0 counts 1/2 in each round.
    """
    weights = [np.zeros(2)]
    for rounds in range(1, 7):
        history = cafe.simulate(taking(1.5, 5.0), salvage(deadline=2.0), rounds=rounds)
        weights.append(history.weight_by_client)
    seen = np.diff(weights, axis=0)
    np.testing.assert_allclose(seen[:, 0], [1 / 2] * 6)
    np.testing.assert_allclose(seen[:, 1], [0, 0, 3 / 2, 0, 0, 3 / 2], atol=1e-12)
    assert (history.waste, history.open_jobs) == (0.0, 0)
    assert {fate: n for fate, n in history.fates.items() if n} == {"fresh": 6, "stale": 2}


@pytest.mark.parametrize("cohort", [None, 4])
@pytest.mark.parametrize("crash", [0.0, 0.2])
def test_no_report_is_wasted(cohort: int | None, crash: float) -> None:
    """All jobs are used, still running, or lost; and coefficients add up to the last round."""
    rates = np.geomspace(0.05, 5.0, 10)
    run = Run(
        cafe.Federation.exponential(rates, None),
        salvage(deadline=0.4, cohort=cohort),
        seed=2,
        crash=crash,
    )
    for _ in range(500):
        run.step()
    history = run.history()
    used = history.fates["fresh"] + history.fates["stale"]
    assert used + history.fates["crashed"] + history.open_jobs == history.jobs
    assert history.fates["stale"] > 0
    assert (history.fates["crashed"] > 0) == (crash > 0)
    assert (history.waste > 0) == (crash > 0)
    np.testing.assert_allclose(history.weight_by_client * 10, run.ledger.last_round + 1)
    # The slowest of ten clients reports once in 50 rounds, so most clients have reported lately.
    np.testing.assert_allclose(np.median(history.weight_by_client) / 500, 1 / 10, rtol=0.05)


def test_scheme_is_an_option_of_awu() -> None:
    who = cafe.Federation(10, cafe.Exponential(1.0))
    mine = cafe.simulate(who, salvage(deadline=0.7), rounds=50)
    other = cafe.simulate(who, awu(deadline=0.7, weight="unbiased", late="keep"), rounds=50)
    assert mine.weight_by_client.tolist() == other.weight_by_client.tolist()
    assert mine.by_round["closed"].tolist() == other.by_round["closed"].tolist()
