"""The gradient of a perceptron in one compiled call, which does not hold the interpreter lock.

Numba compiles it at the first call, and keeps the result on disk. The matrix products are those of
SciPy's BLAS. Reading examples stays with NumPy: compiled code takes twice as long or more.
``cafe.learn.layers`` is the same calculation in NumPy, with which the tests compare this one. Both
agree up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError
from cafe.learn.layers import Labels, Widths
from cafe.learn.threads import Floats, find_blas_again, scratch

try:
    import numba
except ImportError as error:  # not installed, or not for this version of NumPy
    raise InputError(
        f"compiled=True needs Numba, which cannot be imported: {error}. Install it with "
        "pip install 'cafe-fl[fast]', or leave out compiled."
    ) from None

import scipy.linalg.cython_blas  # noqa: F401 (loads the BLAS that Numba calls)

find_blas_again()

Whole = NDArray[np.int64]
Compiled = TypeVar("Compiled", bound=Callable[..., Any])


def _compile(function: Compiled) -> Compiled:
    """A compiled function; it is kept on disk if there is a folder to keep it in."""
    # Contracting a multiplication and an addition keeps NaN and infinity, unlike "fast" arithmetic.
    how: dict[str, Any] = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
    try:
        compiled: Any = numba.njit(function, cache=True, **how)
    except RuntimeError:  # neither the folder of this file nor the user's can be written
        compiled = numba.njit(function, **how)
    return cast("Compiled", compiled)


def write_gradient(
    model: Floats, widths: Widths, inputs: Floats, labels: Labels, weight: Floats, out: Floats
) -> None:
    """Write a gradient, like :func:`cafe.learn.layers.write_gradient`."""
    space = scratch("compiled", labels.size * (2 * sum(widths[1:-1]) + widths[-1]))
    _gradient(model, np.array(widths), inputs, labels, weight, space, out)


# The parts of exp(x) = 2^k exp(f): multiples k of log 2, and a polynomial in f for the rest. The
# coefficients are those of Cephes' expf, with an error of about one unit in the last place.
_LOG2_E = np.float32(1.44269504)
_LOG_2_HIGH, _LOG_2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_C0, _C1, _C2 = (
    np.float32(1.9875691500e-4),
    np.float32(1.3981999507e-3),
    np.float32(8.3334519073e-3),
)
_C3, _C4, _C5 = (
    np.float32(4.1665795894e-2),
    np.float32(1.6666665459e-1),
    np.float32(5.0000001201e-1),
)
_ROUND = np.float32(1.5 * 2**23)  # a float32 of this size has no fraction
_LEAST = np.float32(-87.0)  # exp of less would not be a normal float32


@_compile
def exponentials(values: Floats) -> None:
    """Replace values, none of which is above 0, by their exponentials."""
    one, bias, shift = np.float32(1.0), np.int32(127), np.int32(23)
    for i in range(values.size):
        x = values[i]
        x = _LEAST if x < _LEAST else x  # NaN stays NaN
        k = (x * _LOG2_E + _ROUND) - _ROUND
        f = x - k * _LOG_2_HIGH - k * _LOG_2_LOW
        series = ((((_C0 * f + _C1) * f + _C2) * f + _C3) * f + _C4) * f + _C5
        power = np.int32((np.int32(k) + bias) << shift).view(np.float32)  # 2^k
        values[i] = (series * f * f + f + one) * power


@_compile
def _add_bias_and_relu(sums: Floats, bias: Floats) -> None:
    for i in range(sums.shape[0]):
        row = sums[i]
        for j in range(row.size):
            value = row[j] + bias[j]
            row[j] = value * np.float32(value > 0.0)  # NaN stays NaN


@_compile
def _derivatives_of_scores(scores: Floats, bias: Floats, labels: Whole, weight: Floats) -> None:
    """Replace scores by the derivatives of the weighted cross entropy."""
    rows, classes = scores.shape
    for i in range(rows):
        row = scores[i]
        top = np.float32(-np.inf)
        for j in range(classes):
            row[j] += bias[j]
            top = max(top, row[j])
        for j in range(classes):
            row[j] -= top
    exponentials(scores.reshape(rows * classes))
    for i in range(rows):
        row = scores[i]
        total = np.float32(0.0)
        for j in range(classes):
            total += row[j]
        share = weight[i] / total
        for j in range(classes):
            row[j] *= share
        row[labels[i]] -= weight[i]


@_compile
def _add_rows(matrix: Floats, out: Floats) -> None:
    out[:] = 0.0
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for j in range(row.size):
            out[j] += row[j]


@_compile
def _keep_active(back: Floats, sums: Floats) -> None:
    """Set the derivatives to 0 where the unit's output is 0."""
    for i in range(back.shape[0]):
        row, active = back[i], sums[i]
        for j in range(row.size):
            row[j] *= np.float32(active[j] > 0.0)


@_compile
def _gradient(
    model: Floats,
    widths: Whole,
    inputs: Floats,
    labels: Whole,
    weight: Floats,
    space: Floats,
    out: Floats,
) -> None:
    """Write a gradient, in ``space`` for the outputs of all layers and derivatives by them."""
    rows, last = labels.size, widths.size - 2
    ends, used = np.zeros(widths.size, np.int64), 0  # of the layers' parameters; of the space
    outputs = [inputs]
    for i in range(last + 1):
        below, width = widths[i], widths[i + 1]
        start, bias = ends[i], ends[i] + below * width
        ends[i + 1] = bias + width
        sums = space[used : used + rows * width].reshape(rows, width)
        used += rows * width
        np.dot(outputs[i], model[start:bias].reshape(width, below).T, sums)
        if i < last:
            _add_bias_and_relu(sums, model[bias : bias + width])
        else:
            _derivatives_of_scores(sums, model[bias : bias + width], labels, weight)
        outputs.append(sums)
    back = outputs[last + 1]
    for i in range(last, -1, -1):
        below, width = widths[i], widths[i + 1]
        start, bias = ends[i], ends[i] + below * width
        np.dot(back.T, outputs[i], out[start:bias].reshape(width, below))
        _add_rows(back, out[bias : bias + width])
        if i > 0:
            down = space[used : used + rows * below].reshape(rows, below)
            used += rows * below
            np.dot(back, model[start:bias].reshape(width, below), down)
            _keep_active(down, outputs[i])
            back = down
