"""A federation on one machine: a SuperLink and SuperNodes on loopback, to try an app on.

``Lab(folder)`` is the whole of it; ``cafe federate`` is its command line. Linux only: it reads
/proc to tell its own processes from others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cafe.flower.lab.lab import Lab
    from cafe.flower.lab.processes import Process

__all__ = ["Lab", "Process"]


def __getattr__(name: str) -> object:
    """Load a name when it is first asked for."""
    if name == "Lab":
        from cafe.flower.lab.lab import Lab

        return Lab
    if name == "Process":
        from cafe.flower.lab.processes import Process

        return Process
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
