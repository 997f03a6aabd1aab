"""How much each report counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.decisions import ByAge, BySize, Mean
from cafe.errors import InputError
from cafe.rounds import Ledger, Reports
from cafe.rounds.ledger import LedgerColumns
from tests.support.jobs import running


def reports(clients: list[int]) -> Reports:
    jobs, n = running(clients), len(clients)
    used = np.zeros(n, dtype=np.int64)
    return Reports(**vars(jobs.visible()), arrived=jobs.arrival, trained=np.ones(n), used=used)


def ledger() -> Ledger:
    """At time 6 in round 4. Clients were last merged in rounds 2, 3 and never."""
    columns = LedgerColumns.new(np.array([10, 30, 60]))
    columns.last_start[:], columns.last_round[:] = [2.0, 4.0, 0.0], [2, 3, -1]
    found = Ledger(columns)
    found.now, found.round = 6.0, 4
    return found


def test_a_mean_has_equal_coefficients() -> None:
    assert Mean()(ledger(), reports([0, 2])).coefficient.tolist() == [0.5, 0.5]


def test_weights_by_size() -> None:
    found = reports([0, 1])
    assert BySize()(ledger(), found).coefficient.tolist() == [0.25, 0.75]
    assert BySize("all")(ledger(), found).coefficient.tolist() == [0.1, 0.3]


def test_a_client_of_unknown_size_counts_as_the_mean_of_the_others() -> None:
    now = Ledger.new(np.array([10, 30, -1]))
    assert BySize("all")(now, reports([1])).coefficient.tolist() == [30 / 60]
    with pytest.raises(InputError, match="Client 2 has reported without it"):
        BySize()(now, reports([1, 2]))


def plain(age: Any) -> Any:
    return age


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (ByAge(plain), [4 / 12, 2 / 12, 6 / 12]),
        (ByAge(np.square), [16 / 56, 4 / 56, 36 / 56]),
        (ByAge(plain, "rounds since"), [2 / 8, 1 / 8, 5 / 8]),
        (ByAge(plain, "rounds"), [3 / 11, 2 / 11, 6 / 11]),
        (ByAge(plain, "time", "clients"), [4 / 3, 2 / 3, 6 / 3]),
    ],
)
def test_weights_by_age(rule: ByAge, expected: list[float]) -> None:
    coefficient = rule(ledger(), reports([0, 1, 2])).coefficient
    assert coefficient.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("rule", [Mean(), BySize(), ByAge(plain)])
def test_weighing_without_reports_is_refused(rule: Any) -> None:
    with pytest.raises(InputError, match="needs at least one report"):
        rule(ledger(), reports([]))


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (lambda age: -age, "finite weight >= 0"),
        (lambda age: age[:1], "finite weight >= 0"),
        (lambda age: 0 * age, "above 0 for some report"),
    ],
)
def test_unusable_weights_are_refused(weight: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ByAge(weight)(ledger(), reports([0, 1]))


def test_unknown_options() -> None:
    wrong: Any = "everyone"
    with pytest.raises(InputError, match=r"divisor must be .* Got 'everyone'"):
        BySize(wrong)
    with pytest.raises(InputError, match=r"unit must be .* Got 'everyone'"):
        ByAge(plain, wrong)
    with pytest.raises(InputError, match=r"divisor must be .* Got 'everyone'"):
        ByAge(plain, "time", wrong)
