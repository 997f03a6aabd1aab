"""A federation and a run as tables for people."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table


def processes(status: dict[str, Any]) -> RenderableType:
    """The processes of a federation, and which nodes the SuperLink sees."""
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


def live(picture: dict[str, Any]) -> RenderableType:
    """A run at one moment: a line about it, and a row for each client."""
    table = Table("client", "age, s", "merged", "refused", "", box=None)
    for each in sorted(picture["clients"], key=_place):
        table.add_row(
            str(each.get("label") or each["name"]),
            _figure(each["age"]),
            f"{each['merged']:,}",
            f"{each['refused']:,}",
            ("busy" if each["busy"] else "idle") if each["present"] else "away",
        )
    return Group(line(picture), table)


def line(picture: dict[str, Any]) -> str:
    """A run at one moment in one line."""
    limit = "" if picture.get("rounds") is None else f" of {picture['rounds']:,}"
    parts = [f"{picture['state']}, round {picture['round']:,}{limit}"]
    if picture["state"] == "open" and picture["invited"]:  # not between two rounds
        parts.append(f"{picture['reports']:,} of {picture['invited']:,} reports")
        if picture["deadline"] is not None:
            parts.append(f"deadline {_figure(picture['deadline'])} s")
    parts.append(f"success {_share(picture['success'])}")
    parts.append(f"waste {_figure(picture['waste_per_update'])} s per update")
    if picture.get("overhead") is not None:
        parts.append(f"overhead {_figure(picture['overhead'])} s")
    if picture.get("accuracy") is not None:
        parts.append(f"accuracy {_share(picture['accuracy'])}")
    trouble = f". {picture['why']}" if picture.get("why") and picture["state"] != "stopped" else ""
    return ", ".join(parts) + trouble


def _place(client: dict[str, Any]) -> tuple[int, str]:
    """node-2 before node-10."""
    name = str(client.get("label") or client["name"])
    return len(name), name


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
