"""The constants of a real task, so that bounds can be drawn for it.

The paper's objective (eq. 1) is F = mean of F_k, where F_k is s_k times client k's mean loss and
s_k = N n_k / sum of n: F is the mean loss over all examples held. Everything here is of these F_k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cafe.data.examples import Examples, Rows, Shards
from cafe.errors import InputError
from cafe.latency.base import Floats
from cafe.learn.base import Learner, Model
from cafe.learn.convex import Convex, Spread
from cafe.learn.threads import one_blas_thread
from cafe.task import Task
from cafe.theory import Problem

Progress = Callable[[float], object]


@dataclass(frozen=True, eq=False)
class GradientStatistics:
    """How the clients' gradients differ at one model.

    Attributes:
        noises: the variance of each client's batch gradient around its own gradient.
        dissimilarity: V, the mean of ||grad F_k - grad F||^2.
        steepness: ||grad F||^2.
    """

    noises: Floats
    dissimilarity: float
    steepness: float

    @property
    def noise(self) -> float:
        """The noisiest client's, which is what Assumption 3 asks for."""
        return float(self.noises.max())

    @property
    def mean_noise(self) -> float:
        """The clients' mean, which is what an average of their reports has."""
        return float(self.noises.mean())


@dataclass(frozen=True, eq=False)
class TaskConstants:
    """The constants of Assumptions 1-4 for a learner, its data and who holds which of it.

    Attributes:
        smoothness: L, the largest of the clients'. Exact for quadratics and ridge regression, an
            upper bound for logistic regression.
        convexity: mu, the smallest of the clients'.
        model: w*.
        optimum: F*.
        optima: every client's F_k*.
        start: the gradients at the start.
        end: the gradients at w*.
        distance: epsilon_1, the squared distance of the start to w*.
    """

    smoothness: float
    convexity: float
    model: Floats
    optimum: float
    optima: Floats
    start: GradientStatistics
    end: GradientStatistics
    distance: float

    @property
    def heterogeneity(self) -> float:
        """Gamma = F* - mean of F_k*. Rounding may not make it negative."""
        return max(self.optimum - float(self.optima.mean()), 0.0)

    @property
    def noise(self) -> float:
        """sigma^2: the noisiest client's, at the start or at w*, whichever is larger.

        The assumption wants a bound over all models. Quadratics have one, the same everywhere.
        Ridge regression has none, but its noise is a convex function of the model: no model on the
        straight way from start to w* is noisier than both ends. A run that strays may meet more.
        """
        return max(self.start.noise, self.end.noise)

    def problem(self) -> Problem:
        """What the bounds of ``cafe.theory`` take."""
        return Problem(
            smoothness=self.smoothness,
            convexity=self.convexity,
            noise=self.noise,
            heterogeneity=self.heterogeneity,
            distance=self.distance,
        )


def measure(
    task: Task,
    *,
    start: Model | None = None,
    scaled: bool = True,
    progress: Progress | None = None,
) -> TaskConstants:
    """The constants of a convex task. Takes an optimum per client and one for all.

    Args:
        task: one whose learner has a ``curvature`` and a ``minimum``, such as ``Ridge`` or
            ``Logistic``.
        start: the model that training starts from; left out, the learner's own.
        scaled: whether a client counts by its examples, as in the paper, or as much as any other.
        progress: called now and then with the share that is done.
    """
    learner, data, shards = task.learner, task.data, task.shards
    if not isinstance(learner, Convex):
        raise InputError(
            "A bound needs a convex learner, such as Ridge or Logistic. "
            f"Got {type(learner).__name__}, whose minimum and curvature are not known: "
            "cafe.task_constants.measure_at gives its noise and dissimilarity at a model."
        )
    first = learner.save(learner.start(np.random.default_rng(0)) if start is None else start)
    # The quick part comes first: it finds what is wrong with the arguments.
    begin = measure_at(task, first, scaled=scaled)
    scales, counts = _scales(shards, scaled=scaled), shards.counts
    tell = _Teller(progress, 2 * len(shards.rows))
    weight = np.repeat(scales / (len(shards) * counts), counts)
    optima, low, high = np.empty(len(shards)), np.inf, 0.0
    with one_blas_thread():  # a client's matrices are small: threads cost more than they bring
        best = learner.minimum(data, shards.rows, weight)
        tell.done(len(shards.rows))
        for client, scale in enumerate(scales):
            rows = shards[client]
            even = np.full(len(rows), 1 / len(rows))
            optima[client] = scale * learner.minimum(data, rows, even).loss
            curvature = learner.curvature(data, rows)
            low = min(low, scale * curvature.convexity)
            high = max(high, scale * curvature.smoothness)
            tell.done(len(rows))

    return TaskConstants(
        smoothness=float(high),
        convexity=float(low),
        model=best.model,
        optimum=best.loss,
        optima=optima,
        start=begin,
        end=measure_at(task, best.model, scaled=scaled),
        distance=float(np.sum((first - best.model) ** 2)),
    )


def measure_at(
    task: Task,
    model: Model,
    *,
    scaled: bool = True,
    probes: int = 64,
    seed: int = 0,
    progress: Progress | None = None,
) -> GradientStatistics:
    """Noise and dissimilarity at one model, of any learner.

    The noise is that of the task's batches: drawn with replacement, and none for a client that uses
    all its examples. Exact where the learner knows the spread of its gradients. Else each client's
    is estimated from ``probes`` of its examples (exact where it holds no more), one gradient each:
    without bias, but the largest of many estimates tends to be too large.

    Args:
        task: any.
        model: where to measure.
        scaled: whether a client counts by its examples, see :func:`measure`.
        probes: how many examples to try.
        seed: for the choice of them.
        progress: called now and then with the share that is done.
    """
    if probes < 1:
        raise InputError(f"probes must be at least 1. Got {probes}: no gradient has no examples.")
    learner, data, shards = task.learner, task.data, task.shards
    rng, tell = np.random.default_rng(seed), _Teller(progress, len(shards.rows))
    noises, apart, mean = np.zeros(len(shards)), 0.0, np.zeros(1)
    for client, scale in enumerate(_scales(shards, scaled=scaled)):
        rows = shards[client]
        noisy = task.batch is not None and len(rows) > task.batch
        with one_blas_thread():
            if isinstance(learner, Convex):
                found = learner.spread(model, data, rows)
            else:
                found = _probe(learner, model, data, rows, probes if noisy else 0, rng)
        if task.batch is not None and noisy:
            noises[client] = scale**2 * found.variance / task.batch
        # Welford's recursion: equal clients are then equal to the last digit.
        away = scale * found.gradient - mean
        mean = mean + away / (client + 1)
        apart += float(np.sum(away * (scale * found.gradient - mean)))
        tell.done(len(rows))
    return GradientStatistics(noises, apart / len(shards), float(np.sum(mean**2)))


def _probe(
    learner: Learner,
    model: Model,
    data: Examples,
    rows: Rows,
    probes: int,
    rng: np.random.Generator,
) -> Spread:
    """The mean gradient of the rows, and the mean squared distance of some of theirs from it."""

    def gradient(chosen: Rows) -> Floats:
        even = np.full(len(chosen), 1 / len(chosen), dtype=np.float32)
        return learner.save(learner.gradient(model, data, chosen, even)).astype(np.float64)

    mean = gradient(rows)
    tried = rows if len(rows) <= probes else rng.choice(rows, probes, replace=False)
    squares = [float(np.sum((gradient(tried[i : i + 1]) - mean) ** 2)) for i in range(len(tried))]
    return Spread(mean, float(np.mean(squares)) if squares else 0.0)


def _scales(shards: Shards, *, scaled: bool) -> Floats:
    """What each client's mean loss is multiplied by: N n_k / sum of n."""
    if not scaled:
        return np.ones(len(shards))
    return np.asarray(shards.counts * (len(shards) / len(shards.rows)))


class _Teller:
    """Turns work done into shares for whoever wants to know."""

    def __init__(self, progress: Progress | None, work: int) -> None:
        self._progress, self._work, self._so_far = progress, work, 0

    def done(self, work: int) -> None:
        self._so_far += work
        if self._progress is not None:
            self._progress(self._so_far / self._work)
