"""The closed forms against simulated rounds: waste, broadcasts and age, for any clients."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import cafe
from cafe.analysis.statistics import Estimate
from cafe.reproduce import pictures
from cafe.reproduce.agreement import CLOSE, LEVEL, Agreement, Comparison
from cafe.reproduce.claims import Claim, worst
from cafe.reproduce.experiments import waste_statements
from cafe.reproduce.findings import Experiment, Finding
from cafe.reproduce.measured_tables import table
from cafe.reproduce.rows import Row, Rows, group, mean_of, ratio_of
from cafe.reproduce.trials import Effort, TrialProgress, load_scenario, run_trials
from cafe.reproduce.warmup import steady_totals, steady_trials, warmup_rounds

NAME, SEEDS, ROUNDS = "theory", 10, 2000
RARE = 20  # with fewer failed or successful rounds than this a mean is not normal

EQUAL, GROUPS, PHONES, SLOW = waste_statements.EQUAL, "fast and slow", "phones", "phones, more work"
FLEETS: dict[str, dict[str, Any]] = {
    EQUAL: {"rate": 1.0},
    GROUPS: {"group": [{"clients": 50, "rate": 4.0}, {"clients": 50, "rate": 0.3}]},
    PHONES: {"preset": "phones", "examples": 10},
    SLOW: {"preset": "phones", "examples": 500},
}
# Fleet, number of clients, deadline, and quorums. Those of T = 0.3 are Table II's.
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
SETTING = ("fleet", "clients", "quorum", "deadline")
Setting = tuple[Any, ...]  # the values of the columns SETTING
QUANTITIES = {  # what is compared: its name in theory and in words
    "waste": ("waste", "waste"),
    "processing": ("processing_waste", "processing waste"),
    "broadcasts": ("broadcasts", "broadcasts"),
    "age": ("age", "age"),
}
FORMULAS = {
    "waste": "Theorem 1: the waste per update",
    "broadcasts": "Equation (6): the broadcasts per update",
    "age": "Theorem 2: the age of a client",
    "processing": "Beyond the paper: the wasted processing time per update, corrected",
}
Comparisons = Mapping[Setting, Mapping[str, Comparison]]


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Run every setting of the grid, with different seeds so that errors are independent."""
    trials = []
    for number, point in enumerate(_points(effort)):
        federation = _federation_table(point["fleet"], point["clients"])
        trials += steady_trials(
            NAME,
            {**point, **_expected(point, federation)},
            [1000 * number + seed for seed in effort.seeds(SEEDS)],
            effort.choose(ROUNDS, quick=300),
            {"federation": federation},
        )
    return run_trials(trials, effort, progress, steady_totals)


def _points(effort: Effort) -> list[dict[str, Any]]:
    """The grid as points; a quick run has only one quorum of each unequal fleet."""
    return [
        {"fleet": fleet, "clients": clients, "quorum": quorum, "deadline": deadline}
        for fleet, clients, deadline, quorums in GRID
        for quorum in (quorums[:1] if effort.quick and fleet != EQUAL else effort.thin(quorums))
        if not (effort.quick and clients == 1000)
    ]


def _federation_table(fleet: str, clients: int) -> dict[str, Any]:
    """The table ``[federation]`` of a fleet."""
    known = FLEETS[fleet]
    return known if "group" in known else {**known, "clients": clients}


def _expected(point: Mapping[str, Any], federation: Mapping[str, Any]) -> dict[str, float]:
    """The expected values at a point, and the length of its warm-up."""
    changes = {"federation": federation, "policy.quorum": point["quorum"]}
    fleet = load_scenario(NAME).with_values(changes).federation
    e = cafe.expect(fleet, quorum=point["quorum"], deadline=point["deadline"])
    return {
        **{f"expected_{name}": float(getattr(e, own)) for name, (own, _) in QUANTITIES.items()},
        "expected_success": e.success_probability,
        "warmup": warmup_rounds(e),
    }


def conclude(rows: Rows) -> Finding:
    """Test every formula in all settings; judge what the text says about waste."""
    compared = {setting: _compare(own) for setting, own in group(rows, *SETTING).items()}
    fits = {
        (name, equal): Agreement.of([
            by_name[name]
            for setting, by_name in compared.items()
            if (setting[0] == EQUAL) is equal and name in by_name
        ])
        for equal in (True, False)
        for name in QUANTITIES
    }  # fmt: skip
    family = len(fits)
    general = {words: fits[name, False] for name, (_, words) in QUANTITIES.items()}
    return Finding(
        [
            *(
                Claim(text, fits[name, True].verdict(family), f"{fits[name, True]}.")
                for name, text in FORMULAS.items()
            ),
            Claim(
                "Beyond the paper: the general formulas, for clients that differ",
                worst([fit.verdict(family) for fit in general.values()]),
                "; ".join(f"{words}: {fit}" for words, fit in general.items()) + ".",
            ),
            *waste_statements.claims(rows),
        ],
        [
            *waste_statements.tables(rows),
            table(
                "Measured ± standard error, expected (z)",
                (
                    dict(zip(("clients are", *SETTING[1:]), map(_text, setting), strict=True))
                    | {w: f"{by_name.get(name, '-')}" for name, (_, w) in QUANTITIES.items()}
                    for setting, by_name in compared.items()
                ),
            ),
        ],
        {"theory": lambda: _draw(compared)},
        notes=[
            f"The {len({r['seed'] for r in rows})} runs train nothing; they only count. "
            "Every setting has its own seeds, so that errors in different settings are "
            "independent. A run's first rounds are left out, 10 mean times between two uses of "
            "its least used client, because all ages start at 0.",
            f"The rule: a formula holds where the chi-square p-value of its z-scores is at least "
            f"{LEVEL:g} shared by all {family} tests; in part where it is below and the median "
            f"difference is less than {CLOSE:.0%}. True formulas are more than 2 standard errors "
            "off in 5 % of settings. A z-score is on the normal scale, from Student's t over the "
            "seeds.",
            f"Not tested: broadcasts where fewer than {RARE} of all rounds are expected to fail, "
            f"and all other quantities where fewer than {RARE} are expected to succeed. Where no "
            f"round is expected to fail, broadcasts must be within {CLOSE:.0%}.",
            "Where the deadline is shorter than a phone's computing time, its age grows without "
            "limit and the mean age is infinite: such ages are not compared.",
            "Bars in the picture are two standard errors.",
        ],
    )


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _compare(rows: Rows) -> dict[str, Comparison]:
    """Every quantity of one setting beside its formula; infinite ages are left out."""
    estimates = {
        "waste": ratio_of(rows, "waste", "updates"),
        "processing": ratio_of(rows, "processing", "updates"),
        "broadcasts": ratio_of(rows, "rounds", "updates"),
        "age": mean_of(rows, "age"),
    }
    rounds = sum(row["rounds"] for row in rows)
    successes = rows[0]["expected_success"] * rounds
    failures = (1 - rows[0]["expected_success"]) * rounds
    compared = {}
    for name, estimate in estimates.items():
        expected = rows[0][f"expected_{name}"]
        if expected < inf:
            fails = name == "broadcasts"  # only failed rounds make broadcasts vary
            enough = successes >= RARE and (failures >= RARE or not fails)
            constant = fails and failures < 1
            compared[name] = Comparison(estimate, expected, enough and estimate.error > 0, constant)
    return compared


def _draw(compared: Comparisons) -> pictures.Figure:
    """Relative differences of all settings, a panel per quantity, with two standard errors."""
    picture = pictures.figure(9.6, 6.4)
    fleets = list(dict.fromkeys(setting[:2] for setting in compared))
    handles: dict[str, Any] = {}
    for axes, name in zip(picture.subplots(2, 2, sharex=True).flat, QUANTITIES, strict=True):
        axes.axhline(0.0, color=pictures.GREY, lw=1)
        for index, fleet in enumerate(fleets):
            percent = {
                number: Estimate(100 * one.difference, 200 * one.measured.error / one.expected, 1)
                for number, (setting, by_name) in enumerate(compared.items(), 1)
                if setting[:2] == fleet and name in by_name
                for one in [by_name[name]]
                if one.tested
            }
            if percent:
                handles[f"{fleet[1]} {fleet[0]}"] = pictures.draw_error_bars(
                    axes, percent, ls="none", capsize=2, ms=4, lw=1,
                    marker=pictures.MARKERS[index % len(pictures.MARKERS)],
                    color=pictures.COLOURS[index % len(pictures.COLOURS)],
                )  # fmt: skip
        axes.set_title(QUANTITIES[name][1], fontsize=10)
        pictures.tidy(axes)
    for axes in picture.axes[2:]:
        axes.set_xlabel("setting, in the table's order")
    for axes in picture.axes[::2]:
        axes.set_ylabel("measured against expected, %")
    picture.legend(
        [*handles.values()], [*handles], loc="outside upper center", ncols=len(handles),
        frameon=False, fontsize=8,
    )  # fmt: skip
    return picture


EXPERIMENT = Experiment(
    NAME,
    "Theorems 1 and 2, equation (6), Corollary 1, Sec. 8.2",
    "the closed forms against simulated rounds",
    run,
    conclude,
)
