"""The closed forms against simulated rounds: waste, broadcasts and age, for any clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import hypot, inf
from typing import TYPE_CHECKING, Any

import cafe
from cafe.analysis.statistics import Estimate, mean
from cafe.report.cells import Cells
from cafe.report.plotting import COLOURS, MARKERS
from cafe.reproduce.agreement import CLOSE, LEVEL, Agreement, Comparison
from cafe.reproduce.findings import (
    Claim,
    ClaimVerdict,
    Effort,
    Experiment,
    Finding,
    Rows,
    judge_differences,
    shown,
)
from cafe.reproduce.paper_tables import TABLE_AGU
from cafe.reproduce.pictures import GREY, figure, tidy
from cafe.reproduce.trials import Row, TrialProgress, column, load_scenario, measured
from cafe.reproduce.warmup import per, settled, steady_trials, warmup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, SEEDS, ROUNDS = "theory", 10, 2000
RARE = 20  # fewer failed or successful rounds than this do not make a normal mean
SIMILAR = 1.25  # a ratio up to which two costs are called similar
BRIEF, LONG = 0.5, 2.0  # the deadlines that Sec. 8.2 compares

EQUAL, GROUPS, PHONES, SLOW = "equal", "fast and slow", "phones", "phones, more work"
FLEETS: dict[str, dict[str, Any]] = {
    EQUAL: {"rate": 1.0},
    GROUPS: {"group": [{"clients": 50, "rate": 4.0}, {"clients": 50, "rate": 0.3}]},
    PHONES: {"preset": "phones", "examples": 10},
    SLOW: {"preset": "phones", "examples": 500},
}
# Fleet, clients, deadline: quorums. Those of T = 0.3 are Table II's.
GRID: list[tuple[str, int, float, tuple[int, ...]]] = [
    (EQUAL, 10, 0.2, (1,)),
    (EQUAL, 10, 0.5, (3, 5)),
    (EQUAL, 10, 1.0, (7, 9)),
    (EQUAL, 10, 2.0, (9,)),
    (EQUAL, 100, 0.1, (1, 8, 11)),
    (EQUAL, 100, 0.3, (27, 29, 31, 33, 35)),
    (EQUAL, 100, 0.5, (1, 33, 36, 39, 42)),
    (EQUAL, 100, 1.0, (1, 60, 66)),
    (EQUAL, 100, 2.0, (1, 85, 88)),
    (EQUAL, 1000, 0.1, (95,)),
    (EQUAL, 1000, 0.5, (1, 390, 400)),
    (GROUPS, 100, 0.2, (30, 33)),
    (GROUPS, 100, 0.5, (1, 50, 53)),
    (PHONES, 100, 15.0, (1, 92, 94)),
    (PHONES, 100, 20.0, (96, 98)),
    (SLOW, 100, 20.0, (20, 22)),
    (SLOW, 100, 30.0, (44, 46)),
]
PLACE = ("fleet", "clients", "quorum", "deadline")
Place = tuple[Any, ...]  # the values of these


def federation_of(fleet: str, clients: int) -> dict[str, Any]:
    """The table ``[federation]`` of a fleet."""
    table = FLEETS[fleet]
    return table if "group" in table else {**table, "clients": clients}


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Every place of the grid, with seeds that no other place has: errors are independent."""
    rounds = ROUNDS if effort.rounds is None else 10 * effort.rounds
    trials = []
    for number, place in enumerate(_places(effort)):
        point = {"fleet": place[0], "clients": place[1], "quorum": place[2], "deadline": place[3]}
        trials += steady_trials(
            NAME,
            {**point, **_expected(*place)},
            [1000 * number + seed for seed in effort.seeds(SEEDS)],
            rounds,
            {"federation": federation_of(place[0], place[1])},
        )
    return measured(trials, progress, settled)


def _places(effort: Effort) -> list[tuple[str, int, int, float]]:
    """The grid, a line each; of most fleets quick effort has the first line only."""
    return [
        (fleet, clients, quorum, deadline)
        for fleet, clients, deadline, quorums in GRID
        for quorum in (quorums[:1] if effort.quick and fleet != EQUAL else effort.thin(quorums))
        if not (effort.quick and clients == 1000)
    ]


def _expected(fleet: str, clients: int, quorum: int, deadline: float) -> dict[str, float]:
    """What theory says of a place, and how seldom a client is heard there."""
    changes = {"federation": federation_of(fleet, clients), "policy.quorum": quorum}
    federation = load_scenario(NAME).with_values(changes).federation
    e = cafe.expect(federation, quorum=quorum, deadline=deadline)
    found = {f"expected_{name}": float(getattr(e, source)) for name, source in QUANTITIES.items()}
    return {
        **found,
        "expected_success": e.success_probability,
        "warmup": warmup(e),
    }


# What is compared, and under which name theory has it.
QUANTITIES = {
    "waste": "waste",
    "processing": "processing_waste",
    "broadcasts": "broadcasts",
    "age": "age",
}
WORDS = {
    "waste": "waste",
    "processing": "processing waste",
    "broadcasts": "broadcasts",
    "age": "age",
}


def conclude(rows: Rows) -> Finding:
    """The formulas hold; what the text says about them does not always."""
    places = list(dict.fromkeys(tuple(row[key] for key in PLACE) for row in rows))
    found = {place: _compared(_at(rows, place)) for place in places}
    equal, unlike = ([p for p in places if (p[0] == EQUAL) == same] for same in (True, False))
    fits = {
        (name, group is equal): Agreement.of([found[p][name] for p in group if name in found[p]])
        for group in (equal, unlike)
        for name in QUANTITIES
    }
    family = len(fits)
    texts = {
        "waste": "Theorem 1: the waste per update",
        "broadcasts": "Equation (6): the broadcasts per update",
        "age": "Theorem 2: the age of a client",
        "processing": "Beyond the paper: the processing time thrown away per update, corrected",
    }
    general = [fits[name, False] for name in QUANTITIES]
    claims = [
        Claim(text, fits[name, True].verdict(family), f"{fits[name, True]}.")
        for name, text in texts.items()
    ]
    claims += [
        Claim(
            "Beyond the paper: the general formulas, for clients that differ",
            _all([fit.verdict(family) for fit in general]),
            "; ".join(f"{WORDS[n]}: {f}" for n, f in zip(QUANTITIES, general, strict=True)) + ".",
        ),
        _per_round(rows, equal),
        _processing(rows, equal),
        _least(rows, equal),
        _efficiency(rows),
    ]
    return Finding(
        claims,
        [_successes(rows), _denominators(rows), _table(found)],
        {"theory": lambda: _drawn(found)},
        notes=[
            f"Only the books are kept: {len({r['seed'] for r in rows})} runs, nothing is trained. "
            "A place's seeds are its own, so that errors at different places are independent. A "
            "run's first rounds are left out, 10 mean times between two uses of its least heard "
            "client: all ages begin at 0.",
            f"The rule: a formula holds where the chi-square p-value of its z-scores is at least "
            f"{LEVEL:g} shared by all {family} tests; in part where it is below and the median "
            f"difference is less than {CLOSE:.0%}. True formulas are more than 2 standard errors "
            "off in 5 % of settings. A z-score is on the normal scale, from Student's t over the "
            "seeds.",
            f"Not tested: broadcasts where fewer than {RARE} of all rounds are to fail, and all "
            f"else where fewer than {RARE} are to succeed. Where none is to fail broadcasts have "
            f"to be within {CLOSE:.0%}.",
            "Where the deadline is shorter than a phone's computing its age grows for ever, and "
            "the mean age is infinite: such ages are not compared.",
            "Bars in the picture are two standard errors.",
        ],
    )


def _at(rows: Rows, place: Place) -> list[Row]:
    return [row for row in rows if tuple(row[key] for key in PLACE) == place]


def _compared(rows: Rows) -> dict[str, Comparison]:
    first = rows[0]
    estimates = {
        "waste": per(rows, "waste", "updates"),
        "processing": per(rows, "processing", "updates"),
        "broadcasts": per(rows, "rounds", "updates"),
        "age": mean([*column(rows, "age")]),
    }
    rounds = sum(row["rounds"] for row in rows)
    success = first["expected_success"]
    found = {}
    for name, estimate in estimates.items():
        expected = first[f"expected_{name}"]
        if not expected < inf:  # a client that is never heard
            continue
        enough = success * rounds >= RARE
        sure = name == "broadcasts" and (1 - success) * rounds < 1
        if name == "broadcasts":
            enough &= (1 - success) * rounds >= RARE
        found[name] = Comparison(estimate, expected, enough and estimate.error > 0, sure)
    return found


def _all(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """The worst of some."""
    for worst in (ClaimVerdict.FAILS, ClaimVerdict.IN_PART):
        if worst in verdicts:
            return worst
    return ClaimVerdict.HOLDS


def apart(first: Estimate, second: Estimate) -> Estimate:
    """The difference of two means of runs that have nothing in common."""
    count = min(first.count, second.count)
    return Estimate(first.mean - second.mean, hypot(first.error, second.error), count)


def _name(place: Place) -> str:
    _, clients, quorum, deadline = place
    return f"N={clients}, M={quorum}, T={deadline:g}"


def _misses(
    rows: Rows, places: Sequence[Place], over: str, under: str
) -> tuple[list[Place], Place, Comparison]:
    """Where a ratio is not what Theorem 1 gives, by more than chance and by more than a little.

    Returns:
        These places, and the one with the largest difference, with it.
    """
    found = {
        place: Comparison(per(_at(rows, place), over, under), row["expected_waste"])
        for place in places
        for row in _at(rows, place)[:1]
    }
    missed = [p for p, one in found.items() if abs(one.off) > CLOSE and not abs(one.z) <= 2]
    worst = max(found, key=lambda place: found[place].expected / found[place].found.mean)
    return missed, worst, found[worst]


def _per_round(rows: Rows, places: Sequence[Place]) -> Claim:
    missed, where, worst = _misses(rows, places, "waste", "rounds")
    return Claim(
        "Theorem 1 is the waste of a round, as the text defines it (Sec. 4.1)",
        _rule(missed, places),
        f"The waste of a round is another one in {len(missed)} of {len(places)} settings: "
        f"{shown(worst.found)} at {_name(where)}, where the theorem has {worst.expected:.1f}. The "
        "theorem's is that of an update, failed rounds before it included.",
    )


def _processing(rows: Rows, places: Sequence[Place]) -> Claim:
    missed, where, worst = _misses(rows, places, "processing", "updates")
    over = worst.expected / worst.found.mean - 1
    return Claim(
        "The waste is time that was spent on processing (Sec. 4.1)",
        _rule(missed, places),
        f"Clients have spent less in {len(missed)} of {len(places)} settings, as they are charged "
        f"the whole round even if they were done before: {shown(worst.found, 1)} at "
        f"{_name(where)}, where the theorem has {worst.expected:.1f}, {over:.0%} more. The two "
        "agree at quorum 1.",
    )


def _rule(missed: Sequence[Place], places: Sequence[Place]) -> ClaimVerdict:
    """It holds where nothing is missed, in part where less than half is."""
    if not missed:
        return ClaimVerdict.HOLDS
    return ClaimVerdict.IN_PART if 2 * len(missed) < len(places) else ClaimVerdict.FAILS


def _least(rows: Rows, places: Sequence[Place]) -> Claim:
    """Corollary 1, at every deadline with a quorum of 1 and others."""
    leads: dict[Place, Estimate] = {}
    for place in places:
        one = (*place[:2], 1, place[3])
        if one in places and place != one:
            leads[place] = apart(*(per(_at(rows, p), "waste", "updates") for p in (place, one)))
    least = min(leads, key=lambda place: leads[place].mean)
    return Claim(
        "Corollary 1: at a fixed deadline quorum 1 has the least waste",
        judge_differences([*leads.values()]),
        f"All {len(leads)} larger quorums waste more; the least difference is "
        f"{shown(leads[least], 2)} at {_name(least)}."
        if leads[least].mean > 0
        else f"At {_name(least)} the difference is {shown(leads[least], 2)}.",
    )


PER: dict[str, tuple[str, Callable[[Rows], Estimate]]] = {
    "update": ("per update", lambda rows: per(rows, "waste", "updates")),
    "report": ("per used report", lambda rows: per(rows, "waste", "used")),
    "time": ("per unit of time", lambda rows: per(rows, "waste", "time")),
}


def _efficiency(rows: Rows) -> Claim:
    """Sec. 8.2, by three denominators."""
    short, long = (_at(rows, (EQUAL, 100, 1, deadline)) for deadline in (BRIEF, LONG))
    words, similar = [], []
    for name, of in PER.values():
        first, second = of(short), of(long)
        times = first.mean / second.mean
        error = times * hypot(first.error / first.mean, second.error / second.mean)
        similar.append(1 / SIMILAR < times < SIMILAR)
        words.append(
            f"{name} {first.mean:.3g} and {second.mean:.3g} ({times:.3f} ± {error:.3f} times)"
        )
    verdict = ClaimVerdict.FAILS if not any(similar) else ClaimVerdict.IN_PART
    return Claim(
        f"T={BRIEF:g} is about as efficient as T={LONG:g}, within {SIMILAR - 1:.0%} (Sec. 8.2)",
        ClaimVerdict.HOLDS if all(similar) else verdict,
        f"The waste at T={BRIEF:g} and T={LONG:g}: {'; '.join(words)}.",
    )


def _successes(rows: Rows) -> Cells:
    """How many rounds succeed at the quorums of Table II."""
    lines = []
    for quorum in sorted({row["quorum"] for row in TABLE_AGU}):
        here = _at(rows, (EQUAL, 100, quorum, 0.3))
        if not here:
            continue
        compared = Comparison(per(here, "updates", "rounds"), here[0]["expected_success"])
        accuracy = next(
            row["accuracy"]
            for row in TABLE_AGU
            if row["quorum"] == quorum and row["policy"] == "mcu"
        )
        lines.append(
            [
                f"{quorum}", f"{compared.expected:.4f}", shown(compared.found, 4),
                f"{compared.z:+.1f}", f"{1000 * compared.expected:.0f}", f"{accuracy:.3f}",
            ]
        )  # fmt: skip
    header = (
        "quorum", "expected", "measured", "z", "updates in 1000 rounds", "MCU's printed accuracy"
    )  # fmt: skip
    return Cells("Table II's quorums: rounds that succeed (N=100, T=0.3)", header, lines)


def _denominators(rows: Rows) -> Cells:
    deadlines = sorted(
        {r["deadline"] for r in rows if (r["fleet"], r["clients"], r["quorum"]) == (EQUAL, 100, 1)}
    )
    return Cells(
        "Waste by three denominators (N=100, M=1)",
        ("deadline", *(name for name, _ in PER.values())),
        [
            [f"{t:g}", *(shown(of(_at(rows, (EQUAL, 100, 1, t)))) for _, of in PER.values())]
            for t in deadlines
        ],
    )


def _table(found: Mapping[Place, Mapping[str, Comparison]]) -> Cells:
    lines = []
    for place, by_name in found.items():
        fleet, clients, quorum, deadline = place
        cells = [fleet, f"{clients}", f"{quorum}", f"{deadline:g}"]
        for name in QUANTITIES:
            one = by_name.get(name)
            cells.append("-" if one is None else _cell(one))
        lines.append(cells)
    header = ("clients are", "clients", "quorum", "deadline", *WORDS.values())
    return Cells("Measured ± standard error, expected (z)", header, lines)


def _cell(one: Comparison) -> str:
    z = f"{one.z:+.1f}" if one.tested else "not tested"
    return f"{one.found.mean:.4g} ± {one.found.error:.2g}, {one.expected:.4g} ({z})"


def _drawn(found: Mapping[Place, Mapping[str, Comparison]]) -> Figure:
    """Measured over expected at every place, a panel per quantity, with two standard errors."""
    drawn = figure(9.6, 6.4)
    panels = drawn.subplots(2, 2, sharex=True).flat
    fleets = list(dict.fromkeys(place[:2] for place in found))
    handles: dict[str, Any] = {}
    for axes, name in zip(panels, QUANTITIES, strict=True):
        axes.axhline(0.0, color=GREY, lw=1)
        for index, kind in enumerate(fleets):
            at = [
                (number, by_name[name])
                for number, (place, by_name) in enumerate(found.items(), 1)
                if place[:2] == kind and name in by_name and by_name[name].tested
            ]
            if not at:
                continue
            label = f"{kind[1]} {kind[0]}"
            handles[label] = axes.errorbar(
                [number for number, _ in at],
                [100 * one.off for _, one in at],
                [200 * one.found.error / one.expected for _, one in at],
                ls="none", capsize=2, ms=4, lw=1, marker=MARKERS[index % len(MARKERS)],
                color=COLOURS[index % len(COLOURS)],
            )  # fmt: skip
        axes.set_title(WORDS[name], fontsize=10)
        tidy(axes)
    for axes in drawn.axes[2:]:
        axes.set_xlabel("setting, in the table's order")
    for axes in drawn.axes[::2]:
        axes.set_ylabel("measured against expected, %")
    drawn.legend(
        [*handles.values()], [*handles], loc="outside upper center", ncols=len(handles),
        frameon=False, fontsize=8,
    )  # fmt: skip
    return drawn


EXPERIMENT = Experiment(
    NAME,
    "Theorems 1 and 2, equation (6), Corollary 1, Sec. 8.2",
    "the closed forms against simulated rounds",
    run,
    conclude,
)
