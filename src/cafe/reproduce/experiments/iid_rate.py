"""Fig. 6: the quorum that g(M) recommends, beside the exact noise of an update."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, mean
from cafe.report.cells import Cells
from cafe.reproduce import pictures
from cafe.reproduce.agreement import LEVEL
from cafe.reproduce.claims import Claim, joint_chance, judge
from cafe.reproduce.findings import Experiment, Finding
from cafe.reproduce.measured_tables import table, with_error
from cafe.reproduce.rows import Row, Rows, group, select
from cafe.reproduce.trials import Effort, TrialProgress, run_in_turn
from cafe.theory import merit_as_printed

NAME, SEEDS, ROUNDS = "fig-iid-rate", 5, 2000
CLIENTS, RATE, DEADLINE = 100, 1.0, 0.5  # as in the figure
DEADLINES = (0.1, 0.3, 0.5, 1.0, 2.0)
PEAK, END = 33, 40  # the peak, and the end of a rapid fall, according to the text
LISTED = (1, 10, 20, 25, 30, 33, 36, 40, 45)  # quorums in the table
LEAST_SUCCESS = 1e-9  # quorums with a lower probability of success are left out
RAPID = 0.25  # share of the peak that a rapid fall loses
ROUNDING = 1e-9  # a gain over quorum 1 that may be rounding
WORSE = 0.01  # a larger relative decrease of the figure of merit is a loss
Curve = Mapping[int, Row]  # by quorum


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Both figures of merit at every quorum, and the exact one from simulated rounds."""
    rounds = effort.choose(ROUNDS, quick=300)
    simulations = [partial(simulated, seed, rounds) for seed in effort.seeds(SEEDS)]
    calculated = [row for deadline in DEADLINES for row in exact(deadline)]
    return calculated + run_in_turn(simulations, progress)


def exact(deadline: float) -> list[Row]:
    """g(M) as printed, and e_M / (1 - q)^2, the limit of the corrected Theorem 3's error."""
    federation = cafe.Federation(CLIENTS, cafe.Exponential(RATE))
    rows: list[Row] = []
    for quorum in range(1, CLIENTS + 1):
        e = cafe.expect(federation, quorum=quorum, deadline=deadline)
        if e.success_probability < LEAST_SUCCESS:
            break
        error = e.noise_factor / e.success_probability**2
        first = rows[0]["error"] if rows else error
        rows.append(
            {
                "kind": "exact",
                "deadline": deadline,
                "quorum": quorum,
                "g": merit_as_printed(CLIENTS, RATE, quorum, deadline),
                "success": e.success_probability,
                "noise": e.noise_factor,
                "error": error,
                # Kept because the errors of some quorums differ by less than the kept digits.
                "gain": first / error - 1,
            }
        )
    return rows


def simulated(seed: int, rounds: int) -> list[Row]:
    """Success and noise from one run, which serves all quorums: they do not change who reports."""
    federation = cafe.Federation(CLIENTS, cafe.Exponential(RATE))
    policy = cafe.policies.mcu(quorum=1, deadline=DEADLINE)
    history = cafe.simulate(federation, policy, seed=seed, rounds=rounds)
    reports = history.by_round["reports"]
    return [
        {
            "kind": "simulated",
            "deadline": DEADLINE,
            "quorum": quorum,
            "seed": seed,
            "success": float((reports >= quorum).mean()),
            "noise": float(np.mean(np.where(reports >= quorum, 1 / np.maximum(reports, 1), 0.0))),
        }
        for quorum in LISTED
    ]


def conclude(rows: Rows) -> Finding:
    """Judge the shape of g(M), and what it says about convergence."""
    curves = {t: _curve(own) for (t,), own in group(select(rows, kind="exact"), "deadline").items()}
    curve = curves[DEADLINE]
    runs = select(rows, kind="simulated")
    merit = _simulated_merit(runs, curve)
    return Finding(
        [
            _peak_claim(curve),
            _fall_claim(curve),
            _ranking_claim(curve, merit),
            _indication_claim(curve),
            _simulation_claim(runs, curve),
        ],
        [_table(curve, merit), _deadline_table(curves)],
        {"rate": partial(_draw, curve, merit)},
        notes=[
            "The exact figure of merit is (1-q)² / E[1/n; n ≥ M]: where the variance of stochastic "
            "gradients is all that matters, the error after many rounds is proportional to its "
            "inverse (the corrected Theorem 3, equal clients, one local step). g(M) comes from the "
            "same bound with 1/M in place of 1/n and a looser share of a client.",
            "Both figures are divided by their value at quorum 1 or at their peak: neither has a "
            "unit. `fig-iid-quorum` shows what training does.",
        ],
    )


def _curve(rows: Rows) -> dict[int, Row]:
    """A deadline's rows by quorum, each with its figure of merit divided by that of quorum 1."""
    return {row["quorum"]: {**row, "merit": 1 + row["gain"]} for row in rows}


def _best(curve: Curve, name: str) -> int:
    return max(curve, key=lambda quorum: float(curve[quorum][name]))


def _extra_error(curve: Curve, quorum: int) -> float:
    """How much larger the error is than at quorum 1, relatively."""
    return float(curve[quorum]["error"] / curve[1]["error"] - 1)


def _simulated_merit(runs: Rows, curve: Curve) -> dict[int, Estimate]:
    """The figure of merit from simulated rounds, where enough of them succeed."""
    by_quorum: dict[int, list[float]] = {}
    for row in runs:
        if curve[row["quorum"]]["success"] > 0.05 and row["noise"]:
            merit = row["success"] ** 2 / row["noise"] * curve[1]["error"]
            by_quorum.setdefault(row["quorum"], []).append(merit)
    return {quorum: mean(values) for quorum, values in by_quorum.items()}


def _peak_claim(curve: Curve) -> Claim:
    top = _best(curve, "g")
    return Claim(
        f"M Pr(ñ ≥ M-1) is largest around M={PEAK} (Sec. 8.1)",
        judge(abs(top - PEAK) <= 1),
        f"The peak is g({top}) = {curve[top]['g']:.2f}; g({top - 1}) = "
        f"{curve[top - 1]['g']:.2f} and g({top + 1}) = {curve[top + 1]['g']:.2f}.",
    )


def _fall_claim(curve: Curve) -> Claim:
    lost = 1 - curve[END]["g"] / curve[_best(curve, "g")]["g"]
    return Claim(
        f"It falls rapidly towards M={END} (by {RAPID:.0%} of the peak at least)",
        judge(lost >= RAPID),
        f"g({END}) = {curve[END]['g']:.2f}, {lost:.0%} below the peak.",
    )


def _ranking_claim(curve: Curve, merit: Mapping[int, Estimate]) -> Claim:
    """Remark 4: the larger g, the better the quorum; so its peak must be better than quorum 1."""
    top, best, order = _best(curve, "g"), _best(curve, "merit"), _rank_correlation(curve)
    flat = max(m for m in curve if all(curve[k]["merit"] > 1 - WORSE for k in range(1, m + 1)))
    measured = ""
    if top in merit:
        measured = f" ({100 * (1 / merit[top].mean - 1):.1f} % in simulated rounds)"
    return Claim(
        "With noisy gradients convergence is the faster the larger M Pr(ñ ≥ M-1) is (Remark 4)",
        judge(curve[top]["merit"] >= 1 and order > 0.9),
        f"The peak of g, M={top}, has {100 * _extra_error(curve, top):.1f} % more error than "
        f"quorum 1{measured}, and M={END} {100 * _extra_error(curve, END):.0f} % more, where g is "
        f"{curve[top]['g'] / curve[1]['g']:.0f} and {curve[END]['g'] / curve[1]['g']:.0f} times "
        f"that of quorum 1. The exact figure is flat within {WORSE:.0%} up to M={flat}; M={best} "
        f"is best, by {curve[best]['gain']:.0e}. The rank correlation of the two over M is "
        f"{order:+.2f}.",
    )


def _rank_correlation(curve: Curve) -> float:
    """Spearman's correlation of g and the exact figure, over quorums with g >= g(1)."""
    quorums = [m for m in curve if curve[m]["g"] >= curve[1]["g"]]
    g, merit = (
        np.argsort(np.argsort([curve[m][name] for m in quorums])) for name in ("g", "merit")
    )
    return float(np.corrcoef(g, merit)[0, 1])


def _indication_claim(curve: Curve) -> Claim:
    """The weaker statement of Sec. 8.1: where g has fallen, accuracy has fallen too."""
    top = _best(curve, "g")
    g, merit = (
        min(m for m in curve if m > top and curve[m][name] < peak / 2)
        for name, peak in (("g", curve[top]["g"]), ("merit", 1.0))
    )
    near, late = abs(g - merit) <= 3, curve[top]["merit"] < 1 - WORSE
    return Claim(
        "The graph of g shows from which quorum on accuracy suffers (Sec. 8.1)",
        judge(near and not late, near),
        f"g has fallen to half of its peak at M={g}, and the exact figure to half of its value at "
        f"quorum 1 at M={merit}; but at the peak of g {100 * (1 - curve[top]['merit']):.1f} % of "
        "the exact figure are already lost.",
    )


def _simulation_claim(runs: Rows, curve: Curve) -> Claim:
    """Test E[1/n; n >= M] and the success probability at each quorum, over the seeds."""
    tests = {
        (quorum, name): mean([row[name] for row in own]).chance(curve[quorum][name])
        for (quorum,), own in group(runs, "quorum").items()
        for name in ("noise", "success")
    }
    chances = {at: chance for at, chance in tests.items() if chance == chance}  # not constant
    quorum, name = min(chances, key=lambda at: chances[at])
    joint = joint_chance(chances.values())
    return Claim(
        "Beyond the paper: simulated rounds have the exact E[1/n; n ≥ M] and success",
        judge(joint >= LEVEL),
        f"Of {len(chances)} figures the {name} at M={quorum} differs most; for all together "
        f"p = {joint:.2g} (Bonferroni; the claim would fail below {LEVEL:g}).",
    )


def _table(curve: Curve, merit: Mapping[int, Estimate]) -> Cells:
    top = _best(curve, "g")
    return table(
        f"Two figures of merit (N={CLIENTS}, T={DEADLINE:g})",
        (
            {
                "quorum": f"{m}",
                "g": f"{curve[m]['g']:.2f}",
                "g, of its peak": f"{curve[m]['g'] / curve[top]['g']:.3f}",
                "success": f"{curve[m]['success']:.3f}",
                "E[1/n; n ≥ M] / (1-q)²": f"{curve[m]['error']:.5f}",
                "exact merit, of quorum 1": f"{curve[m]['merit']:.4f}",
                "simulated": with_error(merit[m], 4) if m in merit else "-",
            }
            for m in sorted({*LISTED, top})
        ),
    )


def _deadline_table(curves: Mapping[float, Curve]) -> Cells:
    lines = []
    for deadline, curve in curves.items():
        top, best = _best(curve, "g"), _best(curve, "merit")
        if curve[best]["gain"] < ROUNDING:
            best = 1
        lines.append(
            {
                "deadline": f"{deadline:g}",
                "peak of g": f"{top}",
                "its error against quorum 1": f"{_extra_error(curve, top):+.1%}",
                "exact best": f"{best}",
                "its gain over 1": f"{curve[best]['gain']:.1e}",
            }
        )
    return table("Other deadlines", lines)


def _draw(curve: Curve, merit: Mapping[int, Estimate]) -> pictures.Figure:
    picture, axes = pictures.single_panel(8.2, 4.4)
    blue, orange = pictures.COLOURS[:2]
    top = _best(curve, "g")
    quorums = [m for m in curve if curve[m]["g"] >= 0.001 * curve[top]["g"] or m <= top]
    axes.plot(
        quorums, [curve[m]["g"] / curve[top]["g"] for m in quorums], color=blue,
        label="g(M), of its peak", ms=3, marker="o", lw=1.4,
    )  # fmt: skip
    axes.plot(
        quorums, [curve[m]["merit"] for m in quorums], color=orange, ls="--", lw=1.8,
        label="exact figure of merit, of quorum 1",
    )  # fmt: skip
    pictures.draw_error_bars(
        axes, merit, errors=2, ls="none", marker="s", ms=4.5, color=orange, mfc="white",
        label="the same, from simulated rounds",
    )  # fmt: skip
    axes.annotate(
        f"g({top}) = {curve[top]['g']:.2f}", (top, 1.0), xytext=(6, 12),
        textcoords="offset points", fontsize=8, color=blue,
    )  # fmt: skip
    axes.set(xlabel="quorum", ylabel="figure of merit", ylim=(0, 1.15))
    pictures.tidy(axes)
    axes.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.28, 0.02))
    return picture


EXPERIMENT = Experiment(
    NAME,
    "Fig. 6, Remark 4, Sec. 8.1",
    "the figure of merit M Pr(ñ ≥ M-1) over the quorum",
    run,
    conclude,
)
