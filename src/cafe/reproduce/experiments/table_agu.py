"""Table II: MCU against AGU as the quorum rises and rounds fail."""

from __future__ import annotations

from cafe.analysis.statistics import mean, paired
from cafe.reproduce.findings import (
    Claim,
    Effort,
    Experiment,
    Finding,
    Rows,
    judge_differences,
    shown,
)
from cafe.reproduce.paired import PairedComparison
from cafe.reproduce.paper_tables import TABLE_AGU
from cafe.reproduce.parameter_search import agu_changes
from cafe.reproduce.trials import (
    Row,
    Trial,
    TrialProgress,
    column,
    expected_updates,
    measured,
    points,
)

NAME, SEEDS = "table-agu", 5
QUORUMS = (27, 29, 31, 33, 35)
SCHEMES = ("mcu", "agu")
DEADLINE = 0.3
MANY = 31  # from this quorum on the paper has AGU ahead
AGU_RATE = 0.1  # fixed; the scenario has MCU's, which decays


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Both schemes at every quorum, on the same seeds; AGU's rate is fixed, as in the paper."""
    own = {"mcu": {}, "agu": {"task.rate": AGU_RATE}}
    trials = [
        Trial(
            NAME,
            at,
            seed,
            at["policy"],
            {**agu_changes(at["quorum"]), **own[at["policy"]]},
            effort.rounds,
        )
        for at in points(quorum=effort.thin(QUORUMS), policy=SCHEMES)
        for seed in effort.seeds(SEEDS)
    ]
    return measured(trials, progress)


def conclude(rows: Rows) -> Finding:
    """MCU falls with the number of rounds that succeed, AGU less so."""
    contest = PairedComparison(rows, TABLE_AGU, "quorum", SCHEMES, str)
    few = [quorum for quorum in contest.places if quorum < MANY]
    many = [quorum for quorum in contest.places if quorum >= MANY]
    less = paired(contest.lost("mcu"), contest.lost("agu"))
    return Finding(
        [
            Claim(
                "At high quorums (31 and more) AGU is more accurate than MCU",
                judge_differences([contest.lead(quorum, "agu", "mcu") for quorum in many]),
                contest.leads(many),
            ),
            Claim(
                "At the lower ones (27 and 29) the two are close, MCU slightly ahead",
                judge_differences([contest.lead(quorum, "mcu", "agu") for quorum in few]),
                contest.leads(few),
            ),
            Claim(
                "As the quorum rises MCU loses more accuracy than AGU",
                judge_differences([less]),
                f"From {contest.places[0]} to {contest.places[-1]} MCU loses "
                f"{shown(mean(contest.lost('mcu')))} and AGU {shown(mean(contest.lost('agu')))}: "
                f"{shown(less)} less.",
            ),
            contest.faithful(),
        ],
        [contest.table(lambda quorum: _updates(rows, quorum))],
        {"accuracy": lambda: contest.drawn("quorum")},
        notes=[
            "The accuracies follow the number of rounds that succeed, which theory gives: the "
            "column *expected updates*.",
            "The paper does not state rates, batch, widths, local work or samples per client. "
            "They are those of the search that come nearest to the printed table; each scheme has "
            "a rate of its own, as in the paper: MCU's decays, AGU's is fixed.",
            "AGU's pool is that of the paper's formula: the reporters of the round that succeeds.",
        ],
    )


def _updates(rows: Rows, quorum: int) -> dict[str, str]:
    updates = mean([*column(rows, "updates", quorum=quorum, policy="mcu")])
    expected = expected_updates(NAME, quorum, DEADLINE)
    return {"updates": f"{updates.mean:.0f}", "expected updates": f"{expected:.0f}"}


EXPERIMENT = Experiment(
    NAME,
    "Table II, Sec. 8.3",
    "MCU and AGU as the quorum rises",
    run,
    conclude,
    TABLE_AGU,
)
