"""``checkpoint.npz``: a run as it stood, and how much of the log belongs to it."""

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
REMEDY = "Remove it and resume: the run begins at the beginning, and comes to the same end."
_RUN = "run."  # what the names of the engine's arrays begin with


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A run as it stood.

    Attributes:
        path: of its file.
        events: bytes of the log that belong to it.
        clients: what has become of each client so far.
        state: for the engine to go on from.
        remedy: what to do where it is damaged.
    """

    path: Path
    events: int
    clients: Clients
    state: State
    remedy: str

    def restore_with(self, restore: Callable[[State], None]) -> None:
        """Bring a new run to where this one stood."""
        try:
            restore(self.state)
        except KeyError as error:
            raise _incomplete(self.path, error, self.remedy) from None


def write(path: Path, history: History, state: State, events: int) -> None:
    """Keep a run as it stands, and its log of so many bytes."""
    arrays = {"events": np.array(events), **Clients.of(history).arrays()}
    write_arrays(path, arrays | {f"{_RUN}{name}": column for name, column in state.items()})


def read(path: Path, remedy: str = REMEDY) -> Checkpoint | None:
    """The last one; None where there is none yet."""
    if not path.exists():
        return None
    arrays = read_arrays(path, remedy)
    state = {name.removeprefix(_RUN): a for name, a in arrays.items() if name.startswith(_RUN)}
    try:
        return Checkpoint(path, int(arrays["events"]), Clients.from_arrays(arrays), state, remedy)
    except KeyError as error:
        raise _incomplete(path, error, remedy) from None


def _incomplete(path: Path, missing: KeyError, remedy: str) -> FileError:
    return FileError(path, f"there is no {missing} in this checkpoint. {remedy}")
