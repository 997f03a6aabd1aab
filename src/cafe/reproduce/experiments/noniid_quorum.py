"""Fig. 4: accuracy against the quorum where a client holds three of the ten classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, mean, paired
from cafe.latency.base import Floats
from cafe.report.cells import Cells
from cafe.reproduce.findings import (
    LEVEL,
    Claim,
    ClaimVerdict,
    Effort,
    Experiment,
    Finding,
    Rows,
    above,
    below,
    judge_differences,
    outlier_notes,
    shown,
)
from cafe.reproduce.pictures import figure, lines, ticks, tidy
from cafe.reproduce.trials import (
    Row,
    Trial,
    TrialProgress,
    column,
    expected_updates,
    load_scenario,
    measured,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, SEEDS = "fig-noniid-quorum", 5
# Quorums at which rounds succeed this often, or close to it, at each deadline.
SUCCESS = (1.0, 0.99, 0.9, 0.7, 0.5, 0.2, 0.05)
QUORUMS = {
    0.3: (1, 16, 21, 24, 26, 30, 34),
    0.5: (1, 28, 34, 37, 40, 44, 48),
    1.0: (1, 52, 57, 61, 64, 68, 72),
}
SHARES = (0.8, 0.6, 0.4, 0.2, 0.1)  # of rounds that succeed, where deadlines are compared
At = tuple[float, float]  # deadline, share of rounds that are to succeed
Leads = Mapping[At, Estimate]


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Every quorum at every deadline, on the same seeds."""
    places = effort.thin(range(len(SUCCESS)))
    grid: list[dict[str, Any]] = [
        {"deadline": deadline, "success": SUCCESS[place], "quorum": quorums[place]}
        for deadline, quorums in QUORUMS.items()
        for place in places
    ]
    trials = [
        Trial(NAME, at, seed, None, quorum_changes(at["quorum"], at["deadline"]), effort.rounds)
        for at in grid
        for seed in effort.seeds(SEEDS)
    ]
    return measured(trials, progress)


def quorum_changes(quorum: int, deadline: float) -> dict[str, float]:
    """A quorum and a deadline; the model is measured only after the last round."""
    return {"policy.quorum": quorum, "policy.deadline": deadline, "run.evaluate_every": 1000}


def conclude(rows: Rows) -> Finding:
    """Quorum 1 is never worse, and what larger ones lose goes with the updates they lose."""
    quorums = {(row["deadline"], row["success"]): row["quorum"] for row in rows}
    found = {at: mean(_accuracies(rows, at)) for at in quorums}
    leads = {at: paired(_accuracies(rows, (at[0], 1.0)), _accuracies(rows, at)) for at in quorums}
    larger = {at: lead for at, lead in leads.items() if at[1] < 1}
    return Finding(
        [
            Claim(
                "Quorum 1 is the most accurate at every deadline",
                _best(larger),
                _ahead(larger, quorums),
            ),
            _growing(rows, larger),
            _by_updates(rows, found),
        ],
        [_table(rows, quorums, found, leads)],
        {"accuracy": lambda: _drawn(rows, quorums, found)},
        notes=[
            "Quorums are chosen so that rounds succeed about equally often at all deadlines, in "
            f"{', '.join(f'{s:.0%}' for s in SUCCESS)} of all rounds. Deadlines are compared at "
            "equal numbers of updates, between the quorums played: at the same quorum a longer "
            "deadline has more successful rounds, and what is compared is the updates.",
            "The clients' response times are the same for all quorums of a seed. Where no round "
            "of a run has fewer reports than the quorum, the run is that of quorum 1 itself and "
            "the difference is exactly 0.",
            *outlier_notes(rows, "deadline", "quorum"),
            "The paper gives no numbers of this figure, nor the quorums and deadlines it has. It "
            "states no rate, batch, widths, local work or samples per client either; they are "
            "those of the search.",
        ],
    )


def _accuracies(rows: Rows, at: At) -> list[float]:
    return [*column(rows, "accuracy", deadline=at[0], success=at[1])]


def _best(leads: Leads) -> ClaimVerdict:
    """Holds: all larger quorums are worse, some at every deadline beyond chance.

    In part: none is better beyond chance, and some are worse.

    The level is shared among all comparisons, for one in twenty would be so by chance.
    """
    level = LEVEL / len(leads)
    if any(below(lead, level) for lead in leads.values()):
        return ClaimVerdict.FAILS
    worse = {at[0] for at, lead in leads.items() if above(lead, level)}
    if not worse:
        return ClaimVerdict.FAILS
    everywhere = worse == {at[0] for at in leads}
    everywhere = everywhere and all(lead.mean > 0 for lead in leads.values())
    return ClaimVerdict.HOLDS if everywhere else ClaimVerdict.IN_PART


def _ahead(leads: Leads, quorums: Mapping[At, int]) -> str:
    better = sum(below(lead, LEVEL / len(leads)) for lead in leads.values())
    worse = sum(above(lead, LEVEL / len(leads)) for lead in leads.values())
    parts = []
    for deadline in sorted({at[0] for at in leads}):
        own = [at for at in leads if at[0] == deadline]
        ends = (f"{shown(leads[at], 4)} over {quorums[at]}" for at in (own[0], own[-1]))
        parts.append(f"at T={deadline:g} from {' to '.join(ends)}")
    return (
        f"Of {len(leads)} larger quorums {worse} are less accurate beyond chance, {better} more, "
        f"{len(leads) - worse - better} neither. Lead of quorum 1: {'; '.join(parts)}."
    )


def _at_equal_updates(rows: Rows) -> dict[At, Floats]:
    """Each seed's accuracy where a share of its rounds succeeded, between the quorums played.

    Linear in the logarithm of the number of updates; by deadline and share.
    """
    found = {}
    for deadline in sorted({row["deadline"] for row in rows}):
        seeds = sorted({row["seed"] for row in rows if row["deadline"] == deadline})
        for share in SHARES:
            values = [_between(rows, deadline, seed, share) for seed in seeds]
            found[deadline, share] = np.array(values)
    return found


def _between(rows: Rows, deadline: float, seed: int, share: float) -> float:
    own = [row for row in rows if row["deadline"] == deadline and row["seed"] == seed]
    own.sort(key=lambda row: -row["quorum"])  # quorum 1, with the most updates, is the last
    updates = [max(row["updates"], 1) for row in own]
    return float(
        np.interp(np.log(share * updates[-1]), np.log(updates), [row["accuracy"] for row in own])
    )


def _growing(rows: Rows, leads: Leads) -> Claim:
    """Whether the lead is larger at the longest deadline than at the shortest."""
    short, long = min(at[0] for at in leads), max(at[0] for at in leads)
    there = _at_equal_updates(rows)
    lost = {at: np.array(_accuracies(rows, (at[0], 1.0))) - there[at] for at in there}
    growth = {share: paired(lost[long, share], lost[short, share]) for share in SHARES}
    whole = mean(np.mean([lost[long, s] - lost[short, s] for s in SHARES], axis=0))
    parts = ", ".join(f"{shown(lead, 4)} at {share:.0%}" for share, lead in growth.items())
    return Claim(
        "The lead of quorum 1 grows with the deadline (compared where equally many rounds succeed)",
        judge_differences([*growth.values()]),
        f"Lead at T={long:g} minus lead at T={short:g}, by the share of rounds that succeed: "
        f"{parts}; {shown(whole, 4)} on average. {_at_equal_quorums(rows, leads, short, long)}",
    )


def _at_equal_quorums(rows: Rows, leads: Leads, short: float, long: float) -> str:
    """The other comparison one could make: theory alone decides it."""
    most = max(row["quorum"] for row in rows if row["deadline"] == short)
    success = cafe.expect(
        load_scenario(NAME).federation, quorum=most, deadline=long
    ).success_probability
    lead = leads[short, min(at[1] for at in leads)]
    return (
        f"At equal quorums: over {most} the lead is {shown(lead, 4)} at T={short:g}, while at "
        f"T={long:g} a round falls short of {most} with probability {max(1 - success, 0.0):.0e}, "
        "so that it is the same as quorum 1."
    )


def _by_updates(rows: Rows, found: Mapping[At, Estimate]) -> Claim:
    """Whether deadlines differ little, at equal numbers of updates, beside what updates do."""
    deadlines = sorted({at[0] for at in found})
    there = {at: float(values.mean()) for at, values in _at_equal_updates(rows).items()}
    apart = max(
        abs(there[one, share] - there[other, share])
        for share in SHARES
        for one, other in combinations(deadlines, 2)
    )
    whole = max(found[deadline, 1.0].mean - there[deadline, min(SHARES)] for deadline in deadlines)
    part = apart / whole if whole > 0 else float("inf")
    return Claim(
        "Beyond the paper: accuracy goes with the number of updates, whatever the deadline (a "
        "tenth as much at most comes from the deadline; in part: a half)",
        ClaimVerdict.HOLDS
        if part <= 0.1
        else ClaimVerdict.IN_PART
        if part <= 0.5
        else ClaimVerdict.FAILS,
        f"Where equally many rounds succeed deadlines are at most {apart:.4f} apart; from all "
        f"rounds to {min(SHARES):.0%} of them accuracy falls by {whole:.4f}.",
    )


def _table(
    rows: Rows, quorums: Mapping[At, int], found: Mapping[At, Estimate], leads: Leads
) -> Cells:
    header = ("deadline", "quorum", "updates", "expected updates", "accuracy", "lead of quorum 1")
    lines = []
    for at, quorum in quorums.items():
        updates = mean([*column(rows, "updates", deadline=at[0], success=at[1])])
        lines.append(
            [
                f"{at[0]:g}",
                f"{quorum}",
                f"{updates.mean:.0f}",
                f"{expected_updates(NAME, quorum, at[0]):.0f}",
                shown(found[at], 4),
                shown(leads[at], 4) if quorum > 1 else "-",
            ]
        )
    return Cells("Accuracy after 1000 rounds, mean ± standard error", header, lines)


def _drawn(rows: Rows, quorums: Mapping[At, int], found: Mapping[At, Estimate]) -> Figure:
    """Against the quorum, as in the paper, and against the updates that quorums leave."""
    deadlines = sorted({at[0] for at in quorums})
    updates = {at: _updates(rows, at) for at in quorums}
    drawn = figure(9.6, 4.0)
    left, right = drawn.subplots(1, 2, sharey=True)
    for axes, place in ((left, quorums), (right, updates)):
        by_label = {
            f"T = {deadline:g}": {place[at]: found[at] for at in quorums if at[0] == deadline}
            for deadline in deadlines
        }
        lines(axes, by_label)
        tidy(axes)
    left.set(xlabel="quorum", ylabel="accuracy after 1000 rounds")
    right.set(xlabel="updates in 1000 rounds", xscale="log")
    right.minorticks_off()
    ticks(right, [n for n in (1, 5, 20, 50, 100, 200, 500, 1000) if n >= min(updates.values())])
    right.get_legend().remove()
    return drawn


def _updates(rows: Rows, at: At) -> float:
    values: Sequence[float] = [*column(rows, "updates", deadline=at[0], success=at[1])]
    return max(mean(values).mean, 1.0)  # a logarithm is to be drawn


EXPERIMENT = Experiment(
    NAME,
    "Fig. 4, Sec. 8.1",
    "accuracy and the quorum, three classes to a client",
    run,
    conclude,
)
