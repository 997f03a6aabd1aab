"""The edge servers of clusters: they simulate the cloud's jobs, and store the reported models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cafe.engine.client_books import ClientBooks, CloudJob
from cafe.engine.fates import JobFates
from cafe.engine.job_chains import JobChains
from cafe.engine.new_jobs import SimulatedJobs
from cafe.engine.run import Run
from cafe.errors import CafeError, InputError
from cafe.learn.base import Model
from cafe.rounds.jobs import Invitation, Mask, Running
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import OPEN, Fate
from cafe.rounds.policy import Policy


class EdgeServers:
    """The servers of a cloud's clusters.

    Args:
        cloud: the run whose clients are the clusters. The constructor connects it to the servers.
        runs: each cluster's run.
        patience: a cluster gives up its job after this many failed rounds in a row.
        books: the books of all clients, if they are kept in addition to those of the runs.

    Attributes:
        models: the model at the end of each job that the cloud may still merge, by job.
        used: client time in the updates of jobs that have no fate yet, by job.
        kept: the jobs whose reports are kept and not used yet, by cluster.
        discarded: client time in the updates of jobs whose report the cloud has discarded.
        gave_up: for each cluster that has made no update in its last job, the reason.
    """

    def __init__(
        self, cloud: Run, runs: Sequence[Run], patience: int, books: ClientBooks | None = None
    ) -> None:
        self.cloud, self.runs, self.patience, self.books = cloud, runs, patience, books
        self.models: dict[CloudJob, Model] = {}
        self.used: dict[CloudJob, float] = {}
        self.kept: dict[int, list[CloudJob]] = {}
        self.discarded = 0.0
        self.gave_up: dict[int, str] = {}
        cloud.why_gave_up = self.why_gave_up
        cloud.starter.simulate_jobs, cloud.on_round_end = self.simulate_jobs, self.end_round
        if cloud.training is not None:
            cloud.training.computed_updates = self.updates

    def simulate_jobs(self, ledger: Ledger, invitation: Invitation, began: Mask) -> SimulatedJobs:
        """Play the jobs that an invitation of the cloud starts, one cluster after the other."""
        clusters, work = invitation.clients, invitation.work
        self._check(invitation)
        end = np.full(len(clusters), ledger.now)
        steps = np.full(len(clusters), work.steps, dtype=np.int64)
        if invitation.amount is not None:
            steps[:] = invitation.amount
        local = np.zeros(len(clusters), dtype=bool)
        if invitation.local is not None:
            local = invitation.local & ledger.local[clusters]
        for row in np.flatnonzero(began).tolist():
            job = (ledger.invitations, int(clusters[row]))
            start = self._start(job[1], bool(local[row]))
            end[row], steps[row] = self._play(job, start, ledger.now, int(steps[row]))
        return SimulatedJobs(end, steps)

    def _check(self, invitation: Invitation) -> None:
        """Raise an error if the cloud asks for something that clusters cannot do."""
        work, policy = invitation.work, self.cloud.policy
        if work.epochs is not None or work.seconds is not None or work.prox:
            raise InputError(
                "The cloud's policy must ask clusters for a number of updates, Work(steps=...). "
                f"Got {work}: epochs, seconds and prox belong in the policies of the clusters."
            )
        _check_needs(policy)
        if self.cloud.training is not None and self.cloud.training.vectors.used:
            raise InputError(
                f"The policy {policy.name} of the cloud returned offset, common or frozen in "
                "merge, but the cloud's clients are clusters, which take no gradient steps. Use "
                "this policy for the clusters, and another one for the cloud."
            )

    def _start(self, cluster: int, local: bool) -> Model:
        """The model that a cluster starts from: the cloud's, or the local one that it has kept."""
        training = self.cloud.training
        if training is None:
            return None
        if local:
            return self.models[training.chains.kept[cluster][-1].invitation, cluster]
        return training.model

    def _play(self, job: CloudJob, start: Model, now: float, steps: int) -> tuple[float, int]:
        """Play a cluster's rounds until it has made this many updates, or gives up.

        Returns:
            The time at which it has finished, and the number of updates.
        """
        run = self.runs[job[1]]
        run.ledger.now = max(run.ledger.now, now)
        run.set_model(start)
        first, made, failed = len(run.outcomes), 0, 0
        while made < steps and failed < self.patience:
            try:
                succeeded = run.step().succeeded
            except CafeError as error:
                raise type(error)(f"Cluster {job[1]}: {error}") from error
            made, failed = (made + 1, 0) if succeeded else (made, failed + 1)
        self._note_failure(job[1], made)
        if run.training is not None:
            self.models[job] = run.training.model
        played = run.outcomes[first:]
        self.used[job] = sum(outcome.work - outcome.processing_waste for outcome in played)
        if self.books is not None:
            self.books.add_job(job, run.books.columns, played)
        return run.ledger.now, made

    def _note_failure(self, cluster: int, made: int) -> None:
        """Remember why a cluster has made no update in a job; forget it when it makes one."""
        if made:
            self.gave_up.pop(cluster, None)
            return
        run, failures = self.runs[cluster], self.runs[cluster].failures
        if self.books is not None and failures.client >= 0:
            # The number of the client among all clients, not only in its cluster.
            client = int(self.books.clusters[cluster][failures.client])
            failures = replace(failures, client=client)
        self.gave_up[cluster] = failures.describe(run.policy, run.outcomes[-1])

    def why_gave_up(self) -> str:
        """Which clusters have given up, why the first of them did, and what to change."""
        if not self.gave_up:
            return ""
        first, *others = sorted(self.gave_up)
        which = f"Cluster {first}"
        if self.books is not None:
            which += f" ({_numbered('client', self.books.clusters[first].tolist())})"
        verb = "has" if len(others) == 1 else "have"
        also = f", as {verb} {_numbered('cluster', others)}" if others else ""
        return (
            f"{which} has given up{also}: {self.gave_up[first]} Lengthen the deadline of the "
            "clusters or lower their quorum. A cloud with a deadline goes on without them."
        )

    def updates(self, chains: JobChains) -> NDArray[np.float32]:
        """The updates of clusters: the model that each has ended with, minus the cloud's."""
        training = self.cloud.training
        assert training is not None
        task, save = training.task, training.task.learner.save
        found = np.empty((len(chains), len(save(training.model))), dtype=np.float32)
        for row, cluster in enumerate(chains.client.tolist()):
            chain = chains.chain(row)
            last = chain[-1].invitation
            change = self.models[last, cluster] - training.models[chain[0].version]
            scaled = training.chains.invitations[last].work.scaled
            found[row] = save(change) * np.float32(task.scale[cluster] if scaled else 1.0)
        return found

    def end_round(self, jobs: Running, fates: JobFates) -> None:
        """Add up the time that a round of the cloud discarded, and drop models of ended jobs."""
        if self.books is not None:
            self.books.advance(self.cloud.ledger.now)
        for clusters, earlier in fates.earlier:
            for cluster, fate in zip(clusters.tolist(), earlier.tolist(), strict=True):
                for job in self.kept.pop(cluster, []):
                    self._end_job(job, fate)
        for row, fate in enumerate(fates.by_job.tolist()):
            if fate != OPEN:
                self._end_job((int(jobs.invitation[row]), int(jobs.client[row])), fate)
        for row in fates.kept.tolist():
            if fates.by_job[row] == OPEN:
                cluster = int(jobs.client[row])
                self.kept.setdefault(cluster, []).append((int(jobs.invitation[row]), cluster))
        training = self.cloud.training
        if training is not None:
            needed = training.chains.invitations
            self.models = {job: model for job, model in self.models.items() if job[0] in needed}

    def _end_job(self, job: CloudJob, fate: int) -> None:
        used = self.used.pop(job, 0.0)  # a cluster that was absent has used nothing
        if fate >= Fate.OVER:
            self.discarded += used
        if self.books is not None:
            self.books.end_job(job, fate)


def _numbered(what: str, numbers: list[int]) -> str:
    """Text such as "clients 3, 4"; at most five numbers."""
    shown = [*map(str, numbers[:5]), *["..."] * (len(numbers) > 5)]
    return f"{what}{'s' * (len(numbers) > 1)} {', '.join(shown)}"


def _check_needs(cloud: Policy) -> None:
    unmet = sorted(cloud.needs & {"losses", "rms losses", "offsets", "rates"})
    if unmet:
        raise InputError(
            f"The policy {cloud.name} needs {' and '.join(unmet)} of clients, but the cloud's "
            "clients are clusters, which report only a model. Choose another policy for the cloud."
        )
