"""Tables of a federation's processes and of a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

NO_SERVER = "server ended"  # the state of a run whose server was killed


def run_command(folder: Path, results: Path) -> str:
    """The command that runs the app in a folder and writes to these results."""
    command = ["cafe", "federate", "run", str(folder)]
    if results.resolve() != (folder / "results" / "live").resolve():
        command += ["--output", str(results)]
    return shlex.join(command)


def process_table(status: dict[str, Any]) -> RenderableType:
    """A row for each process: whether it is alive, and whether the SuperLink lists it as online."""
    nodes = {node["name"]: node for node in status["nodes"]}
    table = Table("process", "pid", "", "Flower's id", "at the SuperLink", box=None)
    for each in status["processes"]:
        node = nodes.get(each["name"])
        seen = "" if node is None else "online" if node["online"] else "not online"
        table.add_row(
            each["name"],
            str(each["pid"]),
            "alive" if each["alive"] else "dead",
            (node["id"] or "") if node else "",
            seen,
        )
    return table


def run_table(live: dict[str, Any]) -> RenderableType:
    """A run as ``live.json`` describes it: a line about the run, and a row for each client."""
    table = Table("client", "age, s", "merged", "refused", "clipped", "", box=None)
    for each in sorted(live["clients"], key=_sort_key):
        table.add_row(
            str(each.get("label") or each["name"]),
            _figure(each["age"]),
            f"{each['merged']:,}",
            f"{each['refused']:,}",
            f"{each['clipped']:,}",
            ("busy" if each["busy"] else "idle") if each["present"] else "away",
        )
    return Group(run_line(live), table)


def run_line(live: dict[str, Any]) -> str:
    """A run as ``live.json`` describes it, in one line."""
    limit = "" if live.get("rounds") is None else f" of {live['rounds']:,}"
    parts = [f"{live['state']}, round {live['round']:,}{limit}"]
    jobs = live.get("jobs", live["invited"])  # runs of older versions have only the second
    if live["state"] == "open" and jobs:  # not between two rounds
        parts.append(f"{live['reports']:,} of {jobs:,} reports")
        if live["deadline"] is not None:
            parts.append(f"deadline {_figure(live['deadline'])} s")
    parts.append(f"success {_share(live['success'])}")
    parts.append(f"waste {_figure(live['waste_per_update'])} s per update")
    if live.get("overhead") is not None:
        parts.append(f"overhead {_figure(live['overhead'])} s")
    if live.get("accuracy") is not None:
        parts.append(f"accuracy {_share(live['accuracy'])}")
    trouble = f". {live['why']}" if live.get("why") and live["state"] != "stopped" else ""
    return ", ".join(parts) + trouble


def _sort_key(client: dict[str, Any]) -> tuple[int, str]:
    """Sorts node-2 before node-10."""
    name = str(client.get("label") or client["name"])
    return len(name), name


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
