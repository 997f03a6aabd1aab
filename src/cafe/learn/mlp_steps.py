"""Several steps of several clients, at nearly the speed of one large product.

In step s a client's first layer W moves by the product of what came back, E_s (learning rate and
weights included), and its batch X_s. So before step s it is ::

    W_s = W + sum over j < s of  E_j' X_j

and what it makes of the batch is, whatever the other layers do, ::

    X_s W_s' = X_s W' + sum over j < s of  (X_s X_j') E_j

where W_s does not occur. The first term is one product for all steps of all clients, who share W.
The second needs the small matrices X_s X_j' of a client's own batches (and 1 added to them for the
bias, the weight of an input that is always 1). The sum of the clients' updates is one large product
again, of all E_j and X_j. No client's first layer, by far the largest, is ever formed.

With n rows to a walk and H units in the layer this takes n / 4H more arithmetic. So walks go in
windows of at most H rows, and only where a walk has several are the clients' first layers formed,
once a window. The other layers are small: every client has its own.

Steps may also shrink what they find: all parameters (l2), or only how far they are from the model
that the walks start from (prox). With base model B, displacement D_s = W_s - B, decay c of all
parameters and shrinkage t of the displacement, a step is ::

    D_(s+1) = (1 - c - t) D_s - c B + E_s' X_s

so every E_j is multiplied by the factors (1 - c - t) of later steps, and B comes in as a multiple
of itself: its product with X_s is there already. An offset of the gradient, or parameters that
are frozen, fit into no such product: then windows are single steps, whose first layers are formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.data.examples import Rows
from cafe.learn.layers import Labels, Layer, Tape, Widths, gather, layers, parameters, read, turned
from cafe.learn.threads import Floats, cut, scratch


@dataclass(frozen=True, eq=False)
class Cohort:
    """Some clients' walks.

    Attributes:
        x: the inputs of all examples there are.
        rows: the examples of each step, of shape (clients, steps, batch).
        labels: of these examples.
        pull: minus rate times weight, of these examples.
        decay: which part of all parameters each step takes away, of shape (clients, steps).
        prox: which part of the displacement from the base model each step takes away, same shape.
        rate: learning rate, same shape; None where a step is its gradient and decay only.
        offset: added to the gradients of each client, of shape (clients, parameters).
        frozen: the indices of parameters that never move.
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
        """What each step leaves of the displacement, (clients, steps); None where that is all."""
        if self.prox is None:
            return None if self.decay is None else 1.0 - self.decay
        return 1.0 - self.prox if self.decay is None else 1.0 - self.decay - self.prox

    @property
    def by_step(self) -> bool:
        """Whether every client's whole model is needed after every step."""
        return self.offset is not None or self.frozen is not None

    def lengths(self) -> Rows:
        """How many steps each client takes: up to the last one that changes anything."""
        # Without an example, a step may still do what prox and offset ask for.
        taken = np.any(self.pull, axis=2) if self.rate is None else self.rate != 0.0
        return np.where(taken.any(axis=1), taken.shape[1] - taken[:, ::-1].argmax(axis=1), 0)

    def part(self, clients: Rows | slice, steps: slice, batch: slice) -> Cohort:
        """Some of the clients, of the steps and of the places in a batch."""
        at = (clients, steps, batch)
        each = (self.decay, self.prox, self.rate)
        decay, prox, rate = (None if a is None else a[clients, steps] for a in each)
        offset = None if self.offset is None else self.offset[clients]
        some = self.rows[at], self.labels[at], self.pull[at]
        return Cohort(self.x, *some, decay, prox, rate, offset, self.frozen)

    def select(self, clients: Rows) -> Cohort:
        """Some of the clients, without steps and places in a batch that none of them uses."""
        pulls = np.any(self.pull[clients], axis=0)
        taken = pulls.any(axis=1)
        if self.rate is not None:
            taken |= np.any(self.rate[clients], axis=0)
        used = pulls.any(axis=0)
        used[0] = True  # a step without an example has padding for one
        steps, batch = (1 + np.flatnonzero(some)[-1] for some in (taken, used))
        return self.part(clients, slice(steps), slice(batch))

    def windows(self, width: int) -> list[Cohort]:
        """The steps in windows: of one step, or of several with at most ``width`` rows together."""
        _, steps, batch = self.rows.shape
        each = 1 if self.by_step else max(1, width // batch)
        windows = cut(0, steps, -(-steps // each))
        return [self.part(slice(None), window, slice(None)) for window in windows]


def dealt(lengths: Rows, hands: int) -> Rows:
    """Who takes a step, from the longest walk to the shortest, dealt out like cards.

    Every thread gets as much to do, and walks of the same length come together.
    """
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    return np.concatenate([order[hand::hands] for hand in range(hands)])


def merge(model: Floats, cohort: Cohort, coefficient: Floats, widths: Widths, out: Floats) -> None:
    """Write the sum over clients of ``coefficient * (where the walk ends - model)``."""
    if cohort.by_step or len(cohort.windows(widths[1])) > 1:
        moves = scratch("moves", len(cohort.rows), model.size)
        move(model, cohort, widths, moves)
        np.matmul(coefficient, moves, out=out)
        return
    first = parameters(widths[:2])
    ends = scratch("ends", len(cohort.rows), model.size - first)
    tape = walk(model, cohort, widths, ends, model)
    tape.back *= coefficient[:, None, None, None]
    gather(tape.back, tape.x, out=layers(out, widths)[0])
    if cohort.decay is not None:
        if cohort.prox is None:
            lost = (1.0 - cohort.decay).prod(axis=1) - 1.0
        else:
            lost = _shrunk(cohort)[1][:, -1]
        out[:first] += coefficient @ lost * model[:first]
    ends -= model[first:]
    np.matmul(coefficient, ends, out=out[first:])


def move(model: Floats, cohort: Cohort, widths: Widths, out: Floats) -> None:
    """Write where each walk ends minus the model, a row per client."""
    first = parameters(widths[:2])
    moved = scratch("moved", len(out), first)
    start = model
    for window in cohort.windows(widths[1]):
        tape = walk(start, window, widths, out[:, first:], model)
        gather(tape.back, tape.x, out=layers(moved, widths[:2])[0])
        keep = None if window.keep is None else window.keep.prod(axis=1)
        back = None if window.prox is None else _of_base(window)[:, -1]
        _step(start[..., :first], keep, moved, out[:, :first], model[:first], back)
        if window.offset is not None and window.rate is not None:
            pushed = scratch("pushed", *out.shape)
            np.multiply(window.offset, window.rate, out=pushed)  # windows are single steps
            out -= pushed
        if window.frozen is not None:
            for own in out:  # by index and row by row: a mask takes several times as long
                own[window.frozen] = model[window.frozen]
        start = out
    out -= model


def walk(start: Floats, cohort: Cohort, widths: Widths, ends: Floats, base: Floats) -> Tape:
    """Take all steps from a model (or one per client); write where the upper layers end.

    What moves the first layer is left on the tape: what went into it and what came back to it.
    Prox measures displacements from ``base``.
    """
    clients, steps, batch = cohort.rows.shape
    tape = read(cohort.x, cohort.rows, cohort.labels, widths)
    tape.enter(layers(start, widths)[0])
    if cohort.prox is not None and steps > 1:
        _shrink_sums(tape, cohort, None if start is base else layers(base, widths)[0])
    back = tape.back.reshape(clients, -1, widths[1])
    alike = _alike(tape.x)
    turn = scratch("turn", clients, batch, widths[1])
    upper, upper_base = (a[..., parameters(widths[:2]) :] for a in (start, base))
    moved = scratch("upper", *ends.shape)
    above, above_moved = layers(upper, widths[1:]), layers(moved, widths[1:])
    keeps, proxes = cohort.keep, cohort.prox
    for step in range(steps):
        if step:
            past, now = slice(step * batch), slice(step * batch, (step + 1) * batch)
            np.matmul(alike[:, now, past], back[:, past], out=turn)
            tape.sums[:, step] += turn
        tape.forward(step, above)
        tape.backward(step, above, cohort.pull[:, step], above_moved)
        keep = None if keeps is None else keeps[:, step]
        _step(upper, keep, moved, ends, upper_base, None if proxes is None else proxes[:, step])
        if keep is not None:
            if proxes is None:
                tape.sums[:, step + 1 :] *= keep[:, None, None, None]
            tape.back[:, :step] *= keep[:, None, None, None]
        if not step:
            upper, above = ends, layers(ends, widths[1:])
    return tape


def _alike(x: Floats) -> Floats:
    """X_s X_j' + 1 for the steps j < s of each client; the blocks of other steps hold anything."""
    clients, steps, batch, _ = x.shape
    found = scratch("alike", clients, steps * batch, steps * batch)
    rows = x.reshape(clients, steps * batch, -1)
    for step in range(steps - 1):
        now, later = slice(step * batch, (step + 1) * batch), slice((step + 1) * batch, None)
        np.matmul(rows[:, later], turned(rows[:, now]), out=found[:, later, now])
    found += 1.0
    return found


def _shrunk(cohort: Cohort) -> tuple[Floats, Floats]:
    """What shrinking makes of the displacement and of the base, before each step and at the end.

    Displacement D_0 becomes ``kept * D_0 + lost * base``; both of shape (clients, steps + 1).
    """
    clients, steps = cohort.rows.shape[:2]
    kept = np.ones((clients, steps + 1), np.float32)
    lost, keep = np.zeros_like(kept), cohort.keep
    if keep is None:
        return kept, lost
    for step in range(steps):
        kept[:, step + 1] = keep[:, step] * kept[:, step]
        lost[:, step + 1] = keep[:, step] * lost[:, step]
        if cohort.decay is not None:
            lost[:, step + 1] -= cohort.decay[:, step]
    return kept, lost


def _of_base(cohort: Cohort) -> Floats:
    """How much of the base there is, beside what is kept of the start, in each step's model."""
    kept, lost = _shrunk(cohort)
    return 1.0 - kept + lost


def _shrink_sums(tape: Tape, cohort: Cohort, base: Layer | None) -> None:
    """Turn the first layer's sums at the start into those that shrinking leaves in each step.

    ``base`` is the base model's first layer where the walks do not start from it.
    """
    kept, lost = (a[:, :-1, None, None] for a in _shrunk(cohort))
    if base is None:
        if cohort.decay is not None:
            tape.sums *= 1.0 + lost
        return
    of_base = scratch("of base", *tape.sums.shape)
    rows = tape.x.reshape(-1, tape.x.shape[-1])
    np.matmul(rows, turned(base.weight), out=of_base.reshape(len(rows), -1))
    of_base += base.bias
    of_base *= 1.0 - kept + lost
    tape.sums *= kept
    tape.sums += of_base


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
