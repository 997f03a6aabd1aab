"""Fig. 5: accuracy over the rounds for several quorums; each client has all classes equally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cafe.analysis.statistics import mean, paired
from cafe.latency.base import Floats
from cafe.report.cells import Cells
from cafe.reproduce import pictures
from cafe.reproduce.claims import (
    Claim,
    is_negative,
    is_positive,
    judge,
    judge_all,
    judge_at_most,
)
from cafe.reproduce.experiments.iid_quorum import INNER, SHARP, judge_sharp_fall
from cafe.reproduce.findings import Experiment, Finding
from cafe.reproduce.measured_tables import table, with_error
from cafe.reproduce.rows import Row, Rows, column, levels, select
from cafe.reproduce.trials import Effort, Trial, TrialProgress, grid, repeat_trials, run_trials
from cafe.rounds import History

NAME, SEEDS = "fig-iid-rounds", 5
QUORUMS = (1, 10, 20, 30, 35, 40)
LISTED = 5  # number of rounds in the table

Curves = Mapping[int, Mapping[str, Floats]]  # by quorum: a row per seed, a column per round


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Run every quorum, on the same seeds, with a row for each evaluation of the model."""
    points = grid(quorum=effort.thin(QUORUMS))
    trials = repeat_trials(NAME, points, SEEDS, lambda at: {"policy.quorum": at["quorum"]}, effort)
    return run_trials(trials, effort, progress, _curve_rows)


def _curve_rows(trial: Trial, history: History) -> list[Row]:
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
    """Compare the curves at their ends and as a whole, against rounds and against updates."""
    curves = {m: _curve(select(rows, quorum=m)) for m in levels(rows, "quorum")}
    first, last = min(curves), max(curves)
    inner = max(m for m in curves if m <= INNER)
    rounds = levels(rows, "round")
    gain = paired(_final(curves, inner), _final(curves, first))
    fall = paired(_final(curves, first), _final(curves, last))
    significant = is_positive(gain) or is_negative(gain)
    return Finding(
        [
            Claim(
                f"In the end quorum {inner} is at or above quorum {first}",
                judge(is_positive(gain), not is_negative(gain)),
                f"Quorum {inner} minus quorum {first} after {rounds[-1]} rounds: "
                f"{with_error(gain, 4)}{'.' if significant else ', which is not significant.'}",
            ),
            Claim(
                f"In the end quorum {last} is far below (by {SHARP:g} at least)",
                judge_sharp_fall(fall),
                f"Quorum {first} minus quorum {last} after {rounds[-1]} rounds: "
                f"{with_error(fall, 4)}.",
            ),
            _order_claim(curves, inner),
            _updates_claim(curves),
        ],
        [_table(curves, rounds)],
        {"accuracy": lambda: _draw(curves, rounds)},
        notes=[
            "The setting is that of `fig-iid-quorum`, which has the "
            "accuracies after the last round for more quorums and seeds.",
            "Curves that coincide are the same runs: no round had fewer reports than the quorum. "
            "Bands are standard errors over seeds.",
        ],
    )


def _curve(rows: Rows) -> dict[str, Floats]:
    """Rounds, updates and accuracies: a row per seed, a column per evaluation."""
    return {
        name: np.array([column(rows, name, round=r) for r in levels(rows, "round")]).T
        for name in ("round", "updates", "accuracy")
    }


def _final(curves: Curves, quorum: int) -> Floats:
    """Each seed's accuracy after the last round."""
    return np.asarray(curves[quorum]["accuracy"][:, -1], dtype=float)


def _average(curves: Curves, quorum: int) -> Floats:
    """Each seed's accuracy, averaged over its curve."""
    return np.asarray(curves[quorum]["accuracy"].mean(axis=1))


def _order_claim(curves: Curves, inner: int) -> Claim:
    """Judge which quorums have the highest and the lowest accuracy, averaged over the run."""
    first, last = min(curves), max(curves)
    gain = paired(_average(curves, inner), _average(curves, first))
    falls = [paired(_average(curves, m), _average(curves, last)) for m in curves if m != last]
    means = sorted(curves, key=lambda m: -_average(curves, m).mean())
    order = ", ".join(f"{m} ({_average(curves, m).mean():.4f})" for m in means)
    return Claim(
        f"Over the whole run the curve of quorum {inner} is above that of {first}, and that of "
        f"{last} is the lowest",
        judge_all([is_positive(gain), all(is_positive(fall) for fall in falls)]),
        f"Averaged over the curve, highest first: {order}. Quorum {inner} minus quorum {first}: "
        f"{with_error(gain, 4)}; the next lowest minus quorum {last}: "
        f"{with_error(min(falls, key=lambda fall: fall.mean), 4)}.",
    )


def _updates_claim(curves: Curves) -> Claim:
    """Compare the gap to quorum 1 at equal updates with that at equal rounds."""
    first, last = min(curves), max(curves)
    at_rounds, at_updates = (mean(_gaps(curves, last, by)) for by in ("round", "updates"))
    left = abs(at_updates.mean) / at_rounds.mean if at_rounds.mean > 0 else float("nan")
    return Claim(
        "Beyond the paper: plotted against updates instead of rounds, the curves coincide (at most "
        "a fifth of the gap is left)",
        judge_at_most(left, 0.2, 0.5),
        f"Quorum {first} minus quorum {last}, averaged over the curve: {with_error(at_rounds, 4)} "
        f"at equal rounds, {with_error(at_updates, 4)} at equal updates.",
    )


def _gaps(curves: Curves, quorum: int, by: str) -> list[float]:
    """How far each seed of a quorum is below quorum 1 on average, where both were evaluated."""
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
    listed = dict.fromkeys(rounds[(len(rounds) - 1) * i // (LISTED - 1)] for i in range(LISTED))
    return table(
        "Accuracy over the rounds, mean ± standard error",
        (
            {"quorum": f"{quorum}", "updates": f"{curve['updates'][:, -1].mean():.0f}"}
            | {
                f"round {r}": with_error(mean(curve["accuracy"][:, rounds.index(r)]), 4)
                for r in listed
            }
            for quorum, curve in curves.items()
        ),
    )


def _draw(curves: Curves, rounds: Sequence[int]) -> pictures.Figure:
    """Accuracy against rounds, as in the paper, and against updates."""
    picture = pictures.figure(9.6, 4.0)
    left, right = picture.subplots(1, 2, sharey=True)
    for axes, by in ((left, "round"), (right, "updates")):
        for index, (quorum, curve) in enumerate(curves.items()):
            x = curve[by].mean(axis=0)
            points = [mean(values) for values in curve["accuracy"].T]
            middle = np.array([point.mean for point in points])
            error = np.nan_to_num([point.error for point in points])
            style: dict[str, Any] = {**pictures.line_style(index), "lw": 1.4}
            axes.plot(x, middle, label=f"M = {quorum}", **style)
            axes.fill_between(x, middle - error, middle + error, color=style["color"], alpha=0.2)
        pictures.tidy(axes)
    # The first rounds, in which accuracy rises steeply, are cut off.
    early = int(np.searchsorted(rounds, rounds[-1] / 10))
    low = min(curve["accuracy"][:, early].mean() for curve in curves.values())
    high = max(curve["accuracy"].mean(axis=0).max() for curve in curves.values())
    margin = 0.03 * (high - low) + 1e-3
    left.set(xlabel="rounds", ylabel="accuracy", ylim=(low - margin, high + margin))
    right.set(xlabel="updates")
    left.get_legend().remove()
    return picture


EXPERIMENT = Experiment(
    NAME,
    "Fig. 5, Sec. 8.1",
    "accuracy over the rounds, iid data",
    run,
    conclude,
)
