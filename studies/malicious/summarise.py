"""Write the page of the study from its stored rows.

    python studies/malicious/summarise.py

reads ``results.jsonl`` next to this file and writes ``README.md``.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

HERE = Path(__file__).parent
DEFAULT = "clip 2"
RULES = {
    "sum": "sum, as it arrives",
    "clip 2": "clipped to 2 x the usual norm (default)",
    "clip 3": "clipped to 3 x the usual norm",
    "round's median": "`Clip()`: 1 x the median of the round",
    "Trimmed": "`Trimmed()`",
    "Median": "`Median()`",
}
ATTACKS = ("flip", "random", "boost", "ascent")
NAMES = {"digits": "digits", "mnist": "MNIST"}
Row = dict[str, Any]


def read_rows(path: Path = HERE / "results.jsonl") -> list[Row]:
    """The stored rows."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def honest(rows: list[Row]) -> dict[tuple[str, ...], dict[int, Row]]:
    """Runs without malicious clients by data, partition, policy and rule, then by seed."""
    found: dict[tuple[str, ...], dict[int, Row]] = {}
    for row in rows:
        how, *what, seed = row["cell"]
        if how == "honest":
            found.setdefault(tuple(what), {})[seed] = row
    return found


def difference(
    found: dict[tuple[str, ...], dict[int, Row]], case: tuple[str, ...], rule: str
) -> tuple[float, float]:
    """The mean paired difference in accuracy to the sum, in points, and its standard error."""
    mine, plain = found[*case, rule], found[*case, "sum"]
    pairs = [mine[seed]["accuracy"] - plain[seed]["accuracy"] for seed in mine]
    return mean(pairs), stdev(pairs) / len(pairs) ** 0.5


def drops(rows: list[Row], data: str, partition: str, at: int) -> dict[tuple[str, str], float]:
    """The largest loss of accuracy over all seeds in one round, in points, by rule and attack.

    The rules "honest" and "absent" say what happens if all clients are honest, and if the
    malicious ones do not report.
    """
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        if row["cell"][:3] != ["attack", data, partition]:
            continue
        here = row["rounds"][f"{at}"]
        after = {("honest", ""): here["honest"], ("absent", ""): here["absent"]}
        after |= {(r, a): x for r, each in here["after"].items() for a, x in each.items()}
        for key, accuracy in after.items():
            found[key] = max(found.get(key, -100.0), here["before"] - accuracy)
    return found


def attacked(rows: list[Row]) -> list[tuple[str, str, list[int]]]:
    """The data, the partition and the rounds of all attacks."""
    cases = {tuple(row["cell"][1:3]): [*map(int, row["rounds"])] for row in rows if "rounds" in row}
    return [(data, partition, rounds) for (data, partition), rounds in cases.items()]


def page(rows: list[Row]) -> str:
    """The page as Markdown."""
    found = honest(rows)
    usual = [k for k in found if k[3] == DEFAULT and k[2] in ("mcu", "awu", "agu")]
    other = [k for k in found if k[3] == DEFAULT and k not in usual]
    parts = [
        "# Malicious clients: what clipping costs and what it prevents\n",
        "Ten clients train a network with 32 hidden units, five steps at a rate of 0.1 per report, "
        "on a virtual wire. Two of\nthem, one in five, are malicious. *Flip* and *boost* are their "
        "own update times -1,000,000 and 1,000,000, *random* is a\nlong random vector, *ascent* "
        "the gradient of the loss on 1,000 training examples, sent by clients that know all\n"
        "data. `measure.py` makes the rows (a few CPU minutes), and `summarise.py` writes this "
        "page.\n",
        "## What clipping costs honest clients\n",
        "The paired difference of the accuracy to the same run without clipping, in points, with "
        "its standard error, over five\nseeds; the mean accuracy of the last five of 40 rounds "
        "(MNIST: 25). Clipped is the share of used updates.\n",
        _costs(found, [(*k[:3], DEFAULT) for k in usual]),
        "With clients that hold very unequal numbers of examples and take an epoch each:\n",
        _costs(found, [(*k[:3], DEFAULT) for k in other]),
        "Other rules, with MCU on digits:\n",
        _costs(found, [k for k in found if k[3] not in (DEFAULT, "sum")]),
        "## What one round of an attack costs\n",
        "The largest loss of accuracy in one round over five seeds, in points, with MCU; all "
        "clients report. *Honest* is the\nlargest loss in the same round without an attack, "
        "*absent* if the two clients do not report at all.\n",
        *(_attack_table(rows, *case) for case in attacked(rows)),
        "## Attacks in every round\n",
        "Mean accuracy over five seeds after some rounds, with the default rule, on digits with "
        "MCU.\n",
        *(_repeated(rows, partition) for partition in ("iid", "three classes")),
    ]
    return "\n".join(parts)


def _costs(found: dict[tuple[str, ...], dict[int, Row]], keys: list[tuple[str, ...]]) -> str:
    lines = []
    for *case, rule in keys:
        cost, error = difference(found, tuple(case), rule)
        clipped = mean(row["clipped"] for row in found[*case, rule].values())
        plain = mean(row["accuracy"] for row in found[*case, "sum"].values())
        data, partition, policy = case
        cells = [NAMES[data], partition, policy, RULES[rule], f"{plain:.1f} %"]
        equal = rule == DEFAULT and not clipped
        sign = "0, the same bits" if equal else f"{cost:+.2f} ± {error:.2f}"
        lines.append([*cells, sign, f"{100 * clipped:.1f} %"])
    columns = ["data", "clients hold", "policy", "rule", "accuracy of the sum", "difference"]
    return _table([*columns, "clipped"], lines)


def _attack_table(rows: list[Row], data: str, partition: str, rounds: list[int]) -> str:
    lines = []
    for at in rounds:
        lost = drops(rows, data, partition, at)
        for rule, name in RULES.items():
            worst = [f"{lost[rule, attack]:.1f}" for attack in ATTACKS]
            lines.append([f"{at}", name, *worst])
        plain = f"{lost['honest', '']:.1f}; absent: {lost['absent', '']:.1f}"
        lines.append([f"{at}", f"honest: {plain}", "", "", "", ""])
    title = f"{NAMES[data]}, {partition}: round"
    return _table([title, "rule", *ATTACKS], lines)


def _repeated(rows: list[Row], partition: str) -> str:
    cases: dict[tuple[str, int], list[dict[str, float]]] = {}
    for row in rows:
        how, _, part, *what = row["cell"]
        if how == "repeated" and part == partition:
            cases.setdefault((what[0], what[1]), []).append(row["after"])
    if not cases:
        return ""
    rounds = [*next(iter(cases.values()))[0]]
    lines = [
        [f"{attack} from round {since} on" if attack else "no attack"]
        + [f"{mean(each[at] for each in found):.1f}" for at in rounds]
        for (attack, since), found in cases.items()
    ]
    return _table([f"{partition}: accuracy after round", *rounds], lines)


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


if __name__ == "__main__":
    (HERE / "README.md").write_text(page(read_rows()))
