"""Fig. 7: accuracy against the quorum where every client holds all classes alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, mean, paired
from cafe.report.cells import Cells
from cafe.reproduce.experiments.noniid_quorum import quorum_changes
from cafe.reproduce.findings import (
    LEVEL,
    Claim,
    ClaimVerdict,
    Effort,
    Experiment,
    Finding,
    Rows,
    above,
    outlier_notes,
    shown,
)
from cafe.reproduce.pictures import figure, lines, tidy
from cafe.reproduce.trials import (
    Row,
    Trial,
    TrialProgress,
    column,
    expected_updates,
    load_scenario,
    measured,
    points,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, SEEDS = "fig-iid-quorum", 10
DEADLINE = 0.5
QUORUMS = (1, 10, 20, 25, 30, 33, 35, 37, 40)
INNER = 30  # up to this quorum the paper has accuracy rise
SMALL = 0.01  # of accuracy: what the paper may have called very small
SHARP = 0.02  # of accuracy: a sharp fall

Leads = Mapping[int, Estimate]


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Every quorum, on the same seeds."""
    trials = [
        Trial(NAME, at, seed, None, quorum_changes(at["quorum"], DEADLINE), effort.rounds)
        for at in points(quorum=effort.thin(QUORUMS))
        for seed in effort.seeds(SEEDS)
    ]
    return measured(trials, progress)


def conclude(rows: Rows) -> Finding:
    """Level as long as no round fails, then down with the number of updates."""
    quorums = sorted({row["quorum"] for row in rows})
    values = {m: [*column(rows, "accuracy", quorum=m)] for m in quorums}
    found = {m: mean(values[m]) for m in quorums}
    gains = {m: paired(values[m], values[quorums[0]]) for m in quorums[1:]}
    inner = {m: gain for m, gain in gains.items() if m <= INNER}
    updates = {m: mean([*column(rows, "updates", quorum=m)]).mean for m in quorums}
    merit = {m: _merit(m) for m in quorums}
    same = [m for m in gains if values[m] == values[quorums[0]]]
    return Finding(
        [
            Claim(
                f"A quorum between 1 and {INNER} is slightly more accurate than quorum 1",
                _rise([*inner.values()]),
                f"Gain over quorum 1: {_list(inner)}. {_alike(same)}".strip(),
            ),
            Claim(
                "What a larger quorum gains over quorum 1 is very small "
                f"(less than {SMALL:g} of accuracy)",
                _small([*gains.values()]),
                f"The largest gain is {_list(_most(gains))}; at 95 % confidence no gain is above "
                f"{max(_at_most(gain) for gain in gains.values()):.4f}.",
            ),
            _falling(values, gains),
            _peak(values, merit, updates),
            _by_updates(found, merit, updates),
        ],
        [_table(found, gains, updates, merit)],
        {"accuracy": lambda: _drawn(found, updates, merit)},
        notes=[
            "The clients' response times are the same for all quorums of a seed. Where no round "
            "of a run has fewer reports than the quorum, the run is that of quorum 1 itself and "
            "the difference is exactly 0: there the quorum cannot matter.",
            "Why g(M) does not tell what training does: it comes from bounding 1/n by 1/M, while "
            "all n reports are averaged whatever the quorum is (see Remark 4 in docs/paper.md).",
            *outlier_notes(rows, "quorum"),
            "The paper gives no numbers of this figure, and no rate, batch, widths, local work or "
            "samples per client; they are those of the search. It says "
            "itself that the rise may not show for all iid data.",
        ],
    )


def _merit(quorum: int) -> float:
    """The paper's g(M)."""
    federation = load_scenario(NAME).federation
    return cafe.expect(federation, quorum=quorum, deadline=DEADLINE).merit


def _list(gains: Leads) -> str:
    return ", ".join(f"{shown(gain, 4)} at {quorum}" for quorum, gain in gains.items())


def _alike(same: Sequence[int]) -> str:
    if not same:
        return ""
    return f"With {', '.join(map(str, same))} every run is the same as with 1, to the last bit."


def _most(gains: Leads) -> Leads:
    best = max(gains, key=lambda quorum: gains[quorum].mean)
    return {best: gains[best]}


def _at_most(gain: Estimate) -> float:
    """The upper end of the 95 % interval."""
    return gain.mean + (gain.interval() if gain.error > 0 else 0.0)


def _rise(gains: Sequence[Estimate]) -> ClaimVerdict:
    """Holds if some gain is beyond chance at a shared level; in part if so only at the plain one.

    One of several gains is above 0 by chance more often than one alone.
    """
    if any(above(gain, LEVEL / len(gains)) for gain in gains):
        return ClaimVerdict.HOLDS
    return ClaimVerdict.IN_PART if any(above(gain) for gain in gains) else ClaimVerdict.FAILS


def _small(gains: Sequence[Estimate]) -> ClaimVerdict:
    """Holds if no gain can be large; in part if none is, though chance leaves it open."""
    if all(_at_most(gain) < SMALL for gain in gains):
        return ClaimVerdict.HOLDS
    return ClaimVerdict.IN_PART if all(gain.mean < SMALL for gain in gains) else ClaimVerdict.FAILS


def _falling(values: Mapping[int, Sequence[float]], gains: Leads) -> Claim:
    """The fall to the last quorum beside all that happens before."""
    last = max(values)
    kept = max(m for m in values if m <= INNER)
    fall = paired(values[kept], values[last])
    before = max((abs(gain.mean) for m, gain in gains.items() if m <= INNER), default=0.0)
    return Claim(
        f"Accuracy falls sharply towards quorum {last} (by {SHARP:g} at least)",
        sharp(fall),
        f"From {kept} to {last} it falls by {shown(fall, 4)}; up to {INNER} it changes by at most "
        f"{before:.4f}.",
    )


def sharp(fall: Estimate) -> ClaimVerdict:
    """A fall beyond chance; holds if it is large, too."""
    if not above(fall):
        return ClaimVerdict.FAILS
    return ClaimVerdict.HOLDS if fall.mean >= SHARP else ClaimVerdict.IN_PART


def _peak(
    values: Mapping[int, Sequence[float]],
    merit: Mapping[int, float],
    updates: Mapping[int, float],
) -> Claim:
    """Up to the peak of g(M), and down from there: half of it may hold."""
    first, last, top = min(values), max(values), max(merit, key=lambda m: merit[m])
    rise, fall = paired(values[top], values[first]), paired(values[top], values[last])
    right = above(rise) + above(fall)
    return Claim(
        f"Accuracy follows g(M), which rises up to {top} and falls from there (Remark 4, Fig. 6)",
        (ClaimVerdict.FAILS, ClaimVerdict.IN_PART, ClaimVerdict.HOLDS)[right],
        f"From {first} to {top} g(M) goes from {merit[first]:.1f} to {merit[top]:.1f} and accuracy "
        f"changes by {shown(rise, 4)}. From {top} to {last} g(M) falls to {merit[last]:.1f}, "
        f"updates from {updates[top]:.0f} to {updates[last]:.0f}, and accuracy by "
        f"{shown(fall, 4)}.",
    )


def _by_updates(found: Leads, merit: Mapping[int, float], updates: Mapping[int, float]) -> Claim:
    """Which of the two puts the quorums into the order that accuracy puts them in."""
    accuracy = [found[m].mean for m in found]
    by_updates = _ranks_agree(accuracy, [updates[m] for m in found])
    by_merit = _ranks_agree(accuracy, [merit[m] for m in found])
    verdict = ClaimVerdict.FAILS
    if by_updates > by_merit:
        verdict = ClaimVerdict.HOLDS if by_updates >= 0.7 else ClaimVerdict.IN_PART
    return Claim(
        "Beyond the paper: it is rather the number of updates that accuracy follows",
        verdict,
        f"The rank correlation of accuracy with updates is {by_updates:.2f}, with g(M) "
        f"{by_merit:.2f}, over {len(found)} quorums.",
    )


def _ranks_agree(values: Sequence[float], others: Sequence[float]) -> float:
    """Spearman's rank correlation; 0 where all of one are equal."""
    from scipy.stats import rankdata

    ranks = rankdata(values), rankdata(others)
    if min(np.ptp(part) for part in ranks) == 0:
        return 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def _table(
    found: Leads, gains: Leads, updates: Mapping[int, float], merit: Mapping[int, float]
) -> Cells:
    header = ("quorum", "updates", "expected updates", "g(M)", "accuracy", "gain over quorum 1")
    lines = [
        [
            f"{m}",
            f"{updates[m]:.0f}",
            f"{expected_updates(NAME, m, DEADLINE):.0f}",
            f"{merit[m]:.1f}",
            shown(found[m], 4),
            shown(gains[m], 4) if m in gains else "-",
        ]
        for m in found
    ]
    return Cells("Accuracy after 1000 rounds, mean ± standard error", header, lines)


def _drawn(found: Leads, updates: Mapping[int, float], merit: Mapping[int, float]) -> Figure:
    """Accuracy, and below it what it may follow, each as a part of its largest value."""
    drawn = figure(7.0, 5.6)
    upper, lower = drawn.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    lines(upper, {"accuracy": found})
    upper.set(ylabel="accuracy after 1000 rounds")
    exact = {
        label: {m: Estimate(by[m] / (max(by.values()) or 1.0), 0.0, 1) for m in by}
        for label, by in (("updates", updates), ("g(M)", merit))
    }
    lines(lower, exact)
    lower.set(xlabel="quorum", ylabel="part of the largest", ylim=(0, 1.08))
    for axes in (upper, lower):
        tidy(axes)
    upper.get_legend().remove()
    return drawn


EXPERIMENT = Experiment(
    NAME,
    "Fig. 7, Sec. 8.1",
    "accuracy and the quorum, all clients alike",
    run,
    conclude,
)
