"""Which reports are let in. Each is judged alone, and a bad one costs nobody else anything."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, check_positive, check_whole
from cafe.live.model_layout import Layout, Vector
from cafe.live.wire import Order, Report
from cafe.rounds.ledger import UNKNOWN

MOST_STEPS = 10**9  # in one report
MOST_CLASSES = 100_000
_ENOUGH = 3  # norms that must be known before they say what is usual


@dataclass(frozen=True)
class ReportLimits:
    """Limits on what a client may report.

    Attributes:
        norm: the largest norm of an update; None: only ``times`` counts.
        times: how many times the median norm of the last updates; before there are
            three of them, of the model's own norm plus one.
        examples: the most examples that a client may claim to hold. Policies that weigh by size
            believe this number.
    """

    norm: float | None = None
    times: float = 100.0
    examples: int = 10_000_000

    def __post_init__(self) -> None:
        if self.norm is not None:
            check_positive("The largest norm", self.norm)
        if check_positive("The multiple of the usual norm", self.times) < 1:
            raise InputError(
                f"The multiple of the usual norm must be at least 1. Got {self.times}: half of all "
                "reports would be refused."
            )
        check_whole("The most examples", self.examples)


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
    steps: int | None = None
    rms_loss: float = float("nan")
    labels: tuple[int, ...] | None = None


@dataclass(eq=False)
class ReportValidator:
    """Lets reports in or refuses them.

    Attributes:
        layout: of the model.
        limits: the limits on what a client may report.
        norms: of the last updates that are not 0; one that was refused counts as one at the limit.
        classes: how many classes the first report with label counts had that was let in.
    """

    layout: Layout
    limits: ReportLimits
    norms: deque[float] = field(default_factory=lambda: deque(maxlen=64))
    classes: int | None = None

    def judge(
        self,
        report: Report,
        order: Order,
        model: Vector,
        needs: frozenset[str] = frozenset(),
    ) -> Admitted | Refused:
        """Let a report in, or say why not.

        Args:
            report: what came.
            order: what it answers.
            model: the global model, for its norm.
            needs: what the policy must know.
        """
        reason = (
            self._claims(report, order)
            or self._missing(report, needs)
            or self.layout.complaint(report.update)
            or _thawed(report, order)
        )
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
        if report.labels is not None:
            self.classes = len(report.labels)
        loss = np.nan if report.loss is None else float(report.loss)
        return Admitted(
            self.layout.flat(report.update),
            bool(report.carried),
            UNKNOWN if report.examples is None else int(report.examples),
            loss,
            printable(report.label),
            norm,
            report.took if 0 <= report.took < np.inf else 0.0,
            report.steps,
            np.nan if report.rms_loss is None else float(report.rms_loss),
            report.labels,
        )

    def limit(self, model: Vector) -> float:
        """The largest norm that is let in now."""
        usual = (
            float(np.median(self.norms))
            if len(self.norms) >= _ENOUGH
            else 1.0 + float(np.linalg.norm(model.astype(np.float64)))
        )
        relative = self.limits.times * usual
        return relative if self.limits.norm is None else min(relative, self.limits.norm)

    def _claims(self, report: Report, order: Order) -> str | None:
        """What does not fit the order."""
        if report.invitation != order.invitation:
            return f"it answers invitation {report.invitation}, and {order.invitation} was asked"
        version = order.began if report.carried else order.version
        if report.carried and order.after is None:
            return "it goes on from a local model, and was asked to begin from the global one"
        if report.version != version:
            return f"it is about version {report.version} of the model, and not {version}"
        if report.examples is not None and not 1 <= report.examples <= self.limits.examples:
            return (
                f"it claims {report.examples} examples, and 1 to {self.limits.examples} are let in"
            )
        for name, loss in (("loss", report.loss), ("rms loss", report.rms_loss)):
            if loss is not None and not np.isfinite(loss):
                return f"its {name} is {loss}"
        if report.steps is not None and not 0 <= report.steps <= MOST_STEPS:
            return f"it claims {report.steps} steps, and 0 to {MOST_STEPS} are let in"
        return self._wrong_labels(report.labels)

    def _wrong_labels(self, labels: tuple[int, ...] | None) -> str | None:
        if labels is None:
            return None
        if not 1 <= len(labels) <= MOST_CLASSES or min(labels) < 0:
            return "its label counts are not counts of one class or more"
        if sum(labels) > self.limits.examples:
            return f"its label counts add up to more than {self.limits.examples}"
        if self.classes is not None and len(labels) != self.classes:
            return f"it counts {len(labels)} classes, and others count {self.classes}"
        return None

    def _missing(self, report: Report, needs: frozenset[str]) -> str | None:
        """What the policy needs and the report does not have."""
        brought = {
            "sizes": ("number of examples held", report.examples),
            "losses": ("loss", report.loss),
            "rms losses": ("rms loss", report.rms_loss),
            "labels": ("label counts", report.labels),
        }
        for need, (what, value) in brought.items():
            if need in needs and value is None:
                return f"it has no {what}, which the policy needs"
        return None


def _thawed(report: Report, order: Order) -> str | None:
    """Whether a report moves what it was told to leave as it is."""
    for name, mask in (order.frozen or {}).items():
        if report.update[name][mask].any():
            return f"it moves parameters of {name} that are frozen"
    return None


def printable(label: str) -> str:
    """A name for people, without what could harm a terminal or a page."""
    return "".join(c for c in label if c.isalnum() or c in " ._-")[:32].strip()


def harmless(sentence: str) -> str:
    """A sentence with words of a client's in it: on one line, and not too long."""
    return "".join(c if c.isprintable() else "?" for c in sentence[:300])


def _wide(array: NDArray[Any]) -> NDArray[np.float64]:
    return array.astype(np.float64).ravel()
