"""Convergence bounds: Theorem 3 and Corollary 3 as printed, and the corrected theorem.

Both start from E||w+ - w*||^2 <= (1 - A eta) ||w - w*||^2 + eta^2 B with eta_t = beta / (gamma + t)
and beta = 2/A. The printed theorem bounds the noise by sigma^2 / M and keeps the full heterogeneity
even when all clients report. The corrected theorem uses that, given n, the reporting clients are a
uniform n-subset. Then the noise is e_M sigma^2, and the heterogeneity shrinks by the
finite-population factor c_M. The corrected theorem holds for equal clients and one local step.
Unequal clients pull the model towards the fast ones (see ``Turnout.share``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cafe.errors import (
    InputError,
    check_flag,
    check_not_negative,
    check_positive,
    check_type,
    check_whole,
    shorten,
)
from cafe.latency.base import Floats, to_floats
from cafe.learn.schedules import LearningRate
from cafe.theory.as_printed import mean_share_as_printed
from cafe.theory.setting import Setting


@dataclass(frozen=True)
class Problem:
    """A learning problem: the constants of the paper's Assumptions 1-4.

    Attributes:
        smoothness: L.
        convexity: mu, above 0 and at most L.
        noise: sigma^2, the variance of a client's stochastic gradient.
        heterogeneity: Gamma = F* - mean of F_k*.
        distance: epsilon_1 = E||w_1 - w*||^2.

    Example:
        >>> from cafe.theory import Problem
        >>> problem = Problem(smoothness=1, convexity=0.1, noise=1, heterogeneity=0.5, distance=1)
    """

    smoothness: float
    convexity: float
    noise: float
    heterogeneity: float
    distance: float = 0.0

    def __post_init__(self) -> None:
        if check_positive("convexity (mu)", self.convexity) > check_positive(
            "smoothness (L)", self.smoothness
        ):
            raise InputError(
                "A problem needs 0 < convexity (mu) <= smoothness (L). "
                f"Got convexity {self.convexity} and smoothness {self.smoothness}."
            )
        for name in ("noise", "heterogeneity", "distance"):
            check_not_negative(f"A problem's {name}", getattr(self, name))
        if self.noise + self.heterogeneity + self.distance == 0:
            raise InputError(
                "At least one of noise, heterogeneity and distance must be above 0. Got 0 for all: "
                "the model would start at the optimum and stay there."
            )

    @classmethod
    def from_ratio(cls, noise_ratio: float) -> Problem:
        """A problem of which only the ratio sigma^2 / (2 L Gamma) is known.

        The other constants are set to 1, and the model starts at the optimum. The number of rounds
        to a small gap is then right up to a constant factor, which does not change the comparison
        of deadlines and quorums.
        """
        why = ": it is the gradient noise divided by the clients' heterogeneity"
        check_not_negative("The noise ratio", noise_ratio, why)
        return cls(smoothness=1.0, convexity=1.0, noise=noise_ratio, heterogeneity=0.5)


@dataclass(frozen=True)
class Variance:
    """Factors by which averaging n reports reduces noise and heterogeneity, expected per round.

    Attributes:
        success: Q = Pr(n >= M).
        noise: e_M = E[1/n; n >= M], the factor of sigma^2.
        sampling: c_M = E[(N-n) / (n (N-1)); n >= M], the factor of the heterogeneity.
    """

    success: Floats | float
    noise: Floats | float
    sampling: Floats | float

    @classmethod
    def of(cls, setting: Setting) -> Variance:
        """The factors of a setting. With a target K, an update averages the first K reports."""
        noise = setting.turnout.inverse_reports
        if setting.target_turnout is not None:
            noise += (
                setting.target_turnout.success / setting.target_turnout.quorum
                - setting.target_turnout.inverse_reports
            )
        return cls.from_noise(setting.turnout.success, noise, setting.clients)

    @classmethod
    def from_noise(cls, success: Floats | float, noise: Floats | float, clients: int) -> Variance:
        """The factors from Q and e_M alone: c_M = (N e_M - Q) / (N - 1)."""
        excess = np.maximum(clients * np.asarray(noise) - success, 0.0)
        return cls(success, noise, excess / max(clients - 1, 1))

    @classmethod
    def from_age(cls, age: float, deadline: float, clients: int) -> Variance:
        """The factors approximated from the age, for M = 1 and N p >> 1.

        e ~ (age/T - 1/2) / N and c ~ (age/T - 3/2) / N. So age enters the corrected bound through
        the variance, not through the rate of convergence.
        """
        return cls(1.0, (age / deadline - 0.5) / clients, (age / deadline - 1.5) / clients)


def bound_as_printed(
    problem: Problem, clients: int, rate: float, quorum: int, deadline: float, rounds: ArrayLike
) -> Floats:
    """Bound on the optimality gap after ``rounds`` rounds by Theorem 3, exactly as printed.

    L / (2L + S~ N mu t) x ((4 L Gamma + 2 sigma^2 / M) / mu + (L + N mu S~) eps_1).

    Example:
        >>> from cafe.theory import Problem, bound_as_printed
        >>> problem = Problem(smoothness=1, convexity=0.1, noise=1, heterogeneity=0.5, distance=1)
        >>> gap = bound_as_printed(problem, 100, rate=1.0, quorum=30, deadline=0.5, rounds=50)
        >>> round(float(gap), 3)
        3.155
    """
    _check_problem(problem)
    share = mean_share_as_printed(clients, rate, quorum, deadline)
    smooth, mu, t = problem.smoothness, problem.convexity, _as_rounds(rounds)
    noise = (4 * smooth * problem.heterogeneity + 2 * problem.noise / quorum) / mu
    start = (smooth + clients * mu * share) * problem.distance
    return np.asarray(smooth / (2 * smooth + share * clients * mu * t) * (noise + start))


def learning_rate_as_printed(
    problem: Problem, clients: int, rate: float, quorum: int, deadline: float
) -> LearningRate:
    """Learning rates of Theorem 3: beta = 2/A, gamma = 2L/A + 1, A = S~ N mu (appendix).

    Example:
        >>> from cafe.theory import Problem, learning_rate_as_printed
        >>> problem = Problem.from_ratio(1.0)
        >>> schedule = learning_rate_as_printed(problem, 100, rate=1.0, quorum=30, deadline=0.5)
        >>> round(schedule.beta, 2), round(schedule.gamma, 2)
        (2.04, 3.04)
    """
    _check_problem(problem)
    a = mean_share_as_printed(clients, rate, quorum, deadline) * clients * problem.convexity
    return LearningRate(2 / a, 2 * problem.smoothness / a + 1)


def bound_by_age_as_printed(
    problem: Problem, quorum: int, deadline: float, age: float, rounds: ArrayLike
) -> Floats:
    """Bound on the optimality gap in terms of the age, by Corollary 3 (eq. 16).

    Uses p Pr(n~ >= M-1) = T / (age - T/2), which follows from Theorem 2.

    Example:
        >>> from cafe.theory import Problem, bound_by_age_as_printed
        >>> problem = Problem(smoothness=1, convexity=0.1, noise=1, heterogeneity=0.5, distance=1)
        >>> gap = bound_by_age_as_printed(problem, quorum=30, deadline=0.5, age=1.5, rounds=50)
        >>> round(float(gap), 3)
        10.853
    """
    _check_problem(problem)
    check_whole("quorum", quorum)
    if check_positive("age", age) <= check_positive("deadline", deadline) / 2:
        raise InputError(
            f"age must be more than half of the deadline ({deadline}). Got {age}: no client is "
            "merged more often than once per round."
        )
    smooth, mu, t = problem.smoothness, problem.convexity, _as_rounds(rounds)
    if not np.all(t > 0):
        raise InputError(f"rounds must be above 0 in this bound. Got {shorten(rounds)}.")
    chance = deadline / (age - deadline / 2)
    constant = (
        4 * smooth * problem.heterogeneity
        + 2 * problem.noise / quorum
        + smooth * mu * problem.distance
    )
    first = max(smooth / mu, 1.0) * constant / (chance * mu * t)
    return np.asarray(first + smooth * mu * problem.distance / (mu * t))


def learning_rate(problem: Problem, variance: Variance, *, slack: bool = False) -> LearningRate:
    """Learning rates of the corrected theorem: beta = 2/A, gamma = 2L/A + 1, A = mu Q.

    With ``slack``, gamma = 2L (1 + c/Q)/A + 1: see :func:`bound`.

    Example:
        >>> import cafe
        >>> federation = cafe.Federation(clients=100, latency=cafe.Exponential(rate=1.0))
        >>> variance = cafe.expect(federation, quorum=30, deadline=0.5).variance
        >>> problem = cafe.theory.Problem.from_ratio(1.0)
        >>> schedule = cafe.theory.learning_rate(problem, variance)
        >>> round(schedule.beta, 2), round(schedule.gamma, 2)
        (2.04, 3.04)
    """
    _check_variance(variance)
    if not float(variance.success) > 0:
        raise InputError(
            "The success probability Q must be above 0. Got 0: rounds never succeed, so there is "
            "no learning rate. Lower the quorum or lengthen the deadline."
        )
    a, loss, _ = _parts(problem, variance, slack=slack)
    return LearningRate(float(2 / a), float(2 * problem.smoothness * loss / a + 1))


def bound(
    problem: Problem, variance: Variance, rounds: ArrayLike, *, slack: bool = False
) -> Floats:
    """Bound on the optimality gap by the corrected Theorem 3.

    L / (2L + A (t+1)) x (2 B'/A + (L + A) eps_1), with A = mu Q and
    B' = 2 L Gamma c_M + sigma^2 e_M. It is never above the printed bound.

    The clients' variance V is the mean of ||grad F_k||^2 minus ||grad F||^2, so
    V <= 2L (F - F* + Gamma) - ||grad F||^2. A proof that drops the last term gets an additional
    factor 1 + c/Q on L; ``slack=True`` gives that form.

    Args:
        problem: the constants of the learning problem.
        variance: the factors of the rounds, such as ``cafe.expect(...).variance``.
        rounds: t, one number or several; failed rounds count.
        slack: whether to use the looser form.

    Example:
        >>> import cafe
        >>> federation = cafe.Federation(clients=100, latency=cafe.Exponential(rate=1.0))
        >>> variance = cafe.expect(federation, quorum=30, deadline=0.5).variance
        >>> problem = cafe.theory.Problem.from_ratio(1.0)
        >>> cafe.theory.bound(problem, variance, rounds=[10, 1000]).round(5)
        array([6.48e-03, 8.00e-05])
    """
    a, loss, constant = _parts(problem, variance, slack=slack)
    reached = 2 * problem.smoothness * loss + a * (_as_rounds(rounds) + 1)
    return np.where(a > 0, problem.smoothness * constant / reached, np.inf)


def rounds_to_gap(problem: Problem, variance: Variance, gap: float) -> Floats:
    """Number of rounds (a real number) after which the corrected bound falls to ``gap``.

    It is at least 1/Q, the rounds that one update takes: before the first update nothing is
    learned, even if the problem's distance is 0.

    Example:
        >>> import cafe
        >>> federation = cafe.Federation(clients=100, latency=cafe.Exponential(rate=1.0))
        >>> variance = cafe.expect(federation, quorum=30, deadline=0.5).variance
        >>> problem = cafe.theory.Problem.from_ratio(1.0)
        >>> round(float(cafe.theory.rounds_to_gap(problem, variance, gap=1e-3)), 1)
        81.4
    """
    check_positive("gap", gap)
    a, loss, constant = _parts(problem, variance, slack=False)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rounds = problem.smoothness * (constant / gap - 2 * loss) / a - 1
        first = 1.0 / np.asarray(variance.success)
    return np.where(a > 0, np.maximum(rounds, first), np.inf)


def _parts(problem: Problem, variance: Variance, *, slack: bool) -> tuple[Floats, Floats, Floats]:
    """A, the factor on L, and 2B'/A + (factor L + A) eps_1 of the corrected theorem."""
    _check_problem(problem)
    _check_variance(variance)
    check_flag("slack", slack)
    success, sampling = np.asarray(variance.success), np.asarray(variance.sampling)
    a = problem.convexity * success
    heterogeneity = 2 * problem.smoothness * problem.heterogeneity * sampling
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = 1 + sampling / success if slack else np.ones_like(success, dtype=float)
        noise = heterogeneity + problem.noise * np.asarray(variance.noise)
        constant = 2 * noise / a + (problem.smoothness * loss + a) * problem.distance
    return a, loss, constant


def _check_problem(problem: Problem) -> None:
    check_type("problem", problem, Problem, "a cafe.Problem")


def _check_variance(variance: Variance) -> None:
    wanted = "a cafe.theory.Variance, such as cafe.expect(...).variance"
    check_type("variance", variance, Variance, wanted)


def _as_rounds(rounds: ArrayLike) -> Floats:
    """Numbers of rounds as an array; raise an error for anything else."""
    found = to_floats(rounds)
    if found is None or not found.size or not np.all(np.isfinite(found) & (found >= 0)):
        raise InputError(f"rounds must be one or more numbers, 0 or more. Got {shorten(rounds)}.")
    return found
