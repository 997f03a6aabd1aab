"""The layers of a multilayer perceptron, and the passes through them.

Everything is done for (clients, steps, batch) examples, all at once or one step of all the clients,
with the same weights for every client or with weights of their own: a matrix product takes stacks
of matrices. A plain gradient is one client's one step.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

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


def apply(layer: Layer, inputs: Floats, out: Floats) -> None:
    """Write what a layer makes of its inputs, before the ReLU."""
    np.matmul(inputs, turned(layer.weight), out=out)
    out += layer.bias[..., None, :]


def gather(back: Floats, inputs: Floats, out: Layer) -> None:
    """Write a layer's gradient: the sum over rows of what came back times what went in.

    The rows are those of all clients, or of each where ``out`` is a stack of layers.
    """
    rows = (*out.bias.shape[:-1], -1)
    back, inputs = (a.reshape(*rows, a.shape[-1]) for a in (back, inputs))
    np.matmul(turned(back), inputs, out=out.weight)
    np.matmul(np.ones(back.shape[-2], np.float32), back, out=out.bias)


class Tape:
    """What goes into the layers and what comes back, for (clients, steps, batch) examples.

    Attributes:
        inputs: what each layer takes in, a number per example and unit.
        sums: what each layer makes of it before the ReLU, in the place of the next layer's inputs.
        back: the derivative of the weighted loss by each layer's sums.
    """

    def __init__(self, x: Floats, labels: Labels, widths: Widths) -> None:
        shape, hidden = labels.shape, widths[1:-1]
        above = [scratch(f"inputs {i}", *shape, width) for i, width in enumerate(hidden)]
        self.back = [scratch(f"back {i}", *shape, width) for i, width in enumerate(hidden)]
        self._on = [scratch(f"on {i}", *shape, width, dtype=bool) for i, width in enumerate(hidden)]
        # Classes come first in memory: NumPy is slow at sums over a short last axis.
        self._odds = scratch("odds", widths[-1], *shape)
        self.back.append(self._odds.transpose(1, 2, 3, 0))
        self.inputs = [x, *above]
        self.sums = [*above, self.back[-1]]
        self._labels = labels
        self._right = labels * labels.size + np.arange(labels.size).reshape(shape)

    def enter(self, first: Layer) -> None:
        """Pass the examples of all steps through the first layer."""
        rows = (*first.bias.shape[:-1], -1)
        x, sums = (a.reshape(*rows, a.shape[-1]) for a in (self.inputs[0], self.sums[0]))
        apply(first, x, out=sums)

    def forward(self, step: int, upper: list[Layer]) -> None:
        """Go from the first layer's sums to the last layer's."""
        for i, layer in enumerate(upper, start=1):
            inputs, on = self.inputs[i][:, step], self._on[i - 1][:, step]
            np.greater(inputs, 0.0, out=on)  # the way back needs it too; and faster than maximum
            inputs *= on
            apply(layer, inputs, out=self.sums[i][:, step])

    def backward(self, step: int, upper: list[Layer], weight: Floats) -> None:
        """Go back from the last layer's sums, each example's loss times its weight."""
        odds = self._odds[:, :, step]
        odds -= odds.max(axis=0)
        np.exp(odds, out=odds)
        odds *= weight / odds.sum(axis=0)
        self._odds.reshape(-1)[self._right[:, step]] -= weight
        for i in range(len(upper), 0, -1):
            below = self.back[i - 1][:, step]
            np.matmul(self.back[i][:, step], upper[i - 1].weight, out=below)
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
