"""Fig. 2: how a client's age grows with time and falls with its updates, and its mean."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, paired
from cafe.engine import Run
from cafe.report.cells import Cells
from cafe.reproduce import pictures
from cafe.reproduce.agreement import LEVEL
from cafe.reproduce.claims import Claim, is_negative, is_positive, joint_chance, judge, judge_all
from cafe.reproduce.findings import Experiment, Finding
from cafe.reproduce.measured_tables import list_estimates, table, with_error
from cafe.reproduce.rows import Row, Rows, column, group, mean_of, ratio_of, select
from cafe.reproduce.trials import Effort, TrialProgress, grid, load_scenario, run_trials
from cafe.reproduce.warmup import steady_totals, steady_trials, warmup_rounds

NAME, SEEDS, ROUNDS = "fig-age-cycle", 10, 2000
CLIENT, DRAWN = 0, 40  # the client whose age is drawn, and the number of rounds
# Quorums at which rounds succeed with a probability from 1 to 0.3, at each deadline.
QUORUMS = {0.5: (1, 33, 36, 39, 42), 1.0: (1, 58, 62, 66), 2.0: (1, 82, 85, 88)}
# Rounds that close once all clients have reported, where N is far above 2M and where it is not.
LENGTHS = grid(kind=("early",), quorum=(1, 40), deadline=(0.5, 2.0, 4.0, 6.0))
ALMOST = 0.01  # share of rounds that may be shorter than T if they last T "almost surely"
Settings = Mapping[Any, list[Row]]  # rows by quorum and deadline


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """One client's age by round; mean ages; and rounds that close once all have reported."""
    fixed = [
        {"kind": "fixed", "quorum": quorum, "deadline": deadline}
        for deadline, quorums in QUORUMS.items()
        for quorum in effort.thin(quorums)
    ]
    trials = []
    for point in [*fixed, *LENGTHS]:
        # All quorums use the same seeds: the same clients report, so differences can be paired.
        seeds = [round(1000 * point["deadline"]) + seed for seed in effort.seeds(SEEDS)]
        changes = {"policy.close_when_all": True} if point["kind"] == "early" else {}
        rounds = effort.choose(ROUNDS, quick=300)
        trials += steady_trials(NAME, {**point, **_expected(point)}, seeds, rounds, changes)
    return path() + run_trials(trials, effort, progress, steady_totals)


def _expected(point: Mapping[str, Any]) -> dict[str, Any]:
    """What theory expects of rounds that last T, or of rounds that close early."""
    federation, quorum, deadline = (
        load_scenario(NAME).federation,
        point["quorum"],
        point["deadline"],
    )
    early = federation.clients if point["kind"] == "early" else None
    e = cafe.expect(federation, quorum=quorum, deadline=deadline, target=early)
    return {
        "expected_age": e.age,
        "printed_age": cafe.theory.age_as_printed(federation.clients, 1.0, quorum, deadline),
        "expected_all_in": e.everybody_probability,
        "expected_length": e.round_duration,
        "warmup": warmup_rounds(e),
    }


def path() -> list[Row]:
    """One client's age before and after the close of each round, from the engine's ledger."""
    scenario = load_scenario(NAME)
    policy = scenario.policy(scenario.label)
    assert isinstance(policy, cafe.Policy)
    simulated = Run(scenario.federation, policy, seed=0)
    ledger, rows, client = simulated.ledger, [], np.array([CLIENT])
    for _ in range(DRAWN):
        start = float(ledger.age(client)[0])
        outcome = simulated.step()
        rows.append(
            {
                "kind": "path",
                "deadline": policy.parameters["deadline"],
                "round": outcome.round,
                "opened": outcome.opened,
                "closed": outcome.closed,
                "before": start + (outcome.closed - outcome.opened),
                "after": float(ledger.age(client)[0]),
                "merged": int(ledger.merged[CLIENT]),
            }
        )
    return rows


def conclude(rows: Rows) -> Finding:
    """Judge the path, Theorem 2 and Corollary 2, and why a round lasts T."""
    path_rows = select(rows, kind="path")
    fixed, early = (group(select(rows, kind=k), "quorum", "deadline") for k in ("fixed", "early"))
    ages = {at: mean_of(own, "age") for at, own in fixed.items()}
    full = {at: ratio_of(own, "all_in", "rounds") for at, own in early.items()}
    return Finding(
        [
            _path_claim(path_rows),
            _theorem_claim(fixed, ages),
            _corollary_claim(fixed),
            _length_claim(full),
            _reason_claim(early, full),
        ],
        [_age_table(fixed, ages), _length_table(early, full)],
        {"age": lambda: _draw(path_rows, fixed, ages)},
        notes=[
            f"The path is client {CLIENT}'s in a simulated run (N=100, M=1, T=0.5, rate 1, seed "
            "0). The paper has a drawing. Before a client's first update its age is counted from "
            "time 0.",
            "Mean ages leave out a run's first rounds, 10 mean times between two uses of a "
            "client. Runs at one deadline have the same seeds at all quorums, so that the same "
            "clients report.",
            f"The rule for Theorem 2: the least p-value of all settings, times their number, is "
            f"at least {LEVEL:g} (Bonferroni, valid also for runs that depend on each other).",
            "`theory` has more settings, and unequal clients.",
        ],
    )


def _path_claim(path_rows: Rows) -> Claim:
    """The age grows by T in a round that does not use the client, else it falls to T."""
    used = [now["merged"] > last["merged"] for last, now in pairwise(path_rows)]
    right = [
        np.isclose(now["after"], now["deadline"] if use else last["after"] + now["deadline"])
        for (last, now), use in zip(pairwise(path_rows), used, strict=True)
    ]
    return Claim(
        "Age grows with time, and falls to T at an update that uses the client (Sec. 4.3)",
        judge(all(right)),
        f"This is so in {sum(right) / len(right):.0%} of {len(right)} rounds; {sum(used)} of them "
        "use the client.",
    )


def _theorem_claim(fixed: Settings, ages: Mapping[Any, Estimate]) -> Claim:
    printed = {at: own[0]["printed_age"] for at, own in fixed.items()}
    chances = {at: age.chance(printed[at]) for at, age in ages.items()}
    at = min(chances, key=lambda place: chances[place])
    joint = joint_chance(chances.values())
    return Claim(
        "Theorem 2: the mean age is T/2 + T / (p Pr(ñ ≥ M-1))",
        judge(joint >= LEVEL),
        f"Of {len(chances)} settings M={at[0]}, T={at[1]:g} differs most: "
        f"{with_error(ages[at], 4)} measured, {printed[at]:.4f} expected; "
        f"for all settings together p = {joint:.2g}.",
    )


def _corollary_claim(fixed: Settings) -> Claim:
    """The same clients report at every quorum; a larger quorum uses some reports less often."""
    older = {
        (m, t): paired(column(own, "age"), column(fixed[1, t], "age"))
        for (m, t), own in fixed.items()
        if m > 1
    }
    younger = any(is_negative(lead) for lead in older.values())
    significant = sum(is_positive(lead) for lead in older.values())
    return Claim(
        "Corollary 2: at a fixed deadline quorum 1 has the least age",
        judge(not younger and 2 * significant > len(older), not younger),
        f"How much older clients are than at quorum 1: {list_estimates(older, '(M={}, T={:g})')}.",
    )


def _length_claim(full: Mapping[Any, Estimate]) -> Claim:
    shares = {t: share.mean for (m, t), share in full.items() if m == 1}
    listed = ", ".join(f"{share:.3f} at T={t:g}" for t, share in shares.items())
    return Claim(
        "A round lasts T almost surely (Sec. 4.3)",
        judge_all([share <= ALMOST for share in shares.values()]),
        f"Share of rounds in which all clients report before T, N=100 and M=1: {listed}. The "
        "deadlines that Sec. 8.2 compares are 0.5 and 2.",
    )


def _reason_claim(early: Settings, full: Mapping[Any, Estimate]) -> Claim:
    """By the paper's reason, rounds with all reports are rare if N >> 2M, less rare as M grows."""
    low, high = min(m for m, _ in early), max(m for m, _ in early)
    apart = [
        paired(*(_full_shares(early[m, t]) for m in (high, low))) for m, t in early if m == low
    ]
    most = max((at for at in full if at[0] == low), key=lambda at: full[at].mean)
    return Claim(
        "A round lasts T because N is far above 2M",
        judge_all([full[most].mean <= ALMOST, any(is_positive(lead) for lead in apart)]),
        f"The probability that all report is p^N at any quorum: measured shares at M={low} "
        f"and M={high} differ by {max(abs(lead.mean) for lead in apart):.3f} at most. At M={low}, "
        f"with N {100 / (2 * low):g} times 2M, it is {with_error(full[most])} at T={most[1]:g} "
        f"(p^N = {early[most][0]['expected_all_in']:.3f}).",
    )


def _full_shares(rows: Rows) -> list[float]:
    """The share of rounds in which all clients reported, one per seed."""
    pairs = zip(column(rows, "all_in"), column(rows, "rounds"), strict=True)
    return [all_in / rounds for all_in, rounds in pairs]


def _age_table(fixed: Settings, ages: Mapping[Any, Estimate]) -> Cells:
    return table(
        "Mean age of a client (N=100)",
        (
            {
                "deadline": f"{at[1]:g}",
                "quorum": f"{at[0]}",
                "measured age": with_error(age, 4),
                "Theorem 2": f"{fixed[at][0]['printed_age']:.4f}",
                "standard errors apart": f"{age.off_by(fixed[at][0]['printed_age']):+.1f}",
            }
            for at, age in ages.items()
        ),
    )


def _length_table(early: Settings, full: Mapping[Any, Estimate]) -> Cells:
    return table(
        "Rounds that close once everybody is in (N=100)",
        (
            {
                "deadline": f"{at[1]:g}",
                "quorum": f"{at[0]}",
                "everybody in": with_error(full[at], 4),
                "p^N": f"{own[0]['expected_all_in']:.2g}",
                "round lasts": with_error(ratio_of(own, "time", "rounds")),
                "expected length": f"{own[0]['expected_length']:.3f}",
                "age": with_error(mean_of(own, "age")),
                "expected age": f"{own[0]['expected_age']:.3f}",
                "Theorem 2": f"{own[0]['printed_age']:.3f}",
            }
            for at, own in early.items()
        ),
    )


def _draw(path_rows: Rows, fixed: Settings, ages: Mapping[Any, Estimate]) -> pictures.Figure:
    picture = pictures.figure(9.6, 3.9)
    left, right = picture.subplots(1, 2, width_ratios=(1.7, 1))
    deadline = path_rows[0]["deadline"]
    expected = fixed[1, deadline][0]["printed_age"]
    _draw_path(left, path_rows)
    orange = pictures.COLOURS[1]
    left.axhline(deadline, color=pictures.GREY, lw=1, ls=":")
    left.axhline(expected, color=orange, lw=1.2, ls="--")
    end = 1.01 * path_rows[-1]["closed"]
    left.text(end, deadline, "T", va="center", fontsize=9)
    left.text(end, expected, "mean\n(Th. 2)", va="center", fontsize=8, color=orange)
    left.set(xlabel="time", ylabel=f"age of client {CLIENT}", ylim=(0, None))
    left.set_xlim(0, path_rows[-1]["closed"])
    for colour, t in zip(pictures.COLOURS, sorted({t for _, t in ages}), strict=False):
        own = {m: ages[m, deadline] for m, deadline in ages if deadline == t}
        quorums = np.arange(1, max(own) + 1)
        printed = [cafe.theory.age_as_printed(100, 1.0, int(m), t) for m in quorums]
        right.plot(quorums, printed, color=colour, lw=1)
        pictures.draw_error_bars(
            right, own, errors=2, ls="none", marker="o", ms=4, color=colour, label=f"T={t:g}"
        )
    right.set(xlabel="quorum", ylabel="mean age", ylim=(0, None))
    for axes in (left, right):
        pictures.tidy(axes)
    return picture


def _draw_path(axes: pictures.Axes, path_rows: Rows) -> None:
    """Draw the age: it rises in each round; at the close it may fall, which a dot marks."""
    time, age = [path_rows[0]["opened"]], [0.0]
    for row in path_rows:
        time += [row["closed"]] * 2
        age += [row["before"], row["after"]]
    blue = pictures.COLOURS[0]
    axes.plot(time, age, color=blue, lw=1.4)
    fell = [
        (row["closed"], row["after"]) for row in path_rows if row["after"] < row["before"] - 1e-9
    ]
    axes.plot(*zip(*fell, strict=True), "o", ms=3.5, color=blue)


EXPERIMENT = Experiment(
    NAME,
    "Fig. 2, Theorem 2, Corollary 2, Sec. 4.3",
    "a client's age over time, and its mean",
    run,
    conclude,
)
