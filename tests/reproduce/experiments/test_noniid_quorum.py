"""Fig. 4: verdicts follow from rows, and change with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import cafe
from cafe.reproduce.claims import FAILS, HOLDS, IN_PART
from cafe.reproduce.experiments import noniid_quorum
from cafe.reproduce.rows import Row
from cafe.reproduce.trials import load_scenario
from tests.support.accuracies import SEEDS, learned, lucky, noise, succeeded
from tests.support.reproductions import check_legends, check_tables, conclude_kept, verdicts

pytestmark = pytest.mark.slow


def noniid(change: Callable[[Row], float] = lambda row: 0.0) -> list[Row]:
    """Rows in which updates decide, each moved by a change."""
    rows = []
    for t, quorums in noniid_quorum.QUORUMS.items():
        for success, quorum in zip(noniid_quorum.SUCCESS, quorums, strict=True):
            for seed in SEEDS:
                updates = succeeded(quorum, t, seed)
                row: Row = {"deadline": t, "success": success, "quorum": quorum, "seed": seed}
                row |= {"updates": updates, "accuracy": lucky(updates, seed, t, quorum)}
                row["accuracy"] += change(row)
                rows.append(row)
    return rows


def test_quorum_1_is_best_if_accuracy_depends_on_updates() -> None:
    assert verdicts(noniid_quorum, noniid()) == [HOLDS, FAILS, HOLDS]


def test_one_better_larger_quorum_fails_the_claim() -> None:
    def better(row: Row) -> float:
        return 0.01 if (row["deadline"], row["success"]) == (0.5, 0.99) else 0.0

    assert verdicts(noniid_quorum, noniid(better))[0] is FAILS


def test_equal_quorums_have_no_best() -> None:
    level = noniid(lambda row: 0.95 + noise(row["seed"], row["quorum"]) - row["accuracy"])
    assert verdicts(noniid_quorum, level)[0] is FAILS


def test_deadline_without_a_loss_holds_in_part() -> None:
    def spared(row: Row) -> float:
        return learned(1000) - learned(row["updates"]) if row["deadline"] == 1.0 else 0.0

    found = verdicts(noniid_quorum, noniid(spared))
    assert found[0] is IN_PART
    assert found[2] is FAILS  # the deadline decides as much as updates do


def test_lead_that_grows_with_the_deadline_is_detected() -> None:
    def growing(row: Row) -> float:
        return float(0.1 * row["deadline"] * np.log(row["updates"] / 1000))

    assert verdicts(noniid_quorum, noniid(growing))[1] is HOLDS
    assert verdicts(noniid_quorum, noniid(lambda row: -growing(row) / 3))[1] is FAILS


def test_quorums_have_the_stated_success_probabilities() -> None:
    federation = load_scenario(noniid_quorum.NAME).federation
    for t, quorums in noniid_quorum.QUORUMS.items():
        for wanted, quorum in zip(noniid_quorum.SUCCESS, quorums, strict=True):
            share = cafe.expect(federation, quorum=quorum, deadline=t).success_probability
            assert share == pytest.approx(wanted, abs=0.035)
        assert quorums[-1] > 100 * (1 - np.exp(-t))  # beyond the mean number of reports


def test_tables_have_distinct_columns() -> None:
    check_tables(conclude_kept(noniid_quorum, noniid()))


def test_legend_does_not_cover_data() -> None:
    pytest.importorskip("matplotlib")
    check_legends(conclude_kept(noniid_quorum, noniid()))
