"""The addresses of trained models: which jobs lead from a global model to what was reported."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from cafe.federation import Indices
from cafe.rounds.jobs import Whole, Work


class Link(NamedTuple):
    """One job of a chain: its invitation, the global model's version then, and its steps."""

    invitation: int
    version: int
    steps: int


class InvitedWork(NamedTuple):
    """The round of an invitation, and the kind of work of its jobs."""

    round: int
    work: Work


Chain = tuple[Link, ...]
NO_LINK = Link(-1, -1, 0)


@dataclass(frozen=True, eq=False)
class JobChains:
    """The ways from a global model to what was reported, a row per report.

    Most are one job long. A client that went on from its local model has a chain of them.

    Attributes:
        client: whose.
        invitations: which started each job; -1 where a path has fewer.
        versions: of the global model when each job began. A path begins from the first.
        steps: that each job takes.
    """

    client: Indices
    invitations: Whole
    versions: Whole
    steps: Whole

    def __len__(self) -> int:
        return len(self.client)

    def take(self, index: Indices) -> JobChains:
        """Some of the paths."""
        if len(index) == len(self):
            return self  # indices rise: these are all
        columns = (self.client, self.invitations, self.versions, self.steps)
        return JobChains(*(column[index] for column in columns))

    @property
    def one_job(self) -> bool:
        """Whether all paths are one job of one invitation, as one number that is stored once."""
        columns = (self.invitations, self.versions)
        return all(column.shape[1] == 1 and column.strides[0] == 0 for column in columns)

    def chain(self, row: int) -> Chain:
        """One path as numbers."""
        columns = (self.invitations[row], self.versions[row], self.steps[row])
        links = map(Link, *(column.tolist() for column in columns))
        return tuple(link for link in links if link.invitation >= 0)


@lru_cache
def kind_of(work: Work) -> Work:
    """Work but for its amount, in which jobs that are computed side by side may differ."""
    epochs = None if work.epochs is None else 1
    return Work(epochs=epochs, prox=work.prox, scaled=work.scaled)
