"""Who the clients are: a number in the ledger for each name, once and for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cafe.engine.books import Books
from cafe.rounds.ledger import UNKNOWN


@dataclass(eq=False)
class ClientRegistry:
    """Every client that was ever there, in the order of the ledger.

    Attributes:
        names: as the wire has them.
        labels: what clients call themselves; for people, never for decisions.
        refusals: how much of what each sent was not accepted.
    """

    names: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)

    def meet(self, present: Sequence[str], books: Books) -> tuple[list[str], list[str]]:
        """Put down who is there: who has joined, and who has gone since the last look."""
        known = set(self.names)
        new = [name for name in dict.fromkeys(present) if name not in known]
        if new:
            books.admit(np.full(len(new), UNKNOWN))
            self.names += new
            self.labels += [""] * len(new)
            self.refusals += [0] * len(new)
            books.columns.away[-len(new) :] = True
        here = set(present)
        away = np.array([name not in here for name in self.names], dtype=bool)
        before = books.columns.away
        gone = [self.names[k] for k in np.flatnonzero(away & ~before)]
        back = [self.names[k] for k in np.flatnonzero(~away & before)]
        books.ledger.set_away(away)
        return back, gone

    def called(self, name: str) -> str:
        """A client's name for people."""
        label = self.labels[self.names.index(name)] if name in self.names else ""
        return label or f"client {name}"
