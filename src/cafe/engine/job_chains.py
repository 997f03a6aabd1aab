"""Chains of jobs: which jobs lead from a global model to a report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from cafe.federation import Indices
from cafe.rounds.jobs import Whole, Work


class Link(NamedTuple):
    """One job of a chain: its invitation, the model's version when it began, and its steps."""

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
    """The jobs that lead from a global model to each report, a row per report.

    Most chains have one job. A client that continued from its local model has a longer chain.

    Attributes:
        client: the client of each report.
        invitations: the invitation that started each job; -1 where a chain has fewer jobs than
            others.
        versions: the version of the global model when each job began. A chain starts from the
            first of them.
        steps: the number of steps of each job.
    """

    client: Indices
    invitations: Whole
    versions: Whole
    steps: Whole

    def __len__(self) -> int:
        return len(self.client)

    def take(self, index: Indices) -> JobChains:
        if len(index) == len(self):
            return self  # indices are in rising order, so these are all chains
        columns = (self.client, self.invitations, self.versions, self.steps)
        return JobChains(*(column[index] for column in columns))

    @property
    def one_job(self) -> bool:
        """Whether all chains have one job, with one invitation and version that are stored once."""
        columns = (self.invitations, self.versions)
        return all(column.shape[1] == 1 and column.strides[0] == 0 for column in columns)

    def chain(self, row: int) -> Chain:
        """The chain in one row, as a tuple of links."""
        columns = (self.invitations[row], self.versions[row], self.steps[row])
        links = map(Link, *(column.tolist() for column in columns))
        return tuple(link for link in links if link.invitation >= 0)


@lru_cache
def kind_of(work: Work) -> Work:
    """The work without its amount. Jobs with different amounts can be computed together."""
    epochs = None if work.epochs is None else 1
    return Work(epochs=epochs, prox=work.prox, scaled=work.scaled)
