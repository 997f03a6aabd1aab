"""When a round closes, and with which verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.decisions import DeadlineQuorum
from cafe.errors import InputError
from cafe.rounds import COMMIT, FAIL, Ledger, Wait, Waiting


def answer(rule: DeadlineQuorum, now: float, reports: int, outstanding: int) -> Any:
    """A round that opened at 10."""
    ledger = Ledger.new(np.ones(8, dtype=int))
    ledger.opened, ledger.now = 10.0, now
    return rule(ledger, Waiting(reports, reports + outstanding, outstanding))


@pytest.mark.parametrize(
    ("rule", "now", "reports", "outstanding", "expected"),
    [
        (DeadlineQuorum(3, 2.0), 10.0, 0, 8, Wait(12.0)),
        (DeadlineQuorum(3, 2.0), 11.0, 8, 0, Wait(12.0)),
        (DeadlineQuorum(3, 2.0), 12.0, 3, 5, COMMIT),
        (DeadlineQuorum(3, 2.0), 12.0, 2, 6, FAIL),
        (DeadlineQuorum(3, 2.0, target=5), 10.0, 0, 8, Wait(12.0, 5)),
        (DeadlineQuorum(3, 2.0, target=5), 11.0, 5, 3, COMMIT),
        (DeadlineQuorum(3, 2.0, all_in=True), 10.0, 0, 6, Wait(12.0, 6)),
        (DeadlineQuorum(3, 2.0, all_in=True), 11.0, 6, 0, COMMIT),
        (DeadlineQuorum(3, 2.0, all_in=True), 11.0, 2, 0, FAIL),
        (DeadlineQuorum(3, 2.0, target=5, all_in=True), 10.0, 0, 8, Wait(12.0, 5)),
        (DeadlineQuorum(3, None), 10.0, 1, 7, Wait(float("inf"), 8)),
        (DeadlineQuorum(3, None), 99.0, 8, 0, COMMIT),
    ],
)
def test_answers_of_the_closing_rule(
    rule: DeadlineQuorum, now: float, reports: int, outstanding: int, expected: Any
) -> None:
    assert answer(rule, now, reports, outstanding) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"quorum": 0, "deadline": 1.0}, "The quorum must be a whole number"),
        ({"quorum": 3, "deadline": 1.0, "target": 2}, r"at least the quorum \(3\). Got 2"),
        ({"quorum": 1, "deadline": float("inf")}, "The deadline must be finite. Got inf"),
        ({"quorum": 1, "deadline": 0.0}, "no report could arrive by it"),
    ],
)
def test_invalid_closing_rules_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        DeadlineQuorum(**given)
