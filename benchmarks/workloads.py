"""The workloads of all contestants. They need only NumPy, which all peers' environments have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import exp

import numpy as np
from numpy.typing import NDArray

Data = tuple[NDArray[np.float32], NDArray[np.int64]]

CHANNELS, KERNEL = (16, 32), 5  # of the two convolutions
EMBEDDING, UNITS = 8, 64  # of the text model
RATE = 0.01  # learning rate: small, so that no model diverges and no denormal numbers appear


@dataclass(frozen=True)
class Workload:
    """Rounds of a federation in which all clients have the same probability to report in time.

    Attributes:
        name: the name in tables.
        clients: the paper's N.
        steps: local gradient steps before a report.
        deadline: the paper's T; latencies are exponential with rate 1.
        batch: examples in a step.
        widths: of the perceptron's input, hidden layers and output; other networks have only an
            input and an output.
        examples: the total number of examples; every client holds the same number.
        network: "perceptron"; "cnn", two convolutions and a linear layer on images of 28 by 28; or
            "lstm", the next character after a line of characters.
    """

    name: str
    clients: int
    steps: int = 1
    deadline: float = 0.5
    batch: int = 32
    widths: tuple[int, ...] = (784, 200, 100, 50, 10)
    examples: int = 60_000
    network: str = "perceptron"

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))  # JSON has only lists

    @property
    def reports(self) -> float:
        """The mean number of clients that report in a round."""
        return self.clients * (1.0 - exp(-self.deadline))

    @property
    def cohort(self) -> int:
        """The mean number of reports, rounded, for simulators with a fixed cohort."""
        return max(round(self.reports), 1)

    @property
    def held(self) -> int:
        """The number of examples of each client."""
        return self.examples // self.clients

    @property
    def flops(self) -> float:
        """Floating-point operations in a round's matrix products, as a textbook counts them.

        Forward, the weights' gradients, and the gradients of inputs that depend on parameters.
        """
        rows = self.reports * self.steps * self.batch
        products = self._products()
        fixed_inputs = products[0] if self.network != "lstm" else 0
        return 2.0 * rows * (3 * sum(products) - fixed_inputs)

    def _products(self) -> list[int]:
        """Multiplications in each layer, for one example."""
        if self.network == "cnn":
            first, second = 28**2 * CHANNELS[0], 14**2 * CHANNELS[1]
            taps = KERNEL**2
            return [first * taps, second * taps * CHANNELS[0], 7**2 * CHANNELS[1] * 10]
        if self.network == "lstm":
            return [self.widths[0] * 4 * UNITS * (EMBEDDING + UNITS), UNITS * self.widths[1]]
        return [inputs * outputs for inputs, outputs in pairwise(self.widths)]

    def data(self) -> Data:
        """Random inputs with cyclic classes; client k holds the k-th part."""
        inputs, *_, classes = self.widths
        return _data(self.examples, inputs, classes, letters=self.network == "lstm")

    def part(self, client: int) -> slice:
        """The slice of examples that a client holds."""
        return slice(client * self.held, (client + 1) * self.held)


WORKLOADS = (
    Workload("W1: 100 clients, 1 step", 100),
    Workload("W2: 100 clients, 5 steps", 100, steps=5),
    Workload("W3: 1000 clients, 1 step", 1000),
)
NETWORKS = (
    Workload("W4: CNN, 1 step", 100, widths=(784, 10), network="cnn"),
    Workload("W5: CNN, 5 steps", 100, steps=5, widths=(784, 10), network="cnn"),
    Workload("W6: LSTM, 5 steps", 100, steps=5, widths=(20, 64), network="lstm"),
)


@cache
def _data(examples: int, inputs: int, classes: int, letters: bool) -> Data:
    x = np.random.default_rng(0).random((examples, inputs), dtype=np.float32)
    return np.floor(x * classes) if letters else x, np.arange(examples) % classes
