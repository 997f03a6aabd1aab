"""The reference's books: ages, merges, waste, and what clients keep. One client at a time."""

from __future__ import annotations

import numpy as np

from cafe.reference.reference_jobs import KeptJob, ReferenceJob
from cafe.rounds.answers import HOLD, LOCAL
from cafe.rounds.ledger import LedgerColumns
from cafe.rounds.outcome import Fate, Outcome


class ReferenceBooks:
    """The accounting of a run.

    Args:
        clients: how many there are.

    Attributes:
        last_start: when the last merged job of each client started.
        last_round: the round of each client's last merge; -1 before the first.
        merged: how many times each client was merged.
        weight: the sum of each client's coefficients.
        area: each client's age summed over time up to ``counted``.
        counted: the time up to which ``area`` is summed.
        kept: what clients keep from earlier rounds, by client.
    """

    def __init__(self, clients: int) -> None:
        self.last_start, self.last_round = [0.0] * clients, [-1] * clients
        self.merged, self.weight = [0] * clients, [0.0] * clients
        self.area, self.counted = [0.0] * clients, [0.0] * clients
        self.kept: dict[int, KeptJob] = {}

    def show(self, columns: LedgerColumns) -> None:
        """Write what policies may see into the ledger's columns."""
        columns.last_start[:] = self.last_start
        columns.last_round[:] = self.last_round
        columns.merged[:] = self.merged
        for client, kept in self.kept.items():
            columns.local[client] = kept.local

    def age_since(self, client: int, now: float) -> float:
        """A client's age summed over the time since it was last counted."""
        counted = self.counted[client]
        return (now - counted) * ((now + counted) / 2 - self.last_start[client])

    def mean_ages(self, now: float) -> list[float]:
        """Each client's age, averaged over the run."""
        if not now > 0:
            return [0.0] * len(self.area)
        return [(area + self.age_since(k, now)) / now for k, area in enumerate(self.area)]

    def merge(
        self, outcome: Outcome, used: dict[ReferenceJob, float], version: int
    ) -> dict[ReferenceJob, Fate]:
        """Reset the ages of clients in the update, and give the jobs in it their fate.

        Args:
            outcome: the outcome of the round.
            used: the jobs in the update, with their coefficients.
            version: the version of the model before the update.

        Returns:
            The fates of the jobs of this round.
        """
        now, fates = outcome.closed, {}
        outcome.used = len(used)
        fresh = [job for job in used if not self.is_kept(job)]
        for job, coefficient in used.items():
            client = job.client
            self.area[client] += self.age_since(client, now)
            self.counted[client] = now
            self.last_start[client] = job.start
            self.last_round[client] = outcome.round
            self.merged[client] += 1
            self.weight[client] += coefficient
            outcome.reused += job.uses > 0
            fate = Fate.FRESH if job.began == version else Fate.STALE
            outcome.fates[fate] += job in fresh
            if job in fresh:
                fates[job] = fate
            kept = self.kept.get(client)
            if kept is not None and (job.local or job not in fresh):
                outcome.fates[fate] += kept.pending
                outcome.work_by_fate[fate] += kept.spent
                kept.pending, kept.charge, kept.spent = 0, 0.0, 0.0
                if job in fresh:  # the update contains the local model that it continued from
                    del self.kept[client]
            job.uses += 1
        self.drop(outcome, [job.client for job in fresh if not job.local])
        return fates

    def is_kept(self, job: ReferenceJob) -> bool:
        """Whether a job's report was kept in an earlier round."""
        return job.client in self.kept and self.kept[job.client].job is job

    def keep(self, outcome: Outcome, job: ReferenceJob, code: int, used: bool) -> None:
        """Keep a client's report, its local model, or both.

        Args:
            outcome: the outcome of the round.
            job: whose report or local model is kept.
            code: what the policy returned for the job: ``HOLD``, ``LOCAL`` or both.
            used: whether the job is in the update.
        """
        now, before = outcome.closed, self.kept.get(job.client)
        pending, charge, spent = (
            (0, 0.0, 0.0) if before is None else (before.pending, before.charge, before.spent)
        )
        if not used:
            pending += 1
            charge, spent = charge + (now - job.start), spent + job.spent(now)
        fate = Fate.OVER if outcome.succeeded else Fate.FAILED
        self.kept[job.client] = KeptJob(
            job, bool(code & HOLD), bool(code & LOCAL), pending, fate, charge, spent
        )

    def drop(self, outcome: Outcome, clients: list[int]) -> None:
        """Discard what clients have kept: jobs in it that have no fate yet count as waste."""
        kept = [self.kept.pop(client) for client in clients if client in self.kept]
        lost = [k for k in kept if k.pending]
        outcome.waste += float(np.sum([k.charge for k in lost]))
        outcome.processing_waste += float(np.sum([k.spent for k in lost]))
        for k in lost:
            outcome.fates[k.fate] += k.pending
            outcome.work_by_fate[k.fate] += k.spent
