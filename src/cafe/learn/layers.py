"""The layers of a multilayer perceptron, and the forward and backward passes through them.

Examples have the shape (clients, steps, batch). A pass takes all of them or one step of all
clients. Weights are shared by all clients, or each client has its own: then a matrix product takes
a stack of matrices. A plain gradient is one step of one client.
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

    Outputs come first, as in PyTorch: products of large batches are a few per cent faster that way.
    """

    weight: Floats
    bias: Floats


def parameters(widths: Widths) -> int:
    """The number of parameters of a model."""
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))


def layers(model: Floats, widths: Widths) -> list[Layer]:
    """The layers of one model (a flat vector), or of several (a row each), as views."""
    found, end = [], 0
    for inputs, outputs in pairwise(widths):
        start, end = end, end + (inputs + 1) * outputs
        weight = model[..., start : end - outputs].reshape(*model.shape[:-1], outputs, inputs)
        found.append(Layer(weight, model[..., end - outputs : end]))
    return found


def transpose(matrix: Floats) -> Floats:
    """The transpose of a matrix, or of each matrix in a stack, as a view."""
    return matrix.swapaxes(-1, -2)


def first_layer_gradient(back: Floats, inputs: Floats, out: Layer) -> None:
    """Write the first layer's gradient: the sum over rows of ``back`` times ``inputs``.

    The rows are those of all clients; if ``out`` is a stack of layers, those of each client.

    Args:
        back: the derivatives of the weighted loss by the layer's outputs before the ReLU.
        inputs: the layer's inputs.
        out: where the gradient is written.
    """
    many = out.bias.shape[:-1]
    back = back.reshape(*many, -1, back.shape[-1])
    np.matmul(transpose(back), inputs.reshape(*many, -1, inputs.shape[-1]), out=out.weight)
    np.matmul(np.ones(back.shape[-2], np.float32), back, out=out.bias)


class Activations:
    """The inputs of all layers and the derivatives by them, for (clients, steps, batch) examples.

    The arrays of the first layer are stored example by example, as ``x`` is: all examples together
    are one matrix. Above the first layer, each step of each client is a matrix of its own, stored
    unit by unit: most of its products are faster that way, and sums over a short last axis are slow
    in NumPy.

    Attributes:
        x: the inputs of the first layer.
        sums: the outputs of the first layer before the ReLU; after :meth:`forward`, with the ReLU.
        back: the derivatives of the weighted loss by these sums.
    """

    def __init__(self, x: Floats, labels: Labels, widths: Widths) -> None:
        self.x, self._labels = x, labels
        self._label_at = labels * labels.size + np.arange(labels.size).reshape(labels.shape)
        self._scores = scratch("scores", widths[-1], *labels.shape)

        def by_unit(name: str, dtype: type = np.float32) -> list[NDArray[Any]]:
            """For each hidden layer, the (units x examples) array of every step and client."""
            clients, steps, batch = labels.shape
            found = [
                scratch(f"{name} {i}", clients, steps, width, batch, dtype=dtype)
                for i, width in enumerate(widths[1:-1])
            ]
            return [transpose(first.reshape(*labels.shape, -1)) for first in found[:1]] + found[1:]

        last = self._scores.transpose(1, 2, 0, 3)
        self._sums, self._back = [*by_unit("sums"), last], [*by_unit("back"), last]
        self._active = by_unit("active", bool)  # which sums are positive
        self.sums, self.back = transpose(self._sums[0]), transpose(self._back[0])

    def apply_first_layer(self, first: Layer) -> None:
        """Compute the sums of the first layer for the examples of all steps."""
        many = first.bias.shape[:-1]
        x, sums = (a.reshape(*many, -1, a.shape[-1]) for a in (self.x, self.sums))
        np.matmul(x, transpose(first.weight), out=sums)
        sums += first.bias[..., None, :]

    def forward(self, step: int, upper: list[Layer]) -> None:
        """Compute the sums of the upper layers for one step, from those of the first layer."""
        for i, layer in enumerate(upper):
            inputs, active, sums = (
                a[:, step] for a in (self._sums[i], self._active[i], self._sums[i + 1])
            )
            np.greater(inputs, 0.0, out=active)  # backward needs it too; faster than maximum
            inputs *= active
            np.matmul(layer.weight, inputs, out=sums)
            sums += layer.bias[..., None]

    def backward(
        self, step: int, upper: list[Layer], weight: Floats, gradient: list[Layer]
    ) -> None:
        """Compute the derivatives of the weighted loss by all sums of one step.

        Also writes the upper layers' gradients, while their factors are still in the cache.

        Args:
            step: the index of the step.
            upper: the layers above the first.
            weight: of each example, of shape (clients, batch).
            gradient: where the gradients of ``upper`` are written.
        """
        scores = self._scores[:, :, step]
        scores -= scores.max(axis=0)
        np.exp(scores, out=scores)
        scores *= weight / scores.sum(axis=0)
        self._scores.reshape(-1)[self._label_at[:, step]] -= weight
        ones = np.ones(weight.shape[-1], np.float32)
        for i in range(len(upper), 0, -1):
            back, below, inputs = (
                a[:, step] for a in (self._back[i], self._back[i - 1], self._sums[i - 1])
            )
            np.matmul(back, transpose(inputs), out=gradient[i - 1].weight)
            np.matmul(back, ones, out=gradient[i - 1].bias)
            np.matmul(transpose(upper[i - 1].weight), back, out=below)
            below *= self._active[i - 1][:, step]

    def losses(self) -> Floats:
        """The cross entropy of every example, after :meth:`forward`."""
        top = self._scores.max(axis=0)
        loss: Floats = np.log(np.exp(self._scores - top).sum(axis=0))
        loss += top - self._scores.reshape(-1)[self._label_at]
        return loss

    def hits(self) -> NDArray[np.bool_]:
        """Whether each example's label has the largest score, after :meth:`forward`."""
        return np.asarray(self._scores.argmax(axis=0) == self._labels)


def activations_of(x: Floats, rows: Rows, labels: Labels, widths: Widths) -> Activations:
    """The activations of the examples at ``rows``, which is of shape (clients, steps, batch)."""
    return Activations(chosen_inputs(x, rows), labels, widths)


def chosen_inputs(x: Floats, rows: Rows) -> Floats:
    """The inputs at ``rows``, in an array that the thread uses again."""
    chosen = scratch("x", *rows.shape, x.shape[-1])
    # Unlike "raise", "clip" writes straight into ``out``; callers have checked the rows.
    np.take(x, rows.ravel(), axis=0, out=chosen.reshape(-1, x.shape[-1]), mode="clip")
    return chosen


def write_gradient(
    model: Floats, widths: Widths, inputs: Floats, labels: Labels, weight: Floats, out: Floats
) -> None:
    """Write the gradient of the weighted cross entropy of some examples.

    Args:
        model: the parameters of all layers.
        widths: of all layers.
        inputs: an example per row.
        labels: their classes.
        weight: of each example.
        out: where the gradient is written.
    """
    first, *upper = layers(model, widths)
    passes = Activations(inputs[None, None], labels[None, None], widths)
    passes.apply_first_layer(first)
    passes.forward(0, upper)
    bottom, *above = layers(out, widths)
    passes.backward(0, upper, weight[None], above)
    first_layer_gradient(passes.back, passes.x, out=bottom)
