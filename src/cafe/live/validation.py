"""Validation of reports. Each is checked alone, and a bad report does not affect other clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, check_positive, check_whole
from cafe.live.model_layout import Layout
from cafe.live.wire import Order, Report

MAX_STEPS = 10**9  # in one report
MAX_CLASSES = 100_000
CLIP = 2.0  # docs/decisions/018-a-safe-default.md


class RejectedReportError(Exception):
    """A report is rejected; the message is the reason."""


@dataclass(frozen=True)
class ReportLimits:
    """Limits on what a client may report.

    Attributes:
        clip: the largest norm of an update, as a multiple of the usual norm. A longer update is
            scaled down to it, see :class:`cafe.live.clipping.UpdateClipper`. None: updates are
            used as they are, however long.
        norm: the largest norm of an update; a longer one is rejected. None: any norm.
        examples: the most examples that a client may claim to hold. Policies that weigh by size
            trust this number.

    Example:
        >>> from cafe.live import ReportLimits
        >>> ReportLimits(clip=3.0, examples=50_000)  # an argument of cafe.flower.server
        ReportLimits(clip=3.0, norm=None, examples=50000)
    """

    clip: float | None = CLIP
    norm: float | None = None
    examples: int = 10_000_000

    def __post_init__(self) -> None:
        if self.norm is not None:
            check_positive("The largest norm", self.norm)
        if self.clip is not None and check_positive("clip", self.clip) < 1:
            raise InputError(
                f"clip must be at least 1, or None. Got {self.clip}: more than half of all updates "
                "would be scaled down."
            )
        check_whole("The most examples", self.examples)


@dataclass(eq=False)
class ReportValidator:
    """Accepts or rejects reports.

    Attributes:
        layout: the layout of the model.
        limits: the limits on what a client may report.
        classes: the number of classes in the first accepted report with label counts.
    """

    layout: Layout
    limits: ReportLimits
    classes: int | None = None

    def validate(
        self,
        report: Report,
        order: Order,
        needs: frozenset[str] = frozenset(),
    ) -> Report:
        """Return an accepted report, with its update as one vector, or raise an error.

        Args:
            report: what the client sent.
            order: the order that it answers.
            needs: what the policy must know.

        Raises:
            RejectedReportError: with the reason.
        """
        reason = (
            self._wrong_claim(report, order)
            or self._missing(report, needs)
            or self.layout.mismatch(report.update)
            or _moved_frozen(report, order)
            or self._wrong_norm(report.update)
        )
        if reason:
            raise RejectedReportError(reason)
        if report.labels is not None:
            self.classes = len(report.labels)
        return replace(
            report,
            update={},
            vector=self.layout.flat(report.update),
            label=clean_label(report.label),
            took=report.took if report.took is None or 0 <= report.took < np.inf else 0.0,
        )

    def _wrong_norm(self, update: Mapping[str, NDArray[Any]]) -> str | None:
        # Summed in float64, where the square of a float32 cannot overflow.
        squares = (float(np.vdot(a, a)) for a in map(_as_float64, update.values()))
        norm = float(np.sqrt(sum(squares)))
        if not np.isfinite(norm):
            return "the update contains NaN or infinity"
        if self.limits.norm is not None and norm > self.limits.norm:
            return (
                f"the update's norm is {norm:.3g}, and at most {self.limits.norm:.3g} is accepted"
            )
        return None

    def _wrong_claim(self, report: Report, order: Order) -> str | None:
        """What in a report does not fit its order; None if everything fits."""
        if report.invitation != order.invitation:
            return f"it answers invitation {report.invitation} instead of {order.invitation}"
        version = order.began if report.carried else order.version
        if report.carried and order.after is None:
            return "it continues from a local model, and was asked to start from the global model"
        if report.version != version:
            return f"it started from version {report.version} of the model instead of {version}"
        most = self.limits.examples
        if report.examples is not None and not 1 <= report.examples <= most:
            return f"it claims {report.examples} examples, and 1 to {most} are accepted"
        for name, loss in (("loss", report.loss), ("rms loss", report.rms_loss)):
            if loss is not None and not np.isfinite(loss):
                return f"its {name} is {loss}"
        if report.rate is not None and not 0 <= report.rate < np.inf:
            return f"its learning rate is {report.rate}"
        if report.steps is not None and not 0 <= report.steps <= MAX_STEPS:
            return f"it claims {report.steps} steps, and 0 to {MAX_STEPS} are accepted"
        return self._wrong_labels(report.labels)

    def _wrong_labels(self, labels: tuple[int, ...] | None) -> str | None:
        if labels is None:
            return None
        if not 1 <= len(labels) <= MAX_CLASSES or min(labels) < 0:
            return "its label counts are not counts of one class or more"
        if sum(labels) > self.limits.examples:
            return f"its label counts add up to more than {self.limits.examples}"
        if self.classes is not None and len(labels) != self.classes:
            return f"it counts {len(labels)} classes, and other clients count {self.classes}"
        return None

    def _missing(self, report: Report, needs: frozenset[str]) -> str | None:
        """What the policy needs and the report does not have; None if nothing is missing."""
        contents = {
            "sizes": ("number of examples held", report.examples),
            "losses": ("loss", report.loss),
            "rms losses": ("rms loss", report.rms_loss),
            "labels": ("label counts", report.labels),
            "rates": ("learning rate", report.rate),
            "steps": ("number of steps", report.steps),
        }
        for need, (what, value) in contents.items():
            if need in needs and value is None:
                return f"it has no {what}, which the policy needs"
        return None


def _moved_frozen(report: Report, order: Order) -> str | None:
    """Why a report is rejected that changes frozen parameters; None if it changes none."""
    for name, mask in (order.frozen or {}).items():
        if report.update[name][mask].any():
            return f"it changes parameters of {name} that are frozen"
    return None


def clean_label(label: str) -> str:
    """A client's name for people, without characters that could harm a terminal or a page."""
    return "".join(c for c in label if c.isalnum() or c in " ._-")[:32].strip()


def clean_message(message: str) -> str:
    """A message that contains text of a client: on one line, and of limited length."""
    return "".join(c if c.isprintable() else "?" for c in message[:300])


def _as_float64(array: NDArray[Any]) -> NDArray[np.float64]:
    return array.astype(np.float64).ravel()
