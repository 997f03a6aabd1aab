"""A multilayer perceptron in NumPy, at the speed of the machine's matrix product.

ReLU between layers, softmax and cross entropy at the end; without hidden layers, softmax
regression. A round's examples, whichever clients they belong to, go through the layers together, a
share of them in each thread, copied and passed in pieces that stay in the processor's cache, into
arrays that are there from last time. How clients that take several steps share products all the
same is told in ``cafe.learn.mlp_steps``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples, Rows, check_rows
from cafe.errors import InputError, check_whole, is_finite_number
from cafe.learn.base import Score
from cafe.learn.layers import Labels, Tape, Widths, gather, layers, parameters, read
from cafe.learn.local_steps import LocalSteps, Weights, check_parameters, completed
from cafe.learn.mlp_steps import Cohort, dealt, merge, move
from cafe.learn.threads import Floats, cores, scratch, shares, side_by_side, summed

CACHE = 2**22  # numbers in a piece's arrays: 16 MiB, as large as the gain from larger pieces lasts
FEWEST = 64  # rows that are worth a thread of their own


@dataclass(frozen=True)
class MLP:
    """Layers of ReLU units under a softmax: ``MLP(784, 10)`` for 28 x 28 pixels and 10 digits.

    A model is one vector of float32: each layer's weights (outputs x inputs), then its biases, as
    torch's ``parameters_to_vector`` has them.

    Attributes:
        inputs: numbers in an example; more axes than one are flattened.
        classes: labels run from 0 to one less.
        hidden: units in each hidden layer.
        l2: adds l2 / 2 times the sum of all squared parameters to the loss of an example.
        threads: as many as there are cores, unless given. Results agree between numbers of threads
            to rounding, and to the byte for the same number.
    """

    inputs: int
    classes: int
    hidden: tuple[int, ...] = (200, 100, 50)
    l2: float = 0.0
    threads: int | None = None

    def __post_init__(self) -> None:
        try:
            inputs, classes = (
                check_whole("inputs", self.inputs),
                check_whole("classes", self.classes, 2),
            )
            hidden = tuple(check_whole("units", width) for width in self.hidden)
        except (InputError, TypeError):
            raise InputError(
                "An MLP needs at least 1 input, 2 classes, and 1 unit in each hidden layer, all "
                f"whole numbers. Got inputs={self.inputs!r}, classes={self.classes!r}, "
                f"hidden={self.hidden!r}. For no hidden layer give hidden=(), for one of 6 units "
                "hidden=(6,)."
            ) from None
        if not is_finite_number(self.l2) or self.l2 < 0:
            raise InputError(
                f"l2 must be 0 or more, and finite. Got {self.l2!r}: below 0 it would reward large "
                "weights."
            )
        threads = self.threads if self.threads is None else check_whole("threads", self.threads)
        made = {"inputs": inputs, "classes": classes, "hidden": hidden, "l2": float(self.l2)}
        for name, value in {**made, "threads": threads}.items():
            object.__setattr__(self, name, value)

    @property
    def widths(self) -> Widths:
        """Of the input, the hidden layers and the output."""
        return (self.inputs, *self.hidden, self.classes)

    @property
    def size(self) -> int:
        """How many parameters a model has."""
        return parameters(self.widths)

    def start(self, rng: np.random.Generator) -> Floats:
        """Normal weights of variance 2 / inputs (He et al. 2015), biases 0."""
        model = np.zeros(self.size, np.float32)
        for weight, _ in layers(model, self.widths):
            weight[:] = rng.standard_normal(weight.shape, np.float32)
            weight *= np.sqrt(2.0 / weight.shape[1])
        return model

    def gradient(self, model: Floats, data: Examples, rows: Rows, weight: Weights) -> Floats:
        """The sum over i of ``weight[i] * grad loss(model; data[rows[i]])``."""
        model, x, labels = self._model(model), self._inputs(data), self._labels(data, rows)
        weight = _floats("weight", weight, labels.shape)
        used = np.flatnonzero(weight)
        if not used.size:
            return np.zeros(self.size, np.float32)
        if used.size < weight.size:
            rows, labels, weight = rows[used], labels[used], weight[used]
        first, *upper = layers(model, self.widths)

        def of_piece(piece: slice, out: Floats) -> None:
            some = (None, None, piece)
            tape = read(x, rows[some], labels[some], self.widths)
            tape.enter(first)
            tape.forward(0, upper)
            bottom, *above = layers(out, self.widths)
            tape.backward(0, upper, weight[None, piece], above)
            gather(tape.back, tape.x, out=bottom)

        total = summed(of_piece, self._shares_of_rows(weight.size), self.size)
        return total + self.l2 * weight.sum() * model if self.l2 else total

    def update(
        self, model: Floats, data: Examples, local: LocalSteps, coefficient: Weights
    ) -> Floats:
        """The sum over k of ``coefficient[k] * (where walk k ends - model)``."""
        model, cohort = self._model(model), self._cohort(data, local)
        coefficient = _floats("coefficient", coefficient, (len(local),))
        lengths = np.where(coefficient == 0.0, 0, cohort.lengths())
        if lengths.max(initial=0) <= 1:  # no walk leaves the model before its only gradient
            pull = coefficient[:, None] * cohort.pull[:, 0]
            found = self.gradient(model, data, cohort.rows[:, 0].ravel(), pull.ravel())
            if cohort.rate is None:
                return found
            return completed(found, local, -coefficient * cohort.rate[:, 0])
        order = dealt(lengths, self._threads)

        def of_piece(piece: slice, out: Floats) -> None:
            clients = order[piece]
            merge(model, cohort.select(clients), coefficient[clients], self.widths, out)

        return summed(of_piece, self._shares_of_walks(order.size, cohort, apart=False), self.size)

    def updates(self, model: Floats, data: Examples, local: LocalSteps) -> Floats:
        """Where each walk ends minus the model, a row per walk."""
        model, cohort = self._model(model), self._cohort(data, local)
        order = dealt(cohort.lengths(), self._threads)
        found = np.zeros((len(local), self.size), np.float32)

        def of_share(pieces: list[slice]) -> None:
            for clients in (order[piece] for piece in pieces):
                moves = scratch("moves", clients.size, self.size)
                move(model, cohort.select(clients), self.widths, moves)
                found[clients] = moves

        side_by_side(of_share, self._shares_of_walks(order.size, cohort, apart=True))
        return found

    def score(self, model: Floats, data: Examples) -> Score:
        """Mean loss and accuracy on all the examples."""
        losses, hits = self._evaluate(model, data, None)
        return Score(float(losses.mean(dtype=float)), float(hits.mean()))

    def losses(self, model: Floats, data: Examples, rows: Rows) -> Floats:
        """The loss of each of the rows."""
        return self._evaluate(model, data, rows)[0]

    def save(self, model: Floats) -> Floats:
        """The model as a NumPy vector of its own."""
        return self._model(model).copy()

    def load(self, saved: Floats) -> Floats:
        """The model back from :meth:`save`."""
        return self._model(saved).copy()

    def _evaluate(
        self, model: Floats, data: Examples, rows: Rows | None
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """The loss of each of the rows (None: of all), and whether its label is foretold."""
        model, x = self._model(model), self._inputs(data)
        labels = self._labels(data, slice(None) if rows is None else rows)
        first, *upper = layers(model, self.widths)
        losses, hits = np.empty(labels.shape, np.float32), np.empty(labels.shape, bool)

        def of_share(pieces: list[slice]) -> None:
            for piece in pieces:
                some = (None, None, piece)
                if rows is None:
                    tape = Tape(x[some], labels[some], self.widths)
                else:
                    tape = read(x, rows[some], labels[some], self.widths)
                tape.enter(first)
                tape.forward(0, upper)
                losses[piece], hits[piece] = tape.losses(), tape.hits()

        side_by_side(of_share, self._shares_of_rows(labels.size))
        if self.l2:
            losses += self.l2 / 2 * np.sum(np.square(model), dtype=float)
        return losses, hits

    @property
    def _threads(self) -> int:
        return self.threads or cores()

    @property
    def _per_row(self) -> int:
        """Numbers that an example takes in a piece: one per input, two per unit."""
        return 2 * sum(self.widths) - self.inputs

    def _shares_of_rows(self, rows: int) -> list[list[slice]]:
        return shares(rows, self._threads, FEWEST, max(FEWEST, CACHE // self._per_row))

    def _shares_of_walks(self, walks: int, cohort: Cohort, apart: bool) -> list[list[slice]]:
        """Shares of walks whose ends are all wanted (``apart``), or the sum of them."""
        windows = cohort.windows(self.widths[1])
        _, steps, batch = windows[0].rows.shape
        shared = 0 if apart or len(windows) > 1 else parameters(self.widths[:2])
        per_walk = steps * batch * (self._per_row + steps * batch) + 2 * (self.size - shared)
        return shares(walks, self._threads, 1, max(1, CACHE // per_walk))

    def _model(self, model: Floats) -> Floats:
        return np.ascontiguousarray(_floats("model", model, (self.size,)))

    def _inputs(self, data: Examples) -> Floats:
        x = data.x.reshape(len(data), -1)
        if x.shape[1] != self.inputs:
            raise InputError(
                f"This MLP takes {self.inputs} inputs. Got examples of {x.shape[1]} numbers each, "
                f"of shape {data.x.shape[1:]}: give the MLP inputs={x.shape[1]}."
            )
        return x

    def _labels(self, data: Examples, rows: Rows | slice) -> Labels:
        """The labels of the rows. Both are checked: wrong ones would be used without a sign."""
        if not 0 < data.classes <= self.classes:
            raise InputError(
                f"This MLP learns {self.classes} classes, whole numbers from 0 to "
                f"{self.classes - 1}. Got {_kind(data)}."
            )
        if not isinstance(rows, slice):
            check_rows(rows, data)
        labels: Labels = data.y[rows]
        return labels

    def _cohort(self, data: Examples, local: LocalSteps) -> Cohort:
        shape = np.shape(local.rows)
        if len(shape) != 3 or not shape[1] * shape[2]:
            raise InputError(
                "LocalSteps.rows must be of shape (clients, steps, batch), with at least one step "
                f"and one example. Got shape {shape}."
            )
        weight = _floats("weight", local.weight, shape)
        rate = _floats("rate", local.rate, shape[:2])
        decay = np.float32(self.l2) * rate * weight.sum(axis=2) if self.l2 else None
        labels, pull = self._labels(data, local.rows), -rate[..., None] * weight
        if local.plain:
            return Cohort(self._inputs(data), local.rows, labels, pull, decay)
        check_parameters(local, self.size)
        prox = None if local.prox is None else rate * local.prox
        frozen = None if local.frozen is None else np.flatnonzero(local.frozen)
        x, offset = self._inputs(data), local.offset
        return Cohort(x, local.rows, labels, pull, decay, prox, rate, offset, frozen)


def _floats(name: str, given: Weights, shape: tuple[int, ...]) -> Floats:
    floats = np.asarray(given, dtype=np.float32)
    if floats.shape != shape:
        raise InputError(f"{name} must be of shape {shape}. Got shape {floats.shape}.")
    return floats


def _kind(data: Examples) -> str:
    if data.y.ndim > 1:
        return f"y of shape {data.y.shape}: give one class each, y.argmax(axis=1) if it is one-hot"
    if not data.classes:
        return "values that are not whole: an MLP does not learn those"
    return f"labels up to {data.classes - 1}: give the MLP classes={data.classes}"
