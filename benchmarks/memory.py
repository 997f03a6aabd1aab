"""The largest memory of this process."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def peak_gib() -> float:
    """The largest resident memory of this process so far, in GiB.

    Linux counts the memory of the parent in a new process's ``ru_maxrss``, so it is read from
    ``/proc`` where that exists.
    """
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        found = None
    if found:
        return int(found[1]) / 2**20
    import resource  # Unix only

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB; on macOS bytes
    return peak / (2**30 if sys.platform == "darwin" else 2**20)
