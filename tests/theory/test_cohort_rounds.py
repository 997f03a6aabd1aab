from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.special import digamma

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Constant, Exponential, LogNormal, Uniform
from cafe.theory import Setting
from cafe.theory.cohort_rounds import CohortRounds
from cafe.theory.duration import early_close, overtaken_probability

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("clients", "cohort", "target"), [(9, 4, 2), (50, 20, 20), (2000, 130, 100)]
)
def test_equal_memoryless_clients(clients: int, cohort: int, target: int) -> None:
    """The K-th of C exponential times; each report costs one mean time of client work."""
    rounds = CohortRounds(Federation(clients, Exponential(2.0)), cohort, target)
    duration, work = rounds.closing(1e3)
    mean = float(digamma(cohort + 1) - digamma(cohort - target + 1)) / 2
    assert duration.mean == pytest.approx(mean, rel=1e-7)
    assert duration.mean_when_full == pytest.approx(mean, rel=1e-7)
    assert work == pytest.approx(target / 2, rel=1e-7)
    late = rounds.overtaken(1e3)
    assert late == pytest.approx((cohort - target) / clients, rel=1e-7)


@pytest.mark.parametrize("target", [1, 2, 3])
def test_the_mean_over_all_cohorts(target: int) -> None:
    """Each cohort of 3 is a federation of its own, in which all are invited."""
    rates = np.array([0.4, 1.0, 1.7, 3.0, 0.8])
    share = np.array([1.0, 0.7, 0.9, 0.8, 1.0])
    rounds = CohortRounds(Federation.exponential(rates, share), 3, target)
    found, work = rounds.closing(1.3)
    late = rounds.overtaken(1.3)
    cohorts = [np.array(some) for some in combinations(range(5), 3)]
    each = [early_close(Federation.exponential(rates[s], share[s]), target, 1.3) for s in cohorts]
    assert found.mean == pytest.approx(np.mean([d.mean for d, _ in each]), rel=1e-7)
    assert found.second == pytest.approx(np.mean([d.second for d, _ in each]), rel=1e-7)
    assert found.mean_when_full == pytest.approx(
        np.mean([d.mean_when_full for d, _ in each]), rel=1e-7
    )
    assert work == pytest.approx(np.mean([w for _, w in each]), rel=1e-7)
    if target < 3:
        wanted = np.zeros(5)
        for some in cohorts:
            alone = Federation.exponential(rates[some], share[some])
            wanted[some] += overtaken_probability(alone, target, 1.3) / len(cohorts)
        assert late == pytest.approx(wanted, rel=1e-6)


def test_narrow_response_times_are_not_overlooked() -> None:
    """Groups with hardly any spread: the K-th report of the cohort comes at a group's time."""
    groups = Federation.join(
        Federation(10, LogNormal(0.0, 0.003)), Federation(10, LogNormal(2.0, 0.003))
    )
    late = CohortRounds(groups, 8, 4).overtaken(20.0)
    rng, wanted = np.random.default_rng(4), np.zeros(20)
    for times in groups.sample(rng, 20_000):
        invited = rng.permutation(20)[:8]
        wanted[invited[np.argsort(times[invited])[4:]]] += 1 / 20_000
    groups_late = [wanted[:10].mean(), wanted[10:].mean()]
    assert late == pytest.approx(groups_late, abs=4.5 * 0.5 / 20_000**0.5)
    number = np.array([10.0, 10.0])
    assert float(number @ late) == pytest.approx(4.0, rel=1e-7)  # 8 report, 4 are late


def test_constant_times_have_a_length_but_no_order() -> None:
    rounds = CohortRounds(Federation(3, Constant(np.array([1.0, 2.0, 3.0]))), 2, 1)
    duration, _ = rounds.closing(5.0)
    assert duration.mean == pytest.approx((1 + 1 + 2) / 3, rel=1e-9)  # of {1,2}, {1,3}, {2,3}
    with pytest.raises(InputError, match="density"):
        rounds.overtaken(5.0)


def test_an_unreachable_target_waits_for_the_deadline() -> None:
    duration, work = CohortRounds(Federation(9, Uniform(2.0, 3.0)), 4, 2).closing(1.5)
    assert (duration.mean, duration.second) == (1.5, 2.25)
    assert duration.mean_when_full == pytest.approx(0.0, abs=1e-14)
    assert work == pytest.approx(6.0)


def test_settings_agree_with_simulated_rounds_of_many_clients() -> None:
    """A plain loop over rounds, 300 unequal clients; errors from the rounds themselves."""
    rng = np.random.default_rng(7)
    federation = Federation(300, LogNormal(rng.normal(1.0, 0.6, 300), 0.4), availability=0.85)
    setting = Setting(federation, 25, 4.5, target=40, cohort=60)
    lengths, used, works = [], [], []
    for times in federation.sample(rng, 4000):
        mine = np.sort(times[rng.permutation(300)[:60]])
        length = min(4.5, mine[39])
        came = int((mine <= length).sum())
        lengths.append(length)
        used.append(came if came >= 25 else 0)
        works.append(np.minimum(mine, length).sum())
    for claim, seen in (
        (setting.duration.mean, lengths),
        (setting.used, used),
        (setting.work, works),
    ):
        assert claim == pytest.approx(np.mean(seen), abs=4.5 * np.std(seen) / 4000**0.5)
