"""Table II: MCU against AGU as the quorum rises and rounds fail."""

from __future__ import annotations

from typing import Any

from cafe.analysis.statistics import mean, paired
from cafe.reproduce import trials
from cafe.reproduce.claims import Claim, judge_differences
from cafe.reproduce.findings import Experiment, Finding
from cafe.reproduce.measured_tables import with_error
from cafe.reproduce.paired import PairedComparison
from cafe.reproduce.paper_tables import TABLE_AGU
from cafe.reproduce.parameter_search import agu_changes
from cafe.reproduce.rows import Row, Rows, mean_of
from cafe.reproduce.trials import Effort, Point, TrialProgress

NAME, SEEDS = "table-agu", 5
QUORUMS = (27, 29, 31, 33, 35)
SCHEMES = ("mcu", "agu")
DEADLINE = 0.3
MANY = 31  # from this quorum on, AGU is more accurate in the paper
AGU_RATE = 0.1  # AGU's fixed rate; the scenario contains MCU's, which decays


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Run both schemes at every quorum, on the same seeds."""
    points = trials.grid(quorum=effort.thin(QUORUMS), policy=SCHEMES)
    return trials.run_trials(
        trials.repeat_trials(NAME, points, SEEDS, _changes, effort), effort, progress
    )


def _changes(point: Point) -> dict[str, Any]:
    """A quorum; AGU's learning rate is fixed, as in the paper."""
    rate = {"task.rate": AGU_RATE} if point["policy"] == "agu" else {}
    return {**agu_changes(point["quorum"]), **rate}


def conclude(rows: Rows) -> Finding:
    """Compare AGU with MCU at high quorums and at lower ones."""
    both = PairedComparison(rows, TABLE_AGU, "quorum", SCHEMES, str)
    few = [quorum for quorum in both.points if quorum < MANY]
    many = [quorum for quorum in both.points if quorum >= MANY]
    mcu, agu = (both.losses(scheme) for scheme in SCHEMES)
    return Finding(
        [
            Claim(
                "At high quorums (31 and more) AGU is more accurate than MCU",
                judge_differences([both.lead(quorum, "agu", "mcu") for quorum in many]),
                both.list_leads(many),
            ),
            Claim(
                "At lower quorums (27 and 29) the two are close, with MCU slightly ahead",
                judge_differences([both.lead(quorum, "mcu", "agu") for quorum in few]),
                both.list_leads(few),
            ),
            Claim(
                "As the quorum rises MCU loses more accuracy than AGU",
                judge_differences([paired(mcu, agu)]),
                f"From {both.points[0]} to {both.points[-1]} MCU loses {with_error(mean(mcu))} "
                f"and AGU {with_error(mean(agu))}, which is {with_error(paired(mcu, agu))} less.",
            ),
            both.claim_as_printed(),
        ],
        [both.table(lambda quorum: _update_columns(rows, quorum))],
        {"accuracy": lambda: both.draw("quorum")},
        notes=[
            "The accuracies follow the number of rounds that succeed, which theory gives: the "
            "column *expected updates*.",
            "The paper does not state rates, batch, widths, local work or samples per client. "
            "The setting is the one that the search found nearest to the printed table. Each "
            "scheme has its own rate, as in the paper: MCU's decays, AGU's is fixed.",
            "AGU's pool is that of the paper's formula: the reporters of the round that succeeds.",
        ],
    )


def _update_columns(rows: Rows, quorum: int) -> dict[str, str]:
    updates = mean_of(rows, "updates", quorum=quorum, policy="mcu")
    expected = trials.expected_updates(NAME, quorum, DEADLINE)
    return {"updates": f"{updates.mean:.0f}", "expected updates": f"{expected:.0f}"}


EXPERIMENT = Experiment(
    NAME, "Table II, Sec. 8.3", "MCU and AGU as the quorum rises", run, conclude, TABLE_AGU
)
