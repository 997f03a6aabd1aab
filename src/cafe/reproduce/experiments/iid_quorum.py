"""Fig. 7: accuracy against the quorum where every client holds all classes equally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, mean, paired
from cafe.report.cells import Cells
from cafe.reproduce import pictures, trials
from cafe.reproduce.claims import (
    LEVEL,
    Claim,
    ClaimVerdict,
    is_positive,
    judge,
    judge_all,
)
from cafe.reproduce.experiments.noniid_quorum import quorum_changes
from cafe.reproduce.findings import Experiment, Finding, outlier_notes
from cafe.reproduce.measured_tables import list_estimates, table, with_error
from cafe.reproduce.rows import Row, Rows, column, levels, mean_of
from cafe.reproduce.trials import Effort, TrialProgress

NAME, SEEDS = "fig-iid-quorum", 10
DEADLINE = 0.5
QUORUMS = (1, 10, 20, 25, 30, 33, 35, 37, 40)
INNER = 30  # up to this quorum, accuracy rises in the paper
SMALL = 0.01  # a difference in accuracy that the paper may call very small
SHARP = 0.02  # a difference in accuracy that is a sharp fall

Accuracies = Mapping[int, Sequence[float]]  # by quorum: one per seed
Estimates = Mapping[int, Estimate]  # by quorum
Values = Mapping[int, float]  # by quorum


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Run every quorum, on the same seeds."""
    points = trials.grid(quorum=effort.thin(QUORUMS))
    repeated = trials.repeat_trials(
        NAME, points, SEEDS, lambda at: quorum_changes(at["quorum"], DEADLINE), effort
    )
    return trials.run_trials(repeated, effort, progress)


def conclude(rows: Rows) -> Finding:
    """Compare larger quorums with quorum 1, and accuracy with g(M) and with the updates."""
    quorums = levels(rows, "quorum")
    values = {m: column(rows, "accuracy", quorum=m) for m in quorums}
    accuracy = {m: mean(values[m]) for m in quorums}
    gains = {m: paired(values[m], values[quorums[0]]) for m in quorums[1:]}
    updates = {m: mean_of(rows, "updates", quorum=m).mean for m in quorums}
    merit = {m: _merit(m) for m in quorums}
    return Finding(
        [
            _rise_claim(values, gains),
            _small_claim(gains),
            _fall_claim(values, gains),
            _peak_claim(values, merit, updates),
            _updates_claim(accuracy, merit, updates),
        ],
        [_table(accuracy, gains, updates, merit)],
        {"accuracy": lambda: _draw(accuracy, updates, merit)},
        notes=[
            "The clients' response times are the same for all quorums of a seed. Where no round "
            "of a run has fewer reports than the quorum, the run is the same as that of quorum 1, "
            "and the difference is exactly 0.",
            "g(M) does not predict accuracy because it comes from bounding 1/n by 1/M, while all "
            "n reports are averaged whatever the quorum is (see Remark 4 in docs/paper.md).",
            *outlier_notes(rows, "quorum"),
            "The paper gives neither the numbers of this figure nor rate, batch, widths, local "
            "work or samples per client; these come from the search. It says that accuracy may not "
            "rise for all iid data.",
        ],
    )


def _merit(quorum: int) -> float:
    """The paper's g(M)."""
    return cafe.expect(
        trials.load_scenario(NAME).federation, quorum=quorum, deadline=DEADLINE
    ).merit


def _rise_claim(values: Accuracies, gains: Estimates) -> Claim:
    """Holds if some gain is significant at a shared level; in part if only at the plain level.

    The level is shared because one of several gains is above 0 by chance more often.
    """
    inner = {m: gain for m, gain in gains.items() if m <= INNER}
    same = [str(m) for m in gains if values[m] == values[min(values)]]
    note = f"With {', '.join(same)} every run is exactly the same as with 1."
    return Claim(
        f"A quorum between 1 and {INNER} is slightly more accurate than quorum 1",
        judge(
            any(is_positive(gain, LEVEL / len(inner)) for gain in inner.values()),
            any(is_positive(gain) for gain in inner.values()),
        ),
        f"Gain over quorum 1: {list_estimates(inner, digits=4)}. {note if same else ''}".strip(),
    )


def _small_claim(gains: Estimates) -> Claim:
    """Holds if no confidence interval reaches a large gain; in part if no mean is large."""
    best = max(gains, key=lambda quorum: gains[quorum].mean)
    return Claim(
        f"The gain of a larger quorum over quorum 1 is very small (less than {SMALL:g} of "
        "accuracy)",
        judge(
            all(_upper_end(gain) < SMALL for gain in gains.values()),
            all(gain.mean < SMALL for gain in gains.values()),
        ),
        f"The largest gain is {list_estimates({best: gains[best]}, digits=4)}; at 95 % confidence "
        f"no gain is above {max(_upper_end(gain) for gain in gains.values()):.4f}.",
    )


def _upper_end(gain: Estimate) -> float:
    """The upper end of the 95 % interval."""
    return gain.mean + (gain.interval() if gain.error > 0 else 0.0)


def _fall_claim(values: Accuracies, gains: Estimates) -> Claim:
    """Judge the fall to the last quorum, and list the largest change up to ``INNER``."""
    last, kept = max(values), max(m for m in values if m <= INNER)
    fall = paired(values[kept], values[last])
    before = max((abs(gain.mean) for m, gain in gains.items() if m <= INNER), default=0.0)
    return Claim(
        f"Accuracy falls sharply towards quorum {last} (by {SHARP:g} at least)",
        judge_sharp_fall(fall),
        f"From {kept} to {last} it falls by {with_error(fall, 4)}; up to {INNER} it changes by at "
        f"most {before:.4f}.",
    )


def judge_sharp_fall(fall: Estimate) -> ClaimVerdict:
    """Holds if a fall is significant and large, in part if it is only significant."""
    return judge(is_positive(fall) and fall.mean >= SHARP, is_positive(fall))


def _peak_claim(values: Accuracies, merit: Values, updates: Values) -> Claim:
    """Holds if accuracy rises up to the peak of g(M) and falls after it; in part if only one."""
    first, last, top = min(values), max(values), max(merit, key=lambda m: merit[m])
    rise, fall = paired(values[top], values[first]), paired(values[top], values[last])
    return Claim(
        f"Accuracy follows g(M), which rises up to {top} and falls from there (Remark 4, Fig. 6)",
        judge_all([is_positive(rise), is_positive(fall)]),
        f"From {first} to {top} g(M) goes from {merit[first]:.1f} to {merit[top]:.1f} and accuracy "
        f"changes by {with_error(rise, 4)}. From {top} to {last} g(M) falls to {merit[last]:.1f}, "
        f"updates from {updates[top]:.0f} to {updates[last]:.0f}, and accuracy by "
        f"{with_error(fall, 4)}.",
    )


def _updates_claim(accuracy: Estimates, merit: Values, updates: Values) -> Claim:
    """Whether the updates order the quorums as accuracy does, and better than g(M)."""
    means = [found.mean for found in accuracy.values()]
    by_updates = rank_correlation(means, [updates[m] for m in accuracy])
    by_merit = rank_correlation(means, [merit[m] for m in accuracy])
    return Claim(
        "Beyond the paper: accuracy follows the number of updates rather than g(M)",
        judge(by_updates > by_merit and by_updates >= 0.7, by_updates > by_merit),
        f"The rank correlation of accuracy with updates is {by_updates:.2f}, with g(M) "
        f"{by_merit:.2f}, over {len(accuracy)} quorums.",
    )


def rank_correlation(values: Sequence[float], others: Sequence[float]) -> float:
    """Spearman's rank correlation; 0 where all values of one are equal."""
    from scipy.stats import rankdata

    ranks = rankdata(values), rankdata(others)
    if min(np.ptp(part) for part in ranks) == 0:
        return 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def _table(accuracy: Estimates, gains: Estimates, updates: Values, merit: Values) -> Cells:
    return table(
        "Accuracy after 1000 rounds, mean ± standard error",
        (
            {
                "quorum": f"{m}",
                "updates": f"{updates[m]:.0f}",
                "expected updates": f"{trials.expected_updates(NAME, m, DEADLINE):.0f}",
                "g(M)": f"{merit[m]:.1f}",
                "accuracy": with_error(accuracy[m], 4),
                "gain over quorum 1": with_error(gains[m], 4) if m in gains else "-",
            }
            for m in accuracy
        ),
    )


def _draw(accuracy: Estimates, updates: Values, merit: Values) -> pictures.Figure:
    """Accuracy, and below it updates and g(M), each divided by its largest value."""
    picture = pictures.figure(7.0, 5.6)
    upper, lower = picture.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    pictures.draw_lines(upper, {"accuracy": accuracy})
    upper.set(ylabel="accuracy after 1000 rounds")
    exact = {
        label: {m: Estimate(by[m] / (max(by.values()) or 1.0), 0.0, 1) for m in by}
        for label, by in (("updates", updates), ("g(M)", merit))
    }
    pictures.draw_lines(lower, exact)
    lower.set(xlabel="quorum", ylabel="part of the largest", ylim=(0, 1.08))
    for axes in (upper, lower):
        pictures.tidy(axes)
    upper.get_legend().remove()
    return picture


EXPERIMENT = Experiment(
    NAME,
    "Fig. 7, Sec. 8.1",
    "accuracy against the quorum, iid data",
    run,
    conclude,
)
