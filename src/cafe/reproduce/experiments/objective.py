"""Fig. 3: the objective over the deadline has two minima, and how to miss the better one."""

from __future__ import annotations

from functools import partial

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, mean, ratio
from cafe.report.cells import Cells
from cafe.reproduce import pictures
from cafe.reproduce.claims import Claim, judge, judge_all
from cafe.reproduce.experiments.objective_curve import (
    BROADCAST_PRICE,
    CLIENTS,
    PARTS,
    RATE,
    WASTE_PRICE,
    curve_rows,
)
from cafe.reproduce.findings import Experiment, Finding
from cafe.reproduce.measured_tables import table, with_error
from cafe.reproduce.rows import Row, Rows, group, ratio_of, select
from cafe.reproduce.trials import Effort, TrialProgress, run_in_turn

NAME, SEEDS, ROUNDS = "fig-objective", 5, 2000
NEAR = 0.01  # relative distance from the least J within which a search has found it
SHORT = 0.05  # share of rounds that may be shorter than T where a round "lasts T"


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Calculate the curve and its turning points, and simulate rounds at its minima."""
    rows = curve_rows()
    simulations = [
        partial(_simulate, row["x"], close, seed, effort.choose(ROUNDS, quick=300))
        for row in select(rows, kind="minimum")
        for close in (0, 1)
        for seed in effort.seeds(SEEDS)
    ]
    return rows + run_in_turn(simulations, progress)


def _simulate(x: float, close: int, seed: int, rounds: int) -> list[Row]:
    """Rounds that last T, or that close as soon as all clients have reported."""
    federation = cafe.Federation(CLIENTS, cafe.Exponential(RATE))
    policy = cafe.policies.mcu(quorum=1, deadline=x / RATE, close_when_all=bool(close))
    history = cafe.simulate(federation, policy, seed=seed, rounds=rounds)
    return [
        {
            "kind": "simulated",
            "x": x,
            "close": close,
            "seed": seed,
            "rounds": history.rounds,
            "updates": history.updates,
            "waste": history.waste,
            "age": history.mean_age,
            "all_in": int((history.by_round["reports"] == CLIENTS).sum()),
            "time": history.virtual_time,
        }
    ]


def conclude(rows: Rows) -> Finding:
    """Judge the shape of J, searches for its optimum, and the length of rounds there."""
    best = min(select(rows, kind="minimum"), key=lambda row: row["J"])
    return Finding(
        [
            _shape_claim(rows),
            _terms_claim(rows),
            _small_weight_claim(rows),
            _exhaustive_claim(rows, best),
            _descent_claim(rows, best),
            _length_claim(rows, best),
        ],
        [_turning_table(rows), _weight_table(rows), _search_table(rows, best),
         _simulated_table(rows)],
        {"objective": partial(_draw, rows)},
        notes=[
            f"N={CLIENTS}, rate {RATE:g}, alpha_w={WASTE_PRICE:g}, alpha_b={BROADCAST_PRICE:g} and "
            "M=1, as in the figure; x is the deadline in mean response times.",
            "The paper does not say which range is reasonable. `cafe plan` derives one, searches "
            "all of it and lists every minimum.",
            "Simulated ages are averaged from time 0 on, when all ages are 0; in runs of this "
            "length the effect is less than a hundredth of J.",
        ],
    )  # fmt: skip


def _shape_claim(rows: Rows) -> Claim:
    minima, maxima = select(rows, kind="minimum"), select(rows, kind="maximum")
    listed = " and ".join(f"x={row['x']:.4g} with J={row['J']:.2f}" for row in minima)
    tops = ", ".join(f" and a maximum at x={row['x']:.4g}, J={row['J']:.2f}" for row in maxima)
    curvatures = {row["x"]: _curvature(row) for row in select(rows, kind="curve")}
    x, least = min(curvatures.items(), key=lambda item: item[1])
    return Claim(
        "J is not convex (Sec. 6)",
        judge(least < 0),
        f"It has {len(minima)} minima, {listed},{tops}. Its second derivative is "
        f"{least:.0f} at x={x:.2g}.",
    )


def _curvature(row: Row) -> float:
    """The second derivative of J."""
    return float(WASTE_PRICE * row["bend_waste"] + row["bend_broadcasts"] + row["bend_age"])


def _terms_claim(rows: Rows) -> Claim:
    """Second derivatives, by finite differences, may be slightly below 0 because of rounding."""
    curve = select(rows, kind="curve")
    least = min(
        row[f"bend_{part}"] * row["x"] ** 2 / row[part]
        for row in curve
        for part in ("broadcasts", "age")
    )
    most = max(curve, key=lambda row: float(row["waste"]))
    inside = curve[0]["waste"] < most["waste"] > curve[-1]["waste"]
    return Claim(
        "The broadcasts' and the age's terms are convex, and the waste's is bounded (Sec. 6)",
        judge_all([least > -1e-6, inside]),
        f"Their second derivative, in units of term / x², is nowhere below {least:.1g}; the "
        f"waste's term has its largest value, {most['waste']:.0f}, at x={most['x']:.2g}.",
    )


def _small_weight_claim(rows: Rows) -> Claim:
    (limit,), (even,) = ([r["weight"] for r in select(rows, kind=k)] for k in ("convex", "tie"))
    basins = select(rows, kind="basins")
    two = min((row["weight"] for row in basins if "x_last" in row), default=np.inf)
    return Claim(
        "For a small alpha_w the problem is nearly convex (up to 1, the weight of age; Sec. 6)",
        judge(limit >= 1, limit > 0),
        f"J is convex up to alpha_w={limit:.3f}. There are two minima from alpha_w={two:g} on (of "
        f"those tried), and from alpha_w={even:.3f} on the one at the long deadline is deeper.",
    )


def _is_best(row: Row, best: Row) -> bool:
    return bool(row["J"] <= (1 + NEAR) * best["J"])


def _exhaustive_claim(rows: Rows, best: Row) -> Claim:
    tried = select(rows, kind="range")
    good = [f"{row['to']:g}" for row in tried if _is_best(row, best)]
    poor = ", ".join(f"x={r['x']:.3g} up to {r['to']:g}" for r in tried if not _is_best(r, best))
    (crossing,) = select(rows, kind="crossing")
    return Claim(
        "An exhaustive search in a reasonable range finds the optimum (Sec. 6)",
        judge_all([_is_best(row, best) for row in tried]),
        f"It does if the range is long enough: ranges up to {', '.join(good)} contain the optimum; "
        f"searches in others end elsewhere ({poor}). In ranges up to x={crossing['x']:.2f} the "
        "least J is at the wrong minimum.",
    )


def _descent_claim(rows: Rows, best: Row) -> Claim:
    tried = select(rows, kind="descent")
    poor = [f"{row['from']:g}" for row in tried if not _is_best(row, best)]
    lost = max(row["J"] for row in tried) / best["J"] - 1
    return Claim(
        "Beyond the paper: a walk downhill finds the optimum from every start",
        judge(not poor),
        f"From {len(tried) - len(poor)} of {len(tried)} starts it does. From those at "
        f"x={', '.join(poor)} it ends where J is up to {lost:.0%} higher.",
    )


def _length_claim(rows: Rows, best: Row) -> Claim:
    """Compare the length of a round in Sec. 4.3 with that at the optimum of Sec. 6."""
    closing = select(rows, kind="simulated", x=best["x"], close=1)
    share, length = (ratio_of(closing, name, "rounds") for name in ("all_in", "time"))
    least = min(row["early"] for row in select(rows, kind="curve"))
    return Claim(
        "At the optimum a round lasts T",
        judge(share.mean <= SHORT),
        f"All clients have reported before T in {with_error(share)} of the rounds (theory: "
        f"{best['all_in']:.3f}). If rounds close then, they last {with_error(length)} on average "
        f"where T={best['x']:.3f}, and J is {best['early']:.2f} instead of {best['J']:.2f}. With "
        f"such rounds a longer deadline costs nothing: J falls to {least:.2f}.",
    )


def _turning_table(rows: Rows) -> Cells:
    turns = [row for row in rows if row["kind"] in ("minimum", "maximum")]
    return table(
        "Minima and maximum",
        (
            {"": row["kind"], "x": f"{row['x']:.4f}", "J": f"{row['J']:.2f}"}
            | {part: f"{row[part]:.2f}" for part in PARTS}
            | {
                "everybody in": f"{row['all_in']:.3f}",
                "J, closing then": f"{row['early']:.2f}",
                "round then lasts": f"{row['length']:.3f}",
            }
            for row in sorted(turns, key=lambda row: float(row["x"]))
        ),
    )


def _weight_table(rows: Rows) -> Cells:
    return table(
        "The weight of waste decides which minimum is the deeper one",
        (
            {
                "alpha_w": f"{row['weight']:g}",
                "first minimum": f"{row['x']:.4f}",
                "J": f"{row['J']:.2f}",
                "second minimum": f"{row['x_last']:.4f}" if "x_last" in row else "-",
                "J there": f"{row['J_last']:.2f}" if "x_last" in row else "-",
                "deeper": "second" if row.get("J_last", np.inf) < row["J"] else "first",
            }
            for row in select(rows, kind="basins")
        ),
    )


def _search_table(rows: Rows, best: Row) -> Cells:
    searches = [(f"all values up to {row['to']:g}", row) for row in select(rows, kind="range")]
    searches += [(f"downhill from {r['from']:g}", r) for r in select(rows, kind="descent")]
    return table(
        "Searches",
        (
            {
                "search": name,
                "x": f"{row['x']:.4f}",
                "J": f"{row['J']:.2f}",
                "times the least J": f"{row['J'] / best['J']:.2f}",
            }
            for name, row in searches
        ),
    )


def _simulated_table(rows: Rows) -> Cells:
    """J from simulated rounds, at both minima."""
    minima = {row["x"]: row for row in select(rows, kind="minimum")}
    return table(
        "Simulated rounds at the minima",
        (
            {
                "x": f"{x:.4f}",
                "rounds close": "once everybody is in" if close else "at T",
                "J measured": with_error(_measured_objective(own), 2),
                "J expected": f"{minima[x]['early' if close else 'J']:.2f}",
                "everybody in": with_error(ratio_of(own, "all_in", "rounds")),
                "round lasts": with_error(ratio_of(own, "time", "rounds")),
            }
            for (x, close), own in group(select(rows, kind="simulated"), "x", "close").items()
        ),
    )


def _measured_objective(rows: Rows) -> Estimate:
    # The ratio of sums over all seeds, so that a run with few updates counts for less.
    cost = [WASTE_PRICE * row["waste"] + BROADCAST_PRICE * row["rounds"] for row in rows]
    paid = ratio(cost, [row["updates"] for row in rows])
    age = mean([row["age"] for row in rows])
    return Estimate(paid.mean + age.mean, float(np.hypot(paid.error, age.error)), paid.count)


def _draw(rows: Rows) -> pictures.Figure:
    curve, minima, maxima = (select(rows, kind=kind) for kind in ("curve", "minimum", "maximum"))
    picture, axes = pictures.single_panel(8.2, 4.6)
    blue, orange = pictures.COLOURS[:2]
    x = [row["x"] for row in curve]
    axes.plot(x, [row["J"] for row in curve], color=blue, lw=2, label="J, as printed")
    axes.plot(
        x, [row["early"] for row in curve], color=orange, lw=1.6, ls="--",
        label="J, rounds close once everybody is in",
    )  # fmt: skip
    for part, dashes in zip(PARTS, (":", "-.", (0, (5, 2))), strict=True):
        values = [row[part] for row in curve]
        axes.plot(x, values, color=pictures.GREY, lw=1, ls=dashes, label=f"term: {part}")
    best = min(minima, key=lambda row: row["J"])
    for row in [*minima, *maxima]:
        full = row is best
        axes.plot(row["x"], row["J"], "o", ms=7, mec=blue, mfc=blue if full else "white")
        axes.annotate(
            f"x={row['x']:.3g}, J={row['J']:.2f}", (row["x"], row["J"]), fontsize=8,
            ha="left" if full else "center", xytext=(4 if full else 0, 14),
            textcoords="offset points",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="x, deadline times rate", ylabel="J")
    axes.set_ylim(1, 3000)
    pictures.tidy(axes)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.14), ncols=3)
    return picture


EXPERIMENT = Experiment(
    NAME,
    "Fig. 3, equations (17) and (18), Sec. 6",
    "the objective over the deadline",
    run,
    conclude,
)
