"""Local steps of several clients on an MLP, at nearly the speed of one large matrix product.

In step s a client's first layer W changes by the product of the derivatives E_s (times learning
rate and weights) and the batch X_s. So before step s it is ::

    W_s = W + sum over j < s of  E_j' X_j

and the layer's outputs for the batch are, whatever the other layers are, ::

    X_s W_s' = X_s W' + sum over j < s of  (X_s X_j') E_j

where W_s does not occur. The first term is one product for all steps of all clients, because they
share W. The second term needs the small matrices X_s X_j' of a client's own batches (plus 1 for the
bias, which is the weight of an input that is always 1). The sum of the clients' updates is again
one large product, of all E_j and X_j. The first layer of a client, by far the largest layer, is
never computed.

With n rows per client and H units in the layer, this takes n / 4H more arithmetic. So a client's
steps are split into windows of at most H rows. Only clients with several windows need their own
first layer, once per window. The other layers are small: every client has its own.

Steps may also shrink all parameters (l2), or only their displacement from the model that the
clients start from (prox). With base model B, displacement D_s = W_s - B, decay c of all parameters
and shrinkage t of the displacement, a step is ::

    D_(s+1) = (1 - c - t) D_s - c B + E_s' X_s

so every E_j is multiplied by the factors (1 - c - t) of later steps, and a multiple of B is added,
whose product with X_s is already known. An offset of the gradient and frozen parameters do not fit
into such products: then every window is a single step, and all first layers are computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.data.examples import Rows
from cafe.learn.layers import (
    Activations,
    Labels,
    Layer,
    Widths,
    activations_of,
    first_layer_gradient,
    layers,
    parameters,
    transpose,
)
from cafe.learn.threads import Floats, scratch, split_range


@dataclass(frozen=True, eq=False)
class MLPSteps:
    """The local steps of some clients, in the form that this module computes with.

    Attributes:
        x: the inputs of all examples of the data.
        rows: the examples of each step, of shape (clients, steps, batch).
        labels: of these examples.
        pull: minus rate times weight, of these examples.
        decay: the fraction of all parameters that each step subtracts, of shape (clients, steps).
        prox: the fraction of the displacement from the base model that each step subtracts, same
            shape.
        rate: learning rate, same shape; None if steps have only a gradient and decay.
        offset: added to the gradients of each client, of shape (clients, parameters).
        frozen: the indices of parameters that never change.
    """

    x: Floats
    rows: Rows
    labels: Labels
    pull: Floats
    decay: Floats | None = None
    prox: Floats | None = None
    rate: Floats | None = None
    offset: Floats | None = None
    frozen: Rows | None = None

    @property
    def keep(self) -> Floats | None:
        """The factor of the displacement in each step, (clients, steps); None if it is 1."""
        if self.prox is None:
            return None if self.decay is None else 1.0 - self.decay
        return 1.0 - self.prox if self.decay is None else 1.0 - self.decay - self.prox

    @property
    def by_step(self) -> bool:
        """Whether the whole model of every client is needed after every step."""
        return self.offset is not None or self.frozen is not None

    def lengths(self) -> Rows:
        """The number of steps of each client, up to the last one that changes its model."""
        # A step without examples may still have an effect, by prox and offset.
        taken = np.any(self.pull, axis=2) if self.rate is None else self.rate != 0.0
        return np.where(taken.any(axis=1), taken.shape[1] - taken[:, ::-1].argmax(axis=1), 0)

    def part(self, clients: Rows | slice, steps: slice, batch: slice) -> MLPSteps:
        """A subset of the clients, steps and positions in a batch."""
        at = (clients, steps, batch)
        each = (self.decay, self.prox, self.rate)
        decay, prox, rate = (None if a is None else a[clients, steps] for a in each)
        offset = None if self.offset is None else self.offset[clients]
        some = self.rows[at], self.labels[at], self.pull[at]
        return MLPSteps(self.x, *some, decay, prox, rate, offset, self.frozen)

    def select(self, clients: Rows) -> MLPSteps:
        """A subset of the clients, without the steps and batch positions that none of them uses."""
        pulls = np.any(self.pull[clients], axis=0)
        taken = pulls.any(axis=1)
        if self.rate is not None:
            taken |= np.any(self.rate[clients], axis=0)
        used = pulls.any(axis=0)
        used[0] = True  # a step without examples keeps one position, which is padding
        steps, batch = (1 + np.flatnonzero(some)[-1] for some in (taken, used))
        return self.part(clients, slice(steps), slice(batch))

    def windows(self, width: int) -> list[MLPSteps]:
        """The steps in windows, of one step each or of at most ``width`` rows together."""
        _, steps, batch = self.rows.shape
        each = 1 if self.by_step else max(1, width // batch)
        windows = split_range(0, steps, -(-steps // each))
        return [self.part(slice(None), window, slice(None)) for window in windows]


def balanced_order(lengths: Rows, threads: int) -> Rows:
    """The clients that take steps, ordered so that consecutive equal shares have equal work.

    Clients are assigned to threads in turn, from the most steps to the fewest. So clients with
    similar numbers of steps are neighbours.
    """
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    return np.concatenate([order[thread::threads] for thread in range(threads)])


def weighted_update(
    model: Floats, local: MLPSteps, coefficient: Floats, widths: Widths, out: Floats
) -> None:
    """Write the sum over clients of ``coefficient`` times the client's update."""
    if local.by_step or len(local.windows(widths[1])) > 1:
        moves = scratch("moves", len(local.rows), model.size)
        client_updates(model, local, widths, moves)
        np.matmul(coefficient, moves, out=out)
        return
    first = parameters(widths[:2])
    ends = scratch("ends", len(local.rows), model.size - first)
    passes = run_steps(model, local, widths, ends, model)
    passes.back *= coefficient[:, None, None, None]
    first_layer_gradient(passes.back, passes.x, out=layers(out, widths)[0])
    if local.decay is not None:
        if local.prox is None:
            lost = (1.0 - local.decay).prod(axis=1) - 1.0
        else:
            lost = _shrink_factors(local)[1][:, -1]
        out[:first] += coefficient @ lost * model[:first]
    ends -= model[first:]
    np.matmul(coefficient, ends, out=out[first:])


def client_updates(model: Floats, local: MLPSteps, widths: Widths, out: Floats) -> None:
    """Write each client's update (its model after all steps minus ``model``), a row per client."""
    first, windows = parameters(widths[:2]), local.windows(widths[1])
    shrinks = local.keep is not None and bool(np.any(local.keep != 1.0))
    if len(windows) == 1 and not shrinks:
        # The first layer's change is a product, so its end is never needed.
        passes = run_steps(model, local, widths, out[:, first:], model)
        first_layer_gradient(passes.back, passes.x, out=layers(out, widths)[0])
        out[:, first:] -= model[first:]
        _push(local, out)
        if local.frozen is not None:
            for own in out:
                own[local.frozen] = 0.0
        return
    moved = scratch("moved", len(out), first)
    start = model
    for window in windows:
        passes = run_steps(start, window, widths, out[:, first:], model)
        first_layer_gradient(passes.back, passes.x, out=layers(moved, widths[:2])[0])
        keep = None if window.keep is None else window.keep.prod(axis=1)
        back = None if window.prox is None else _base_factor(window)[:, -1]
        _step(start[..., :first], keep, moved, out[:, :first], model[:first], back)
        _push(window, out)
        if window.frozen is not None:
            for own in out:  # by index and row by row: a mask is several times slower
                own[window.frozen] = model[window.frozen]
        start = out
    out -= model


def _push(window: MLPSteps, out: Floats) -> None:
    """Subtract the offset, times the learning rate. Windows with an offset are single steps."""
    if window.offset is not None and window.rate is not None:
        pushed = scratch("pushed", *out.shape)
        np.multiply(window.offset, window.rate, out=pushed)
        out -= pushed


def run_steps(
    start: Floats, local: MLPSteps, widths: Widths, ends: Floats, base: Floats
) -> Activations:
    """Take all steps and return the activations, from which the first layer's change follows.

    Args:
        start: the model before the first step, or one model per client.
        local: the steps to take.
        widths: of all layers.
        ends: where the upper layers of each client are written, a row per client.
        base: the model from which prox measures displacements.
    """
    clients, steps, batch = local.rows.shape
    passes = activations_of(local.x, local.rows, local.labels, widths)
    passes.apply_first_layer(layers(start, widths)[0])
    if local.prox is not None and steps > 1:
        _shrink_sums(passes, local, None if start is base else layers(base, widths)[0])
    back = passes.back.reshape(clients, -1, widths[1])
    products = _products(passes.x)
    turn = scratch("turn", clients, batch, widths[1])
    upper, upper_base = (a[..., parameters(widths[:2]) :] for a in (start, base))
    moved = scratch("upper", *ends.shape)
    above, above_moved = layers(upper, widths[1:]), layers(moved, widths[1:])
    keeps, proxes = local.keep, local.prox
    for step in range(steps):
        if step:
            past, now = slice(step * batch), slice(step * batch, (step + 1) * batch)
            np.matmul(products[:, now, past], back[:, past], out=turn)
            passes.sums[:, step] += turn
        passes.forward(step, above)
        passes.backward(step, above, local.pull[:, step], above_moved)
        keep = None if keeps is None else keeps[:, step]
        _step(upper, keep, moved, ends, upper_base, None if proxes is None else proxes[:, step])
        if keep is not None:
            if proxes is None:
                passes.sums[:, step + 1 :] *= keep[:, None, None, None]
            passes.back[:, :step] *= keep[:, None, None, None]
        if not step:
            upper, above = ends, layers(ends, widths[1:])
    return passes


def _products(x: Floats) -> Floats:
    """X_s X_j' + 1 for the steps j < s of each client; all other blocks are undefined."""
    clients, steps, batch, _ = x.shape
    found = scratch("products", clients, steps * batch, steps * batch)
    rows = x.reshape(clients, steps * batch, -1)
    for step in range(steps - 1):
        now, later = slice(step * batch, (step + 1) * batch), slice((step + 1) * batch, None)
        np.matmul(rows[:, later], transpose(rows[:, now]), out=found[:, later, now])
    found += 1.0
    return found


def _shrink_factors(local: MLPSteps) -> tuple[Floats, Floats]:
    """The factors ``kept`` and ``lost``, both of shape (clients, steps + 1).

    Before step s, and after all steps, shrinking has turned the displacement D_0 into
    ``kept[:, s] * D_0 + lost[:, s] * base``.
    """
    clients, steps = local.rows.shape[:2]
    kept = np.ones((clients, steps + 1), np.float32)
    lost, keep = np.zeros_like(kept), local.keep
    if keep is None:
        return kept, lost
    for step in range(steps):
        kept[:, step + 1] = keep[:, step] * kept[:, step]
        lost[:, step + 1] = keep[:, step] * lost[:, step]
        if local.decay is not None:
            lost[:, step + 1] -= local.decay[:, step]
    return kept, lost


def _base_factor(local: MLPSteps) -> Floats:
    """The factor of the base model in each step's model, beside the kept part of the start."""
    kept, lost = _shrink_factors(local)
    return 1.0 - kept + lost


def _shrink_sums(passes: Activations, local: MLPSteps, base: Layer | None) -> None:
    """Apply the shrinking before each step to the first layer's sums at the start.

    ``base`` is the base model's first layer; None if the steps start from the base model.
    """
    kept, lost = (a[:, :-1, None, None] for a in _shrink_factors(local))
    if base is None:
        if local.decay is not None:
            passes.sums *= 1.0 + lost
        return
    of_base = scratch("of base", *passes.sums.shape)
    rows = passes.x.reshape(-1, passes.x.shape[-1])
    np.matmul(rows, transpose(base.weight), out=of_base.reshape(len(rows), -1))
    of_base += base.bias
    of_base *= 1.0 - kept + lost
    passes.sums *= kept
    passes.sums += of_base


def _step(
    start: Floats,
    keep: Floats | None,
    moved: Floats,
    out: Floats,
    base: Floats,
    back: Floats | None,
) -> None:
    """Write ``keep * start + back * base + moved``, a row per client."""
    if keep is None:
        np.add(start, moved, out=out)
    else:
        np.multiply(start, keep[:, None], out=out)
        out += moved
    if back is not None:
        pulled = scratch("pulled", *out.shape)
        np.multiply(base, back[:, None], out=pulled)
        out += pulled
