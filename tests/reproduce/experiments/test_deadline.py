"""Fig. 8: verdicts follow from rows, and change with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cafe.reproduce.claims import FAILS, HOLDS, IN_PART, ClaimVerdict
from cafe.reproduce.experiments import deadline, equal_times
from cafe.reproduce.rows import Row
from cafe.reproduce.trials import Trial, run_trial
from tests.support.accuracies import SEEDS, learned, noise
from tests.support.reproductions import (
    check_legends,
    check_tables,
    conclude_kept,
    needs_mnist,
    verdicts,
)

pytestmark = pytest.mark.slow


def at_deadlines(**values: Callable[[float], float]) -> list[Row]:
    """Rows as theory has them, with accuracies that rise and level off."""
    rows: list[Row] = []
    for t in deadline.DEADLINES:
        expected = deadline._expected(t)
        for seed in SEEDS:
            row: Row = {
                "waste": expected.waste,
                "broadcasts": expected.broadcasts,
                "age": expected.age,
                "waste_per_gradient": expected.waste_per_gradient,
                "waste_per_time": expected.waste_per_time,
                "accuracy": 0.955 - 0.001 / t,
            }
            row |= {name: of(t) for name, of in values.items()}
            row = {name: v * (1 + noise(seed, t)) for name, v in row.items()}
            timed = {
                equal_times.accuracy_column(time): learned(time / t) + noise(seed, t)
                for time in equal_times.TIMES
                if time / t <= 1000
            }
            rows.append({"deadline": t, "seed": seed, **row, **timed})
    return rows


def test_verdicts_on_rows_as_theory_predicts() -> None:
    found = conclude_kept(deadline, at_deadlines())
    # The waste of 0.5 and 2 is alike per update, and by no other measure.
    wanted = [HOLDS, HOLDS, HOLDS, HOLDS, IN_PART, HOLDS]
    assert [claim.verdict for claim in found.claims] == wanted
    assert "highest at T=1 " in found.claims[3].effect
    assert "per used report 2.4" in found.claims[4].effect
    assert "per unit of time 4.4" in found.claims[4].effect


@pytest.mark.parametrize(
    ("name", "of", "claim", "verdict"),
    [
        ("broadcasts", lambda t: 1 + 0.02 / t, 0, FAILS),
        ("accuracy", lambda t: 0.95 + 0.001 / t, 1, FAILS),
        ("accuracy", lambda t: 0.95 + (0.02 if t == 1.0 else 0.005 * t), 1, IN_PART),
        ("age", lambda t: t * (1 + t), 2, FAILS),
        ("age", lambda t: t * abs(t - 1), 2, IN_PART),
        ("waste", lambda t: 10 * t, 3, IN_PART),
        ("waste", lambda t: 30.0 + abs(t - 1), 3, IN_PART),
        ("accuracy", lambda t: 0.9 + 0.01 * t, 4, FAILS),
        ("waste", lambda t: 10 * t, 4, FAILS),
    ],
)
def test_other_rows_change_the_verdict(
    name: str, of: Callable[[float], float], claim: int, verdict: ClaimVerdict
) -> None:
    assert verdicts(deadline, at_deadlines(**{name: of}))[claim] is verdict


def test_similar_waste_by_every_measure_holds() -> None:
    alike: dict[str, Any] = dict.fromkeys(deadline.WASTES, lambda t: 1.0)
    assert verdicts(deadline, at_deadlines(**alike))[4] is HOLDS


def test_longer_deadline_ahead_at_equal_times_fails_the_claim() -> None:
    rows = [
        {k: (0.9 + 0.01 * r["deadline"] + noise(r["seed"], r["deadline"]) if "_at_" in k else v)
         for k, v in r.items()}
        for r in at_deadlines()
    ]  # fmt: skip
    assert verdicts(deadline, rows)[5] is FAILS


def test_rounds_end_at_the_times_that_are_compared() -> None:
    for t in deadline.DEADLINES:
        every = deadline._changes(t)["run.evaluate_every"]
        for time in equal_times.TIMES:
            assert time / t == pytest.approx(round(time / t), abs=1e-9)
            assert round(time / t) % every == 0


@needs_mnist
@pytest.mark.slow
def test_run_records_accuracy_at_the_times_it_reached() -> None:
    t = 3.0
    trial = Trial(deadline.NAME, {"deadline": t}, 0, None, deadline._changes(t), 25)
    (row,) = deadline._measure(trial, run_trial(trial))
    assert {name for name in row if "_at_" in name} == {"accuracy_at_30", "accuracy_at_60"}
    assert row["waste_per_time"] == pytest.approx(row["waste"] / t)
    short = replace(trial, rounds=20)  # time 60: the end, so that both are the same
    (end,) = deadline._measure(short, run_trial(short))
    assert end["accuracy_at_60"] == end["accuracy"] == row["accuracy_at_60"]


def test_short_runs_without_common_times_still_conclude() -> None:
    rows = [
        {k: v for k, v in row.items() if "_at_" not in k}
        for row in at_deadlines()
        if row["deadline"] in (0.5, 1.0, 2.0)
    ]
    found = conclude_kept(deadline, rows)
    assert len(found.claims) == 5
    assert list(found.pictures) == ["deadline"]


def test_tables_have_distinct_columns() -> None:
    check_tables(conclude_kept(deadline, at_deadlines()))


def test_legend_does_not_cover_data() -> None:
    pytest.importorskip("matplotlib")
    check_legends(conclude_kept(deadline, at_deadlines()))
