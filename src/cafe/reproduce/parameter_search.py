"""The search for what the paper does not state: learning rate, decay, local steps, samples.

Two more things are not stated and fixed here: batches have 10 examples, and the perceptron is
784-128-64-32-10 with He's initialisation. Table I has a search of its own,
``cafe.reproduce.table_awu_search``. The rules, stated before anything was run:

- Where the paper prints only pictures, choose the setting of one local step with the highest
  accuracy of MCU at a quorum of 1 and a deadline of 0.5, on a seed that the experiments do not use.
  (The first version of the rule took the best of all settings, and chose five steps for the three
  figures. It was changed to one step because the paper's update has one gradient per report, and
  because five steps take five times as long.)
- For a table, choose the setting whose accuracies are closest to those printed, in root mean square
  over the cells that the search runs. For Table II each scheme has its own rate, as in the paper:
  one that decays for MCU, a fixed one for AGU; the data are the same for both. (The condition that
  both have the same local steps was added when the first rows showed that they might differ.)
- Table I has a search of its own, `search-awu`, whose first step was part of this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cafe.reproduce.findings import Experiment, Finding
from cafe.reproduce.measured_tables import table
from cafe.reproduce.paper_tables import TABLE_AGU
from cafe.reproduce.rows import Row, Rows, group, select
from cafe.reproduce.trials import Effort, Trial, TrialProgress, grid, run_trials
from cafe.rounds import History

SEED = 1000  # of every trial; experiments use 0, 1, ...
# By local steps. Five steps cost five times as much, so fewer rates are tried with them.
RATES = {1: (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0), 5: (0.003, 0.03, 0.3)}
SAMPLES = (20, 500)  # of a client; of a class that a client holds, where both are drawn
HALF = 500  # rounds after which a decaying rate is half its first value
SETTING = ("rate", "decay", "steps", "samples")
# The cells of each experiment that the search runs, by quorum.
CELLS: dict[str, list[dict[str, Any]]] = {
    "fig-noniid-quorum": grid(cell=(1,), policy=("mcu",)),
    "fig-iid-quorum": grid(cell=(1,), policy=("mcu",)),
    "fig-deadline": grid(cell=(1,), policy=("mcu",)),
    "table-agu": grid(cell=(27, 35), policy=("mcu", "agu")),
}
FIGURES = ("fig-noniid-quorum", "fig-iid-quorum", "fig-deadline")  # the paper prints no numbers
TARGETS = {  # the printed accuracies, by cell and policy
    (row["quorum"], row["policy"]): row["accuracy"] for row in TABLE_AGU
}


def rate_table(rate: float, decay: bool) -> Any:
    """A rate as a scenario has it: fixed, or rate * 500 / (500 + t)."""
    return {"beta": rate * HALF, "gamma": float(HALF)} if decay else rate


def setting_changes(experiment: str, setting: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a setting of the search changes in an experiment's scenario."""
    key = {"fig-deadline": "most", "table-agu": "most"}.get(experiment, "per_client")
    changes = {
        "task.rate": rate_table(setting["rate"], bool(setting["decay"])),
        "policy.steps": int(setting["steps"]),
        f"task.partition.{key}": int(setting["samples"]),
    }
    if experiment == "table-agu":
        changes |= {"policies.agu.steps": int(setting["steps"])}
    return changes


def awu_changes(share: float) -> dict[str, Any]:
    """A share of biased clients, in the partition and in the group of fast clients."""
    biased = round(100 * share)
    return {
        "task.partition.share": share,
        "federation.group.0.clients": biased,
        "federation.group.1.clients": 100 - biased,
    }


def agu_changes(quorum: int) -> dict[str, Any]:
    """A quorum for both schemes."""
    return {"policy.quorum": quorum, "policies.agu.quorum": quorum}


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Run every cell of every experiment in every setting."""
    return run_trials([*_trials(effort)], effort, progress, _accuracy)


def _settings(quick: bool) -> list[dict[str, Any]]:
    if quick:
        return grid(steps=(1,), rate=RATES[1][3:5], decay=(0, 1), samples=SAMPLES[:1])
    return [
        setting
        for steps, rates in RATES.items()
        for setting in grid(steps=(steps,), rate=rates, decay=(0, 1), samples=SAMPLES)
    ]


def _trials(effort: Effort) -> Iterable[Trial]:
    for experiment, cells in CELLS.items():
        for setting in _settings(effort.quick):
            for cell in cells:
                # As in the paper: MCU's rate decays and AGU's does not.
                if experiment == "table-agu" and (cell["policy"] == "mcu") != setting["decay"]:
                    continue
                changes = setting_changes(experiment, setting)
                if experiment == "table-agu":
                    changes |= agu_changes(cell["cell"])
                point = {"experiment": experiment, **setting, **cell}
                changes |= {"run.evaluate_every": 1000}
                yield Trial(experiment, point, SEED, cell["policy"], changes, effort.rounds)


def _accuracy(trial: Trial, history: History) -> list[Row]:
    return [{**trial.point, "seed": trial.seed, "accuracy": history.accuracy or 0.0}]


def rank_settings(rows: Rows, experiment: str) -> list[Row]:
    """Every setting with its distance from what the rule wants, nearest first."""
    settings = []
    for setting, own in group(select(rows, experiment=experiment), *SETTING).items():
        off = [TARGETS.get((row["cell"], row["policy"]), 1.0) - row["accuracy"] for row in own]
        distance = float(np.sqrt(np.mean(np.square(off))))
        settings.append({**dict(zip(SETTING, setting, strict=True)), "off": distance})
    return sorted(settings, key=lambda row: row["off"])


def choose_settings(rows: Rows, experiment: str) -> dict[str, Row]:
    """The setting that the rule chooses, by the experiment's schemes."""
    ranking = rank_settings(rows, experiment)
    if experiment in FIGURES:
        return {"mcu": select(ranking, steps=1)[0]}
    pairs: dict[tuple[int, int], dict[str, Row]] = {}  # by samples and steps, equal for both
    for row in ranking:
        scheme = "mcu" if row["decay"] else "agu"
        pairs.setdefault((row["samples"], row["steps"]), {}).setdefault(scheme, row)
    return min(pairs.values(), key=lambda pair: sum(row["off"] ** 2 for row in pair.values()))


def conclude(rows: Rows) -> Finding:
    """List the settings that the rules choose for every experiment."""
    tables = [
        table(
            f"{name}: chosen among {len(rank_settings(rows, name))} settings",
            (
                {
                    "scheme": scheme,
                    "rate": f"{row['rate']:g}",
                    "decay": "halves in 500 rounds" if row["decay"] else "none",
                    "steps": f"{row['steps']:g}",
                    "samples": f"{row['samples']:g}",
                    "off by": f"{row['off']:.3f}",
                }
                for scheme, row in choose_settings(rows, name).items()
            ),
        )
        for name in CELLS
    ]
    return Finding((), tables, notes=_rules())


def _rules() -> list[str]:
    """The rules in this module's docstring."""
    return [" ".join(part.split()) for part in (__doc__ or "").split("\n- ")[1:]]


EXPERIMENT = Experiment(
    "search",
    "What Sec. 8 leaves open",
    "learning rate, decay, local steps and samples per client",
    run,
    conclude,
    scenario=False,
)
