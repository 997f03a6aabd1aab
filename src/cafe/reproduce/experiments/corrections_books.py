"""What can be counted without learning anything: shares, variance factors, waste."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import cafe
from cafe import theory
from cafe.analysis.statistics import Estimate, mean, ratio
from cafe.engine import simulate
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.policies import mcu
from cafe.report.cells import Cells
from cafe.reproduce.experiments.corrections_work import off, share_of, within
from cafe.reproduce.findings import Claim, ClaimVerdict, Effort, Finding, Rows, shown
from cafe.reproduce.pictures import GREY, figure, ticks, tidy
from cafe.reproduce.trials import Job, Row, column
from cafe.theory import Expectation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME, SEEDS, ROUNDS = "books", 20, 500  # many short runs: a standard error is then known well
CLIENTS, DEADLINE = 100, 0.5
DEADLINES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
QUORUMS = (1, 5, 10, 20, 30, 33, 36, 39, 42, 45)
LEVEL = 0.01  # of chance: what comes about more seldom is no agreement
SMALL = (10, 9, 1.0)  # few clients, nearly all of them wanted: most rounds fail
At = tuple[int, int, float]  # clients, quorum, deadline


def jobs(effort: Effort) -> list[Job]:
    """Runs that learn nothing, over deadlines at quorum 1 and over quorums at one deadline."""
    places: list[At] = [(CLIENTS, 1, t) for t in effort.thin(DEADLINES) if t != DEADLINE]
    places += [(CLIENTS, m, DEADLINE) for m in effort.thin(QUORUMS)]
    rounds = 200 if effort.quick else ROUNDS
    return [
        partial(_counted, at, seed, rounds)
        for at in [*places, SMALL]
        for seed in effort.seeds(SEEDS)
    ]


def _counted(at: At, seed: int, rounds: int) -> list[Row]:
    """Sums over a run's rounds, from who reported and when; no formula has a part in them."""
    clients, quorum, deadline = at
    history = simulate(_equal(clients), mcu(quorum=quorum, deadline=deadline), rounds=rounds,
                       seed=seed)  # fmt: skip
    used = history.by_round["used"][history.by_round["succeeded"]]
    return [
        {
            "part": NAME, "clients": clients, "quorum": quorum, "deadline": deadline, "seed": seed,
            "rounds": rounds, "updates": history.updates,
            "weight": float(history.weight_by_client.sum()),
            "reports": float(history.merged_by_client.sum()),
            "inverse": float(np.sum(1.0 / used)),
            "waste": history.waste, "processing": history.processing_waste,
        }
    ]  # fmt: skip


def found(rows: Rows) -> Finding:
    """Shares, the noise of an average, and waste: exact, as printed, and counted."""
    deadlines = sorted({row["deadline"] for row in rows if _line(row) and row["quorum"] == 1})
    quorums = sorted({row["quorum"] for row in rows if _line(row) and row["deadline"] == DEADLINE})
    return Finding(
        [_share_claim(rows), _age_claim(deadlines), _noise_claim(rows, quorums),
         _waste_claim(rows)],
        [_share_table(rows, deadlines), _noise_table(rows, quorums), _waste_table(rows)],
        {
            "share": lambda: _share_picture(rows, deadlines, quorums),
            "noise": lambda: _noise_picture(rows, quorums),
            "waste": lambda: _waste_picture(rows, quorums),
        },
    )  # fmt: skip


# ------------------------------------------------------------------------- the share of a client


def _share_claim(rows: Rows) -> Claim:
    """S~ as the paper sums it, against (1 - q) / N, and against the weights that were given."""
    places = _places(rows)
    exact = {at: _expected(at).success_probability / at[0] for at in places}
    apart = max(
        abs(theory.mean_share_as_printed(at[0], 1.0, *at[1:]) / exact[at] - 1) for at in places
    )
    chance = _chance([(_counts(rows, at, "weight"), at[0] * exact[at]) for at in places])
    return Claim(
        "Beyond the paper: the sum S̃ of Theorem 3 is exactly (1 - q)/N, whatever the deadline",
        ClaimVerdict.HOLDS if apart < 1e-9 and chance >= LEVEL else ClaimVerdict.FAILS,
        f"The largest relative difference to the printed sum is {apart:.0e}; the weights given in "
        f"{len(places)} simulated settings differ from it no more than by chance "
        f"(p = {chance:.2f} for all together).",
    )


def _age_claim(deadlines: Sequence[float]) -> Claim:
    """Corollary 3 puts p Pr(n~ >= M-1) for N S~; the age is what that loses."""
    lost = {t: _lost((CLIENTS, 1, t)) for t in deadlines}
    worst, half = max(lost, key=lambda t: lost[t]), lost[DEADLINE]
    return Claim(
        "Corollary 3: Theorem 3's bound is of the order of age/(T t), so age sets the rate",
        within(off(value / half for value in lost.values())),
        f"Theorem 3's own rate is (1 - q)/t. The corollary puts a lower bound for 1 - q, which is "
        f"{lost[worst]:.1f} times too small at T={worst:g} and {half:.1f} times at T={DEADLINE:g} "
        f"(N={CLIENTS}, M=1). It is valid, and the age comes from that loss alone.",
    )


def _lost(at: At) -> float:
    """How many times too small the corollary's lower bound for N S~ is."""
    expected = _expected(at)
    return expected.success_probability / float(expected.participation_by_client[0])


def _share_table(rows: Rows, deadlines: Sequence[float]) -> Cells:
    lines = []
    for t in deadlines:
        at = (CLIENTS, 1, t)
        e = _expected(at)
        lines.append([
            f"{t:g}", f"{e.success_probability:.4f}", shown(_counts(rows, at, "weight"), 4),
            f"{e.participation_by_client[0]:.4f}",
            shown(_counts(rows, at, "reports", CLIENTS), 4), f"{_lost(at):.1f}",
        ])  # fmt: skip
    header = (
        "T", "N S̃, exact", "weight per round, counted", "lower bound of Corollary 3",
        "use of a client per round, counted", "too small by",
    )  # fmt: skip
    return Cells(f"The share S̃, N={CLIENTS}, M=1", header, lines)


def _share_picture(rows: Rows, deadlines: Sequence[float], quorums: Sequence[int]) -> Figure:
    drawn = figure(9.6, 3.8)
    left, right = drawn.subplots(1, 2, sharey=True)
    _share_panel(left, rows, [(CLIENTS, 1, t) for t in np.geomspace(min(deadlines), 4, 60)],
                 [(CLIENTS, 1, t) for t in deadlines], 2)  # fmt: skip
    left.set(xscale="log", xlabel="deadline T (quorum 1)", ylabel="N S̃", ylim=(0, 1.08))
    ticks(left, deadlines)
    left.set_xticks([], minor=True)
    _share_panel(right, rows, [(CLIENTS, m, DEADLINE) for m in range(1, max(quorums) + 4)],
                 [(CLIENTS, m, DEADLINE) for m in quorums], 1)  # fmt: skip
    right.set(xlabel=f"quorum M (T = {DEADLINE:g})")
    for axes in (left, right):
        tidy(axes)
    right.get_legend().remove()
    return drawn


def _share_panel(axes: Axes, rows: Rows, fine: Sequence[At], counted: Sequence[At], x: int) -> None:
    """Exact and the corollary's stand-in as lines over one entry of the place; dots are counted."""
    places, dots = [at[x] for at in fine], [at[x] for at in counted]
    exact = [_expected(at).success_probability for at in fine]
    below = [float(_expected(at).participation_by_client[0]) for at in fine]
    axes.plot(places, exact, color="#0072B2", label="exactly 1 - q")
    axes.plot(places, below, color="#D55E00", ls="--", label="lower bound in Corollary 3")
    _dots(axes, dots, [_counts(rows, at, "weight") for at in counted], "#0072B2")
    uses = [_counts(rows, at, "reports", CLIENTS) for at in counted]
    _dots(axes, dots, uses, "#D55E00", "counted in simulations")


# --------------------------------------------------------------------- the noise of an average


def _noise_claim(rows: Rows, quorums: Sequence[int]) -> Claim:
    """The proof bounds 1/n by 1/M (eq. 26)."""
    loose = {m: _loose(m) for m in quorums}
    chance = _chance([
        (_counts(rows, (CLIENTS, m, DEADLINE), "inverse"),
         _expected((CLIENTS, m, DEADLINE)).noise_factor)
        for m in quorums
    ])  # fmt: skip
    best = min(loose, key=lambda m: loose[m])
    return Claim(
        "Theorem 3's noise term, σ²(1 - q)/M, says how noisy an update is (within a factor 2)",
        share_of([value <= 2 for value in loose.values()]),
        f"The exact factor is E[1/n; n ≥ M]. The printed one is {loose[1]:.1f} times that at M=1 "
        f"and closest at M={best}, {loose[best]:.2f} times (N={CLIENTS}, T={DEADLINE:g}). Counted "
        f"factors differ from the exact ones no more than by chance (p = {chance:.2f} for all "
        "together).",
    )


def _loose(quorum: int) -> float:
    e = _expected((CLIENTS, quorum, DEADLINE))
    return e.success_probability / quorum / e.noise_factor


def exact_merit(quorum: int) -> float:
    """E[1/n; n >= M] / (1-q)^2: the error of a run in which noise is all, but for constants."""
    e = _expected((CLIENTS, quorum, DEADLINE))
    return e.noise_factor / e.success_probability**2


def printed_merit(quorum: int) -> float:
    """The same by Remark 4: 1 / (M Pr(n~ >= M-1))."""
    return 1 / theory.merit_as_printed(CLIENTS, 1.0, quorum, DEADLINE)


def _noise_table(rows: Rows, quorums: Sequence[int]) -> Cells:
    lines = []
    for m in quorums:
        at = (CLIENTS, m, DEADLINE)
        e = _expected(at)
        lines.append([
            f"{m}", f"{e.success_probability:.4f}", f"{e.noise_factor:.5f}",
            shown(_counts(rows, at, "inverse"), 5), f"{e.success_probability / m:.5f}",
            f"{_loose(m):.2f}", f"{exact_merit(m) / exact_merit(1):.3f}",
            f"{printed_merit(m) / printed_merit(1):.3f}",
        ])  # fmt: skip
    header = (
        "M", "1 - q", "E[1/n; n ≥ M]", "counted", "printed (1 - q)/M", "too large by",
        "error against M=1, exact", "the same by Remark 4",
    )  # fmt: skip
    return Cells(f"The factor of σ², N={CLIENTS}, T={DEADLINE:g}", header, lines)


def _noise_picture(rows: Rows, quorums: Sequence[int]) -> Figure:
    drawn = figure()
    axes = drawn.add_subplot()
    every = range(1, max(quorums) + 1)
    e = [_expected((CLIENTS, m, DEADLINE)) for m in every]
    axes.plot(every, [x.noise_factor for x in e], color="#0072B2", label="exactly E[1/n; n ≥ M]")
    printed = [x.success_probability / x.quorum for x in e]
    axes.plot(every, printed, color="#D55E00", ls="--", label="as printed, (1 - q)/M")
    counted = [_counts(rows, (CLIENTS, m, DEADLINE), "inverse") for m in quorums]
    _dots(axes, quorums, counted, "#0072B2", "counted in simulations")
    axes.set(yscale="log", xlabel=f"quorum M (N = {CLIENTS}, T = {DEADLINE:g})",
             ylabel="factor of σ² in an update")  # fmt: skip
    tidy(axes)
    return drawn


# ------------------------------------------------------------------------------------------ waste


def _waste_claim(rows: Rows) -> Claim:
    """Eq. (3) charges T to a client that was done at X < T in a round that failed."""
    places = [at for at in _places(rows) if at == SMALL or at[2] == DEADLINE]
    over = {at: _expected(at).waste / _expected(at).processing_waste - 1 for at in places}
    small = _expected(SMALL)
    counted = _over(rows, SMALL, "processing")
    most = (CLIENTS, max(at[1] for at in places if at != SMALL), DEADLINE)
    return Claim(
        "C_w is time that clients spend on processing for nothing (within 1 %)",
        share_of([value < 0.01 for value in over.values()]),
        f"Right where no round fails. A client that is done before the deadline of a round that "
        f"fails is charged all of T: at N=10, M=9, T=1 that gives {small.waste:.1f} per update "
        f"where {small.processing_waste:.1f} were spent (counted: {shown(counted, 1)}), "
        f"{over[SMALL]:.0%} too much; at N={CLIENTS}, M={most[1]}, T={DEADLINE:g}, "
        f"{over[most]:.0%}.",
    )


def _waste_table(rows: Rows) -> Cells:
    lines = []
    for at in _places(rows):
        if at != SMALL and at[2] != DEADLINE:
            continue
        e = _expected(at)
        lines.append([
            f"{at[0]}", f"{at[1]}", f"{at[2]:g}", f"{e.waste:.1f}",
            shown(_over(rows, at, "waste"), 1), f"{e.processing_waste:.1f}",
            shown(_over(rows, at, "processing"), 1), f"{e.waste / e.processing_waste - 1:.0%}",
        ])  # fmt: skip
    header = (
        "N",
        "M",
        "T",
        "charged",
        "charged, counted",
        "processing",
        "processing, counted",
        "too much",
    )
    return Cells("Waste per update", header, lines)


def _waste_picture(rows: Rows, quorums: Sequence[int]) -> Figure:
    drawn = figure(9.6, 4.0)
    for axes, clients, deadline, counted in zip(
        drawn.subplots(1, 2), (CLIENTS, SMALL[0]), (DEADLINE, SMALL[2]), (quorums, [SMALL[1]]),
        strict=True,
    ):  # fmt: skip
        _waste_panel(axes, rows, clients, deadline, counted)
    return drawn


def _waste_panel(
    axes: Axes, rows: Rows, clients: int, deadline: float, quorums: Sequence[int]
) -> None:
    every = range(1, max(quorums) + 1)
    e = [_expected((clients, m, deadline)) for m in every]
    kinds = (("waste", "waste", "charged by the paper", "#D55E00", "--"),
             ("processing", "processing_waste", "true processing", "#0072B2", "-"))  # fmt: skip
    for name, attribute, label, colour, dashes in kinds:
        axes.plot(every, [getattr(x, attribute) for x in e], dashes, color=colour, label=label)
        counted = [_over(rows, (clients, m, deadline), name) for m in quorums]
        _dots(axes, quorums, counted, colour)
    axes.plot([], [], "o", ms=5, mfc="white", color=GREY, label="counted in simulations")
    axes.set(xlabel=f"quorum M (N = {clients}, T = {deadline:g})", ylabel="waste per update",
             ylim=(0, None))  # fmt: skip
    tidy(axes)


# ------------------------------------------------------------------------------------------ common


def _equal(clients: int) -> Federation:
    return Federation(clients, Exponential(1.0))


def _expected(at: At) -> Expectation:
    return cafe.expect(_equal(at[0]), quorum=at[1], deadline=at[2])


def _line(row: Row) -> bool:
    return bool(row["clients"] == CLIENTS)


def _places(rows: Rows) -> list[At]:
    return list(dict.fromkeys((row["clients"], row["quorum"], row["deadline"]) for row in rows))


def _columns(rows: Rows, at: At, *names: str) -> list[list[float]]:
    where = dict(zip(("clients", "quorum", "deadline"), at, strict=True))
    return [[*column(rows, name, **where)] for name in names]


def _counts(rows: Rows, at: At, name: str, clients: int = 1) -> Estimate:
    """A sum over rounds, per round and perhaps per client."""
    counted, rounds = _columns(rows, at, name, "rounds")
    return mean(np.array(counted) / np.array(rounds) / clients)


def _over(rows: Rows, at: At, name: str) -> Estimate:
    """A sum over rounds, per update: the ratio of sums over all runs."""
    return ratio(*_columns(rows, at, name, "updates"))


def _chance(pairs: Sequence[tuple[Estimate, float]]) -> float:
    """How often chance alone brings some mean as far from what was expected as here (Bonferroni).

    Means of values that do not vary tell nothing, and are left out.
    """
    found = [estimate.chance(expected) for estimate, expected in pairs]
    known = [value for value in found if value == value]
    return min([1.0, *(value * len(known) for value in known)])


def _dots(
    axes: Axes, x: Sequence[float], found: Sequence[Estimate], colour: str, label: str | None = None
) -> None:
    means, errors = ([getattr(e, name) for e in found] for name in ("mean", "error"))
    axes.errorbar(x, means, errors, fmt="o", ms=5, mfc="white", color=colour, capsize=2.5,
                  label=label)  # fmt: skip
