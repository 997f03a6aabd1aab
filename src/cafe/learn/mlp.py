"""A multilayer perceptron in NumPy, at the speed of the machine's matrix product.

ReLU between layers, softmax and cross entropy at the end; without hidden layers, softmax
regression. The examples of a round go through the layers together, whichever clients they belong
to. Each thread takes a share of them, in pieces that fit into the processor's cache, and reuses its
arrays. ``cafe.learn.mlp_steps`` explains how clients that take several steps share products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples, Rows, check_rows
from cafe.errors import (
    InputError,
    check_choice,
    check_flag,
    check_not_negative,
    check_type,
    check_whole,
)
from cafe.learn.base import Score
from cafe.learn.layers import (
    Activations,
    Labels,
    Layer,
    Widths,
    activations_of,
    chosen_inputs,
    layers,
    parameters,
    write_gradient,
)
from cafe.learn.local_steps import LocalSteps, Weights, check_parameters, with_offsets
from cafe.learn.mlp_steps import MLPSteps, balanced_order, client_updates, weighted_update
from cafe.learn.threads import Floats, cores, parallel_map, parallel_sum, scratch, split_work

CACHE = 2**22  # numbers in a piece's arrays (16 MiB): larger pieces are no faster
FEWEST = 64  # rows per thread: for fewer, a thread costs more than it saves


@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron for classification, with ReLU units and a softmax.

    A model is one vector of float32: each layer's weights (outputs x inputs), then its biases, in
    the order of PyTorch's ``parameters_to_vector``.

    Attributes:
        inputs: the number of values of an example; examples with several axes are flattened.
        classes: the number of classes; labels are 0 to ``classes - 1``.
        hidden: the number of units in each hidden layer.
        l2: adds l2 / 2 times the sum of all squared parameters to the loss of an example.
        threads: the number of threads; None uses all cores. The same number of threads gives the
            same bytes; different numbers agree up to rounding.
        compiled: whether gradients are computed by code that Numba compiles (the extra ``fast``):
            faster if clients take one step, and equal up to rounding. The first call takes some
            seconds, and later ones of other processes use its result.
        init: how a model starts. ``"he"``: normal weights of variance 2 / inputs of the layer and
            biases 0 (He et al. 2015), which keep the scale of the values from layer to layer.
            ``"torch"``: weights and biases uniform within 1 / sqrt(inputs of the layer), as in
            PyTorch's ``nn.Linear``. These weights are smaller by a factor of 2.4, and a deep
            network learns little at first.

    Example:
        >>> import cafe, numpy as np
        >>> from cafe.learn.mlp import MLP
        >>> digits = cafe.data.load("digits")
        >>> net = MLP(64, 10, hidden=(32,))
        >>> model = net.start(np.random.default_rng(0))
        >>> len(model), round(net.score(model, digits.test).loss, 1)
        (2410, 2.5)
    """

    inputs: int
    classes: int
    hidden: tuple[int, ...] = (200, 100, 50)
    l2: float = 0.0
    threads: int | None = None
    compiled: bool = False
    init: Literal["he", "torch"] = "he"

    def __post_init__(self) -> None:
        try:
            inputs, classes = (
                check_whole("inputs", self.inputs),
                check_whole("classes", self.classes, 2),
            )
            check_type("hidden", self.hidden, Sequence, "a list")
            hidden = tuple(check_whole("units", width) for width in self.hidden)
        except (InputError, TypeError):
            raise InputError(
                "An MLP needs at least 1 input, 2 classes, and 1 unit in each hidden layer, all "
                f"whole numbers. Got inputs={self.inputs!r}, classes={self.classes!r}, "
                f"hidden={self.hidden!r}. For no hidden layer give hidden=(), for one of 6 units "
                "hidden=(6,)."
            ) from None
        check_not_negative("l2", self.l2, ": below 0, large weights would lower the loss")
        threads = self.threads if self.threads is None else check_whole("threads", self.threads)
        compiled = check_flag("compiled", self.compiled)
        if compiled:
            _compiled_gradient()  # raises here if Numba is missing
        check_choice("init", self.init, _STARTS)
        made = {"inputs": inputs, "classes": classes, "hidden": hidden, "l2": float(self.l2)}
        for name, value in {**made, "threads": threads, "compiled": compiled}.items():
            object.__setattr__(self, name, value)

    @property
    def widths(self) -> Widths:
        """The widths of the input, the hidden layers and the output."""
        return (self.inputs, *self.hidden, self.classes)

    @property
    def size(self) -> int:
        """The number of parameters of a model."""
        return parameters(self.widths)

    def start(self, rng: np.random.Generator) -> Floats:
        """A random model, as ``init`` says."""
        model = np.zeros(self.size, np.float32)
        for layer in layers(model, self.widths):
            _STARTS[self.init](layer, rng)
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
        write = _compiled_gradient() if self.compiled else write_gradient

        def of_piece(piece: slice, out: Floats) -> None:
            inputs = chosen_inputs(x, rows[piece])
            write(model, self.widths, inputs, labels[piece], weight[piece], out)

        total = parallel_sum(of_piece, self._split_rows(weight.size), self.size)
        return total + self.l2 * weight.sum() * model if self.l2 else total

    def update(
        self, model: Floats, data: Examples, local: LocalSteps, coefficient: Weights
    ) -> Floats:
        """The sum over clients k of ``coefficient[k]`` times the update of client k."""
        model, prepared = self._model(model), self._prepare(data, local)
        coefficient = _floats("coefficient", coefficient, (len(local),))
        lengths = np.where(coefficient == 0.0, 0, prepared.lengths())
        if lengths.max(initial=0) <= 1:  # all gradients are taken at the model itself
            pull = coefficient[:, None] * prepared.pull[:, 0]
            found = self.gradient(model, data, prepared.rows[:, 0].ravel(), pull.ravel())
            if prepared.rate is None:
                return found
            return with_offsets(found, local, -coefficient * prepared.rate[:, 0])
        order = balanced_order(lengths, self._threads)

        def of_piece(piece: slice, out: Floats) -> None:
            clients = order[piece]
            weighted_update(model, prepared.select(clients), coefficient[clients], self.widths, out)

        return parallel_sum(
            of_piece, self._split_clients(order.size, prepared, apart=False), self.size
        )

    def updates(self, model: Floats, data: Examples, local: LocalSteps) -> Floats:
        """The update of each client, a row per client."""
        model, prepared = self._model(model), self._prepare(data, local)
        lengths = prepared.lengths()
        if lengths.all() and (lengths == lengths[:1]).all():  # any order has equal shares
            order, found = None, np.empty((len(local), self.size), np.float32)
        else:
            order = balanced_order(lengths, self._threads)
            found = np.zeros((len(local), self.size), np.float32)

        def of_share(pieces: list[slice]) -> None:
            for piece in pieces:
                if order is None:
                    of_piece = prepared.select(np.arange(piece.start, piece.stop))
                    client_updates(model, of_piece, self.widths, found[piece])
                    continue
                clients = order[piece]
                moves = scratch("moves", clients.size, self.size)
                client_updates(model, prepared.select(clients), self.widths, moves)
                found[clients] = moves

        busy = len(local) if order is None else order.size
        parallel_map(of_share, self._split_clients(busy, prepared, apart=True))
        return found

    def score(self, model: Floats, data: Examples) -> Score:
        """Mean loss and accuracy on all the examples."""
        losses, hits = self._evaluate(model, data, None)
        return Score(float(losses.mean(dtype=float)), float(hits.mean()))

    def losses(self, model: Floats, data: Examples, rows: Rows) -> Floats:
        """The loss of each row."""
        return self._evaluate(model, data, rows)[0]

    def save(self, model: Floats) -> Floats:
        """A copy of the model as a NumPy vector."""
        return self._model(model).copy()

    def load(self, saved: Floats) -> Floats:
        """The model from the vector that :meth:`save` returned."""
        return self._model(saved).copy()

    def _evaluate(
        self, model: Floats, data: Examples, rows: Rows | None
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """The loss of each row (None: of all), and whether its label is predicted."""
        model, x = self._model(model), self._inputs(data)
        labels = self._labels(data, slice(None) if rows is None else rows)
        first, *upper = layers(model, self.widths)
        losses, hits = np.empty(labels.shape, np.float32), np.empty(labels.shape, bool)

        def of_share(pieces: list[slice]) -> None:
            for piece in pieces:
                some = (None, None, piece)
                if rows is None:
                    passes = Activations(x[some], labels[some], self.widths)
                else:
                    passes = activations_of(x, rows[some], labels[some], self.widths)
                passes.apply_first_layer(first)
                passes.forward(0, upper)
                losses[piece], hits[piece] = passes.losses(), passes.hits()

        parallel_map(of_share, self._split_rows(labels.size))
        if self.l2:
            losses += self.l2 / 2 * np.sum(np.square(model), dtype=float)
        return losses, hits

    @property
    def _threads(self) -> int:
        return self.threads or cores()

    @property
    def _per_row(self) -> int:
        """The number of values per example in a piece: one per input, two per unit."""
        return 2 * sum(self.widths) - self.inputs

    def _split_rows(self, rows: int) -> list[list[slice]]:
        return split_work(rows, self._threads, FEWEST, max(FEWEST, CACHE // self._per_row))

    def _split_clients(self, clients: int, prepared: MLPSteps, apart: bool) -> list[list[slice]]:
        """Shares of clients whose updates are all wanted (``apart``), or only their sum."""
        windows = prepared.windows(self.widths[1])
        _, steps, batch = windows[0].rows.shape
        shared = 0 if apart or len(windows) > 1 else parameters(self.widths[:2])
        per_client = steps * batch * (self._per_row + steps * batch) + 2 * (self.size - shared)
        return split_work(clients, self._threads, 1, max(1, CACHE // per_client))

    def _model(self, model: Floats) -> Floats:
        return np.ascontiguousarray(_floats("model", model, (self.size,)))

    def _inputs(self, data: Examples) -> Floats:
        x = data.x.reshape(len(data), -1)
        if x.shape[1] != self.inputs:
            raise InputError(
                f"This MLP has {self.inputs} inputs. Got examples of {x.shape[1]} numbers each, "
                f"of shape {data.x.shape[1:]}: use MLP(inputs={x.shape[1]}, ...)."
            )
        return x

    def _labels(self, data: Examples, rows: Rows | slice) -> Labels:
        """The labels of the rows. Wrong rows or labels, which NumPy would accept, are errors."""
        if not 0 < data.classes <= self.classes:
            raise InputError(
                f"This MLP has {self.classes} classes: labels must be whole numbers from 0 to "
                f"{self.classes - 1}. Got {_describe_labels(data)}."
            )
        if not isinstance(rows, slice):
            check_rows(rows, data)
        labels: Labels = data.y[rows]
        return labels

    def _prepare(self, data: Examples, local: LocalSteps) -> MLPSteps:
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
            return MLPSteps(self._inputs(data), local.rows, labels, pull, decay)
        check_parameters(local, self.size)
        prox = None if local.prox is None else rate * local.prox
        frozen = None if local.frozen is None else np.flatnonzero(local.frozen)
        x, offset = self._inputs(data), local.offset
        return MLPSteps(x, local.rows, labels, pull, decay, prox, rate, offset, frozen)


def _start_he(layer: Layer, rng: np.random.Generator) -> None:
    layer.weight[:] = rng.standard_normal(layer.weight.shape, np.float32)
    layer.weight[:] *= np.sqrt(2.0 / layer.weight.shape[1])


def _start_torch(layer: Layer, rng: np.random.Generator) -> None:
    bound = np.float32(1.0 / np.sqrt(layer.weight.shape[1]))
    for values in layer:
        values[:] = bound * (2.0 * rng.random(values.shape, np.float32) - 1.0)


_STARTS = {"he": _start_he, "torch": _start_torch}


def _compiled_gradient() -> Callable[..., None]:
    from cafe.learn.mlp_compiled import write_gradient  # imports Numba, which takes a while

    return write_gradient


def _floats(name: str, given: Weights, shape: tuple[int, ...]) -> Floats:
    floats = np.asarray(given, dtype=np.float32)
    if floats.shape != shape:
        raise InputError(f"{name} must be of shape {shape}. Got shape {floats.shape}.")
    return floats


def _describe_labels(data: Examples) -> str:
    if data.y.ndim > 1:
        return f"y of shape {data.y.shape}: use one class per example, y.argmax(axis=1) if one-hot"
    if not data.classes:
        return "values that are not whole: an MLP only learns classes"
    return f"labels up to {data.classes - 1}: use MLP(classes={data.classes}, ...)"
