"""``checkpoint.npz``: the state of a run, and the length of the log at that time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cafe.engine.snapshot import State
from cafe.errors import FileError
from cafe.results.clients import Clients
from cafe.results.storage import read_arrays, write_arrays
from cafe.rounds.history import History

NAME = "checkpoint.npz"
REMEDY = "Remove it and resume: the run starts over, and ends with the same results."
_RUN = "run."  # prefix of the names of the engine's arrays


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run at one time.

    Attributes:
        path: the checkpoint's file.
        events: the length of the log at that time, in bytes.
        clients: the values per client so far.
        state: the engine's state, to resume from.
        remedy: what to do if the checkpoint is damaged; part of error messages.
    """

    path: Path
    events: int
    clients: Clients
    state: State
    remedy: str

    def restore_with(self, restore: Callable[[State], None]) -> None:
        """Call a function that restores a run from the state; missing arrays raise a FileError."""
        try:
            restore(self.state)
        except KeyError as error:
            raise _incomplete(self.path, error, self.remedy) from None


def write(path: Path, history: History, state: State, events: int) -> None:
    """Write a checkpoint of a run whose log has ``events`` bytes."""
    arrays = {"events": np.array(events), **Clients.of(history).arrays()}
    write_arrays(path, arrays | {f"{_RUN}{name}": column for name, column in state.items()})


def read(path: Path, remedy: str = REMEDY) -> Checkpoint | None:
    """Read a checkpoint; None if there is none yet."""
    if not path.exists():
        return None
    arrays = read_arrays(path, remedy)
    state = {name.removeprefix(_RUN): a for name, a in arrays.items() if name.startswith(_RUN)}
    try:
        return Checkpoint(path, int(arrays["events"]), Clients.from_arrays(arrays), state, remedy)
    except KeyError as error:
        raise _incomplete(path, error, remedy) from None


def _incomplete(path: Path, missing: KeyError, remedy: str) -> FileError:
    return FileError(path, f"the checkpoint has no array {missing}. {remedy}")
