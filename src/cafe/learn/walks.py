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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.data.examples import Rows
from cafe.learn.layers import Labels, Tape, Widths, gather, layers, parameters, read, turned
from cafe.learn.threads import Floats, cut, scratch


@dataclass(frozen=True, eq=False)
class Cohort:
    """Some clients' walks.

    Attributes:
        x: the inputs of all examples there are.
        rows: the examples of each step, of shape (clients, steps, batch).
        labels: of these examples.
        pull: minus rate times weight, of these examples.
        keep: what each step leaves of the parameters, (clients, steps); None where that is all.
    """

    x: Floats
    rows: Rows
    labels: Labels
    pull: Floats
    keep: Floats | None

    def lengths(self) -> Rows:
        """How many steps each client takes: up to the last one that pulls."""
        pulls = np.any(self.pull, axis=2)
        return np.where(pulls.any(axis=1), pulls.shape[1] - pulls[:, ::-1].argmax(axis=1), 0)

    def part(self, clients: Rows | slice, steps: slice, batch: slice) -> Cohort:
        """Some of the clients, of the steps and of the places in a batch."""
        at = (clients, steps, batch)
        keep = None if self.keep is None else self.keep[clients, steps]
        return Cohort(self.x, self.rows[at], self.labels[at], self.pull[at], keep)

    def select(self, clients: Rows) -> Cohort:
        """Some of the clients, without steps and places in a batch that none of them uses."""
        pulls = np.any(self.pull[clients], axis=0)
        steps, batch = (1 + np.flatnonzero(np.any(pulls, axis=axis))[-1] for axis in (1, 0))
        return self.part(clients, slice(steps), slice(batch))

    def windows(self, width: int) -> list[Cohort]:
        """The steps in windows: of one step, or of several with at most ``width`` rows together."""
        _, steps, batch = self.rows.shape
        windows = cut(0, steps, -(-steps // max(1, width // batch)))
        return [self.part(slice(None), window, slice(None)) for window in windows]


def dealt(lengths: Rows, hands: int) -> Rows:
    """Who takes a step, from the longest walk to the shortest, dealt out like cards.

    Every thread gets as much to do, and walks of the same length come together.
    """
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    return np.concatenate([order[hand::hands] for hand in range(hands)])


def merge(model: Floats, cohort: Cohort, coefficient: Floats, widths: Widths, out: Floats) -> None:
    """Write the sum over clients of ``coefficient * (where the walk ends - model)``."""
    if len(cohort.windows(widths[1])) > 1:
        moves = scratch("moves", len(cohort.rows), model.size)
        move(model, cohort, widths, moves)
        np.matmul(coefficient, moves, out=out)
        return
    first = parameters(widths[:2])
    ends = scratch("ends", len(cohort.rows), model.size - first)
    tape = walk(model, cohort, widths, ends)
    tape.back *= coefficient[:, None, None, None]
    gather(tape.back, tape.x, out=layers(out, widths)[0])
    if cohort.keep is not None:
        out[:first] += coefficient @ (cohort.keep.prod(axis=1) - 1.0) * model[:first]
    ends -= model[first:]
    np.matmul(coefficient, ends, out=out[first:])


def move(model: Floats, cohort: Cohort, widths: Widths, out: Floats) -> None:
    """Write where each walk ends minus the model, a row per client."""
    first = parameters(widths[:2])
    moved = scratch("moved", len(out), first)
    start = model
    for window in cohort.windows(widths[1]):
        tape = walk(start, window, widths, out[:, first:])
        gather(tape.back, tape.x, out=layers(moved, widths[:2])[0])
        keep = None if window.keep is None else window.keep.prod(axis=1)
        _step(start[..., :first], keep, moved, out[:, :first])
        start = out
    out -= model


def walk(start: Floats, cohort: Cohort, widths: Widths, ends: Floats) -> Tape:
    """Take all steps from a model (or one per client); write where the upper layers end.

    What moves the first layer is left on the tape: what went into it and what came back to it.
    """
    clients, steps, batch = cohort.rows.shape
    tape = read(cohort.x, cohort.rows, cohort.labels, widths)
    tape.enter(layers(start, widths)[0])
    back = tape.back.reshape(clients, -1, widths[1])
    alike = _alike(tape.x)
    turn = scratch("turn", clients, batch, widths[1])
    upper = start[..., parameters(widths[:2]) :]
    moved = scratch("upper", *ends.shape)
    above, above_moved = layers(upper, widths[1:]), layers(moved, widths[1:])
    for step in range(steps):
        if step:
            past, now = slice(step * batch), slice(step * batch, (step + 1) * batch)
            np.matmul(alike[:, now, past], back[:, past], out=turn)
            tape.sums[:, step] += turn
        tape.forward(step, above)
        tape.backward(step, above, cohort.pull[:, step], above_moved)
        keep = None if cohort.keep is None else cohort.keep[:, step]
        _step(upper, keep, moved, out=ends)
        if keep is not None:
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


def _step(start: Floats, keep: Floats | None, moved: Floats, out: Floats) -> None:
    """Write ``keep * start + moved``, a row per client."""
    if keep is None:
        np.add(start, moved, out=out)
    else:
        np.multiply(start, keep[:, None], out=out)
        out += moved
