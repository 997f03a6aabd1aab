"""Tables about a controller: how and why it changed the deadline and the quorum."""

from __future__ import annotations

from collections.abc import Sequence

from cafe.analysis.policy_steps import dated_changes
from cafe.report.cells import Cells
from cafe.rounds import History, PolicyChange
from cafe.wording import format_count, format_number

COLUMNS = ("round", "time, s", "deadline, s", "quorum", "reason")


def policy_changes(history: History, label: str, most: int) -> Cells | None:
    """The last changes of the policy, with their rounds and times; None without a controller.

    Args:
        history: the run.
        label: the label of its policy.
        most: the largest number of rows.
    """
    every = dated_changes(history)
    number = format_count(len(every), "change")
    which = number if len(every) <= most else f"the last {most} of {number}"
    return _cells(f"{label}, seed {history.seed}: {which}", every[-most:])


def last_reasons(history: History, most: int = 3) -> Cells | None:
    """The last changes for which the controller gave a reason; None if there are none."""
    every = [(change, time) for change, time in dated_changes(history) if change.reason]
    which = "why the policy changed"
    which += "" if len(every) <= most else f", the last {most} of {len(every):,} times"
    return _cells(f"Seed {history.seed}: {which}", every[-most:])


def _cells(title: str, changes: Sequence[tuple[PolicyChange, float]]) -> Cells | None:
    rows = [
        [
            f"{change.round:,}",
            format_number(time),
            format_number(change.deadline),
            f"{change.quorum:,}",
            " ".join(change.reason.split()) or "-",
        ]
        for change, time in changes
    ]
    return Cells(title, COLUMNS, rows, frozenset({len(COLUMNS) - 1})) if rows else None
