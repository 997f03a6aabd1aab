"""Convergence bounds: Theorem 3 and Corollary 3 as printed, and the corrected theorem.

Both follow E||w+ - w*||^2 <= (1 - A eta) ||w - w*||^2 + eta^2 B with eta_t = beta / (gamma + t),
beta = 2/A. The printed theorem bounds the noise by sigma^2 / M and keeps the clients' heterogeneity
even when all of them report. The corrected one uses that, given n, the reporting clients are a
uniform n-subset: the noise is e_M sigma^2 and the heterogeneity shrinks by the finite-population
factor c_M. It holds for equal clients and one local step; unequal ones pull the model towards the
fast (see ``Turnout.share``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cafe.errors import InputError
from cafe.latency.base import Floats
from cafe.learn.schedules import LearningRate
from cafe.theory.as_printed import mean_share_as_printed
from cafe.theory.setting import Setting


@dataclass(frozen=True)
class Problem:
    """The constants of Assumptions 1-4.

    Attributes:
        smoothness: L.
        convexity: mu, at most L.
        noise: sigma^2, the variance of a client's stochastic gradient.
        heterogeneity: Gamma = F* - mean of F_k*.
        distance: epsilon_1 = E||w_1 - w*||^2.
    """

    smoothness: float
    convexity: float
    noise: float
    heterogeneity: float
    distance: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.convexity <= self.smoothness < np.inf):
            raise InputError(
                "A problem needs 0 < convexity (mu) <= smoothness (L). "
                f"Got convexity {self.convexity} and smoothness {self.smoothness}."
            )
        for name in ("noise", "heterogeneity", "distance"):
            if not 0 <= getattr(self, name) < np.inf:
                raise InputError(
                    f"A problem's {name} must not be negative. Got {getattr(self, name)}."
                )
        if self.noise + self.heterogeneity + self.distance == 0:
            raise InputError(
                "A problem needs some noise, heterogeneity or distance: there is no gap to close."
            )

    @classmethod
    def from_ratio(cls, noise_ratio: float) -> Problem:
        """A problem of which only sigma^2 / (2 L Gamma) is known, noise against heterogeneity.

        All else is set to 1, and the start to the optimum: rounds and times to a small gap are then
        right up to a factor, which no comparison of deadlines and quorums sees.
        """
        if not 0 <= noise_ratio < np.inf:
            raise InputError(
                f"The noise ratio must be a number from 0 up. Got {noise_ratio}: "
                "it is the gradient noise divided by the clients' heterogeneity."
            )
        return cls(smoothness=1.0, convexity=1.0, noise=noise_ratio, heterogeneity=0.5)


@dataclass(frozen=True)
class Variance:
    """What an average of n reports has of the clients' variance, in expectation over a round.

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
        """The factors of a setting; a target cuts n to the first K reports."""
        noise = setting.turnout.inverse_reports
        if setting.target_turnout is not None:
            noise += (
                setting.target_turnout.success / setting.target_turnout.quorum
                - setting.target_turnout.inverse_reports
            )
        return cls.from_noise(setting.turnout.success, noise, setting.clients)

    @classmethod
    def from_noise(cls, success: Floats | float, noise: Floats | float, clients: int) -> Variance:
        """The sampling factor follows from the other two: (N e_M - Q) / (N - 1)."""
        excess = np.maximum(clients * np.asarray(noise) - success, 0.0)
        return cls(success, noise, excess / max(clients - 1, 1))

    @classmethod
    def from_age(cls, age: float, deadline: float, clients: int) -> Variance:
        """How age enters the corrected bound (M = 1, N p >> 1): by the variance, not the rate.

        e ~ (age/T - 1/2) / N and c ~ (age/T - 3/2) / N.
        """
        return cls(1.0, (age / deadline - 0.5) / clients, (age / deadline - 1.5) / clients)


def bound_as_printed(
    problem: Problem, clients: int, rate: float, quorum: int, deadline: float, rounds: ArrayLike
) -> Floats:
    """Theorem 3, letter by letter.

    L / (2L + S~ N mu t) x ((4 L Gamma + 2 sigma^2 / M) / mu + (L + N mu S~) eps_1).
    """
    share = mean_share_as_printed(clients, rate, quorum, deadline)
    smooth, mu, t = problem.smoothness, problem.convexity, np.asarray(rounds, dtype=float)
    noise = (4 * smooth * problem.heterogeneity + 2 * problem.noise / quorum) / mu
    start = (smooth + clients * mu * share) * problem.distance
    return np.asarray(smooth / (2 * smooth + share * clients * mu * t) * (noise + start))


def learning_rate_as_printed(
    problem: Problem, clients: int, rate: float, quorum: int, deadline: float
) -> LearningRate:
    """The schedule Theorem 3 needs: beta = 2/A, gamma = 2L/A + 1, A = S~ N mu (appendix)."""
    a = mean_share_as_printed(clients, rate, quorum, deadline) * clients * problem.convexity
    return LearningRate(2 / a, 2 * problem.smoothness / a + 1)


def bound_by_age_as_printed(
    problem: Problem, quorum: int, deadline: float, age: float, rounds: ArrayLike
) -> Floats:
    """Corollary 3 (eq. 16), with p Pr(n~ >= M-1) = T / (age - T/2) as Theorem 2 has it."""
    smooth, mu, t = problem.smoothness, problem.convexity, np.asarray(rounds, dtype=float)
    chance = deadline / (age - deadline / 2)
    constant = (
        4 * smooth * problem.heterogeneity
        + 2 * problem.noise / quorum
        + smooth * mu * problem.distance
    )
    first = max(smooth / mu, 1.0) * constant / (chance * mu * t)
    return np.asarray(first + smooth * mu * problem.distance / (mu * t))


def learning_rate(problem: Problem, variance: Variance, *, slack: bool = False) -> LearningRate:
    """The schedule the corrected theorem needs: beta = 2/A, gamma = 2L/A + 1, A = mu Q.

    With ``slack``, gamma = 2L (1 + c/Q)/A + 1: see :func:`bound`.
    """
    if not float(variance.success) > 0:
        raise InputError("There is no learning rate for rounds that never succeed: Q is 0.")
    a, loss, _ = _parts(problem, variance, slack=slack)
    return LearningRate(float(2 / a), float(2 * problem.smoothness * loss / a + 1))


def bound(
    problem: Problem, variance: Variance, rounds: ArrayLike, *, slack: bool = False
) -> Floats:
    """The corrected Theorem 3, after so many rounds, failed ones included.

    L / (2L + A (t+1)) x (2 B'/A + (L + A) eps_1), with A = mu Q and
    B' = 2 L Gamma c_M + sigma^2 e_M: never above the printed bound.

    The clients' variance V is the mean of ||grad F_k||^2 less ||grad F||^2, so
    V <= 2L (F - F* + Gamma) - ||grad F||^2. A proof that drops the last term pays for it by a
    factor 1 + c/Q on L; ``slack`` gives that form.
    """
    a, loss, constant = _parts(problem, variance, slack=slack)
    reached = 2 * problem.smoothness * loss + a * (np.asarray(rounds) + 1)
    return np.where(a > 0, problem.smoothness * constant / reached, np.inf)


def rounds_to_gap(problem: Problem, variance: Variance, gap: float) -> Floats:
    """After how many rounds (a real number) the corrected bound falls to ``gap``.

    At least the 1/Q rounds that one update takes: before it nothing is learned, whatever a bound
    that starts at the optimum may say.
    """
    a, loss, constant = _parts(problem, variance, slack=False)
    with np.errstate(divide="ignore", invalid="ignore"):
        rounds = problem.smoothness * (constant / gap - 2 * loss) / a - 1
        first = 1.0 / np.asarray(variance.success)
    return np.where((a > 0) & (gap > 0), np.maximum(rounds, first), np.inf)


def _parts(problem: Problem, variance: Variance, *, slack: bool) -> tuple[Floats, Floats, Floats]:
    """A, the factor on L, and 2B'/A + (factor L + A) eps_1 of the corrected theorem."""
    success, sampling = np.asarray(variance.success), np.asarray(variance.sampling)
    a = problem.convexity * success
    heterogeneity = 2 * problem.smoothness * problem.heterogeneity * sampling
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = 1 + sampling / success if slack else np.ones_like(success, dtype=float)
        noise = heterogeneity + problem.noise * np.asarray(variance.noise)
        constant = 2 * noise / a + (problem.smoothness * loss + a) * problem.distance
    return a, loss, constant
