from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.latency.base import Floats
from cafe.learn.schedules import LearningRate
from cafe.theory import (
    Problem,
    Setting,
    Variance,
    age_as_printed,
    bound,
    bound_as_printed,
    bound_by_age_as_printed,
    learning_rate,
    learning_rate_as_printed,
    mean_share_as_printed,
    others_suffice_as_printed,
    rounds_to_gap,
)

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from tests.support.theory_oracles import Counter, Game

steady = settings(derandomize=True, deadline=None, max_examples=100, database=None)
positive = st.floats(0.01, 100.0)


# ------------------------------------------------- a federation of quadratics, all constants known


@dataclass(frozen=True)
class Quadratics:
    """F_k(w) = (w - b_k)' H_k (w - b_k) / 2 with noisy gradients, around the optimum w* of F.

    In e = w - w* client k's gradient is H_k e + h_k, and the h_k sum to 0.
    """

    hessians: Floats
    offsets: Floats
    start: Floats
    noise: float

    @property
    def clients(self) -> int:
        return len(self.hessians)

    @property
    def mean_hessian(self) -> Floats:
        return np.asarray(self.hessians.mean(axis=0))

    @property
    def problem(self) -> Problem:
        values = np.linalg.eigvalsh(self.hessians)
        own = [
            h @ np.linalg.solve(m, h) / 2 for m, h in zip(self.hessians, self.offsets, strict=True)
        ]
        return Problem(
            smoothness=float(values.max()),
            convexity=float(values.min()),
            noise=self.noise,
            heterogeneity=float(np.mean(own)),
            distance=float(self.start @ self.start),
        )

    def gradients(self, e: Floats) -> Floats:
        """Every client's exact gradient."""
        return np.asarray(self.hessians @ e + self.offsets)

    def gaps(self, masses: Floats, quorum: int, rate: LearningRate, rounds: int) -> Floats:
        """E[F(w_t)] - F* for t = 1, 2, ... exactly, by the recursion of the first two moments.

        Given n, the reporting clients are any n of them, so the covariance of their mean gradient
        is (N - n) / (n (N - 1)) of the clients' own. Independent of the code under test.
        """
        n = np.arange(1, self.clients + 1)
        won = masses[1:] * (n >= quorum)
        success, noisy = won.sum(), (won / n).sum()
        mixing = (won * (self.clients - n) / (n * max(self.clients - 1, 1))).sum()
        size = self.start.size
        first, second = self.start.copy(), np.outer(self.start, self.start)
        mean, gaps = self.mean_hessian, []
        for t in range(1, rounds + 1):
            gaps.append(float(np.trace(mean @ second)) / 2)
            eta = float(rate(t))
            # E[g_k g_k'] and E[grad F grad F'], as far as w_t is random.
            cross = np.einsum("kij,j,kl->kil", self.hessians, first, self.offsets)
            each = self.hessians @ second @ self.hessians.transpose(0, 2, 1)
            each = each + cross + cross.transpose(0, 2, 1)
            each = each + self.offsets[:, :, None] * self.offsets[:, None, :]
            whole = mean @ second @ mean.T
            step = success * whole + mixing * (each.mean(axis=0) - whole)
            step = step + noisy * self.noise / size * np.eye(size)
            second = second - eta * success * (mean @ second + second @ mean) + eta**2 * step
            first = first - eta * success * mean @ first
        return np.array(gaps)


def quadratics(seed: int, clients: int = 10, size: int = 3, noise: float = 0.5) -> Quadratics:
    rng = np.random.default_rng(seed)
    turns = np.linalg.qr(rng.normal(size=(clients, size, size)))[0]
    values = rng.uniform(0.5, 4.0, (clients, size))
    hessians = np.einsum("kij,kj,klj->kil", turns, values, turns)
    offsets = rng.normal(size=(clients, size))
    return Quadratics(hessians, offsets - offsets.mean(axis=0), rng.normal(size=size) * 2, noise)


SETTINGS = [(1, 0.1), (1, 0.7), (1, 4.0), (4, 0.5), (8, 0.7), (10, 2.0)]


@pytest.mark.parametrize("noise", [0.0, 0.5, 8.0])
@pytest.mark.parametrize(("quorum", "deadline"), SETTINGS)
def test_both_bounds_hold_and_the_corrected_one_is_tighter(
    counted: Counter, quorum: int, deadline: float, noise: float
) -> None:
    """Each bound with the schedule of its theorem; failed rounds count as rounds."""
    world, rounds = quadratics(1, noise=noise), 1500
    t = np.arange(1, rounds + 1)
    p = 1 - np.exp(-deadline)
    masses = counted([p], [1 - p], [10], quorum).masses
    variance = Variance.of(Setting(Federation(10, Exponential(1.0)), quorum, deadline))

    corrected = bound(world.problem, variance, t)
    true = world.gaps(masses, quorum, learning_rate(world.problem, variance), rounds)
    assert np.all(true <= corrected)
    careful = learning_rate(world.problem, variance, slack=True)
    slacker = bound(world.problem, variance, t, slack=True)
    assert np.all(world.gaps(masses, quorum, careful, rounds) <= slacker)
    assert corrected[-1] <= slacker[-1]  # its start differs, so early on either may be lower

    args = (10, 1.0, quorum, deadline)
    printed = bound_as_printed(world.problem, *args, t)
    schedule = learning_rate_as_printed(world.problem, *args)
    assert np.all(world.gaps(masses, quorum, schedule, rounds) <= printed)

    assert np.all(corrected <= printed)


@pytest.mark.parametrize(("quorum", "deadline"), [(1, 0.2), (6, 0.8)])
def test_moment_recursion_agrees_with_simulated_training(
    counted: Counter, quorum: int, deadline: float
) -> None:
    """Federated SGD simulated 4000 times, with failed rounds and noise."""
    world, runs, rounds = quadratics(2), 4000, 25
    p = 1 - np.exp(-deadline)
    masses = counted([p], [1 - p], [10], quorum).masses
    rate = LearningRate(beta=1.0, gamma=4.0)
    rng = np.random.default_rng(9)
    e = np.tile(world.start, (runs, 1))
    for t in range(1, rounds):
        came = rng.random((runs, 10)) < p
        came &= came.sum(axis=1, keepdims=True) >= quorum
        gradients = np.einsum("kij,rj->rki", world.hessians, e) + world.offsets
        gradients += rng.normal(size=gradients.shape) * (world.noise / 3) ** 0.5
        step = np.einsum("rk,rki->ri", came, gradients)
        e = e - float(rate(t)) * step / np.maximum(came.sum(axis=1), 1)[:, None]
    gaps = np.einsum("ri,ij,rj->r", e, world.mean_hessian, e) / 2
    wanted = world.gaps(masses, quorum, rate, rounds)[-1]
    assert abs(gaps.mean() - wanted) < 4.5 * gaps.std() / runs**0.5


@pytest.mark.parametrize(("quorum", "deadline"), [(1, 0.05), (1, 0.6), (5, 0.6), (9, 1.5)])
def test_variance_of_the_mean_gradient(quorum: int, deadline: float) -> None:
    """E||g||^2 = Q ||grad F||^2 + c_M V, and the noise adds e_M sigma^2 (paper notes, 1.1)."""
    world = quadratics(3)
    federation = Federation(10, Exponential(1.0))
    variance = Variance.of(Setting(federation, quorum, deadline))
    gradients = world.gradients(world.start)
    mean = gradients.mean(axis=0)
    spread = float(((gradients - mean) ** 2).sum(axis=1).mean())
    wanted = variance.success * (mean @ mean) + variance.sampling * spread

    rng = np.random.default_rng(5)
    came = federation.sample(rng, 60_000) <= deadline
    n = came.sum(axis=1)
    came &= (n >= quorum)[:, None]
    g = came @ gradients / np.maximum(n, 1)[:, None]
    squares = (g**2).sum(axis=1)
    assert abs(squares.mean() - wanted) < 4.5 * squares.std() / 60_000**0.5

    noise = came * rng.normal(size=came.shape)  # one coordinate, sigma = 1
    noisy = (noise.sum(axis=1) / np.maximum(n, 1)) ** 2
    assert abs(noisy.mean() - float(variance.noise)) < 4.5 * noisy.std() / 60_000**0.5


# --------------------------------------------------------------------------------- variance factors


def test_variance_factors_agree_with_simulation(game: Game) -> None:
    """With a target, n is cut to the first K reports."""
    played, found = game.played, game.expected
    used, clients = played.used.sum(axis=1), game.federation.clients
    some = np.maximum(used, 1)
    game.agree(found.noise_factor, played.success / some)
    mixing = played.success * (clients - used) / (some * (clients - 1))
    game.agree(found.sampling_factor, mixing)
    assert found.variance.success == found.success_probability


@pytest.mark.parametrize("clients", [1, 2, 3, 7, 11, 50])
def test_no_sampling_variance_if_all_clients_report(clients: int) -> None:
    """The mean gradient is then exact, except for its noise sigma^2 / N."""
    for quorum in {1, clients}:
        setting = Setting(Federation(clients, Exponential(1.0)), quorum, 60.0)
        found = Variance.of(setting)
        assert found.success == pytest.approx(1.0, abs=1e-15)
        assert found.noise == pytest.approx(1 / clients, rel=1e-14)
        assert found.sampling == pytest.approx(0.0, abs=1e-14)
        assert float(found.sampling) >= 0


@pytest.mark.parametrize(("clients", "deadline"), [(1000, 0.3), (1000, 1.0), (5000, 0.1)])
def test_age_enters_through_the_variance(clients: int, deadline: float) -> None:
    """At M = 1 and N p >> 1."""
    exact = Variance.of(Setting(Federation(clients, Exponential(1.0)), 1, deadline))
    age = age_as_printed(clients, 1.0, 1, deadline)
    found = Variance.from_age(age, deadline, clients)
    assert found.success == 1.0
    assert found.noise == pytest.approx(float(exact.noise), rel=0.02)
    assert found.sampling == pytest.approx(float(exact.sampling), rel=0.02)


# ------------------------------------------------------------------------------ formulas, schedules


problems = st.builds(
    lambda mu, ratio, noise, gamma, start: Problem(mu * (1 + ratio), mu, noise, gamma, start),
    positive, positive, positive, positive, positive,
)  # fmt: skip
variances = st.builds(
    lambda success, noise, sampling: Variance(success, noise, sampling),
    st.floats(0.01, 1.0), st.floats(1e-4, 1.0), st.floats(0.0, 1.0),
)  # fmt: skip


@pytest.mark.parametrize("slack", [False, True])
@steady
@given(problems, variances, st.integers(1, 10**6))
def test_corrected_bound_follows_from_the_recursion(
    slack: bool, problem: Problem, variance: Variance, t: int
) -> None:
    """L / (2 (gamma + t)) (beta^2 B / (beta A - 1) + (gamma + 1) eps), as in the appendix."""
    rate = learning_rate(problem, variance, slack=slack)
    a = problem.convexity * variance.success
    b = 2 * problem.smoothness * problem.heterogeneity * variance.sampling
    b += problem.noise * variance.noise
    first = rate.beta**2 * b / (rate.beta * a - 1) + (rate.gamma + 1) * problem.distance
    wanted = problem.smoothness / (2 * (rate.gamma + t)) * first
    found = float(bound(problem, variance, t, slack=slack))
    assert found == pytest.approx(float(wanted), rel=1e-9)
    # The step that the theorem allows: eta_1 <= 1/L (with slack Q / (L (Q + c))), and 1/A.
    more = variance.sampling if slack else 0.0
    limit = variance.success / (problem.smoothness * (variance.success + more))
    assert float(rate(1)) <= min(float(limit), 1 / a) * (1 + 1e-12)
    assert float(rate(1)) == pytest.approx(rate.beta / (rate.gamma + 1))


@steady
@given(problems, st.integers(1, 60), st.floats(0.05, 3.0), st.floats(0, 1), st.integers(1, 10**6))
def test_theorem_3_as_printed(
    problem: Problem, clients: int, deadline: float, place: float, t: int
) -> None:
    quorum = 1 + round(place * (clients - 1))
    args = (clients, 1.0, quorum, deadline)
    share = mean_share_as_printed(*args)
    if share < 1e-200:
        return
    smooth, mu, a = problem.smoothness, problem.convexity, share * clients * problem.convexity
    b = share * clients * (2 * smooth * problem.heterogeneity + problem.noise / quorum)
    rate = learning_rate_as_printed(problem, *args)
    assert float(rate(1)) <= min(1 / a, 1 / smooth) * (1 + 1e-12)
    # The appendix, before it rounds t + 1 down to t.
    first = rate.beta**2 * b / (rate.beta * a - 1) + (rate.gamma + 1) * problem.distance
    appendix = smooth / (2 * (rate.gamma + t)) * first
    printed = float(bound_as_printed(problem, *args, t))
    assert printed >= appendix * (1 - 1e-12)
    assert printed * (2 * smooth + a * t) == pytest.approx(
        appendix * (2 * smooth + a * (t + 1)), rel=1e-9
    )
    # Corollary 3 is looser still.
    chance = (1 - np.exp(-deadline)) * others_suffice_as_printed(*args)
    by_age = float(bound_by_age_as_printed(problem, quorum, deadline, age_as_printed(*args), t))
    constant = 4 * smooth * problem.heterogeneity + 2 * problem.noise / quorum
    constant += smooth * mu * problem.distance
    wanted = smooth / mu * constant / (chance * mu * t) + smooth * problem.distance / t
    assert by_age == pytest.approx(wanted, rel=1e-6)
    assert by_age >= printed * (1 - 1e-6)


@steady
@given(problems, variances, st.floats(1e-9, 1.0))
def test_rounds_to_gap_inverts_the_bound(
    problem: Problem, variance: Variance, share: float
) -> None:
    one_update = 1 / float(variance.success)
    gap = share * float(bound(problem, variance, one_update))
    rounds = rounds_to_gap(problem, variance, gap)
    assert float(rounds) >= one_update * (1 - 1e-12)
    assert float(bound(problem, variance, rounds)) == pytest.approx(gap, rel=1e-9)


def test_gap_that_is_already_reached_takes_one_update() -> None:
    problem, variance = Problem(2.0, 1.0, 1.0, 1.0, 1.0), Variance(0.5, 0.1, 0.05)
    assert float(rounds_to_gap(problem, variance, 1e9)) == 2.0


@pytest.mark.parametrize("gap", [0.0, -1.0])
def test_unreachable_gap_is_refused(gap: float) -> None:
    problem, variance = Problem(2.0, 1.0, 1.0, 1.0, 1.0), Variance(0.5, 0.1, 0.05)
    with pytest.raises(InputError, match="gap must be a positive number"):
        rounds_to_gap(problem, variance, gap)


def test_bound_is_infinite_without_success() -> None:
    problem = Problem(2.0, 1.0, 1.0, 1.0, 1.0)
    never = Variance(0.0, 0.0, 0.0)
    assert float(bound(problem, never, 100)) == np.inf
    assert float(rounds_to_gap(problem, never, 0.1)) == np.inf
    some = Variance(np.array([0.0, 0.5]), np.array([0.0, 0.1]), np.array([0.0, 0.05]))
    np.testing.assert_array_equal(np.isinf(bound(problem, some, 100)), [True, False])
    np.testing.assert_array_equal(np.isinf(rounds_to_gap(problem, some, 0.1)), [True, False])


def test_many_settings_at_once() -> None:
    """Arrays of variances give what each gives alone."""
    problem = Problem(3.0, 1.0, 2.0, 0.5, 1.0)
    federation = Federation(20, Exponential(1.0))
    each = [Variance.of(Setting(federation, quorum, 0.5)) for quorum in (1, 5, 9)]
    together = Variance.from_noise(
        np.array([v.success for v in each]), np.array([v.noise for v in each]), 20
    )
    np.testing.assert_allclose(together.sampling, [float(v.sampling) for v in each], rtol=1e-12)
    np.testing.assert_allclose(
        rounds_to_gap(problem, together, 0.01),
        [float(rounds_to_gap(problem, v, 0.01)) for v in each],
        rtol=1e-12,
    )


# ------------------------------------------------------------------------------------ the constants


def test_problem_from_a_ratio() -> None:
    """Only sigma^2 / (2 L Gamma) matters for comparisons."""
    problem = Problem.from_ratio(3.0)
    assert problem.noise / (2 * problem.smoothness * problem.heterogeneity) == 3.0
    assert problem.distance == 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"convexity": 5.0}, "convexity.*5.0"),
        ({"convexity": 0.0}, "convexity.*0.0"),
        ({"smoothness": float("inf")}, "smoothness.*inf"),
        ({"smoothness": float("nan")}, "smoothness.*nan"),
        ({"noise": -1.0}, "noise.*-1"),
        ({"noise": float("nan")}, "noise.*nan"),
        ({"heterogeneity": -2.0}, "heterogeneity.*-2"),
        ({"distance": float("inf")}, "distance.*inf"),
        ({"noise": 0.0, "heterogeneity": 0.0, "distance": 0.0}, "stay there"),
    ],
)
def test_bad_constants_are_named(change: dict[str, float], words: str) -> None:
    good = {"smoothness": 2.0, "convexity": 1.0, "noise": 1.0, "heterogeneity": 1.0}
    with pytest.raises(InputError, match=words):
        Problem(**(good | change))


@pytest.mark.parametrize("ratio", [-1.0, float("nan"), float("inf")])
def test_a_bad_ratio_is_named(ratio: float) -> None:
    with pytest.raises(InputError, match=f"(?i)ratio.*{ratio}"):
        Problem.from_ratio(ratio)
