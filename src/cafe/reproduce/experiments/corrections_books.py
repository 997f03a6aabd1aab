"""The share of a client and the noise of an update, exact, as printed, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from cafe import theory
from cafe.report.cells import Cells
from cafe.reproduce import pictures
from cafe.reproduce.agreement import LEVEL
from cafe.reproduce.claims import Claim, joint_chance, judge, judge_all
from cafe.reproduce.experiments.book_counts import (
    CLIENTS,
    DEADLINE,
    NAME,
    SMALL,
    Counts,
    Setting,
    count,
    expected,
    relative_merits,
)
from cafe.reproduce.findings import Finding
from cafe.reproduce.gap_predictions import judge_factor, worst_factor
from cafe.reproduce.measured_tables import table, with_error
from cafe.reproduce.rows import Rows, select
from cafe.reproduce.trials import Effort, RunFunction

SEEDS, ROUNDS = 20, 500  # many short runs: their standard error is then known well
DEADLINES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
QUORUMS = (1, 5, 10, 20, 30, 33, 36, 39, 42, 45)
BLUE, ORANGE = pictures.COLOURS[:2]  # exact, as printed


def runs(effort: Effort) -> list[RunFunction]:
    """Runs over deadlines at quorum 1, over quorums at one deadline, and one with few clients."""
    settings: list[Setting] = [(CLIENTS, 1, t) for t in effort.thin(DEADLINES) if t != DEADLINE]
    settings += [(CLIENTS, m, DEADLINE) for m in effort.thin(QUORUMS)]
    return [
        partial(count, at, seed, effort.choose(ROUNDS, quick=200))
        for at in [*settings, SMALL]
        for seed in effort.seeds(SEEDS)
    ]


def conclude(rows: Rows) -> Finding:
    """Compare shares and the noise of an average with the printed formulas and with counts."""
    counts = Counts(select(rows, part=NAME))
    return Finding(
        [_share_claim(counts), _rate_claim(counts), _noise_claim(counts)],
        [_share_table(counts), _noise_table(counts)],
        {"share": lambda: _draw_share(counts), "noise": lambda: _draw_noise(counts)},
    )


def _share_claim(counts: Counts) -> Claim:
    """Compare the printed sum S~ with (1 - q) / N, and with the weights in simulated rounds."""
    success = {at: expected(at).success_probability for at in counts.settings}
    apart = max(
        abs(theory.mean_share_as_printed(at[0], 1.0, *at[1:]) / (one / at[0]) - 1)
        for at, one in success.items()
    )
    chance = joint_chance(
        counts.per_round(at, "weight").chance(at[0] * (one / at[0])) for at, one in success.items()
    )
    return Claim(
        "Beyond the paper: the sum S̃ of Theorem 3 is exactly (1 - q)/N, whatever the deadline",
        judge(apart < 1e-9 and chance >= LEVEL),
        f"The largest relative difference to the printed sum is {apart:.0e}; the weights given in "
        f"{len(success)} simulated settings do not differ from it significantly "
        f"(p = {chance:.2f} for all together).",
    )


def _rate_claim(counts: Counts) -> Claim:
    """Corollary 3 uses p Pr(n~ >= M-1) as a bound for N S~; age appears because it is loose."""
    lost = {t: _looseness((CLIENTS, 1, t)) for t in counts.deadlines}
    worst, half = max(lost, key=lambda t: lost[t]), lost[DEADLINE]
    return Claim(
        "Corollary 3: Theorem 3's bound is of the order of age/(T t), so age determines the rate",
        judge_factor(worst_factor(value / half for value in lost.values())),
        f"Theorem 3's own rate is (1 - q)/t. The corollary uses a lower bound of 1 - q, which is "
        f"{lost[worst]:.1f} times too small at T={worst:g} and {half:.1f} times at T={DEADLINE:g} "
        f"(N={CLIENTS}, M=1). The bound is valid, and the age appears only because it is loose.",
    )


def _bound(at: Setting) -> float:
    """The corollary's lower bound for N S~: how often a client is used per round."""
    return float(expected(at).participation_by_client[0])


def _looseness(at: Setting) -> float:
    """How many times too small the corollary's lower bound is."""
    return expected(at).success_probability / _bound(at)


def _share_table(counts: Counts) -> Cells:
    return table(
        f"The share S̃, N={CLIENTS}, M=1",
        (
            {
                "T": f"{at[2]:g}",
                "N S̃, exact": f"{expected(at).success_probability:.4f}",
                "weight per round, counted": with_error(counts.per_round(at, "weight"), 4),
                "lower bound of Corollary 3": f"{_bound(at):.4f}",
                "use of a client per round, counted": with_error(
                    counts.per_round(at, "reports", CLIENTS), 4
                ),
                "too small by": f"{_looseness(at):.1f}",
            }
            for at in [(CLIENTS, 1, t) for t in counts.deadlines]
        ),
    )


def _draw_share(counts: Counts) -> pictures.Figure:
    picture = pictures.figure(9.6, 3.8)
    left, right = picture.subplots(1, 2, sharey=True)
    fine = [(CLIENTS, 1, t) for t in np.geomspace(min(counts.deadlines), 4, 60)]
    _draw_share_panel(left, counts, fine, [(CLIENTS, 1, t) for t in counts.deadlines], 2)
    left.set(xlabel="deadline T (quorum 1)", ylabel="N S̃", ylim=(0, 1.08))
    pictures.set_log_axis(left, counts.deadlines)
    fine = [(CLIENTS, m, DEADLINE) for m in range(1, max(counts.quorums) + 4)]
    _draw_share_panel(right, counts, fine, [(CLIENTS, m, DEADLINE) for m in counts.quorums], 1)
    right.set(xlabel=f"quorum M (T = {DEADLINE:g})")
    for axes in (left, right):
        pictures.tidy(axes)
    right.get_legend().remove()
    return picture


def _draw_share_panel(
    axes: pictures.Axes, counts: Counts, fine: Sequence[Setting], counted: Sequence[Setting], x: int
) -> None:
    """Exact shares and the corollary's bound over one entry of a setting; dots are counted."""
    places = [at[x] for at in fine]
    exact = [expected(at).success_probability for at in fine]
    axes.plot(places, exact, color=BLUE, label="exactly 1 - q")
    bounds = [_bound(at) for at in fine]
    axes.plot(places, bounds, color=ORANGE, ls="--", label="lower bound in Corollary 3")
    weights = {at[x]: counts.per_round(at, "weight") for at in counted}
    pictures.draw_hollow(axes, weights, BLUE)
    uses = {at[x]: counts.per_round(at, "reports", CLIENTS) for at in counted}
    pictures.draw_hollow(axes, uses, ORANGE, "counted in simulations")


def _noise_claim(counts: Counts) -> Claim:
    """The proof bounds 1/n by 1/M (eq. 26)."""
    loose = {m: _noise_looseness(m) for m in counts.quorums}
    chance = joint_chance(
        counts.per_round(at, "inverse").chance(expected(at).noise_factor)
        for at in [(CLIENTS, m, DEADLINE) for m in loose]
    )
    best = min(loose, key=lambda m: loose[m])
    return Claim(
        "Theorem 3's noise term, σ²(1 - q)/M, is the noise of an update (within a factor 2)",
        judge_all([value <= 2 for value in loose.values()]),
        f"The exact factor is E[1/n; n ≥ M]. The printed one is {loose[1]:.1f} times that at M=1 "
        f"and closest at M={best}, {loose[best]:.2f} times (N={CLIENTS}, T={DEADLINE:g}). Counted "
        f"factors do not differ from the exact ones significantly (p = {chance:.2f} for all "
        "together).",
    )


def _noise_looseness(quorum: int) -> float:
    e = expected((CLIENTS, quorum, DEADLINE))
    return e.success_probability / quorum / e.noise_factor


def _noise_table(counts: Counts) -> Cells:
    lines = []
    for m in counts.quorums:
        at = (CLIENTS, m, DEADLINE)
        e, merit = expected(at), relative_merits(m)
        lines.append(
            {
                "M": f"{m}",
                "1 - q": f"{e.success_probability:.4f}",
                "E[1/n; n ≥ M]": f"{e.noise_factor:.5f}",
                "counted": with_error(counts.per_round(at, "inverse"), 5),
                "printed (1 - q)/M": f"{e.success_probability / m:.5f}",
                "too large by": f"{_noise_looseness(m):.2f}",
                "error against M=1, exact": f"{merit['exact']:.3f}",
                "the same by Remark 4": f"{merit['printed']:.3f}",
            }
        )
    return table(f"The factor of σ², N={CLIENTS}, T={DEADLINE:g}", lines)


def _draw_noise(counts: Counts) -> pictures.Figure:
    picture, axes = pictures.single_panel()
    every = range(1, max(counts.quorums) + 1)
    e = [expected((CLIENTS, m, DEADLINE)) for m in every]
    axes.plot(every, [x.noise_factor for x in e], color=BLUE, label="exactly E[1/n; n ≥ M]")
    printed = [x.success_probability / x.quorum for x in e]
    axes.plot(every, printed, color=ORANGE, ls="--", label="as printed, (1 - q)/M")
    counted = {m: counts.per_round((CLIENTS, m, DEADLINE), "inverse") for m in counts.quorums}
    pictures.draw_hollow(axes, counted, BLUE, "counted in simulations")
    axes.set(yscale="log", xlabel=f"quorum M (N = {CLIENTS}, T = {DEADLINE:g})",
             ylabel="factor of σ² in an update")  # fmt: skip
    pictures.tidy(axes)
    return picture
