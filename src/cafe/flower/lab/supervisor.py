"""Start nodes again that are alive but unresponsive, or that have ended by themselves.

``python -m cafe.flower.lab.supervisor FOLDER`` runs beside the nodes of a lab; ``cafe federate up``
starts it. It judges a node by its heartbeats, not by its process. A node that was killed is left
alone, as if its machine had failed: ``cafe federate up`` starts it again.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from cafe.errors import CafeError
from cafe.flower.lab import processes, startup
from cafe.flower.lab.paths import LabPaths, LabState
from cafe.flower.node_heartbeat import STALE, heartbeat_file, read_heartbeat

POLL = 5.0  # seconds between two looks at the nodes


def find_unresponsive(paths: LabPaths, state: LabState) -> dict[str, str]:
    """Why each node that does not work must be started again, by name."""
    found = {}
    for each in processes.refresh(paths.load_processes()):
        last = read_heartbeat(heartbeat_file(paths.home(each.name)))
        if each.name not in state.nodes or last is None or last.pid != each.pid:
            continue
        if each.alive and last.age > STALE:
            found[each.name] = f"it is alive, but has sent no heartbeat for {last.age:.0f} s"
        elif last.ended and not each.alive:
            found[each.name] = f"it has ended: {last.ended}"
    return found


def restart_unresponsive(paths: LabPaths) -> None:
    """Start unresponsive nodes again, one after the other, and say so."""
    state = paths.load_state()
    if state is None or not find_unresponsive(paths, state):
        return
    with paths.lock():  # no other command is starting or ending nodes now
        state = paths.load_state()
        if state is None or "superlink" not in paths.running():
            return
        for name, why in find_unresponsive(paths, state).items():
            _say(f"Starting {name} again: {why}.")
            own = (name, name + startup.TASKS)
            processes.end(each for each in paths.load_processes() if each.name in own)
            try:
                startup.start(paths, state, [name], _say)
            except CafeError as error:
                _say(f"{error}\nThe next attempt follows in some seconds.")


def main() -> None:
    """Watch the nodes of a lab until this process is ended."""
    paths = LabPaths(Path(sys.argv[1]))
    while True:
        try:
            restart_unresponsive(paths)
        except (CafeError, OSError) as error:
            _say(f"{error}")
        time.sleep(POLL)


def _say(sentence: str) -> None:
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {sentence}", flush=True)


if __name__ == "__main__":
    main()
