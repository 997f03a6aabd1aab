"""The search for the setting of Table I, which the paper does not state.

The distance of a setting from the printed table is the root mean square over the accuracies that it
has run: each is the mean over the seeds, minus the printed value. The seeds are not those of the
experiment. The rules, stated before the steps 2 to 4 were run (step 1 is the first search):

- Step 1: He's initialisation, 784-128-64-32-10, one point per biased client; rates, decay, local
  steps and samples. At 5 and 30 % biased clients, one seed.
- Step 2: both initialisations, four choices of hidden layers, and rates; five points per biased
  client, 500 samples, a constant rate, one local step. At 5 and 30 % biased clients, one seed. (A
  trial of a few settings came before it. The rates of PyTorch's initialisation lie around those of
  the trial.)
- Step 3: the nearest setting of step 2 with one thing changed: 20 samples, one point, or a rate
  that halves in 500 rounds and starts at twice the rate or at twice one of its neighbours.
- Step 4: the two nearest settings of each initialisation, and the nearest one of step 1, at all
  shares of the table with two seeds. The nearest of these is chosen.
- Step 2 was to have more rates, step 3 all combinations, and step 4 more settings and seeds. They
  were made smaller while He's part of step 2 ran, because of the time that they would take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

import numpy as np

from cafe.reproduce.findings import Experiment, Finding
from cafe.reproduce.measured_tables import table
from cafe.reproduce.paper_tables import TABLE_AWU
from cafe.reproduce.parameter_search import SEED, awu_changes, rate_table
from cafe.reproduce.rows import Row, Rows, group, levels, select
from cafe.reproduce.trials import Effort, Trial, TrialProgress, grid, run_trials
from cafe.rounds import History

NAME, SCENARIO = "search-awu", "table-awu"
SETTING = ("init", "hidden", "rate", "decay", "steps", "samples", "points")
FIRST, GRID, AROUND, LAST = "first", "grid", "around", "last"  # the steps of the search
# Four layers may be four of units, of weights, or of hidden units. The rates of PyTorch's
# initialisation depend on the depth, which decides how long the plateau lasts.
_HE = (0.001, 0.0015, 0.002, 0.003, 0.005, 0.007)
RATES: dict[str, dict[str, tuple[float, ...]]] = {
    "he": dict.fromkeys(("200-100", "128-64-32", "200-100-50", "200-100-50-50"), _HE),
    "torch": {
        "200-100": (0.005, 0.007, 0.01, 0.015),
        "128-64-32": (0.01, 0.015, 0.02, 0.03),
        "200-100-50": (0.01, 0.015, 0.02),
        "200-100-50-50": (0.02, 0.03, 0.04, 0.06),
    },
}
FIRST_RATES = {1: (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0), 5: (0.003, 0.03, 0.3)}  # by steps
SAMPLES, POINTS = (20, 500), (1, 5)
DECAYING = 2.0  # a rate that halves in 500 rounds starts higher, for a similar sum over 1000
SHARES = (0.05, 0.3)  # of biased clients, until the last step
ALL_SHARES = tuple(dict.fromkeys(row["share"] for row in TABLE_AWU))
SCHEMES = ("mcu", "awu")
FINALISTS, FINAL_SEEDS = 2, 2  # of each initialisation; seeds from SEED on
PRINTED = {(row["share"], row["policy"]): row["accuracy"] for row in TABLE_AWU}

Setting = Mapping[str, Any]


def setting_changes(setting: Setting) -> dict[str, Any]:
    """The values of a setting in the scenario of Table I; all that the search varies are given."""
    return {
        "learner.init": setting["init"],
        "learner.hidden": [int(width) for width in setting["hidden"].split("-")],
        "task.rate": rate_table(setting["rate"], bool(setting["decay"])),
        "task.partition.per_client": int(setting["samples"]),
        "task.partition.points": int(setting["points"]),
        "policy.steps": int(setting["steps"]),
        "policies.awu.steps": int(setting["steps"]),
    }


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Run the four steps; the settings of the third and fourth follow from the rows before."""

    def trials(step: str, settings: Iterable[Setting]) -> list[Row]:
        return run_step(step, settings, effort, progress)

    rows = trials(FIRST, first_settings(effort.quick))
    rows += trials(GRID, grid_settings(effort.quick))
    rows += trials(AROUND, settings_around(rows))
    return rows + trials(LAST, finalists(rows))


def first_settings(quick: bool = False) -> list[Row]:
    """The settings of the first search."""
    return [
        {**setting, "points": 1}
        for steps, rates in FIRST_RATES.items()
        for setting in grid(
            init=("he",), hidden=("128-64-32",), rate=rates, decay=(0, 1), steps=(steps,),
            samples=SAMPLES,
        )
    ][: 2 if quick else None]  # fmt: skip


def grid_settings(quick: bool = False) -> list[Row]:
    """Initialisation, hidden layers and rate."""
    fixed = {"decay": (0,), "steps": (1,), "samples": (SAMPLES[-1],), "points": (POINTS[-1],)}
    return [
        setting
        for init, by_hidden in RATES.items()
        for hidden, rates in [*by_hidden.items()][: 1 if quick else None]
        for setting in grid(
            init=(init,), hidden=(hidden,), rate=rates[: 2 if quick else None], **fixed
        )
    ]


def settings_around(rows: Rows) -> list[Row]:
    """The nearest setting of the grid with one thing changed."""
    nearest = rank_settings(select(rows, step=GRID))[0]
    alike = select(rows, step=GRID, init=nearest["init"], hidden=nearest["hidden"])
    tried = levels(alike, "rate")
    at = tried.index(nearest["rate"])
    changes: list[Row] = [{"samples": SAMPLES[0]}, {"points": POINTS[0]}]
    changes += [{"decay": 1, "rate": DECAYING * rate} for rate in tried[max(0, at - 1) : at + 2]]
    return [{**{name: nearest[name] for name in SETTING}, **change} for change in changes]


def finalists(rows: Rows) -> list[Row]:
    """The nearest settings of each initialisation, and the nearest of the first search."""
    ranking = rank_settings(rows)
    best = [row for init in RATES for row in select(ranking, init=init)[:FINALISTS]]
    best.append(rank_settings(select(rows, step=FIRST))[0])
    unique = {_identity(row): row for row in best}
    return [{name: row[name] for name in SETTING} for row in unique.values()]


def run_step(
    step: str, settings: Iterable[Setting], effort: Effort, progress: TrialProgress
) -> list[Row]:
    """The accuracies of both schemes in all settings of a step."""
    last = step == LAST
    cells = grid(
        share=effort.thin(ALL_SHARES) if last else SHARES,
        policy=SCHEMES,
        seed=effort.seeds(FINAL_SEEDS) if last else (0,),
    )
    trials = []
    for setting in settings:
        for cell in cells:
            changes = {**setting_changes(setting), **awu_changes(cell["share"])}
            changes["run.evaluate_every"] = 1000
            point = {
                "step": step,
                **{name: setting[name] for name in SETTING},
                "share": cell["share"],
                "policy": cell["policy"],
            }
            seed = SEED + cell["seed"]
            trials.append(Trial(SCENARIO, point, seed, cell["policy"], changes, effort.rounds))
    return run_trials(trials, effort, progress, _accuracy)


def _accuracy(trial: Trial, history: History) -> list[Row]:
    return [{**trial.point, "seed": trial.seed, "accuracy": history.accuracy or 0.0}]


def _identity(row: Row) -> tuple[Any, ...]:
    return tuple(f"{row[name]:g}" if name == "rate" else row[name] for name in SETTING)


def distance(rows: Rows) -> float:
    """The root mean square of the mean accuracies minus the printed ones."""
    off = [
        mean(row["accuracy"] for row in own) - PRINTED[cell]
        for cell, own in group(rows, "share", "policy").items()
    ]
    return float(np.sqrt(np.mean(np.square(off))))


def seed_distances(rows: Rows) -> list[float]:
    """The distance of each seed's accuracies alone."""
    return [distance(own) for own in group(rows, "seed").values()]


def rank_settings(rows: Rows) -> list[Row]:
    """Every setting with its distance from the printed table, nearest first."""
    settings = [
        {**dict(zip(SETTING, setting, strict=True)), "off": distance(own)}
        for setting, own in group(rows, *SETTING).items()
    ]
    return sorted(settings, key=lambda row: row["off"])


def choose_setting(rows: Rows) -> Row:
    """The setting that the rules choose."""
    return rank_settings(select(rows, step=LAST))[0]


def conclude(rows: Rows) -> Finding:
    """List the nearest settings of every step, and the finalists."""
    last = select(rows, step=LAST)
    steps = [select(rows, step=FIRST), select(rows, step=GRID), select(rows, step=AROUND)]
    tables = [
        table(
            f"Table I: the nearest of {sum(len(group(own, *SETTING)) for own in steps)} settings, "
            "at all shares",
            (
                {
                    **_describe(row),
                    "off by": f"{row['off']:.3f}",
                    "one seed is off by": _range(seed_distances(_own(last, row))),
                }
                for row in rank_settings(last)
            ),
        ),
        table(
            "Step 2: the nearest rate for each initialisation and choice of hidden layers, at 5 "
            "and 30 %",
            (
                {**_describe(rank_settings(own)[0], ("init", "hidden", "rate")),
                 "off by": f"{rank_settings(own)[0]['off']:.3f}"}
                for own in group(steps[1], "init", "hidden").values()
            ),
        ),
        table(
            "Step 2: accuracies with PyTorch's initialisation",
            (
                {"hidden": str(hidden), "rate": f"{rate:g}", **_accuracies(own)}
                for (hidden, rate), own in group(
                    select(steps[1], init="torch"), "hidden", "rate"
                ).items()
            ),
        ),
    ]  # fmt: skip
    return Finding((), tables, notes=_rules())


def _accuracies(rows: Rows) -> dict[str, str]:
    cells = group(sorted(rows, key=lambda row: row["share"]), "share", "policy")
    return {
        f"{policy.upper()} at {share:.0%}": f"{mean(row['accuracy'] for row in own):.3f}"
        for (share, policy), own in cells.items()
    }


def _own(rows: Rows, setting: Setting) -> list[Row]:
    return select(rows, **{name: setting[name] for name in SETTING})


def _range(distances: Sequence[float]) -> str:
    return f"{min(distances):.3f} to {max(distances):.3f}"


def _describe(row: Row, names: Sequence[str] = SETTING) -> dict[str, str]:
    texts = {name: row[name] if isinstance(row[name], str) else f"{row[name]:g}" for name in names}
    if "decay" in texts:
        texts["decay"] = "halves in 500 rounds" if row["decay"] else "none"
    return texts


def _rules() -> list[str]:
    """The rules in this module's docstring."""
    return [" ".join(part.split()) for part in (__doc__ or "").split("\n- ")[1:]]


EXPERIMENT = Experiment(
    NAME,
    "What Sec. 8 leaves open of Table I",
    "initialisation, hidden layers, rate, decay, local steps, samples and points",
    run,
    conclude,
    scenario=False,
)
