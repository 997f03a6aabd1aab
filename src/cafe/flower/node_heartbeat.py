"""Whether a SuperNode is still sending heartbeats, judged from a file that it writes.

A node can be alive and unresponsive: its loop has ended or hangs, and the SuperLink counts it as
offline. So a running process does not mean that the node works. ``cafe.flower.program`` notes every
attempt to send a heartbeat in the file ``heartbeat`` of the node's Flower folder (FLWR_HOME), and
tells systemd.

``python -m cafe.flower.node_heartbeat`` ends a node that sends no heartbeats; it is the health
check of a container, whose restart policy then starts the node again.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NAME = "heartbeat"
STALE = 180.0  # seconds; Flower sends a heartbeat every 20 s, but an overloaded machine is slow
GRACE_PERIOD = 5.0  # seconds between SIGTERM and SIGKILL
# What a node sends while it connects, and then as long as it is connected.
SIGNS = ("RegisterNode", "ActivateNode", "SendNodeHeartbeat")


@dataclass(frozen=True)
class NodeHeartbeat:
    """The last heartbeat of a node.

    Attributes:
        pid: of the node's process.
        at: when it last tried to send a heartbeat, on the machine's monotonic clock.
        ended: why its process has ended, if it has ended by itself.
    """

    pid: int
    at: float
    ended: str = ""

    @property
    def age(self) -> float:
        """Seconds since the last heartbeat."""
        return time.monotonic() - self.at


def heartbeat_file(home: Path | None = None) -> Path:
    """The file of a node, in its Flower folder; by default that of this process."""
    return (home or Path(os.environ.get("FLWR_HOME") or Path.home() / ".flwr")) / NAME


def write_heartbeat(path: Path, ended: str = "") -> None:
    """Note that this process sends a heartbeat, or why it ends; tell systemd.

    Example:
        >>> import os, tempfile
        >>> from pathlib import Path
        >>> from cafe.flower.node_heartbeat import read_heartbeat, write_heartbeat
        >>> file = Path(tempfile.mkdtemp()) / "heartbeat"
        >>> write_heartbeat(file)
        >>> read_heartbeat(file).pid == os.getpid()
        True
    """
    draft = path.with_name(path.name + ".new")
    with suppress(OSError):  # a full disk must not end a node
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps({"pid": os.getpid(), "at": time.monotonic(), "ended": ended}))
        draft.replace(path)
    if not ended:
        _notify_systemd()


def read_heartbeat(path: Path) -> NodeHeartbeat | None:
    """The last heartbeat of a node; None if there is none."""
    try:
        return NodeHeartbeat(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _notify_systemd() -> None:
    """Tell systemd that this process works, if it is a unit with WatchdogSec."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(b"WATCHDOG=1", address.replace("@", "\0", 1))


def main() -> None:
    """End the node of this container if it sends no heartbeats; exit with 1 then."""
    last = read_heartbeat(heartbeat_file())
    if last is None or last.age <= STALE:
        return
    print(f"The node has sent no heartbeat for {last.age:.0f} s: ending it.", flush=True)
    for signum in (signal.SIGCONT, signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(last.pid, signum)
        if signum == signal.SIGTERM:
            time.sleep(GRACE_PERIOD)
    sys.exit(1)


if __name__ == "__main__":
    main()
