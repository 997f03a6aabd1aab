"""``python -m benchmarks.nodes --nodes 50``: what many nodes on one machine cost.

Starts a federation with keys and TLS, runs rounds of almost no training with a deadline, and
measures: the seconds that ``up`` takes, the share of reports in time, the memory of each node
(proportional set size: a page that n processes share counts as 1/n), and the CPU time of idle
processes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.report import Sheet
from cafe.flower.lab import Lab
from cafe.live.run_log import read_jobs, read_rounds

APP = Path(__file__).parent.parent / "tests" / "support" / "flower" / "chaos_app"
IDLE = 20.0  # seconds for which idle processes are watched
POLL = 1.0  # seconds between two looks at a run
LOOK = 10  # polls between two looks at the memory, which take half a second of CPU time
TICK = os.sysconf("SC_CLK_TCK")


def measure(nodes: int, rounds: int, deadline: float, folder: Path) -> dict[str, Any]:
    """Seconds of ``up``, the share of reports in each round, megabytes, and cores when idle."""
    lab = Lab(shutil.copytree(APP, folder / "app"))
    try:
        began = time.monotonic()
        lab.up(nodes, say=lambda sentence: print(f"... {sentence}", file=sys.stderr))
        found: dict[str, Any] = {"nodes": nodes, "up": time.monotonic() - began}
        found["up_cpu"] = sum(cpu_seconds(lab).values())
        found["idle_cores"] = _idle_cores(lab)
        found["memory"] = [_memory(lab)]
        out, began = folder / "run", time.monotonic()
        before = cpu_seconds(lab)
        run = lab.submit(
            folder=str(out), rounds=rounds, deadline=deadline, quorum=1, evaluate="none"
        )
        polls = 0
        while not (status := read_state(out)).startswith(("finished", "stopped", "failed")):
            polls += 1
            if polls % LOOK == 0:
                found["memory"].append(_memory(lab))
            time.sleep(POLL)
        found["run"] = time.monotonic() - began
        found["run_cpu"] = {name: cpu - before[name] for name, cpu in cpu_seconds(lab).items()}
        if status != "finished":
            raise SystemExit(lab.run_log(run))
        found["reported"] = [each.reports / nodes for each in read_rounds(out)]
        found["seconds"] = sorted(
            job.arrived - job.start for job in read_jobs(out) if job.arrived is not None
        )
        return found
    finally:
        began = time.monotonic()
        lab.down()
        print(f"... down took {time.monotonic() - began:.1f} s", file=sys.stderr)


def sheet(found: dict[str, Any]) -> Sheet:
    """The figures as a table."""
    nodes, seconds = found["nodes"], found["seconds"]
    most = {name: max(each[name] for each in found["memory"]) for name in found["memory"][0]}
    per_node = max((each["node"] + each["task runner"]) / nodes for each in found["memory"])
    rows = [
        ["seconds of up", f"{found['up']:.0f}"],
        ["CPU seconds of the processes until then", f"{found['up_cpu']:.0f}"],
        ["share of reports in time, per round", " ".join(f"{x:.0%}" for x in found["reported"])],
        ["seconds of a response: median, 90 %, maximum", _quantiles(seconds)],
        ["MB per node with its task runner, at most", f"{per_node:.0f}"],
        *([f"MB of the {name}, at most", f"{value:.0f}"] for name, value in most.items()),
        *([f"cores, idle: {name}", f"{x:.2f}"] for name, x in found["idle_cores"].items()),
        *([f"CPU seconds of the run: {name}", f"{x:.0f}"] for name, x in found["run_cpu"].items()),
        ["seconds of the run", f"{found['run']:.0f}"],
    ]
    return Sheet(f"{nodes} nodes on one machine", ["", ""], rows)


def _quantiles(values: list[float]) -> str:
    if not values:
        return "none"
    ranks = (0.5, 0.9, 1.0)
    return " ".join(f"{values[min(int(r * len(values)), len(values) - 1)]:.1f}" for r in ranks)


def read_state(folder: Path) -> str:
    try:
        return str(json.loads((folder / "live.json").read_text())["state"])
    except OSError:
        return ""


def _groups(lab: Lab) -> dict[str, list[int]]:
    """The pids of a lab's processes and their descendants, by kind."""
    found: dict[str, list[int]] = {"superlink": [], "node": [], "task runner": []}
    for each in lab.processes():
        kind = "task runner" if each.name.endswith("-tasks") else each.name.partition("-")[0]
        found.setdefault(kind, []).extend([each.pid, *each.tasks])
    return found


def _memory(lab: Lab) -> dict[str, float]:
    """Megabytes of all processes of a kind."""
    total: dict[str, float] = defaultdict(float)
    for kind, pids in _groups(lab).items():
        for pid in pids:
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            except OSError:  # a task that has ended
                continue
            lines = (line.split() for line in text.splitlines())
            total[kind] += sum(int(words[1]) for words in lines if words[0] == "Pss:") / 1000.0
    return dict(total)


def cpu_seconds(lab: Lab) -> dict[str, float]:
    """CPU seconds of all processes of a kind, with those of children that have ended."""
    total: dict[str, float] = {}
    for kind, pids in _groups(lab).items():
        total[kind] = 0.0
        for pid in pids:
            try:
                text = Path(f"/proc/{pid}/stat").read_text()
            except OSError:
                continue
            fields = text[text.rindex(")") + 2 :].split()
            total[kind] += sum(map(int, fields[11:15])) / TICK
    return total


def _idle_cores(lab: Lab) -> dict[str, float]:
    before, began = cpu_seconds(lab), time.monotonic()
    time.sleep(IDLE)
    seconds = time.monotonic() - began
    return {kind: (cpu - before[kind]) / seconds for kind, cpu in cpu_seconds(lab).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--deadline", type=float, default=30.0, help="of a round, in seconds")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sheet(measure(given.nodes, given.rounds, given.deadline, Path(folder))).print()


if __name__ == "__main__":
    main()
