"""Fig. 7: verdicts follow from rows, and change with them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cafe.reproduce.claims import FAILS, HOLDS, IN_PART
from cafe.reproduce.experiments import iid_quorum
from cafe.reproduce.rows import Row
from tests.support.accuracies import learned, lucky, noise, succeeded
from tests.support.reproductions import check_legends, check_tables, conclude_kept, verdicts

pytestmark = pytest.mark.slow


def iid(change: Callable[[int, int], float] = lambda quorum, seed: 0.0) -> list[Row]:
    """Rows in which updates decide, each moved by a change."""
    rows: list[Row] = []
    for quorum in iid_quorum.QUORUMS:
        for seed in range(10):
            updates = succeeded(quorum, iid_quorum.DEADLINE, seed)
            accuracy = lucky(updates, seed, quorum) + change(quorum, seed)
            rows += [{"quorum": quorum, "seed": seed, "updates": updates, "accuracy": accuracy}]
    return rows


def updates_of(quorum: int, seed: int) -> int:
    return succeeded(quorum, iid_quorum.DEADLINE, seed)


def test_verdicts_if_accuracy_depends_on_updates() -> None:
    found = conclude_kept(iid_quorum, iid())
    # The loss up to quorum 40 in these data is significant, but small.
    assert [claim.verdict for claim in found.claims] == [FAILS, HOLDS, IN_PART, IN_PART, HOLDS]
    lower = [{**row, "accuracy": row["accuracy"] - 0.02 * (row["quorum"] == 40)} for row in iid()]
    assert verdicts(iid_quorum, lower)[2] is HOLDS
    # No round of these runs has fewer than 10 reports.
    assert "With 10" in found.claims[0].effect
    assert "0.0000 ± 0.0000 at 10" in found.claims[0].effect


def test_interior_peak_of_the_accuracy_is_detected() -> None:
    def hump(quorum: int, seed: int) -> float:
        return 0.004 * (iid_quorum._merit(quorum) - 1) / 30 + noise(seed, quorum)

    level = iid(lambda quorum, seed: learned(1000) - learned(updates_of(quorum, seed)))
    raised = [
        {**row, "accuracy": row["accuracy"] + hump(row["quorum"], row["seed"])} for row in level
    ]
    assert verdicts(iid_quorum, raised) == [HOLDS, HOLDS, IN_PART, HOLDS, FAILS]


def test_large_gain_is_detected() -> None:
    found = verdicts(iid_quorum, iid(lambda quorum, seed: 0.03 if quorum == 30 else 0.0))
    assert found[:2] == [HOLDS, FAILS]


def test_claims_on_a_fall_fail_without_one() -> None:
    level = iid(lambda quorum, seed: learned(1000) - learned(updates_of(quorum, seed)))
    assert verdicts(iid_quorum, level)[2:4] == [FAILS, FAILS]


def test_tables_have_distinct_columns() -> None:
    check_tables(conclude_kept(iid_quorum, iid()))


def test_legend_does_not_cover_data() -> None:
    pytest.importorskip("matplotlib")
    check_legends(conclude_kept(iid_quorum, iid()))
