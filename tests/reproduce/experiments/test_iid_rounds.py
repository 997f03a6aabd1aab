"""Fig. 5: verdicts follow from rows, and change with them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable

import pytest

from cafe.reproduce.claims import FAILS, HOLDS, IN_PART
from cafe.reproduce.experiments import iid_quorum, iid_rounds
from cafe.reproduce.rows import Row
from cafe.reproduce.trials import Trial, run_trial, scenario_text
from tests.support.accuracies import SEEDS, learned, noise, succeeded
from tests.support.reproductions import (
    check_legends,
    check_tables,
    conclude_kept,
    needs_mnist,
    verdicts,
)

pytestmark = pytest.mark.slow


def over_rounds(by: Callable[[int, int], float] = lambda r, updates: learned(updates)) -> list[Row]:
    """Curves that an accuracy of rounds and updates makes."""
    rows: list[Row] = []
    for quorum in iid_rounds.QUORUMS:
        for seed in SEEDS:
            for r in range(25, 1001, 25):
                updates = succeeded(quorum, 0.5, seed, r)
                accuracy = by(r, updates) + noise(seed, r, updates)
                rows += [{"quorum": quorum, "seed": seed, "round": r}]
                rows[-1] |= {"updates": updates, "accuracy": accuracy}
    return rows


def test_curves_that_depend_on_updates_coincide_per_update() -> None:
    found = verdicts(iid_rounds, over_rounds())
    assert found[1:] == [IN_PART, IN_PART, HOLDS]
    assert found[0] is not HOLDS


def test_curves_that_differ_for_another_reason_do_not_coincide() -> None:
    # Losing a round costs, though updates do not matter.
    found = verdicts(iid_rounds, over_rounds(lambda r, updates: 0.9 - 0.05 * (1 - updates / r)))
    assert found[1] is HOLDS
    assert found[3] is not HOLDS


def test_curves_that_depend_on_rounds_coincide_per_round() -> None:
    found = verdicts(iid_rounds, over_rounds(lambda r, updates: learned(r)))
    assert found == [IN_PART, FAILS, FAILS, FAILS]


def test_lead_of_quorum_30_is_detected() -> None:
    rows = over_rounds()
    raised = [{**r, "accuracy": r["accuracy"] + 0.02 * (r["quorum"] == 30)} for r in rows]
    found = verdicts(iid_rounds, raised)
    assert (found[0], found[2]) == (HOLDS, HOLDS)
    lowered = [{**r, "accuracy": r["accuracy"] - 0.02 * (r["quorum"] == 30)} for r in rows]
    assert verdicts(iid_rounds, lowered)[0] is FAILS


def test_both_iid_figures_have_the_same_setting() -> None:
    one, other = (tomllib.loads(scenario_text(m.NAME)) for m in (iid_quorum, iid_rounds))
    for table in ("federation", "policy", "task", "learner"):
        assert one[table] == other[table]
    assert one["run"]["rounds"] == other["run"]["rounds"]
    assert one["policy"]["deadline"] == iid_quorum.DEADLINE


@needs_mnist
@pytest.mark.slow
def test_a_curve_has_a_row_each_time_the_model_was_measured() -> None:
    trial = Trial(iid_rounds.NAME, {"quorum": 40}, 0, None, {"policy.quorum": 40}, 30)
    rows = iid_rounds._curve_rows(trial, run_trial(trial))
    assert [row["round"] for row in rows] == [25, 30]
    assert 0 < rows[-1]["updates"] < 30
    assert rows[-1]["accuracy"] == run_trial(trial).accuracy


def test_tables_have_distinct_columns() -> None:
    check_tables(conclude_kept(iid_rounds, over_rounds()))


def test_legend_does_not_cover_data() -> None:
    pytest.importorskip("matplotlib")
    check_legends(conclude_kept(iid_rounds, over_rounds()))
