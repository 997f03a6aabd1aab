"""Table I: verdicts follow the rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cafe.reproduce.experiments import table_awu
from cafe.reproduce.experiments.plateau import Plateaus
from cafe.reproduce.paper_tables import TABLE_AWU
from cafe.reproduce.rows import Row
from tests.support.reproductions import JITTER, runs_as_printed, verdict_texts

pytestmark = pytest.mark.slow
PAPERS = 5  # claims of the paper; those on the plateau follow
ROUNDS = range(50, 1001, 50)
End = Callable[[Row], float]


def papers_verdicts(rows: list[Row]) -> list[str]:
    return verdict_texts(table_awu.conclude(rows + evaluations(rows)))[:PAPERS]


def late_if_biased(row: Row) -> float:
    """The plateau ends later the more clients are biased, with AWU half as late."""
    return 100 + 2000 * float(row["share"]) * (1.0 if row["policy"] == "mcu" else 0.5)


def end_of(run: Row, end: End) -> float:
    """The round in which a run leaves the plateau; seeds differ, and those of MCU more."""
    wide = 40_000 if run["policy"] == "mcu" else 20_000
    return end(run) + wide * JITTER[run["seed"]] * (1 + 3 * float(run["share"]))


def evaluations(runs: list[Row], end: End = late_if_biased) -> list[Row]:
    """A class has all predictions until the end of the plateau, then a tenth."""
    return [
        {"share": run["share"], "policy": run["policy"], "seed": run["seed"], "round": at}
        | {
            "commonest": 1.0 if on else 0.1,
            "accuracy": 0.1 if on and at < 1000 else run["accuracy"],
        }
        for run in runs
        for at in ROUNDS
        for on in [at <= end_of(run, end)]
    ]


def test_the_papers_own_table_holds() -> None:
    assert papers_verdicts(runs_as_printed(TABLE_AWU)) == ["holds"] * 5


def test_no_claim_holds_if_both_schemes_are_equal() -> None:
    flat = runs_as_printed(TABLE_AWU, lambda row: 0.9 - row["accuracy"])
    assert papers_verdicts(flat) == ["does not hold"] * 5


def test_a_lead_in_some_cells_holds_in_part() -> None:
    only_last = runs_as_printed(
        TABLE_AWU, lambda row: -0.4 if row["policy"] == "awu" and row["share"] < 0.3 else 0.0
    )
    assert papers_verdicts(only_last)[0] == "holds in part"


def test_half_the_fall_of_awu_holds_in_part() -> None:
    falling = runs_as_printed(
        TABLE_AWU, lambda row: -row["share"] if row["policy"] == "awu" else 0.0
    )
    assert papers_verdicts(falling)[2] == "holds in part"


def plateau_verdicts(end: End, rows: list[Row] | None = None) -> list[str]:
    runs = runs_as_printed(TABLE_AWU) if rows is None else rows
    return verdict_texts(table_awu.conclude(runs + evaluations(runs, end)))[PAPERS:]


def test_a_plateau_that_lasts_longer_with_more_biased_clients_and_less_long_with_awu() -> None:
    runs = [
        {**run, "accuracy": 1 - end_of(run, late_if_biased) / 2000}
        for run in runs_as_printed(TABLE_AWU)
    ]
    assert plateau_verdicts(late_if_biased, runs) == ["holds", "holds", "holds"]


def test_a_plateau_of_the_same_length_everywhere_shows_nothing() -> None:
    assert plateau_verdicts(lambda row: 300) == ["does not hold"] * 3


def test_a_plateau_that_awu_lengthens() -> None:
    found = plateau_verdicts(lambda row: 800 - late_if_biased(row))
    assert found[:2] == ["does not hold", "does not hold"]


def test_ends_and_curves_by_hand() -> None:
    """Two seeds, three evaluations; one run returns to the plateau, another never leaves it."""
    shares = {0: (0.9, 0.3, 0.5), 1: (0.6, 0.49, 0.2)}
    rows: list[Row] = [
        {"share": 0.3, "policy": policy, "seed": seed, "round": at, "accuracy": seed + at / 100}
        | {"commonest": share}
        for policy in ("mcu", "awu")
        for seed, own in shares.items()
        for at, share in zip((10, 20, 30), own, strict=True)
    ]
    plateaus = Plateaus(rows)
    assert plateaus.ends[0.3, "mcu"] == [30, 10]
    assert plateaus.final[0.3, "awu"] == [0.3, 1.3]
    assert plateaus.curve(0.3, "mcu", "commonest") == pytest.approx([0.75, 0.395, 0.35])
    assert plateaus.shortened(0.3).mean == 0
