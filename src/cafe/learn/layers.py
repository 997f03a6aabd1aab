"""The layers of a multilayer perceptron, and the passes through them.

Everything is done for (clients, steps, batch) examples, all at once or one step of all the clients,
with the same weights for every client or with weights of their own: a matrix product takes stacks
of matrices. A plain gradient is one client's one step.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Rows
from cafe.learn.threads import Floats, scratch

Widths = tuple[int, ...]  # of the input, the hidden layers and the output
Labels = NDArray[np.int64]


class Layer(NamedTuple):
    """Views of a model, or of a stack of models: weights (outputs x inputs) and biases.

    Outputs come first as in torch; the products of a large batch are a few per cent faster so.
    """

    weight: Floats
    bias: Floats


def parameters(widths: Widths) -> int:
    """How many numbers a model has."""
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))


def layers(model: Floats, widths: Widths) -> list[Layer]:
    """The layers of a model, a flat vector; or of many, a row each."""
    found, end = [], 0
    for inputs, outputs in pairwise(widths):
        start, end = end, end + (inputs + 1) * outputs
        weight = model[..., start : end - outputs].reshape(*model.shape[:-1], outputs, inputs)
        found.append(Layer(weight, model[..., end - outputs : end]))
    return found


def turned(matrix: Floats) -> Floats:
    """The transpose of a matrix, or of each in a stack."""
    return matrix.swapaxes(-1, -2)


def gather(back: Floats, inputs: Floats, out: Layer) -> None:
    """Write the first layer's gradient: the sum over rows of what came back times what went in.

    The rows are those of all clients, or of each where ``out`` is a stack of layers.
    """
    many = out.bias.shape[:-1]
    back = back.reshape(*many, -1, back.shape[-1])
    np.matmul(turned(back), inputs.reshape(*many, -1, inputs.shape[-1]), out=out.weight)
    np.matmul(np.ones(back.shape[-2], np.float32), back, out=out.bias)


class Tape:
    """What goes into the layers and what comes back, for (clients, steps, batch) examples.

    The first layer's numbers lie in memory example by example, as they do in ``x``: all examples
    are one matrix then. Above it a step of a client is a matrix of its own, and lies there unit by
    unit: most of its products are faster so, and sums over a short last axis are slow in NumPy.

    Attributes:
        x: what goes into the first layer, a number per example and unit.
        sums: what the first layer makes of it before the ReLU; after :meth:`forward` with the ReLU.
        back: the derivative of the weighted loss by these sums.
    """

    def __init__(self, x: Floats, labels: Labels, widths: Widths) -> None:
        self.x, self._labels = x, labels
        self._right = labels * labels.size + np.arange(labels.size).reshape(labels.shape)
        self._odds = scratch("odds", widths[-1], *labels.shape)

        def by_unit(name: str, dtype: type = np.float32) -> list[NDArray[Any]]:
            """For each hidden layer the units x examples of every step of every client."""
            clients, steps, batch = labels.shape
            found = [
                scratch(f"{name} {i}", clients, steps, width, batch, dtype=dtype)
                for i, width in enumerate(widths[1:-1])
            ]
            return [turned(first.reshape(*labels.shape, -1)) for first in found[:1]] + found[1:]

        last = self._odds.transpose(1, 2, 0, 3)
        self._sums, self._back = [*by_unit("sums"), last], [*by_unit("back"), last]
        self._on = by_unit("on", bool)  # which of the sums are positive
        self.sums, self.back = turned(self._sums[0]), turned(self._back[0])

    def enter(self, first: Layer) -> None:
        """Pass the examples of all steps through the first layer."""
        many = first.bias.shape[:-1]
        x, sums = (a.reshape(*many, -1, a.shape[-1]) for a in (self.x, self.sums))
        np.matmul(x, turned(first.weight), out=sums)
        sums += first.bias[..., None, :]

    def forward(self, step: int, upper: list[Layer]) -> None:
        """Go from the first layer's sums to the last layer's."""
        for i, layer in enumerate(upper):
            inputs, on, sums = (a[:, step] for a in (self._sums[i], self._on[i], self._sums[i + 1]))
            np.greater(inputs, 0.0, out=on)  # the way back needs it too; and faster than maximum
            inputs *= on
            np.matmul(layer.weight, inputs, out=sums)
            sums += layer.bias[..., None]

    def backward(
        self, step: int, upper: list[Layer], weight: Floats, gradient: list[Layer]
    ) -> None:
        """Go back from the last layer's sums, each example's loss times its weight.

        Writes the upper layers' gradients on the way, while what they are made of is in the cache.
        """
        odds = self._odds[:, :, step]
        odds -= odds.max(axis=0)
        np.exp(odds, out=odds)
        odds *= weight / odds.sum(axis=0)
        self._odds.reshape(-1)[self._right[:, step]] -= weight
        ones = np.ones(weight.shape[-1], np.float32)
        for i in range(len(upper), 0, -1):
            back, below, inputs = (
                a[:, step] for a in (self._back[i], self._back[i - 1], self._sums[i - 1])
            )
            np.matmul(back, turned(inputs), out=gradient[i - 1].weight)
            np.matmul(back, ones, out=gradient[i - 1].bias)
            np.matmul(turned(upper[i - 1].weight), back, out=below)
            below *= self._on[i - 1][:, step]

    def losses(self) -> Floats:
        """The cross entropy of every example, after :meth:`forward`."""
        top = self._odds.max(axis=0)
        loss: Floats = np.log(np.exp(self._odds - top).sum(axis=0))
        loss += top - self._odds.reshape(-1)[self._right]
        return loss

    def hits(self) -> NDArray[np.bool_]:
        """Which examples have their label's sum the largest, after :meth:`forward`."""
        return np.asarray(self._odds.argmax(axis=0) == self._labels)


def read(x: Floats, rows: Rows, labels: Labels, widths: Widths) -> Tape:
    """A tape of the examples at ``rows``, of shape (clients, steps, batch)."""
    chosen = scratch("x", *rows.shape, widths[0])
    # Unlike "raise", "clip" copies rows straight to their place; callers have checked them.
    np.take(x, rows.ravel(), axis=0, out=chosen.reshape(-1, widths[0]), mode="clip")
    return Tape(chosen, labels, widths)
