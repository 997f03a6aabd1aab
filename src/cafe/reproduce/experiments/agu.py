"""Table II: MCU against AGU as the quorum rises and rounds fail."""

from __future__ import annotations

from collections.abc import Mapping

from cafe.report.cells import Cells
from cafe.report.statistics import Estimate, mean, paired
from cafe.reproduce.findings import (
    Claim,
    Effort,
    Experiment,
    Finding,
    Rows,
    Verdict,
    judged,
    shown,
)
from cafe.reproduce.pictures import one
from cafe.reproduce.printed import TABLE_AGU
from cafe.reproduce.search import agu_changes
from cafe.reproduce.trials import (
    Progress,
    Row,
    Trial,
    column,
    expected_updates,
    measured,
    points,
)

NAME, SEEDS = "table-agu", 5
QUORUMS = (27, 29, 31, 33, 35)
SCHEMES = ("mcu", "agu")
DEADLINE, MANY = 0.3, 31  # from this quorum on the paper has AGU ahead
AGU_RATE = 0.1  # fixed; the scenario has MCU's, which decays


def run(effort: Effort, progress: Progress) -> list[Row]:
    """Both schemes at every quorum, on the same seeds; AGU's rate is fixed, as in the paper."""
    own = {"mcu": {}, "agu": {"task.rate": AGU_RATE}}
    trials = [
        Trial(
            NAME, at, seed, at["policy"], {**agu_changes(at["quorum"]), **own[at["policy"]]},
            effort.rounds,
        )
        for at in points(quorum=effort.thin(QUORUMS), policy=SCHEMES)
        for seed in effort.seeds(SEEDS)
    ]  # fmt: skip
    return measured(trials, progress)


def conclude(rows: Rows) -> Finding:
    """MCU falls with the number of rounds that succeed, AGU less so."""
    quorums = sorted({row["quorum"] for row in rows})
    found = {
        scheme: {m: mean([*column(rows, "accuracy", quorum=m, policy=scheme)]) for m in quorums}
        for scheme in SCHEMES
    }
    printed = {
        scheme: {row["quorum"]: row["accuracy"] for row in TABLE_AGU if row["policy"] == scheme}
        for scheme in SCHEMES
    }
    lead = {m: _lead(rows, m, "agu", "mcu") for m in quorums}
    lost = {
        scheme: paired(
            [*column(rows, "accuracy", quorum=quorums[0], policy=scheme)],
            [*column(rows, "accuracy", quorum=quorums[-1], policy=scheme)],
        )
        for scheme in SCHEMES
    }
    fewer = paired([*_losses(rows, "mcu", quorums)], [*_losses(rows, "agu", quorums)])
    off = max(
        abs(found[scheme][m].mean - printed[scheme][m]) for scheme in SCHEMES for m in quorums
    )
    return Finding(
        [
            Claim(
                "At high quorums (31 and more) AGU is more accurate than MCU",
                judged([lead[m] for m in quorums if m >= MANY]),
                _leads({m: lead[m] for m in quorums if m >= MANY}),
            ),
            Claim(
                "At the lower ones (27 and 29) the two look alike, MCU slightly ahead",
                judged([_lead(rows, m, "mcu", "agu") for m in quorums if m < MANY]),
                _leads({m: lead[m] for m in quorums if m < MANY}),
            ),
            Claim(
                "As the quorum rises MCU loses more accuracy than AGU",
                judged([fewer]),
                f"From {quorums[0]} to {quorums[-1]} MCU loses {shown(lost['mcu'])} and AGU "
                f"{shown(lost['agu'])}: {shown(fewer)} less.",
            ),
            Claim(
                "The printed accuracies come out (within 0.03 everywhere)",
                Verdict.HOLDS if off <= 0.03 else Verdict.IN_PART if off <= 0.1 else Verdict.FAILS,
                f"The largest difference is {off:.3f}.",
            ),
        ],
        [_table(rows, found, lead, printed)],
        {"accuracy": lambda: one("quorum", "accuracy after 1000 rounds", found, printed=printed)},
        notes=[
            "The accuracies follow the number of rounds that succeed, which theory gives: 1000 "
            "times the success probability, in the column *expected updates*.",
            "The paper does not state rates, batch, widths, local work or samples per client. "
            "They are those of the search that come nearest to the printed "
            "table; each scheme has a rate of its own, as in the paper: MCU's decays, AGU's is "
            "fixed.",
            "AGU's pool is that of the paper's formula: the reporters of the round that succeeds.",
        ],
    )


def _losses(rows: Rows, scheme: str, quorums: list[int]) -> list[float]:
    """What each seed loses from the first quorum to the last."""
    ends = ([*column(rows, "accuracy", quorum=m, policy=scheme)] for m in (quorums[0], quorums[-1]))
    return [low - high for low, high in zip(*ends, strict=True)]


def _lead(rows: Rows, quorum: int, first: str, second: str) -> Estimate:
    """By how much one scheme is ahead of the other on the same seeds."""
    values = ([*column(rows, "accuracy", quorum=quorum, policy=p)] for p in (first, second))
    return paired(*values)


def _leads(leads: Mapping[int, Estimate]) -> str:
    parts = [f"{shown(lead)} at {quorum}" for quorum, lead in leads.items()]
    return f"AGU minus MCU: {', '.join(parts)}."


def _table(
    rows: Rows,
    found: Mapping[str, Mapping[int, Estimate]],
    lead: Mapping[int, Estimate],
    printed: Mapping[str, Mapping[int, float]],
) -> Cells:
    header = (
        "quorum", "updates", "expected updates", "MCU", "MCU printed", "AGU", "AGU printed",
        "AGU - MCU", "difference printed",
    )  # fmt: skip
    lines = []
    for quorum, ahead in lead.items():
        updates = mean([*column(rows, "updates", quorum=quorum, policy="mcu")])
        expected = expected_updates(NAME, quorum, DEADLINE)
        cells = [f"{quorum}", f"{updates.mean:.0f}", f"{expected:.0f}"]
        for scheme in SCHEMES:
            cells += [shown(found[scheme][quorum]), f"{printed[scheme][quorum]:.3f}"]
        theirs = printed["agu"][quorum] - printed["mcu"][quorum]
        lines.append([*cells, shown(ahead), f"{theirs:+.3f}"])
    return Cells("Accuracy after 1000 rounds, mean ± standard error", header, lines)


EXPERIMENT = Experiment(
    NAME,
    "Table II, Sec. 8.3",
    "MCU and AGU as the quorum rises",
    run,
    conclude,
    TABLE_AGU,
)
