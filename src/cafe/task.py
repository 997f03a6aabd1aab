"""A task: examples, their distribution over clients, a learner and its learning rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples, Shards
from cafe.errors import (
    InputError,
    check_choice,
    check_positive,
    check_type,
    check_whole,
    is_finite_number,
    shorten,
)
from cafe.federation import Indices
from cafe.keywords import explain_keywords
from cafe.latency.base import Floats
from cafe.learn.base import Learner, Model
from cafe.learn.server_optimisers import ServerOptimiser

Rate = float | Callable[[Any], Any]


@explain_keywords
@dataclass(frozen=True, eq=False)
class Task:
    """What is learned, from which examples, and with which learning rate.

    Attributes:
        data: all training examples.
        shards: which of them each client holds.
        learner: the model and its loss.
        test: the examples on which accuracy and loss are measured; None: those of the clients.
        batch: the number of examples in a step, drawn with replacement from the client's own. A
            client with no more examples than that uses all of them. None: every client uses all.
        rate: the learning rate, or a function of t = 1, 2, ... such as
            ``cafe.learn.schedules.LearningRate(beta, gamma)``, which is beta / (gamma + t).
        per: what t counts: every "round", including failed ones, or every "update".
        server: the server optimiser; None adds the merged update to the model.

    Example:
        >>> import cafe, numpy as np
        >>> from cafe.learn.linear import Logistic
        >>> digits = cafe.data.load("digits")
        >>> shards = cafe.data.IID()(digits.train.y, 20, np.random.default_rng(0))
        >>> task = cafe.Task(digits.train, shards, Logistic(64, 10, l2=0.01), test=digits.test)
        >>> task.clients, round(task.objective(np.zeros(650, np.float32)), 3)
        (20, 2.303)
    """

    data: Examples
    shards: Shards
    learner: Learner
    test: Examples | None = None
    batch: int | None = 32
    rate: Rate = 0.1
    per: Literal["round", "update"] = "round"
    server: ServerOptimiser | None = None

    def __post_init__(self) -> None:
        self._check_parts()
        if self.batch is not None:
            object.__setattr__(self, "batch", check_whole("A batch", self.batch))
        check_choice("per", self.per, ["round", "update"])
        if not callable(self.rate):
            object.__setattr__(self, "rate", check_positive("The learning rate", self.rate))
        rows = self.shards.rows
        wrong = rows[(rows < 0) | (rows >= len(self.data))]
        if wrong.size:
            raise InputError(
                f"The rows of the shards must be from 0 to {len(self.data) - 1}. "
                f"Got {wrong[0]}: the shards were made for other examples."
            )

    def _check_parts(self) -> None:
        """Raise an error for a part of the wrong type."""
        wanted = "cafe.data.Examples(x, y)"
        check_type("data", self.data, Examples, wanted)
        if self.test is not None:
            check_type("test", self.test, Examples, f"{wanted}, or None")
        shards: Any = self.shards
        if not isinstance(shards, Shards):
            hint = ". Shards.of(shards) makes them from a list with the rows of each client"
            raise InputError(
                f"shards must be cafe.data.Shards, as a partition such as cafe.data.IID() makes "
                f"them. Got {shorten(shards)}{hint if isinstance(shards, list | tuple) else ''}."
            )
        _check_method("learner", self.learner, "gradient", "Logistic(64, 10, l2=0.01)")
        if self.server is not None:
            _check_method("server", self.server, "step", "Momentum(), or None")

    @property
    def clients(self) -> int:
        """The number of clients."""
        return len(self.shards)

    @cached_property
    def scale(self) -> Floats:
        """The factor of each client's objective (eq. 1): N times its fraction of all examples."""
        counts = self.shards.counts
        return np.asarray(counts * (len(counts) / counts.sum()))

    @cached_property
    def held(self) -> Examples:
        """All examples that clients hold, with repetitions: F is their mean loss."""
        return self.data.take(self.shards.rows)

    def epoch_steps(self, clients: Indices) -> NDArray[np.int64]:
        """The number of steps in one pass over the examples of each of these clients."""
        counts = self.shards.counts[clients]
        if self.batch is None:
            return np.ones(len(clients), dtype=np.int64)
        return np.maximum(-(-counts // self.batch), 1)

    def rate_at(self, round_: int, version: int) -> float:
        """The learning rate in a round.

        Args:
            round_: the number of the round, from 0.
            version: the number of updates before the round.
        """
        if not callable(self.rate):
            return float(self.rate)
        place = 1 + (round_ if self.per == "round" else version)
        given = self.rate(place)
        rate = given.item() if isinstance(given, np.ndarray) and given.ndim == 0 else given
        if not is_finite_number(rate) or rate < 0:
            raise InputError(f"rate({place}) must be a number, 0 or more. Got {rate!r}.")
        return float(rate)

    def objective(self, model: Model) -> float:
        """F(w), the mean loss over all examples that clients hold."""
        return self.learner.score(model, self.held).loss


def _check_method(what: str, given: object, method: str, example: str) -> None:
    """Raise an error unless an object has this method."""
    if isinstance(given, type) or not callable(getattr(given, method, None)):
        raise InputError(
            f"{what} must be an object with the method {method}, such as {example}. "
            f"Got {shorten(given)}."
        )
