"""Whether the disk has room for the files of another round."""

from __future__ import annotations

import shutil
from pathlib import Path

from cafe.errors import FileError
from cafe.live.live_run import LiveRun
from cafe.results import checkpoint

BASE = 64 << 10  # bytes of a checkpoint and of live.json without model and clients, rounded up
PER_CLIENT = 2 << 10  # bytes per client in all files together, rounded up


def needed_space(folder: Path, run: LiveRun) -> int:
    """Bytes that the files of the next round, and of the end of the run, may need.

    A new checkpoint is written beside the old one, and may have one more version of the model.
    """
    saved = folder / checkpoint.NAME
    before = saved.stat().st_size if saved.exists() else run.model.nbytes
    return BASE + before + 2 * run.model.nbytes + PER_CLIENT * run.ledger.clients


def check_space(folder: Path, run: LiveRun) -> None:
    """Raise an error if the disk has too little room for the files of the next round.

    Clients would work in a round that cannot be saved.
    """
    needed, free = needed_space(folder, run), shutil.disk_usage(folder).free
    if free < needed:
        raise FileError(
            folder,
            f"the disk is too full for another round: its checkpoint and logs may need "
            f"{needed / 1e6:,.2f} MB, and {free / 1e6:,.2f} MB are free. Free some space and "
            "submit the run again, which resumes it.",
        )
