"""Virtual environments for the peers: created once, then reused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.peers import Peer
from benchmarks.race import DropsOutError

MOST_SECONDS = 1800.0  # time limit of an installation: wheels of torch and Ray are large


def python_of(peer: Peer, folder: Path) -> Path:
    """The Python interpreter of a peer's environment, with its requirements installed."""
    if not peer.requires:
        return Path(sys.executable)
    home = folder / peer.module
    python, ready = home / "bin" / "python", home / "ready.txt"
    wanted = "\n".join(peer.requires)
    if ready.is_file() and ready.read_text() == wanted:
        return python
    _run(peer, sys.executable, "-m", "venv", "--clear", str(home))
    _run(peer, str(python), "-m", "pip", "install", "--quiet", *peer.requires)
    ready.write_text(wanted)
    return python


def _run(peer: Peer, *command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise DropsOutError(f"not installed within {MOST_SECONDS:.0f} s") from None
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        lines = [line for line in said.splitlines() if "ERROR" in line] or said.splitlines()
        raise DropsOutError(f"not installed: {lines[-1].strip()}") from None
