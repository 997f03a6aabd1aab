"""The page with the results of a soak test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.flower.fault_proxy import KINDS

PARTIES = {
    "server": "a run's server and the SuperLink",
    "nodes": "nodes and the SuperLink",
    "tasks": "tasks and their node",
    "tool": "`cafe federate` and the SuperLink",
}
SAME = {True: "equal to the bit", False: "differs"}
ROWS: dict[str, Callable[[dict[str, Any]], object]] = {
    "rounds that succeeded": lambda run: f"{run['updates']} of {run['rounds']}",
    "orders": lambda run: run["jobs"] + run["open_jobs"],
    "with one fate": lambda run: run["jobs"],
    "whose report was still kept at the end": lambda run: run["open_jobs"],
    "received by a client": lambda run: run["orders_received"],
    "trained to the end by a client": lambda run: run["orders_trained"],
    "rounds in which the server was killed": lambda run: run["interrupted_rounds"],
    "their orders, all booked as crashed": lambda run: run["interrupted_jobs"],
    "of them, trained to the end by a client": lambda run: run["interrupted_jobs_trained"],
    "announced successes": lambda run: run["announced"],
    "of them, lost or changed later": lambda run: run["announced_and_lost"],
    "reports in updates, all trained again": lambda run: run["replayed_reports"],
    "of them, used before": lambda run: run["reports_reused"],
    "reports clipped": lambda run: run["clipped"],
    "model trained again from the log": lambda run: SAME[run["replay_equals_model"]],
    "accuracy at the end": lambda run: f"{run['accuracy']:.3f}",
}


def total_faults(found: dict[str, Any]) -> int:
    """The number of all faults, of all kinds."""
    proxies = sum(sum(counts.values()) for counts in found["faults_of_proxies"].values())
    return int(sum(found["faults"].values()) + proxies)


def page(found: dict[str, Any]) -> str:
    """The figures as a page."""
    runs = found["runs"]
    rounds = sum(run["rounds"] for run in runs.values())
    refused: Counter[str] = Counter()
    for run in runs.values():
        refused.update(run["refusals"])
    ended = len(found["servers_ended_by_themselves"])
    lines = [
        "# Soak",
        "",
        f"{found['nodes']} real SuperNodes ran {rounds} rounds in {found['seconds'] / 60:.0f} "
        f"minutes, with {total_faults(found)} faults in a seeded order.",
        f"{found['servers_started']} servers were started, one after another; {ended} of them "
        "ended by themselves.",
        "There was a run of each policy, one after the other: AGU; `holding`, which averages the",
        "last report of every client; MCU. The nodes are those of the tests, which ask for work",
        "more often than Flower's. `events.jsonl` and `jobs.jsonl` are the logs. This command",
        "wrote them and this page:",
        "",
        "```sh",
        found["command"],
        "```",
        "",
        "Every client wrote down which orders it received and which it trained to the end. All of",
        "them are in the logs, with one fate. Clocks and ages never went back, not even when a",
        "server was killed. The wasted time of each round is the sum over its jobs.",
        "",
        *_table(
            ["", *runs],
            [[name, *(row(run) for run in runs.values())] for name, row in ROWS.items()],
        ),
        "",
        *_table(["fate", *runs], _by_run({name: run["fates"] for name, run in runs.items()})),
        "",
        *_table(["fault of a process or a client", "how often"], [*found["faults"].items()]),
        "",
        "Faults of the proxies, by the two parties between which they happened. The last two",
        "happen after the request was acted on.",
        "",
        *_table(
            ["between", *KINDS],
            [
                [words, *(found["faults_of_proxies"].get(name, {}).get(kind, 0) for kind in KINDS)]
                for name, words in PARTIES.items()
            ],
        ),
        "",
        *_table(["reason for a refused report", "how often"], [*sorted(refused.items())]),
        "",
        "Policies that add updates to the model can be trained again from the log. Those with an",
        "optimiser on the server, with vectors for the clients, or that mix models cannot.",
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def _by_run(counts: Mapping[str, Mapping[str, int]]) -> list[list[object]]:
    """A row for each name that was counted in any run."""
    names = [name for name in next(iter(counts.values())) if any(c[name] for c in counts.values())]
    return [[name, *(count[name] for count in counts.values())] for name in names]


def _table(head: list[str], rows: Any) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(f"{cell}" for cell in line) + " |" for line in lines]
