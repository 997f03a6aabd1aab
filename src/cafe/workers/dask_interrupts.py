"""What a Dask worker of this machine loads when it starts: it ignores Ctrl-C.

A terminal sends Ctrl-C to all processes of a command. The command itself ends its workers; a worker
that handled Ctrl-C too would print a traceback.
"""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """Ignore Ctrl-C in this process; Dask calls it in each new worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
