"""Random cohorts: every cohort and every outcome counted, and laws that hold for large ones."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom

from cafe.federation import Federation
from cafe.latency import Exponential, LogNormal
from cafe.latency.base import Floats
from cafe.theory import CohortTurnout, Turnout

CHANCES = {
    "unequal": np.array([0.13, 0.47, 0.86, 0.02, 0.99, 0.6]),
    "some certain": np.array([0.0, 0.3, 1.0, 0.7, 0.2, 1.0]),
    "all certain": np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0]),
    "rare": np.array([1e-8, 1e-5, 1e-7, 1e-6, 1e-4, 1e-3]),
    "equal": np.full(6, 0.4),
}


def turnout_of(chances: Floats, cohort: int, quorum: int) -> CohortTurnout:
    everyone = Turnout(chances, 1 - chances, np.ones(chances.size), 1)
    return CohortTurnout(everyone, cohort, quorum)


@pytest.mark.parametrize("name", CHANCES)
@pytest.mark.parametrize("cohort", range(1, 7))
def test_every_cohort_and_every_outcome(name: str, cohort: int) -> None:
    chances = CHANCES[name]
    cohorts = list(combinations(range(6), cohort))
    for quorum in range(1, cohort + 1):
        masses = np.zeros(cohort + 1)
        used, share, given = np.zeros(6), np.zeros(6), np.zeros(6)
        for invited in cohorts:
            for came in product([0, 1], repeat=cohort):
                each = [
                    chances[k] if yes else 1 - chances[k]
                    for k, yes in zip(invited, came, strict=True)
                ]
                chance, n = float(np.prod(each)) / len(cohorts), sum(came)
                masses[n] += chance
                for k, yes in zip(invited, came, strict=True):
                    used[k] += chance * (yes and n >= quorum)
                    share[k] += chance * (yes and n >= quorum) / max(n, 1)
                    given[k] += chance * (n - yes >= quorum - 1)
        count = np.arange(cohort + 1.0)
        found = turnout_of(chances, cohort, quorum)
        assert found.success == pytest.approx(masses[quorum:].sum(), rel=1e-10, abs=1e-300)
        assert found.failure == pytest.approx(masses[:quorum].sum(), rel=1e-10, abs=1e-15)
        assert found.mean == pytest.approx(float(count @ masses), rel=1e-10, abs=1e-300)
        assert found.mean_missing == pytest.approx(
            float((cohort - count) @ masses), rel=1e-10, abs=1e-300
        )
        assert found.all_report == pytest.approx(masses[-1], rel=1e-10, abs=1e-300)
        assert found.reports_when_failed == pytest.approx(
            float((count * masses)[:quorum].sum()), rel=1e-10, abs=1e-15
        )
        assert found.missing_when_failed == pytest.approx(
            float(((cohort - count) * masses)[:quorum].sum()), rel=1e-10, abs=1e-14
        )
        inverse = float((masses[1:] / count[1:])[quorum - 1 :].sum())
        assert found.inverse_reports == pytest.approx(inverse, rel=1e-10, abs=1e-300)
        assert found.participation == pytest.approx(used, rel=1e-10, abs=1e-300)
        assert found.share == pytest.approx(share, rel=1e-10, abs=1e-300)
        assert found.used == pytest.approx(used.sum(), rel=1e-10, abs=1e-300)
        assert found.others_suffice == pytest.approx(given * 6 / cohort, rel=1e-10, abs=1e-300)
        values, seen = found.distribution
        assert seen == pytest.approx(masses[values.astype(int)], rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("clients", "cohort"), [(300, 40), (300, 290), (5000, 500), (20_000, 77)])
@pytest.mark.parametrize("quorum", [0.02, 0.3, 0.5, 0.95])
def test_equal_clients_are_binomial(clients: int, cohort: int, quorum: float) -> None:
    """A random cohort of equal clients is a fixed cohort, also in the far tails."""
    m, p = max(round(quorum * cohort), 1), 0.4
    found = CohortTurnout(
        Turnout(np.array([p]), np.array([1 - p]), np.array([float(clients)]), 1), cohort, m
    )
    assert found.success == pytest.approx(binom.sf(m - 1, cohort, p), rel=1e-8)
    assert found.failure == pytest.approx(binom.cdf(m - 1, cohort, p), rel=1e-8)
    r = cohort / clients * p * binom.sf(m - 2, cohort - 1, p)
    assert found.participation[0] == pytest.approx(r, rel=1e-8)
    assert found.share[0] == pytest.approx(found.success / clients, rel=1e-8)
    n = np.arange(1, cohort + 1)
    inverse = float((binom.pmf(n, cohort, p) / n)[m - 1 :].sum())
    assert found.inverse_reports == pytest.approx(inverse, rel=1e-8)
    assert found.reports_when_failed == pytest.approx(
        float((n * binom.pmf(n, cohort, p))[: m - 1].sum()), rel=1e-8, abs=1e-300
    )


@pytest.mark.parametrize("cohort", [1, 20, 400, 1990])
def test_many_unequal_clients_keep_the_sums(cohort: int) -> None:
    rng = np.random.default_rng(3)
    federation = Federation(2000, LogNormal(rng.normal(0.0, 0.8, 2000), 0.4), availability=0.8)
    found = CohortTurnout(Turnout.of(federation, 1, 1.1), cohort, max(cohort // 3, 1))
    values, masses = found.distribution
    mean = float(values @ masses)
    p = federation.report(1.1)
    # Without replacement: Var(n) = C p(1-p) - C (C-1) / (N-1) Var(p), with the mean p.
    variance = cohort * p.mean() * (1 - p.mean()) - cohort * (cohort - 1) / 1999 * p.var()
    assert masses.sum() == pytest.approx(1, rel=1e-10)
    assert mean == pytest.approx(cohort * p.mean(), rel=1e-9)
    assert float(values**2 @ masses) - mean**2 == pytest.approx(variance, rel=1e-7)
    assert float(masses[values >= found.quorum].sum()) == pytest.approx(found.success, rel=1e-9)
    assert found.share.sum() == pytest.approx(found.success, rel=1e-9)
    used = float((values * masses)[values >= found.quorum].sum())
    assert found.used == pytest.approx(used, rel=1e-8)
    assert found.used + found.reports_when_failed == pytest.approx(found.mean, rel=1e-9)


def test_a_cohort_of_nearly_all_clients_is_close_to_all() -> None:
    federation = Federation(400, Exponential(np.linspace(0.5, 2.0, 400)))
    everyone = Turnout.of(federation, 200, 0.8)
    found = CohortTurnout(everyone, 400, 200)
    assert found.success == pytest.approx(everyone.success, rel=1e-10)
    assert found.participation == pytest.approx(everyone.participation, rel=1e-9)
    assert found.share == pytest.approx(everyone.share, rel=1e-9)
    assert found.inverse_reports == pytest.approx(everyone.inverse_reports, rel=1e-9)
