"""Waste per update: what the paper charges, and what clients spend on processing."""

from __future__ import annotations

from collections.abc import Sequence

from cafe.report.cells import Cells
from cafe.reproduce import pictures
from cafe.reproduce.claims import Claim, judge_all
from cafe.reproduce.experiments.book_counts import (
    CLIENTS,
    DEADLINE,
    NAME,
    SMALL,
    Counts,
    Setting,
    expected,
)
from cafe.reproduce.findings import Finding
from cafe.reproduce.measured_tables import table, with_error
from cafe.reproduce.rows import Rows, select

BLUE, ORANGE = pictures.COLOURS[:2]  # exact, as printed


def conclude(rows: Rows) -> Finding:
    """Compare the charged waste with the processing time, by theory and as counted."""
    counts = Counts(select(rows, part=NAME))
    return Finding(
        [_waste_claim(counts)], [_waste_table(counts)], {"waste": lambda: _draw_waste(counts)}
    )


def _charges(counts: Counts) -> dict[Setting, float]:
    """How much more is charged than processed, relatively, by setting."""
    settings = [at for at in counts.settings if at == SMALL or at[2] == DEADLINE]
    return {at: expected(at).waste / expected(at).processing_waste - 1 for at in settings}


def _waste_claim(counts: Counts) -> Claim:
    """Eq. (3) charges T to a client that was done at X < T in a round that failed."""
    over, small = _charges(counts), expected(SMALL)
    most = (CLIENTS, max(counts.quorums), DEADLINE)
    return Claim(
        "C_w is the processing time that clients waste (within 1 %)",
        judge_all([value < 0.01 for value in over.values()]),
        f"This is right where no round fails. A client that finishes before the deadline of a "
        f"round that fails is charged all of T: at N=10, M=9, T=1 that gives {small.waste:.1f} per "
        f"update where {small.processing_waste:.1f} were spent (counted: "
        f"{with_error(counts.per_update(SMALL, 'processing'), 1)}), {over[SMALL]:.0%} too much; at "
        f"N={CLIENTS}, M={most[1]}, T={DEADLINE:g}, {over[most]:.0%}.",
    )


def _waste_table(counts: Counts) -> Cells:
    return table(
        "Waste per update",
        (
            {
                "N": f"{at[0]}",
                "M": f"{at[1]}",
                "T": f"{at[2]:g}",
                "charged": f"{expected(at).waste:.1f}",
                "charged, counted": with_error(counts.per_update(at, "waste"), 1),
                "processing": f"{expected(at).processing_waste:.1f}",
                "processing, counted": with_error(counts.per_update(at, "processing"), 1),
                "too much": f"{over:.0%}",
            }
            for at, over in _charges(counts).items()
        ),
    )


def _draw_waste(counts: Counts) -> pictures.Figure:
    picture = pictures.figure(9.6, 4.0)
    left, right = picture.subplots(1, 2)
    _draw_waste_panel(left, counts, CLIENTS, DEADLINE, counts.quorums)
    _draw_waste_panel(right, counts, SMALL[0], SMALL[2], [SMALL[1]])
    return picture


def _draw_waste_panel(
    axes: pictures.Axes, counts: Counts, clients: int, deadline: float, quorums: Sequence[int]
) -> None:
    every = range(1, max(quorums) + 1)
    e = [expected((clients, m, deadline)) for m in every]
    for name, attribute, label, colour, dashes in (
        ("waste", "waste", "charged by the paper", ORANGE, "--"),
        ("processing", "processing_waste", "true processing", BLUE, "-"),
    ):
        axes.plot(every, [getattr(x, attribute) for x in e], dashes, color=colour, label=label)
        counted = {m: counts.per_update((clients, m, deadline), name) for m in quorums}
        pictures.draw_hollow(axes, counted, colour)
    axes.plot([], [], "o", ms=5, mfc="white", color=pictures.GREY, label="counted in simulations")
    axes.set(xlabel=f"quorum M (N = {clients}, T = {deadline:g})", ylabel="waste per update",
             ylim=(0, None))  # fmt: skip
    pictures.tidy(axes)
