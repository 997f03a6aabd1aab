"""Fig. 6: the quorum that g(M) recommends, beside what the noise of an update really says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, mean
from cafe.report.cells import Cells
from cafe.report.plotting import COLOURS
from cafe.reproduce.findings import Claim, ClaimVerdict, Effort, Experiment, Finding, Rows, shown
from cafe.reproduce.pictures import figure, tidy
from cafe.reproduce.trials import Row, TrialProgress
from cafe.theory import merit_as_printed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, SEEDS, ROUNDS = "fig-iid-rate", 5, 2000
CLIENTS, RATE, DEADLINE = 100, 1.0, 0.5  # as in the figure
DEADLINES = (0.1, 0.3, 0.5, 1.0, 2.0)
STATED = (33, 40)  # where the text sees the peak, and the end of a rapid fall
LISTED = (1, 10, 20, 25, 30, 33, 36, 40, 45)  # in the table
HARDLY = 1e-9  # success below which a quorum is out of the question
RAPID = 0.25  # of the peak, lost over those few quorums
ROUNDING = 1e-9  # a gain over quorum 1 that is none
WORSE = 0.01  # of the figure of merit: more is a loss


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Both figures of merit at every quorum, and the exact one from simulated rounds."""
    rows = [row for deadline in DEADLINES for row in exact(deadline)]
    rounds = ROUNDS if effort.rounds is None else 10 * effort.rounds
    seeds = effort.seeds(SEEDS)
    for done, seed in enumerate(seeds):
        progress(done, len(seeds))
        rows += simulated(seed, rounds)
    progress(len(seeds), len(seeds))
    return rows


def exact(deadline: float) -> list[Row]:
    """g(M) as printed, and e_M / (1 - q)^2, to which the error of the corrected Theorem 3 goes."""
    federation = cafe.Federation(CLIENTS, cafe.Exponential(RATE))
    rows: list[Row] = []
    first = cafe.expect(federation, quorum=1, deadline=deadline)
    for quorum in range(1, CLIENTS + 1):
        e = cafe.expect(federation, quorum=quorum, deadline=deadline)
        if e.success_probability < HARDLY:
            break
        rows.append(
            {
                "kind": "exact",
                "deadline": deadline,
                "quorum": quorum,
                "g": merit_as_printed(CLIENTS, RATE, quorum, deadline),
                "success": e.success_probability,
                "noise": e.noise_factor,
                "error": _error(e),
                # For itself: quorums differ by less than the digits that are kept of an error.
                "gain": _error(first) / _error(e) - 1,
            }
        )
    return rows


def _error(e: cafe.theory.Expectation) -> float:
    return e.noise_factor / e.success_probability**2


def simulated(seed: int, rounds: int) -> list[Row]:
    """The same from a run. Who reports does not depend on the quorum: one run serves them all."""
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
    """The picture is right; what it is taken to say is not."""
    by_deadline = {t: _curve(rows, t) for t in dict.fromkeys(row["deadline"] for row in rows)}
    curve = by_deadline[DEADLINE]
    found = _found(rows, curve)
    return Finding(
        [
            _peak(curve),
            _fall(curve),
            _ranks(curve, found),
            _indicates(curve),
            _agrees(rows, curve),
        ],
        [_table(curve, found), _deadlines(by_deadline)],
        {"rate": partial(_drawn, curve, found)},
        notes=[
            "The exact figure of merit is (1-q)² / E[1/n; n ≥ M]: where the variance of stochastic "
            "gradients is all that matters, the error after many rounds goes with its inverse (the "
            "corrected Theorem 3, equal clients, one local step). g(M) comes from the same bound "
            "with 1/M in place of 1/n and a looser share of a client.",
            "Both figures are shown against quorum 1 or their own peak: neither has a unit. What "
            "training does: `fig-iid-quorum`.",
        ],
    )


Curve = Mapping[int, Row]


def _curve(rows: Rows, deadline: float) -> dict[int, Row]:
    """A deadline's rows by quorum, each with its figure of merit against quorum 1."""
    return {
        row["quorum"]: {**row, "merit": 1 + row["gain"]}
        for row in rows
        if row["kind"] == "exact" and row["deadline"] == deadline
    }


def _best(curve: Curve, column: str) -> int:
    return max(curve, key=lambda quorum: float(curve[quorum][column]))


def _found(rows: Rows, curve: Curve) -> dict[int, Estimate]:
    """The figure of merit from simulated rounds, where enough of them succeed."""
    by_seed: dict[int, list[float]] = {}
    for row in rows:
        if row["kind"] == "simulated" and curve[row["quorum"]]["success"] > 0.05 and row["noise"]:
            merit = row["success"] ** 2 / row["noise"] * curve[1]["error"]
            by_seed.setdefault(row["quorum"], []).append(merit)
    return {quorum: mean(values) for quorum, values in by_seed.items()}


def _peak(curve: Curve) -> Claim:
    best, (stated, _) = _best(curve, "g"), STATED
    return Claim(
        f"M Pr(ñ ≥ M-1) is largest around M={stated} (Sec. 8.1)",
        ClaimVerdict.HOLDS if abs(best - stated) <= 1 else ClaimVerdict.FAILS,
        f"The peak is g({best}) = {curve[best]['g']:.2f}; g({best - 1}) = "
        f"{curve[best - 1]['g']:.2f} and g({best + 1}) = {curve[best + 1]['g']:.2f}.",
    )


def _fall(curve: Curve) -> Claim:
    best, (_, end) = _best(curve, "g"), STATED
    lost = 1 - curve[end]["g"] / curve[best]["g"]
    return Claim(
        f"It falls rapidly towards M={end} (by {RAPID:.0%} of the peak at least)",
        ClaimVerdict.HOLDS if lost >= RAPID else ClaimVerdict.FAILS,
        f"g({end}) = {curve[end]['g']:.2f}, {lost:.0%} below the peak.",
    )


def _ranks(curve: Curve, found: Mapping[int, Estimate]) -> Claim:
    """Remark 4. The larger g, the better the quorum; so its peak must be better than quorum 1."""
    top, (_, end) = _best(curve, "g"), STATED
    best = _best(curve, "merit")
    right = curve[top]["merit"] >= 1 and _order(curve) > 0.9
    loss = curve[top]["error"] / curve[1]["error"] - 1
    late = curve[end]["error"] / curve[1]["error"] - 1
    flat = max(m for m in curve if all(curve[k]["merit"] > 1 - WORSE for k in range(1, m + 1)))
    seen = 100 * (1 / found[top].mean - 1) if top in found else 0.0
    measured = f" ({seen:.1f} % in simulated rounds)" if top in found else ""
    return Claim(
        "With noisy gradients the speed of convergence goes with M Pr(ñ ≥ M-1) (Remark 4)",
        ClaimVerdict.HOLDS if right else ClaimVerdict.FAILS,
        f"The peak of g, M={top}, has {100 * loss:.1f} % more error than quorum 1{measured}, and "
        f"M={end} {100 * late:.0f} % more, where g is {curve[top]['g'] / curve[1]['g']:.0f} and "
        f"{curve[end]['g'] / curve[1]['g']:.0f} times that of quorum 1. The exact figure is flat "
        f"within {WORSE:.0%} up to M={flat}; M={best} is best, by "
        f"{curve[best]['gain']:.0e}. The rank correlation of the two over M is "
        f"{_order(curve):+.2f}.",
    )


def _order(curve: Curve) -> float:
    """Spearman's rank correlation of g and the exact figure, up to where g is back at g(1)."""
    quorums = [m for m in curve if curve[m]["g"] >= curve[1]["g"]]
    g, merit = (
        np.argsort(np.argsort([curve[m][name] for m in quorums])) for name in ("g", "merit")
    )
    return float(np.corrcoef(g, merit)[0, 1])


def _indicates(curve: Curve) -> Claim:
    """Sec. 8.1 also has the weaker reading: where g has fallen, accuracy will have fallen."""
    top, half = _best(curve, "g"), {}
    for name, base in (("g", curve[top]["g"]), ("merit", 1.0)):
        half[name] = min(m for m in curve if m > top and curve[m][name] < base / 2)
    early = curve[top]["merit"] < 1 - WORSE
    near = abs(half["g"] - half["merit"]) <= 3
    return Claim(
        "The graph of g shows from which quorum on a model suffers (Sec. 8.1)",
        ClaimVerdict.IN_PART
        if near and early
        else ClaimVerdict.HOLDS
        if near
        else ClaimVerdict.FAILS,
        f"g is down to half of its peak at M={half['g']}, and the exact figure to half of quorum 1 "
        f"at M={half['merit']}; but at the peak of g {100 * (1 - curve[top]['merit']):.1f} % are "
        "already lost.",
    )


def _agrees(rows: Rows, curve: Curve) -> Claim:
    """E[1/n; n >= M] and the success of rounds, each quorum tested over the seeds."""
    chances: dict[tuple[int, str], float] = {}
    runs = [row for row in rows if row["kind"] == "simulated"]
    for quorum in dict.fromkeys(row["quorum"] for row in runs):
        for name in ("noise", "success"):
            values = [row[name] for row in runs if row["quorum"] == quorum]
            chance = mean(values).chance(curve[quorum][name])
            if chance == chance:  # what does not vary cannot be tested
                chances[quorum, name] = chance
    at = min(chances, key=lambda place: chances[place])
    joint = min(1.0, len(chances) * chances[at])
    return Claim(
        "Beyond the paper: simulated rounds have the exact E[1/n; n ≥ M] and success",
        ClaimVerdict.HOLDS if joint >= 0.01 else ClaimVerdict.FAILS,
        f"Of {len(chances)} figures the {at[1]} at M={at[0]} is farthest off; with all of them in "
        f"mind p = {joint:.2g} (Bonferroni; less than 0.01 would be too far).",
    )


def _table(curve: Curve, found: Mapping[int, Estimate]) -> Cells:
    top = _best(curve, "g")
    lines = [
        [
            f"{m}", f"{curve[m]['g']:.2f}", f"{curve[m]['g'] / curve[top]['g']:.3f}",
            f"{curve[m]['success']:.3f}", f"{curve[m]['error']:.5f}", f"{curve[m]['merit']:.4f}",
            shown(found[m], 4) if m in found else "-",
        ]
        for m in sorted({*LISTED, top})
    ]  # fmt: skip
    header = (
        "quorum", "g", "g, of its peak", "success", "E[1/n; n ≥ M] / (1-q)²",
        "exact merit, of quorum 1", "simulated",
    )  # fmt: skip
    return Cells(f"Two figures of merit (N={CLIENTS}, T={DEADLINE:g})", header, lines)


def _deadlines(by_deadline: Mapping[float, Curve]) -> Cells:
    lines = []
    for deadline, curve in by_deadline.items():
        top, best = _best(curve, "g"), _best(curve, "merit")
        if curve[best]["gain"] < ROUNDING:
            best = 1
        worse = curve[top]["error"] / curve[1]["error"] - 1
        gain = curve[best]["gain"]
        lines.append([f"{deadline:g}", f"{top}", f"{worse:+.1%}", f"{best}", f"{gain:.1e}"])
    header = (
        "deadline", "peak of g", "its error against quorum 1", "exact best", "its gain over 1"
    )  # fmt: skip
    return Cells("Other deadlines", header, lines)


def _drawn(curve: Curve, found: Mapping[int, Estimate]) -> Figure:
    drawn = figure(8.2, 4.4)
    axes = drawn.add_subplot()
    top = _best(curve, "g")
    quorums = [m for m in curve if curve[m]["g"] >= 0.001 * curve[top]["g"] or m <= top]
    scaled: Sequence[float] = [curve[m]["g"] / curve[top]["g"] for m in quorums]
    dots: dict[str, Any] = {"ms": 3, "marker": "o", "lw": 1.4}
    axes.plot(quorums, scaled, color=COLOURS[0], label="g(M), of its peak", **dots)
    axes.plot(
        quorums, [curve[m]["merit"] for m in quorums], color=COLOURS[1], ls="--", lw=1.8,
        label="exact figure of merit, of quorum 1",
    )  # fmt: skip
    axes.errorbar(
        [*found], [e.mean for e in found.values()], [2 * e.error for e in found.values()],
        ls="none", marker="s", ms=4.5, capsize=2.5, color=COLOURS[1], mfc="white",
        label="the same, from simulated rounds",
    )  # fmt: skip
    axes.annotate(
        f"g({top}) = {curve[top]['g']:.2f}", (top, 1.0), xytext=(6, 12),
        textcoords="offset points", fontsize=8, color=COLOURS[0],
    )  # fmt: skip
    axes.set(xlabel="quorum", ylabel="figure of merit", ylim=(0, 1.15))
    tidy(axes)
    axes.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.28, 0.02))
    return drawn


EXPERIMENT = Experiment(
    NAME,
    "Fig. 6, Remark 4, Sec. 8.1",
    "the figure of merit M Pr(ñ ≥ M-1) over the quorum",
    run,
    conclude,
)
