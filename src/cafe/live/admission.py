"""Which reports are let in. Each is judged alone, and a bad one costs nobody else anything."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, positive, whole
from cafe.live.layout import Layout, Vector
from cafe.live.wire import Order, Report

_ENOUGH = 3  # norms that must be known before they say what is usual


@dataclass(frozen=True)
class Guard:
    """Limits on what a client may report.

    Attributes:
        norm: the largest norm of an update; None: only ``times`` counts.
        times: how many times the median norm of the last updates; before there are
            three of them, of the model's own norm plus one.
        examples: the most examples that a client may claim to have learned from. Policies that
            weigh by examples believe this number.
    """

    norm: float | None = None
    times: float = 100.0
    examples: int = 10_000_000

    def __post_init__(self) -> None:
        if self.norm is not None:
            positive("The largest norm", self.norm)
        if positive("The multiple of the usual norm", self.times) < 1:
            raise InputError(
                f"The multiple of the usual norm must be at least 1. Got {self.times}: half of all "
                "reports would be refused."
            )
        whole("The most examples", self.examples)


@dataclass(frozen=True, eq=False)
class Refused:
    """A report that was not let in, and why."""

    reason: str


@dataclass(frozen=True, eq=False)
class Admitted:
    """A report that was let in, as one vector."""

    update: Vector
    carried: bool
    examples: int
    loss: float
    label: str
    norm: float
    took: float


@dataclass(eq=False)
class Gate:
    """Lets reports in or refuses them.

    Attributes:
        layout: of the model.
        guard: the limits.
        norms: of the last updates that are not 0; one that was refused counts as one at the limit.
    """

    layout: Layout
    guard: Guard
    norms: deque[float] = field(default_factory=lambda: deque(maxlen=64))

    def judge(self, report: Report, order: Order, model: Vector) -> Admitted | Refused:
        """Let a report in, or say why not.

        Args:
            report: what came.
            order: what it answers.
            model: the global model, for its norm.
        """
        reason = self._claims(report, order) or self.layout.complaint(report.update)
        if reason:
            return Refused(reason)
        # Added up in float64, where no float32 overflows.
        squares = (float(np.vdot(a, a)) for a in map(_wide, report.update.values()))
        norm = float(np.sqrt(sum(squares)))
        if not np.isfinite(norm):
            return Refused("the update has entries that are not finite numbers")
        limit = self.limit(model)
        if norm > 0:  # a client at rest says nothing of how far the others go
            # One that is refused counts as one at the limit: where all go further, as after a
            # change of the learning rate, the limit follows; a few liars do not move the median.
            self.norms.append(min(norm, limit))
        if norm > limit:
            return Refused(f"the update's norm is {norm:.3g}, and at most {limit:.3g} is let in")
        loss = np.nan if report.loss is None else float(report.loss)
        return Admitted(
            self.layout.flat(report.update),
            bool(report.carried),
            int(report.examples),
            loss,
            printable(report.label),
            norm,
            report.took if 0 <= report.took < np.inf else 0.0,
        )

    def limit(self, model: Vector) -> float:
        """The largest norm that is let in now."""
        usual = (
            float(np.median(self.norms))
            if len(self.norms) >= _ENOUGH
            else 1.0 + float(np.linalg.norm(model.astype(np.float64)))
        )
        relative = self.guard.times * usual
        return relative if self.guard.norm is None else min(relative, self.guard.norm)

    def _claims(self, report: Report, order: Order) -> str | None:
        """What does not fit the order."""
        if report.round != order.round:
            return f"it answers round {report.round}, and round {order.round} was asked"
        version = order.began if report.carried else order.version
        if report.carried and order.after is None:
            return "it goes on from a local model, and was asked to begin from the global one"
        if report.version != version:
            return f"it is about version {report.version} of the model, and not {version}"
        if not 1 <= report.examples <= self.guard.examples:
            return (
                f"it claims {report.examples} examples, and 1 to {self.guard.examples} are let in"
            )
        if report.loss is not None and not np.isfinite(report.loss):
            return f"its loss is {report.loss}"
        return None


def printable(label: str) -> str:
    """A name for people, without what could harm a terminal or a page."""
    return "".join(c for c in label if c.isalnum() or c in " ._-")[:32].strip()


def harmless(sentence: str) -> str:
    """A sentence with words of a client's in it: on one line, and not too long."""
    return "".join(c if c.isprintable() else "?" for c in sentence[:300])


def _wide(array: NDArray[Any]) -> NDArray[np.float64]:
    return array.astype(np.float64).ravel()
