"""Write the page of the study from its rows.

    python studies/control/summarise.py

reads ``results.jsonl`` next to this file and writes ``README.md``.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FINDINGS = HERE / "findings.md"  # what the tables show, in sentences
CHANGE = 40  # the round after which the clients of some fleets change
AFTER = 30  # rounds within which the plan should be found
Row = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """The runs on a fleet.

    Attributes:
        fleet: its name.
        rows: a row per seed.
    """

    fleet: str
    rows: Sequence[Row]

    def at(self, number: int) -> list[float]:
        """The relative costs of the plans in force in a round; without those of looks."""
        return [cost for row in self.rows if (cost := cost_at(row, number)) is not None]

    @property
    def early(self) -> float:
        """The worst relative cost after 10 rounds."""
        return max(self.at(9))

    @property
    def found(self) -> float:
        """The median relative cost after 30 rounds."""
        return statistics.median(self.at(AFTER - 1))

    @property
    def worst(self) -> float:
        """The worst relative cost after 30 rounds."""
        return max(self.at(AFTER - 1))

    @property
    def end(self) -> float:
        """The worst relative cost in the last round."""
        return max(self.at(len(self.rows[0]["relative"]) - 1))

    @property
    def whole(self) -> float | None:
        """The mean relative time of all rounds together, looks and longer rounds included."""
        known = [row["whole run"] for row in self.rows if row["whole run"] is not None]
        return statistics.mean(known) if known else None

    @property
    def fixed(self) -> dict[str, float]:
        """The relative costs of guesses."""
        return dict(self.rows[0]["fixed"])


def cost_at(row: Row, number: int) -> float | None:
    """The relative cost in a round, or in the last round before it that was no look."""
    for k in range(number, -1, -1):
        if k in row["infinite"]:
            return math.inf
        if row["relative"][k] is not None:
            return float(row["relative"][k])
    return None


def read_rows(folder: Path = HERE) -> list[Row]:
    """The rows of the study."""
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def entries(rows: Sequence[Row]) -> list[Entry]:
    """The fleets in the order of the rows."""
    names = dict.fromkeys(row["fleet"] for row in rows)
    return [Entry(name, [row for row in rows if row["fleet"] == name]) for name in names]


def loss(relative: float | None) -> str:
    """A relative cost as a loss in percent."""
    if relative is None:
        return ""
    return "no updates of some clients" if math.isinf(relative) else f"{100 * (relative - 1):.1f} %"


def table(found: Sequence[Entry]) -> str:
    """The losses of all fleets."""
    lines = [
        "| fleet | clients | 10 rounds, worst | 30 rounds, median | 30 rounds, worst | "
        "last round, worst | whole run | mean time | far off |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for entry in found:
        costs = [entry.early, entry.found, entry.worst, entry.end, entry.whole]
        costs += [entry.fixed["mean"], entry.fixed["far off"]]
        cells = " | ".join(loss(cost) for cost in costs)
        lines.append(f"| {entry.fleet} | {entry.rows[0]['clients']} | {cells} |")
    return "\n".join(lines)


def figures(found: Sequence[Entry]) -> dict[str, float]:
    """What the page says about all fleets together."""
    ends = [entry.end for entry in found]
    best_of_fixed = {
        name: sum(entry.end > entry.fixed[name] for entry in found) for name in ("mean", "far off")
    }
    return {
        "fleets": len(found),
        "median": statistics.median(entry.found for entry in found),
        "worst": max(entry.worst for entry in found),
        "early": statistics.median(entry.early for entry in found),
        "end": max(ends),
        "behind mean": best_of_fixed["mean"],
        "behind far off": best_of_fixed["far off"],
        "most behind": max(entry.end - min(entry.fixed.values()) for entry in found),
        "median mean": statistics.median(entry.fixed["mean"] for entry in found),
        "median far off": statistics.median(entry.fixed["far off"] for entry in found),
        "mean call": statistics.median(row["mean call"] for e in found for row in e.rows),
        "longest call": max(row["longest call"] for e in found for row in e.rows),
    }


def page(rows: Sequence[Row], findings: str) -> str:
    """The text of the page."""
    found = entries(rows)
    total = figures(found)
    rounds = len(rows[0]["relative"])
    seeds = len(found[0].rows)
    return f"""# A controller that tunes itself

`cafe.control.SelfTuning` starts without any knowledge of {total["fleets"]:.0f} fleets, and runs
{rounds} rounds on each, with {seeds} seed{"s" if seeds > 1 else ""}. `study.py` makes the rows
(about six CPU minutes), `fleets.py` has the fleets, and `summarise.py` writes this page.

The loss is what the plan in force costs per round, by its goal, on the true clients, compared with
the plan of `cafe.plan` on the true clients. Clients that become slower or faster do so after round
{CHANGE}; at about that time the newcomers appear, and count from then on. The "whole run" is the
time that all rounds have taken for what they have gained, looks and longer rounds included,
compared with the best plan from the first round on; it is left out where clients change or the
goal is not time. "Mean time" and "far off" are the losses of fixed guesses with a quorum of 1: the
mean response time of all clients, and the 0.99 quantile of the slowest client. To make such a
guess, one must know the clients. They do not keep the limit of the last fleet.

| loss | all fleets |
| --- | ---: |
| after 10 rounds, median over fleets | {loss(total["early"])} |
| after {AFTER} rounds, median over fleets | {loss(total["median"])} |
| after {AFTER} rounds, worst fleet and seed | {loss(total["worst"])} |
| in the last round, worst fleet and seed | {loss(total["end"])} |
| mean time, median over fleets | {loss(total["median mean"])} |
| far off, median over fleets | {loss(total["median far off"])} |

Opening and playing a round took {1000 * total["mean call"]:.0f} ms of CPU time in the mean of the
median run, and {total["longest call"]:.1f} s at most.

## Fleets

{table(found)}

{findings}"""


def write(folder: Path = HERE) -> None:
    """Write the page of the rows in a folder."""
    findings = FINDINGS.read_text(encoding="utf-8") if folder.resolve() == HERE else ""
    text = page(read_rows(folder), findings)
    (folder / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
