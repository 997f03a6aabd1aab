"""The chains of jobs that later merges may need. They are stored instead of local models."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cafe.engine.job_chains import NO_LINK, Chain, InvitedWork, JobChains, Link, kind_of
from cafe.federation import Indices
from cafe.rounds.jobs import Jobs, Mask, Running, Work, take_rows


@dataclass(eq=False)
class ChainStore:
    """What must be remembered of jobs so that their models can be computed later.

    Attributes:
        kept: the chains of the reports and local models that clients keep, by client.
        continued: the chains of the local models that running jobs continue from, by client.
        invitations: the invitations whose jobs may still be merged, by number.
    """

    kept: dict[int, Chain] = field(default_factory=dict)
    continued: dict[int, Chain] = field(default_factory=dict)
    invitations: dict[int, InvitedWork] = field(default_factory=dict)

    def start(self, invitation: int, round_: int, work: Work, jobs: Running) -> None:
        """Remember the work of an invitation, and which local models its jobs continue from."""
        self.invitations[invitation] = InvitedWork(round_, kind_of(work))
        local = jobs.client[jobs.local]
        if len(local):
            self.continued |= {client: self.kept[client] for client in local.tolist()}

    def of_reports(self, jobs: Jobs, index: Indices, held: Indices) -> JobChains:
        """The chains of some jobs that reported, followed by those of clients' held reports.

        Args:
            jobs: the jobs of the round.
            index: the jobs that reported.
            held: the clients whose held reports are offered.
        """
        if not len(held) and not (jobs.local.any() and jobs.local[index].any()):
            columns = (jobs.invitation, jobs.version, jobs.steps)
            picked = (take_rows(column, index)[:, None] for column in columns)
            return JobChains(jobs.client[index], *picked)
        jobs = jobs.take(index)
        chains = [*self._each(jobs), *(self.kept[client] for client in held.tolist())]
        longest = max(map(len, chains))
        padded = np.array([chain + (NO_LINK,) * (longest - len(chain)) for chain in chains])
        clients = np.concatenate([jobs.client, held])
        return JobChains(clients, padded[:, :, 0], padded[:, :, 1], padded[:, :, 2])

    def _each(self, jobs: Jobs) -> list[Chain]:
        """Each job's chain: the jobs that its client continued from, and the job itself."""
        columns = (jobs.client, jobs.local, jobs.invitation, jobs.version, jobs.steps)
        return [
            (*(self.continued[client] if local else ()), Link(invitation, version, steps))
            for client, local, invitation, version, steps in zip(
                *map(np.ndarray.tolist, columns), strict=True
            )
        ]

    def keep(self, jobs: Jobs) -> None:
        """Remember the chains of jobs whose report or local model is kept."""
        self.kept |= dict(zip(jobs.client.tolist(), self._each(jobs), strict=True))

    def forget_unused(self, running: Jobs, keeps: Mask) -> set[int]:
        """Drop chains and invitations that no later merge can need.

        Args:
            running: the jobs that keep running after the round.
            keeps: which clients keep a report or a local model.

        Returns:
            The versions of the model that later merges may need.
        """
        if self.kept:
            self.kept = {k: chain for k, chain in self.kept.items() if keeps[k]}
        if self.continued:
            local = set(running.client[running.local].tolist())
            self.continued = {k: chain for k, chain in self.continued.items() if k in local}
        chains = [*self.kept.values(), *self.continued.values()]
        numbers = {link.invitation for chain in chains for link in chain}
        numbers |= set(running.invitation.tolist())
        self.invitations = {n: work for n, work in self.invitations.items() if n in numbers}
        return {*running.version.tolist(), *(chain[0].version for chain in chains)}
