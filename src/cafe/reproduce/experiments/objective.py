"""Fig. 3: the objective over the deadline has two minima, and how to miss the better one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, mean, ratio
from cafe.report.cells import Cells
from cafe.report.plotting import COLOURS
from cafe.reproduce.findings import Claim, ClaimVerdict, Effort, Experiment, Finding, Rows, shown
from cafe.reproduce.pictures import GREY, figure, tidy
from cafe.reproduce.trials import Row, TrialProgress, column
from cafe.theory import (
    age_as_printed,
    broadcasts_as_printed,
    objective_as_printed,
    waste_as_printed,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, SEEDS, ROUNDS = "fig-objective", 5, 2000
CLIENTS, RATE, WASTE_PRICE, BROADCAST_PRICE = 50, 1.0, 20.0, 100.0  # as in the figure
X = (1e-3, 40.0)
POINTS = 181  # of the curve
WEIGHTS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0)  # of waste
STARTS = (0.01, 0.1, 0.5, 0.9, 1.1, 2.0, 5.0, 20.0)  # of a descent
RANGES = (1.0, 2.0, 4.0, 5.0, 10.0, 20.0, 40.0)  # up to where a search looks
NEAR = 0.01  # relatively above the least J: as good as found
SHORT = 0.05  # share of rounds that may be shorter than T where a round "lasts T"
PARTS = ("waste", "broadcasts", "age")


def objective(x: float, weight: float = WASTE_PRICE) -> float:
    """J(x) as printed."""
    return objective_as_printed(CLIENTS, RATE, x / RATE, weight, BROADCAST_PRICE)


def parts(x: float, weight: float = WASTE_PRICE) -> dict[str, float]:
    """The three terms of J(x), from the formulas of Sec. 4 at quorum 1."""
    at = (CLIENTS, RATE, 1, x / RATE)
    return {
        "waste": weight * waste_as_printed(*at),
        "broadcasts": BROADCAST_PRICE * broadcasts_as_printed(*at),
        "age": age_as_printed(*at),
    }


def early(x: float) -> dict[str, float]:
    """The same objective where a round closes once everybody is in."""
    federation = cafe.Federation(CLIENTS, cafe.Exponential(RATE))
    e = cafe.expect(federation, quorum=1, deadline=x / RATE, target=CLIENTS)
    return {
        "early": WASTE_PRICE * e.waste + BROADCAST_PRICE * e.broadcasts + e.age,
        "all_in": e.everybody_probability,
        "length": e.round_duration,
    }


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """The curve and what is on it, searches for its least value, and rounds at the minima."""
    rows: list[Row] = [
        {"kind": "curve", "x": x, "J": objective(x), **parts(x), **early(x), **curvatures(x)}
        for x in map(float, np.geomspace(*X, POINTS))
    ]
    found = turning_points(WASTE_PRICE)
    rows += [{"kind": what, "x": x, "J": objective(x), **parts(x), **early(x)} for what, x in found]
    rows += [_basins(weight) for weight in WEIGHTS]
    rows += [{"kind": "tie", "weight": tie()}, {"kind": "convex", "weight": convex_up_to()}]
    rows += [{"kind": "descent", "from": x, "x": y, "J": objective(y)} for x, y in descents()]
    rows += [{"kind": "range", "to": to, "x": x, "J": objective(x)} for to, x in ranges()]
    minima = [x for what, x in found if what == "minimum"]
    top = next(x for what, x in found if what == "maximum")
    rows += [{"kind": "crossing", "x": crossing(minima[0], top)}]
    return rows + _simulated(minima, effort, progress)


def turning_points(weight: float) -> list[tuple[str, float]]:
    """Every minimum and maximum of J, in order of x: a fine grid, then each one refined."""
    grid = np.geomspace(*X, 1001)
    values = np.array([objective(float(x), weight) for x in grid])
    rises = np.sign(np.diff(values))
    found = []
    for at in np.flatnonzero(rises[1:] != rises[:-1]) + 1:
        what, sign = ("minimum", 1.0) if rises[at] > 0 else ("maximum", -1.0)
        within = (float(grid[at - 1]), float(grid[at + 1]))
        found.append((what, _least(lambda x, s=sign: s * objective(x, weight), within)))
    return found


def _least(of: Any, within: tuple[float, float]) -> float:
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(of, bounds=within, method="bounded", options={"xatol": 1e-9})
    return float(found.x)


def curvatures(x: float) -> dict[str, float]:
    """The second derivative of J's terms at x, by differences."""
    step = 1e-3 * x
    low, here, high = (parts(x + shift, 1.0) for shift in (-step, 0.0, step))
    return {f"bend_{p}": (low[p] - 2 * here[p] + high[p]) / step**2 for p in PARTS}


def convex_up_to() -> float:
    """The largest weight of waste with which J is convex everywhere.

    Beyond x = 2 the waste's term is convex too: its second derivative is N (x - 2) exp(-x) there.
    """
    bends = [curvatures(float(x)) for x in np.geomspace(X[0], 2.0, 501)]
    return min(
        (bend["bend_broadcasts"] + bend["bend_age"]) / -bend["bend_waste"]
        for bend in bends
        if bend["bend_waste"] < 0
    )


def _basins(weight: float) -> Row:
    """The first and last minimum at a weight of waste; the last is left out where there is one."""
    minima = [x for what, x in turning_points(weight) if what == "minimum"]
    first, last = minima[0], minima[-1]
    row = {"kind": "basins", "weight": weight, "x": first, "J": objective(first, weight)}
    return row | ({"x_last": last, "J_last": objective(last, weight)} if last > first else {})


def tie() -> float:
    """The weight of waste at which both minima are equally deep."""
    from scipy.optimize import brentq

    def lead(weight: float) -> float:
        minima = [x for what, x in turning_points(weight) if what == "minimum"]
        return objective(minima[0], weight) - objective(minima[-1], weight)

    return float(brentq(lead, 1.0, 5.0, xtol=1e-4))


def descents() -> list[tuple[float, float]]:
    """Where a walk downhill ends, by where it starts: steps of a hundredth, then refined."""
    found = []
    for start in STARTS:
        x = start
        step = 1.01 if objective(1.01 * x) < objective(x) else 1 / 1.01
        while objective(step * x) < objective(x):
            x *= step
        found.append((start, _least(objective, (x / 1.02, x * 1.02))))
    return found


def crossing(first: float, top: float) -> float:
    """From where on J, beyond its maximum, is below its first minimum."""
    from scipy.optimize import brentq

    return float(brentq(lambda x: objective(x) - objective(first), top, X[1] / 4))


def ranges() -> list[tuple[float, float]]:
    """What an exhaustive search finds, by how far it looks: a thousand values, evenly spaced."""
    found = []
    for to in RANGES:
        grid = np.linspace(0, to, 1001)[1:]
        found.append((to, float(min(grid, key=lambda x: objective(float(x))))))
    return found


def _simulated(minima: Sequence[float], effort: Effort, progress: TrialProgress) -> list[Row]:
    """Rounds at the minima, which last T or close once everybody is in."""
    federation = cafe.Federation(CLIENTS, cafe.Exponential(RATE))
    rounds = ROUNDS if effort.rounds is None else 10 * effort.rounds
    plays = [(x, close, seed) for x in minima for close in (0, 1) for seed in effort.seeds(SEEDS)]
    rows = []
    for done, (x, close, seed) in enumerate(plays):
        progress(done, len(plays))
        policy = cafe.policies.mcu(quorum=1, deadline=x / RATE, close_when_all=bool(close))
        history = cafe.simulate(federation, policy, seed=seed, rounds=rounds)
        by = history.by_round
        rows.append(
            {
                "kind": "simulated",
                "x": x,
                "close": close,
                "seed": seed,
                "rounds": history.rounds,
                "updates": history.updates,
                "waste": history.waste,
                "age": history.mean_age,
                "all_in": int((by["reports"] == CLIENTS).sum()),
                "time": history.virtual_time,
            }
        )
    progress(len(plays), len(plays))
    return rows


def conclude(rows: Rows) -> Finding:
    """The formula is right; its optimum is easily missed, and is not what it is said to be."""
    minima = _of(rows, "minimum")
    best = min(minima, key=lambda row: row["J"])
    return Finding(
        [
            _not_convex(rows),
            _terms(rows),
            _nearly_convex(rows),
            _exhaustive(rows, best),
            _descent(rows, best),
            _lasts(rows, best),
        ],
        [_turning(rows), _weights(rows), _searches(rows, best), _measured(rows)],
        {"objective": partial(_drawn, rows)},
        notes=[
            f"N={CLIENTS}, rate {RATE:g}, alpha_w={WASTE_PRICE:g}, alpha_b={BROADCAST_PRICE:g} and "
            "M=1, as in the figure; x is the deadline in mean response times.",
            "The paper does not say which range is reasonable. `cafe plan` derives one, looks at "
            "all of it and names every minimum.",
            "Simulated ages are means from time 0 on, when all ages are 0; at these lengths that "
            "is less than a hundredth of J.",
        ],
    )  # fmt: skip


def _of(rows: Rows, kind: str) -> list[Row]:
    return [row for row in rows if row["kind"] == kind]


def _not_convex(rows: Rows) -> Claim:
    minima, maxima = _of(rows, "minimum"), _of(rows, "maximum")
    listed = " and ".join(f"x={row['x']:.4g} with J={row['J']:.2f}" for row in minima)
    tops = ", ".join(f" and a maximum at x={row['x']:.4g}, J={row['J']:.2f}" for row in maxima)
    bend = min(_of(rows, "curve"), key=_bend)
    return Claim(
        "J is not convex (Sec. 6)",
        ClaimVerdict.HOLDS if _bend(bend) < 0 else ClaimVerdict.FAILS,
        f"It has {len(minima)} minima, {listed},{tops}. Its second derivative is "
        f"{_bend(bend):.0f} at x={bend['x']:.2g}.",
    )


def _bend(row: Row) -> float:
    """The second derivative of J."""
    return float(WASTE_PRICE * row["bend_waste"] + row["bend_broadcasts"] + row["bend_age"])


def _terms(rows: Rows) -> Claim:
    """Convex up to rounding: a difference of figures of about 100 over a thousandth of x."""
    curve = _of(rows, "curve")
    bends = [
        row[f"bend_{part}"] * row["x"] ** 2 / row[part]
        for row in curve
        for part in ("broadcasts", "age")
    ]
    most = max(curve, key=lambda row: float(row["waste"]))
    inside = curve[0]["waste"] < most["waste"] > curve[-1]["waste"]
    convex = min(bends) > -1e-6
    return Claim(
        "The broadcasts' and the age's terms are convex, and the waste's is bounded (Sec. 6)",
        ClaimVerdict.HOLDS if convex and inside else ClaimVerdict.IN_PART if convex or inside
        else ClaimVerdict.FAILS,
        f"Their second derivative, in units of term / x², is nowhere below {min(bends):.1g}; the "
        f"waste's term has its largest value, {most['waste']:.0f}, at x={most['x']:.2g}.",
    )  # fmt: skip


def _nearly_convex(rows: Rows) -> Claim:
    limit = _of(rows, "convex")[0]["weight"]
    two = min((row["weight"] for row in _of(rows, "basins") if "x_last" in row), default=np.inf)
    even = _of(rows, "tie")[0]["weight"]
    return Claim(
        "For a small alpha_w the problem is nearly convex (up to 1, the weight of age; Sec. 6)",
        ClaimVerdict.HOLDS
        if limit >= 1
        else ClaimVerdict.IN_PART
        if limit > 0
        else ClaimVerdict.FAILS,
        f"J is convex up to alpha_w={limit:.3f}. There are two minima from alpha_w={two:g} on (of "
        f"those tried), and from alpha_w={even:.3f} on the one at the long deadline is deeper.",
    )


def _exhaustive(rows: Rows, best: Row) -> Claim:
    tried = _of(rows, "range")
    good = [row["to"] for row in tried if _found(row, best)]
    leaves = _of(rows, "crossing")[0]["x"]
    poor = ", ".join(f"x={r['x']:.3g} up to {r['to']:g}" for r in tried if not _found(r, best))
    verdict = ClaimVerdict.IN_PART if good else ClaimVerdict.FAILS
    return Claim(
        "An exhaustive search in a reasonable range finds the optimum (Sec. 6)",
        ClaimVerdict.HOLDS if len(good) == len(tried) else verdict,
        f"It does if it looks far enough: ranges up to {', '.join(f'{to:g}' for to in good)} have "
        f"it; others end elsewhere ({poor}). Up to x={leaves:.2f} the least J is in the wrong "
        "basin.",
    )


def _found(row: Row, best: Row) -> bool:
    return bool(row["J"] <= (1 + NEAR) * best["J"])


def _descent(rows: Rows, best: Row) -> Claim:
    tried = _of(rows, "descent")
    good = [row for row in tried if _found(row, best)]
    poor = [row["from"] for row in tried if not _found(row, best)]
    lost = max(row["J"] for row in tried) / best["J"] - 1
    return Claim(
        "Beyond the paper: a walk downhill finds the optimum from wherever it starts",
        ClaimVerdict.FAILS if poor else ClaimVerdict.HOLDS,
        f"Of {len(tried)} starts {len(good)} end there. Those at "
        f"x={', '.join(f'{x:g}' for x in poor)} end where J is up to {lost:.0%} higher.",
    )


def _lasts(rows: Rows, best: Row) -> Claim:
    """Sec. 4.3's round against what happens at the optimum of Sec. 6."""
    here = [r for r in _of(rows, "simulated") if r["x"] == best["x"]]
    closing = [row for row in here if row["close"]]
    share, length = (_per(closing, what, "rounds") for what in ("all_in", "time"))
    least = min(_of(rows, "curve"), key=lambda row: float(row["early"]))
    return Claim(
        "At the optimum a round lasts T",
        ClaimVerdict.HOLDS if share.mean <= SHORT else ClaimVerdict.FAILS,
        f"Everybody is in before T in {shown(share)} of the rounds (theory: {best['all_in']:.3f})."
        f" A round that closes then lasts {shown(length)} of T={best['x']:.3f}, and J is "
        f"{best['early']:.2f} instead of {best['J']:.2f}. With such rounds no long deadline costs "
        f"anything: J goes down to {least['early']:.2f}.",
    )


def _per(rows: Rows, over: str, under: str) -> Estimate:
    return ratio([*column(rows, over)], [*column(rows, under)])


def _turning(rows: Rows) -> Cells:
    header = ("", "x", "J", *PARTS, "everybody in", "J, closing then", "round then lasts")
    chosen = [row for row in rows if row["kind"] in ("minimum", "maximum")]
    lines = [
        [row["kind"], f"{row['x']:.4f}", f"{row['J']:.2f}"]
        + [f"{row[part]:.2f}" for part in PARTS]
        + [f"{row['all_in']:.3f}", f"{row['early']:.2f}", f"{row['length']:.3f}"]
        for row in sorted(chosen, key=lambda row: float(row["x"]))
    ]
    return Cells("Minima and maximum", header, lines)


def _weights(rows: Rows) -> Cells:
    lines = []
    for row in _of(rows, "basins"):
        last = [f"{row['x_last']:.4f}", f"{row['J_last']:.2f}"] if "x_last" in row else ["-", "-"]
        deeper = "second" if row.get("J_last", np.inf) < row["J"] else "first"
        lines.append([f"{row['weight']:g}", f"{row['x']:.4f}", f"{row['J']:.2f}", *last, deeper])
    header = ("alpha_w", "first minimum", "J", "second minimum", "J there", "deeper")
    return Cells("The weight of waste decides which minimum is the deeper one", header, lines)


def _searches(rows: Rows, best: Row) -> Cells:
    lines = [
        [f"{how} {row[key]:g}", f"{row['x']:.4f}", f"{row['J']:.2f}", f"{row['J'] / best['J']:.2f}"]
        for kind, key, how in (
            ("range", "to", "all values up to"),
            ("descent", "from", "downhill from"),
        )
        for row in _of(rows, kind)
    ]
    return Cells("Searches", ("search", "x", "J", "times the least J"), lines)


def _measured(rows: Rows) -> Cells:
    """J by simulation, at both minima."""
    tried = _of(rows, "simulated")
    known = {row["x"]: row for row in _of(rows, "minimum")}
    lines = []
    for x, close in dict.fromkeys((row["x"], row["close"]) for row in tried):
        here = [row for row in tried if (row["x"], row["close"]) == (x, close)]
        # What the seeds' sums give together, so that a run with few updates counts for less.
        cost = [WASTE_PRICE * row["waste"] + BROADCAST_PRICE * row["rounds"] for row in here]
        paid = ratio(cost, [row["updates"] for row in here])
        age = mean([row["age"] for row in here])
        total = Estimate(paid.mean + age.mean, float(np.hypot(paid.error, age.error)), paid.count)
        lines.append(
            [
                f"{x:.4f}", "once everybody is in" if close else "at T", shown(total, 2),
                f"{known[x]['early' if close else 'J']:.2f}", shown(_per(here, "all_in", "rounds")),
                shown(_per(here, "time", "rounds")),
            ]
        )  # fmt: skip
    header = ("x", "rounds close", "J measured", "J expected", "everybody in", "round lasts")
    return Cells("Simulated rounds at the minima", header, lines)


def _drawn(rows: Rows) -> Figure:
    curve, minima, maxima = (_of(rows, kind) for kind in ("curve", "minimum", "maximum"))
    drawn = figure(8.2, 4.6)
    axes = drawn.add_subplot()
    x = [row["x"] for row in curve]
    axes.plot(x, [row["J"] for row in curve], color=COLOURS[0], lw=2, label="J, as printed")
    axes.plot(
        x, [row["early"] for row in curve], color=COLOURS[1], lw=1.6, ls="--",
        label="J, rounds close once everybody is in",
    )  # fmt: skip
    for part, dashes in zip(PARTS, (":", "-.", (0, (5, 2))), strict=True):
        axes.plot(x, [r[part] for r in curve], color=GREY, lw=1, ls=dashes, label=f"term: {part}")
    best = min(minima, key=lambda row: row["J"])
    for row in [*minima, *maxima]:
        full = row is best
        axes.plot(
            row["x"], row["J"], "o", ms=7, mec=COLOURS[0], mfc=COLOURS[0] if full else "white"
        )
        axes.annotate(
            f"x={row['x']:.3g}, J={row['J']:.2f}", (row["x"], row["J"]), fontsize=8,
            ha="left" if full else "center", xytext=(4 if full else 0, 14),
            textcoords="offset points",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="x, deadline times rate", ylabel="J")
    axes.set_ylim(1, 3000)
    tidy(axes)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.14), ncols=3)
    return drawn


EXPERIMENT = Experiment(
    NAME,
    "Fig. 3, equations (17) and (18), Sec. 6",
    "the objective over the deadline",
    run,
    conclude,
)
