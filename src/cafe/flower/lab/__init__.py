"""A federation on one machine, to try an app: a SuperLink and SuperNodes on loopback.

``Lab(folder)`` is its interface, and ``cafe federate`` its command line. Linux only: it finds its
processes in /proc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cafe.flower.lab.lab import Lab
    from cafe.flower.lab.processes import Process

__all__ = ["Lab", "Process"]


def __getattr__(name: str) -> object:
    """Import a class when it is first used."""
    if name == "Lab":
        from cafe.flower.lab.lab import Lab

        return Lab
    if name == "Process":
        from cafe.flower.lab.processes import Process

        return Process
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
