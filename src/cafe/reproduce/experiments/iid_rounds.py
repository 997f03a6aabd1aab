"""Fig. 5: accuracy over the rounds for several quorums, every client holding all classes alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cafe.analysis.statistics import mean, paired
from cafe.latency.base import Floats
from cafe.report.cells import Cells
from cafe.report.plotting import line_style
from cafe.reproduce.experiments.iid_quorum import INNER, SHARP, sharp
from cafe.reproduce.findings import (
    Claim,
    ClaimVerdict,
    Effort,
    Experiment,
    Finding,
    Rows,
    above,
    below,
    shown,
)
from cafe.reproduce.pictures import figure, tidy
from cafe.reproduce.trials import Row, Trial, TrialProgress, column, measured, points
from cafe.rounds import History

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, SEEDS = "fig-iid-rounds", 5
QUORUMS = (1, 10, 20, 30, 35, 40)
SHOWN = 5  # rounds of the table

Curves = Mapping[int, Mapping[str, Floats]]  # by quorum: a row per seed, a column per round


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Every quorum, on the same seeds, with a row each time the model is measured."""
    trials = [
        Trial(NAME, at, seed, None, {"policy.quorum": at["quorum"]}, effort.rounds)
        for at in points(quorum=effort.thin(QUORUMS))
        for seed in effort.seeds(SEEDS)
    ]
    return measured(trials, progress, _curve)


def _curve(trial: Trial, history: History) -> list[Row]:
    curve = history.curve
    assert curve is not None
    accuracy = np.nan_to_num(curve.accuracy)  # a model that diverged gets nothing right
    return [
        {
            **trial.point,
            "seed": trial.seed,
            "round": int(curve.round[i]),
            "updates": int(curve.updates[i]),
            "accuracy": float(accuracy[i]),
        }
        for i in range(len(curve))
    ]


def conclude(rows: Rows) -> Finding:
    """Curves against rounds lie apart as their updates do; against updates they are one."""
    curves = _curves(rows)
    first, last = min(curves), max(curves)
    inner = max(m for m in curves if m <= INNER)
    rounds = sorted({row["round"] for row in rows})
    gain = paired(_end(curves, inner), _end(curves, first))
    fall = paired(_end(curves, first), _end(curves, last))
    return Finding(
        [
            Claim(
                f"In the end quorum {inner} is at or above quorum {first}",
                ClaimVerdict.HOLDS
                if above(gain)
                else ClaimVerdict.FAILS
                if below(gain)
                else ClaimVerdict.IN_PART,
                f"Quorum {inner} minus quorum {first} after {rounds[-1]} rounds: {shown(gain, 4)}"
                f"{'.' if above(gain) or below(gain) else ', which chance alone can bring.'}",
            ),
            Claim(
                f"In the end quorum {last} is far below (by {SHARP:g} at least)",
                sharp(fall),
                f"Quorum {first} minus quorum {last} after {rounds[-1]} rounds: {shown(fall, 4)}.",
            ),
            _order(curves, inner),
            _together(curves),
        ],
        [_table(curves, rounds)],
        {"accuracy": lambda: _drawn(curves, rounds)},
        notes=[
            "The setting is that of `fig-iid-quorum`, which has the "
            "accuracies after the last round for more quorums and seeds.",
            "Curves that lie on each other are the same runs: no round had fewer reports than "
            "the quorum. Bands are standard errors over seeds.",
        ],
    )


def _curves(rows: Rows) -> Curves:
    """What was measured, by quorum."""
    found = {}
    for quorum in sorted({row["quorum"] for row in rows}):
        rounds = sorted({row["round"] for row in rows if row["quorum"] == quorum})
        found[quorum] = {
            what: np.array([[*column(rows, what, quorum=quorum, round=r)] for r in rounds]).T
            for what in ("round", "updates", "accuracy")
        }
    return found


def _end(curves: Curves, quorum: int) -> Floats:
    """Each seed's accuracy after the last round."""
    return np.asarray(curves[quorum]["accuracy"][:, -1], dtype=float)


def _whole(curves: Curves, quorum: int) -> Floats:
    """Each seed's accuracy, averaged over its curve."""
    return np.asarray(curves[quorum]["accuracy"].mean(axis=1))


def _order(curves: Curves, inner: int) -> Claim:
    """The top and the bottom of the picture, over the whole run."""
    first, last = min(curves), max(curves)
    gain = paired(_whole(curves, inner), _whole(curves, first))
    falls = {m: paired(_whole(curves, m), _whole(curves, last)) for m in curves if m != last}
    lowest = all(above(fall) for fall in falls.values())
    means = sorted(curves, key=lambda m: -_whole(curves, m).mean())
    order = ", ".join(f"{m} ({_whole(curves, m).mean():.4f})" for m in means)
    return Claim(
        f"Over the whole run the curve of quorum {inner} is above that of {first}, and that of "
        f"{last} is the lowest",
        (ClaimVerdict.FAILS, ClaimVerdict.IN_PART, ClaimVerdict.HOLDS)[above(gain) + lowest],
        f"Averaged over the curve, highest first: {order}. Quorum {inner} minus quorum {first}: "
        f"{shown(gain, 4)}; the next lowest minus quorum {last}: "
        f"{shown(min(falls.values(), key=lambda fall: fall.mean), 4)}.",
    )


def _together(curves: Curves) -> Claim:
    """The gap to quorum 1 at equal rounds, and what is left of it at equal updates."""
    first, last = min(curves), max(curves)
    at_rounds, at_updates = (mean(_gaps(curves, last, by)) for by in ("round", "updates"))
    left = abs(at_updates.mean) / at_rounds.mean if at_rounds.mean > 0 else float("nan")
    verdict = ClaimVerdict.FAILS
    if left <= 0.5:
        verdict = ClaimVerdict.HOLDS if left <= 0.2 else ClaimVerdict.IN_PART
    return Claim(
        "Beyond the paper: against updates instead of rounds the curves fall together (a fifth of "
        "the gap is left at most)",
        verdict,
        f"Quorum {first} minus quorum {last}, averaged over the curve: {shown(at_rounds, 4)} at "
        f"equal rounds, {shown(at_updates, 4)} at equal updates.",
    )


def _gaps(curves: Curves, quorum: int, by: str) -> list[float]:
    """How far each seed of a quorum is below quorum 1 on average, where both were measured."""
    base, own = curves[min(curves)], curves[quorum]
    gaps = []
    for seed in range(len(own[by])):
        x = own[by][seed]
        shared = x >= base[by][seed][0]
        there = np.interp(x, base[by][seed], base["accuracy"][seed])
        apart = (there - own["accuracy"][seed])[shared]
        gaps.append(float(apart.mean()) if apart.size else float("nan"))
    return gaps


def _table(curves: Curves, rounds: Sequence[int]) -> Cells:
    picked = [rounds[(len(rounds) - 1) * i // (SHOWN - 1)] for i in range(SHOWN)]
    picked = [*dict.fromkeys(picked)]
    lines = []
    for quorum, curve in curves.items():
        cells = [shown(mean(curve["accuracy"][:, rounds.index(r)]), 4) for r in picked]
        lines.append([f"{quorum}", f"{curve['updates'][:, -1].mean():.0f}", *cells])
    header = ("quorum", "updates", *(f"round {r}" for r in picked))
    return Cells("Accuracy over the rounds, mean ± standard error", header, lines)


def _drawn(curves: Curves, rounds: Sequence[int]) -> Figure:
    """Against rounds, as in the paper, and against updates."""
    drawn = figure(9.6, 4.0)
    left, right = drawn.subplots(1, 2, sharey=True)
    for axes, by in ((left, "round"), (right, "updates")):
        for index, (quorum, curve) in enumerate(curves.items()):
            x = curve[by].mean(axis=0)
            points = [mean(values) for values in curve["accuracy"].T]
            middle = np.array([point.mean for point in points])
            error = np.nan_to_num([point.error for point in points])
            style: dict[str, Any] = {**line_style(index), "lw": 1.4}
            axes.plot(x, middle, label=f"M = {quorum}", **style)
            axes.fill_between(x, middle - error, middle + error, color=style["color"], alpha=0.2)
        tidy(axes)
    # The first rounds climb from guessing; what differs is above.
    early = int(np.searchsorted(rounds, rounds[-1] / 10))
    low = min(curve["accuracy"][:, early].mean() for curve in curves.values())
    high = max(curve["accuracy"].mean(axis=0).max() for curve in curves.values())
    margin = 0.03 * (high - low) + 1e-3
    left.set(xlabel="rounds", ylabel="accuracy", ylim=(low - margin, high + margin))
    right.set(xlabel="updates")
    left.get_legend().remove()
    return drawn


EXPERIMENT = Experiment(
    NAME,
    "Fig. 5, Sec. 8.1",
    "accuracy over the rounds, all clients alike",
    run,
    conclude,
)
