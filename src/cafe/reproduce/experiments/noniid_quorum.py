"""Fig. 4: accuracy against the quorum where each client holds three of the ten classes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, mean, paired
from cafe.latency.base import Floats
from cafe.report.cells import Cells
from cafe.reproduce import pictures, trials
from cafe.reproduce.claims import (
    LEVEL,
    Claim,
    ClaimVerdict,
    is_negative,
    is_positive,
    judge,
    judge_at_most,
    judge_differences,
)
from cafe.reproduce.findings import Experiment, Finding, outlier_notes
from cafe.reproduce.measured_tables import list_estimates, table, with_error
from cafe.reproduce.rows import Row, Rows, column, levels, mean_of, select
from cafe.reproduce.trials import Effort, Point, TrialProgress

NAME, SEEDS = "fig-noniid-quorum", 5
# Success probabilities, and for each deadline the quorums that have approximately these.
SUCCESS = (1.0, 0.99, 0.9, 0.7, 0.5, 0.2, 0.05)
QUORUMS = {
    0.3: (1, 16, 21, 24, 26, 30, 34),
    0.5: (1, 28, 34, 37, 40, 44, 48),
    1.0: (1, 52, 57, 61, 64, 68, 72),
}
SHARES = (0.8, 0.6, 0.4, 0.2, 0.1)  # shares of successful rounds at which deadlines are compared
At = tuple[float, float]  # deadline, share of rounds that should succeed
Leads = Mapping[At, Estimate]


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Run every quorum at every deadline, on the same seeds."""
    points = [
        {"deadline": deadline, "success": SUCCESS[i], "quorum": quorums[i]}
        for deadline, quorums in QUORUMS.items()
        for i in effort.thin(range(len(SUCCESS)))
    ]
    return trials.run_trials(
        trials.repeat_trials(NAME, points, SEEDS, _changes, effort), effort, progress
    )


def _changes(point: Point) -> dict[str, Any]:
    return quorum_changes(point["quorum"], point["deadline"])


def quorum_changes(quorum: int, deadline: float) -> dict[str, float]:
    """A quorum and a deadline; the model is evaluated only after the last round."""
    return {"policy.quorum": quorum, "policy.deadline": deadline, "run.evaluate_every": 1000}


def conclude(rows: Rows) -> Finding:
    """Compare larger quorums with quorum 1, and deadlines at equal numbers of updates."""
    quorums = {(row["deadline"], row["success"]): row["quorum"] for row in rows}
    accuracy = {at: mean(_accuracies(rows, at)) for at in quorums}
    leads = {at: paired(_accuracies(rows, (at[0], 1.0)), _accuracies(rows, at)) for at in quorums}
    larger = {at: lead for at, lead in leads.items() if at[1] < 1}
    return Finding(
        [
            Claim(
                "Quorum 1 is the most accurate at every deadline",
                _judge_best(larger),
                _list_leads(larger, quorums),
            ),
            _growing_claim(rows, larger),
            _updates_claim(rows, accuracy),
        ],
        [_table(rows, quorums, accuracy, leads)],
        {"accuracy": lambda: _draw(rows, quorums, accuracy)},
        notes=[
            "Quorums are chosen so that rounds succeed about equally often at all deadlines, in "
            f"{', '.join(f'{s:.0%}' for s in SUCCESS)} of all rounds. Deadlines are compared at "
            "equal numbers of updates, by interpolation between the quorums. At equal quorums a "
            "longer deadline has more successful rounds, and the numbers of updates would differ.",
            "The clients' response times are the same for all quorums of a seed. Where no round "
            "of a run has fewer reports than the quorum, the run is the same as that of quorum 1, "
            "and the difference is exactly 0.",
            *outlier_notes(rows, "deadline", "quorum"),
            "The paper gives neither the numbers of this figure nor its quorums and deadlines. It "
            "does not state rate, batch, widths, local work or samples per client either; these "
            "come from the search.",
        ],
    )


def _accuracies(rows: Rows, at: At) -> list[float]:
    return column(rows, "accuracy", deadline=at[0], success=at[1])


def _judge_best(leads: Leads) -> ClaimVerdict:
    """Holds: all larger quorums are worse, and at each deadline some are significantly worse.

    In part: none is significantly better, and some are significantly worse. The significance level
    is shared among all comparisons, because one in twenty would be significant by chance.
    """
    level = LEVEL / len(leads)
    better = any(is_negative(lead, level) for lead in leads.values())
    worse = {deadline for (deadline, _), lead in leads.items() if is_positive(lead, level)}
    everywhere = worse == {deadline for deadline, _ in leads}
    return judge(
        not better and everywhere and all(lead.mean > 0 for lead in leads.values()),
        not better and bool(worse),
    )


def _list_leads(leads: Leads, quorums: Mapping[At, int]) -> str:
    level = LEVEL / len(leads)
    better = sum(is_negative(lead, level) for lead in leads.values())
    worse = sum(is_positive(lead, level) for lead in leads.values())
    parts = []
    for deadline in sorted({at[0] for at in leads}):
        own = [at for at in leads if at[0] == deadline]
        ends = {quorums[at]: leads[at] for at in (own[0], own[-1])}
        parts.append(f"at T={deadline:g} from {list_estimates(ends, 'over {}', 4, by=' to ')}")
    return (
        f"Of {len(leads)} larger quorums {worse} are significantly less accurate, {better} "
        f"significantly more, {len(leads) - worse - better} neither. Lead of quorum 1: "
        f"{'; '.join(parts)}."
    )


def _at_equal_updates(rows: Rows) -> dict[At, Floats]:
    """Each seed's accuracy where a share of its rounds succeeded, by deadline and share.

    Interpolated between the quorums, linearly in the logarithm of the number of updates.
    """
    return {
        (deadline, share): np.array([
            _interpolate(select(own, seed=seed), share) for seed in levels(own, "seed")
        ])
        for deadline in levels(rows, "deadline")
        for own in [select(rows, deadline=deadline)]
        for share in SHARES
    }  # fmt: skip


def _interpolate(rows: Rows, share: float) -> float:
    """The accuracy of one seed at one deadline where a share of rounds succeeded."""
    ordered = sorted(rows, key=lambda row: -row["quorum"])  # quorum 1 has most updates: the last
    updates = [max(row["updates"], 1) for row in ordered]
    accuracy = [row["accuracy"] for row in ordered]
    return float(np.interp(np.log(share * updates[-1]), np.log(updates), accuracy))


def _growing_claim(rows: Rows, leads: Leads) -> Claim:
    """Whether the lead of quorum 1 is larger at the longest deadline than at the shortest."""
    short, long = min(at[0] for at in leads), max(at[0] for at in leads)
    there = _at_equal_updates(rows)
    lost = {at: np.array(_accuracies(rows, (at[0], 1.0))) - there[at] for at in there}
    growth = {share: paired(lost[long, share], lost[short, share]) for share in SHARES}
    whole = mean(np.mean([lost[long, s] - lost[short, s] for s in SHARES], axis=0))
    return Claim(
        "The lead of quorum 1 grows with the deadline (compared where equally many rounds succeed)",
        judge_differences([*growth.values()]),
        f"Lead at T={long:g} minus lead at T={short:g}, by the share of rounds that succeed: "
        f"{list_estimates(growth, 'at {:.0%}', 4)}; {with_error(whole, 4)} on average. "
        f"{_compare_at_equal_quorums(rows, leads, short, long)}",
    )


def _compare_at_equal_quorums(rows: Rows, leads: Leads, short: float, long: float) -> str:
    """A sentence that compares at equal quorums instead of equal updates, partly by theory."""
    most = max(levels(select(rows, deadline=short), "quorum"))
    expected = cafe.expect(trials.load_scenario(NAME).federation, quorum=most, deadline=long)
    failure = max(1 - expected.success_probability, 0.0)
    lead = leads[short, min(at[1] for at in leads)]
    return (
        f"At equal quorums: over {most} the lead is {with_error(lead, 4)} at T={short:g}, while at "
        f"T={long:g} a round has fewer than {most} reports with probability {failure:.0e}, so that "
        f"quorum {most} is the same as quorum 1."
    )


def _updates_claim(rows: Rows, accuracy: Mapping[At, Estimate]) -> Claim:
    """Whether the deadline matters little, compared with the number of updates."""
    deadlines = sorted({at[0] for at in accuracy})
    there = {at: float(values.mean()) for at, values in _at_equal_updates(rows).items()}
    apart = max(
        abs(there[one, share] - there[other, share])
        for share in SHARES
        for one, other in combinations(deadlines, 2)
    )
    whole = max(accuracy[t, 1.0].mean - there[t, min(SHARES)] for t in deadlines)
    return Claim(
        "Beyond the paper: accuracy depends on the number of updates, not on the deadline (the "
        "deadline's effect is at most a tenth of that of the updates; in part: half)",
        judge_at_most(apart / whole if whole > 0 else np.inf, 0.1, 0.5),
        f"Where equally many rounds succeed, accuracies at different deadlines differ by at most "
        f"{apart:.4f}. When {min(SHARES):.0%} of the rounds succeed instead of all, accuracy falls "
        f"by {whole:.4f}.",
    )


def _table(
    rows: Rows, quorums: Mapping[At, int], accuracy: Mapping[At, Estimate], leads: Leads
) -> Cells:
    return table(
        "Accuracy after 1000 rounds, mean ± standard error",
        (
            {
                "deadline": f"{at[0]:g}",
                "quorum": f"{quorum}",
                "updates": f"{_updates(rows, at):.0f}",
                "expected updates": f"{trials.expected_updates(NAME, quorum, at[0]):.0f}",
                "accuracy": with_error(accuracy[at], 4),
                "lead of quorum 1": with_error(leads[at], 4) if quorum > 1 else "-",
            }
            for at, quorum in quorums.items()
        ),
    )


def _updates(rows: Rows, at: At) -> float:
    return mean_of(rows, "updates", deadline=at[0], success=at[1]).mean


def _draw(
    rows: Rows, quorums: Mapping[At, int], accuracy: Mapping[At, Estimate]
) -> pictures.Figure:
    """Accuracy against the quorum, as in the paper, and against the number of updates."""
    updates = {at: max(_updates(rows, at), 1.0) for at in quorums}  # 0 has no logarithm
    picture = pictures.figure(9.6, 4.0)
    left, right = picture.subplots(1, 2, sharey=True)
    for axes, place in ((left, quorums), (right, updates)):
        by_label = {
            f"T = {deadline:g}": {place[at]: accuracy[at] for at in quorums if at[0] == deadline}
            for deadline in sorted({at[0] for at in quorums})
        }
        pictures.draw_lines(axes, by_label)
        pictures.tidy(axes)
    left.set(xlabel="quorum", ylabel="accuracy after 1000 rounds")
    right.set(xlabel="updates in 1000 rounds")
    marks = [n for n in (1, 5, 20, 50, 100, 200, 500, 1000) if n >= min(updates.values())]
    pictures.set_log_axis(right, marks)
    right.get_legend().remove()
    return picture


EXPERIMENT = Experiment(
    NAME, "Fig. 4, Sec. 8.1", "accuracy against the quorum, three classes per client", run, conclude
)
