"""Measure the constants of a task that the convergence bounds of ``cafe.theory`` need.

The paper's objective (eq. 1) is F = mean of F_k, where F_k is s_k times the mean loss of client k
and s_k = N n_k / sum of n. So F is the mean loss over all examples that clients hold. All constants
are those of these F_k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.data.examples import Examples, Rows, Shards
from cafe.errors import InputError, check_flag, check_progress, check_type, check_whole, shorten
from cafe.latency.base import Floats, to_floats
from cafe.learn.base import Learner, Model
from cafe.learn.convex import Convex, Spread
from cafe.learn.threads import one_blas_thread
from cafe.progress import ProgressCallback
from cafe.task import Task
from cafe.theory import Problem


@dataclass(frozen=True, eq=False)
class GradientStatistics:
    """How the gradients of the clients differ at one model.

    Attributes:
        noises: for each client, the variance of its batch gradient around its full gradient.
        dissimilarity: V, the mean of ||grad F_k - grad F||^2.
        steepness: ||grad F||^2.
    """

    noises: Floats
    dissimilarity: float
    steepness: float

    @property
    def noise(self) -> float:
        """The largest of the noises, as Assumption 3 requires."""
        return float(self.noises.max())

    @property
    def mean_noise(self) -> float:
        """The mean of the noises, which is the noise of an average of reports."""
        return float(self.noises.mean())


@dataclass(frozen=True, eq=False)
class TaskConstants:
    """The constants of Assumptions 1-4 for a task.

    Attributes:
        smoothness: L, the largest of all clients. Exact for quadratics and ridge regression, an
            upper bound for logistic regression.
        convexity: mu, the smallest of all clients.
        model: w*.
        optimum: F*.
        optima: F_k* of every client.
        start: the gradients at the initial model.
        end: the gradients at w*.
        distance: epsilon_1, the squared distance of the initial model to w*.
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
        """Gamma = F* - mean of F_k*, at least 0 even after rounding."""
        return max(self.optimum - float(self.optima.mean()), 0.0)

    @property
    def noise(self) -> float:
        """sigma^2: the largest noise of a client, at the initial model or at w*.

        The assumption requires a bound over all models. For quadratics, the noise is the same at
        all models. For ridge regression there is no such bound, but the noise is a convex function
        of the model: between the initial model and w* it is at most the larger of both ends.
        Elsewhere it may be larger.
        """
        return max(self.start.noise, self.end.noise)

    def problem(self) -> Problem:
        """The constants in the form that the bounds of ``cafe.theory`` take."""
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
    progress: ProgressCallback | None = None,
) -> TaskConstants:
    """The constants of a convex task. Computes the minimum of each client and of all together.

    Args:
        task: a task whose learner has ``curvature`` and ``minimum``, such as ``Ridge`` or
            ``Logistic``.
        start: the initial model; by default that of the learner.
        scaled: whether a client's weight is its number of examples, as in the paper, or equal.
        progress: called with the fraction of the work that is done.

    Example:
        >>> import cafe, numpy as np
        >>> from cafe.learn.quadratic import Quadratic
        >>> points = cafe.data.Examples([[0.0], [2.0], [4.0], [6.0]], [0.0] * 4)
        >>> shards = cafe.data.Shards.of([[0, 1], [2, 3]])
        >>> found = cafe.measure(cafe.Task(points, shards, Quadratic(1), batch=1))
        >>> found.model.tolist(), found.heterogeneity, found.noise
        ([3.0], 2.0, 1.0)
    """
    _check(task, scaled, progress)
    learner, data, shards = task.learner, task.data, task.shards
    if not isinstance(learner, Convex):
        raise InputError(
            "The task must have a convex learner, such as Ridge or Logistic. Got "
            f"{type(learner).__name__}, whose minimum and curvature are not known. Use "
            "cafe.task_constants.measure_at for noise and dissimilarity at a single model."
        )
    first = learner.save(learner.start(np.random.default_rng(0)))
    if start is not None:
        first = _as_model(start, first)
    # The fast part comes first: it detects wrong arguments.
    begin = measure_at(task, first, scaled=scaled)
    scales, counts = _scales(shards, scaled=scaled), shards.counts
    report = _ProgressReport(progress, 2 * len(shards.rows))
    weight = np.repeat(scales / (len(shards) * counts), counts)
    optima, low, high = np.empty(len(shards)), np.inf, 0.0
    with one_blas_thread():  # the matrices of a client are too small for several threads
        best = learner.minimum(data, shards.rows, weight)
        report.add(len(shards.rows))
        for client, scale in enumerate(scales):
            rows = shards[client]
            even = np.full(len(rows), 1 / len(rows))
            optima[client] = scale * learner.minimum(data, rows, even).loss
            curvature = learner.curvature(data, rows)
            low = min(low, scale * curvature.convexity)
            high = max(high, scale * curvature.smoothness)
            report.add(len(rows))

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
    progress: ProgressCallback | None = None,
) -> GradientStatistics:
    """Noise and dissimilarity of the gradients at one model, for any learner.

    The noise is that of the task's batches, which are drawn with replacement; a client that uses
    all its examples has none. For convex learners it is exact. For others, the noise of each client
    is estimated from the gradients of ``probes`` of its examples, and exact if it holds no more.
    The estimates are unbiased, but the largest of many tends to be too large.

    Args:
        task: any task.
        model: where to measure.
        scaled: whether a client's weight is its number of examples, see :func:`measure`.
        probes: the number of examples per client for the estimate.
        seed: for the choice of these examples.
        progress: called with the fraction of the work that is done.

    Example:
        >>> import cafe, numpy as np
        >>> from cafe.learn.quadratic import Quadratic
        >>> from cafe.task_constants import measure_at
        >>> points = cafe.data.Examples([[0.0], [2.0], [4.0], [6.0]], [0.0] * 4)
        >>> task = cafe.Task(points, cafe.data.Shards.of([[0, 1], [2, 3]]), Quadratic(1), batch=1)
        >>> found = measure_at(task, np.zeros(1, np.float32))
        >>> found.noise, found.dissimilarity, found.steepness
        (1.0, 4.0, 9.0)
    """
    _check(task, scaled, progress)
    check_whole("probes", probes)
    learner, data, shards = task.learner, task.data, task.shards
    rng, report = np.random.default_rng(seed), _ProgressReport(progress, len(shards.rows))
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
        # Welford's recursion: for equal clients the dissimilarity is exactly 0.
        away = scale * found.gradient - mean
        mean = mean + away / (client + 1)
        apart += float(np.sum(away * (scale * found.gradient - mean)))
        report.add(len(rows))
    return GradientStatistics(noises, apart / len(shards), float(np.sum(mean**2)))


def _check(task: Task, scaled: bool, progress: ProgressCallback | None) -> None:
    check_type("task", task, Task, "a cafe.Task")
    check_flag("scaled", scaled)
    check_progress(progress)


def _as_model(given: Model, like: Model) -> Model:
    """The given model as an array; raise an error unless it has the shape of another one."""
    model = to_floats(given)
    if model is None or model.shape != np.shape(like) or not np.isfinite(model).all():
        raise InputError(
            f"start must be a model of the learner: {np.size(like)} finite numbers in a flat "
            f"array, or None. Got {shorten(given)}."
        )
    return model.astype(np.float32)


def _probe(
    learner: Learner,
    model: Model,
    data: Examples,
    rows: Rows,
    probes: int,
    rng: np.random.Generator,
) -> Spread:
    """The mean gradient of the rows, and the mean squared distance of some gradients from it."""

    def gradient(chosen: Rows) -> Floats:
        even = np.full(len(chosen), 1 / len(chosen), dtype=np.float32)
        return learner.save(learner.gradient(model, data, chosen, even)).astype(np.float64)

    mean = gradient(rows)
    tried = rows if len(rows) <= probes else rng.choice(rows, probes, replace=False)
    squares = [float(np.sum((gradient(tried[i : i + 1]) - mean) ** 2)) for i in range(len(tried))]
    return Spread(mean, float(np.mean(squares)) if squares else 0.0)


def _scales(shards: Shards, *, scaled: bool) -> Floats:
    """The factor of each client's mean loss: N n_k / sum of n."""
    if not scaled:
        return np.ones(len(shards))
    return np.asarray(shards.counts * (len(shards) / len(shards.rows)))


class _ProgressReport:
    """Calls ``progress`` with the fraction of the work that is done."""

    def __init__(self, progress: ProgressCallback | None, work: int) -> None:
        self._progress, self._work, self._done = progress, work, 0

    def add(self, work: int) -> None:
        self._done += work
        if self._progress is not None:
            self._progress(self._done / self._work)
