"""The arithmetic of a multilayer perceptron: what goes in, forward, backward, products.

A layer is one matrix with a row per input and a last row for the bias. What goes into a layer
carries a last column of ones to match, so that biases cost no operation of their own; only the
examples, which are copied as they are, go without.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cafe.learn.threads import Scratch

Floats = NDArray[np.float32]
Widths = tuple[int, ...]
scratch = Scratch()


def sizes(widths: Widths) -> list[int]:
    """How many parameters each layer has."""
    return [(fan_in + 1) * fan_out for fan_in, fan_out in pairwise(widths)]


def matrices(flat: Floats, widths: Widths) -> list[Floats]:
    """Every layer's matrix, as views of a flat vector (or of one per client)."""
    lead, ends = flat.shape[:-1], np.cumsum(sizes(widths))
    pieces = np.split(flat, ends[:-1], axis=-1)
    return [
        piece.reshape(*lead, fan_in + 1, fan_out)
        for piece, (fan_in, fan_out) in zip(pieces, pairwise(widths), strict=True)
    ]


class Tape:
    """What the layers took in and what came back, for clients x steps x batch examples.

    Attributes:
        inputs: what each layer took in, its last axis the layer's inputs (and the ones).
        sums: what each layer gave before the ReLU or softmax; views of the next layer's inputs.
        back: the derivative of the weighted loss by each of the sums.
        spots: where in ``back[-1]``'s memory the right class of each example is.
    """

    def __init__(self, widths: Widths, x: Floats, labels: NDArray[np.int64]) -> None:
        shape = labels.shape
        self.inputs = [x] + [scratch(f"in{i}", *shape, w + 1) for i, w in enumerate(widths[1:-1])]
        for inputs in self.inputs[1:]:
            inputs[..., -1] = 1.0
        self.back = [scratch(f"back{i}", *shape, w) for i, w in enumerate(widths[1:-1])]
        # Classes come first in memory: maxima and sums over a short last axis are slow.
        self.odds = scratch("odds", widths[-1], *shape)
        self.back.append(np.moveaxis(self.odds, 0, -1))
        self.sums = [inputs[..., :-1] for inputs in self.inputs[1:]] + [self.back[-1]]
        self.spots = labels * labels.size + np.arange(labels.size).reshape(shape)

    def forward(self, step: int, upper: list[Floats]) -> None:
        """From the first layer's sums to the last layer's."""
        for layer, inputs, sums in zip(upper, self.inputs[1:], self.sums[1:], strict=True):
            np.maximum(inputs[:, step], 0.0, out=inputs[:, step])
            np.matmul(inputs[:, step], layer, out=sums[:, step])

    def backward(self, step: int, upper: list[Floats], weight: Floats) -> None:
        """From the last layer's sums to the derivatives of every layer's."""
        odds = self.odds[:, :, step]
        odds -= odds.max(axis=0)
        np.exp(odds, out=odds)
        odds *= weight / odds.sum(axis=0)
        self.odds.reshape(-1)[self.spots[:, step]] -= weight
        for i in range(len(upper), 0, -1):
            above, below = self.back[i][:, step], self.back[i - 1][:, step]
            np.matmul(above, np.swapaxes(upper[i - 1][..., :-1, :], -1, -2), out=below)
            below *= self.sums[i - 1][:, step] > 0.0
