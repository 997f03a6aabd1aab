"""A slow run of a hierarchy: an object per job, on the slow simulator, booked after the run.

It shares no code with the books of ``cafe.engine``. Both levels may drop late jobs or keep them
running, but they may not keep reports.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

import cafe
from cafe.data.examples import Shards
from cafe.engine.clusters import cluster_seed
from cafe.reference import Reference
from cafe.reference.job_draws import JobDraw
from cafe.reference.reference_jobs import ReferenceJob
from cafe.rounds import Fate, Hierarchy, Invitation, Outcome, Policy
from cafe.rounds.jobs import Work

USED = (Fate.FRESH, Fate.STALE)


@dataclass(eq=False)
class Ended:
    """A job that has ended on its level: its fate there, and when it was decided."""

    job: ReferenceJob
    fate: Fate
    at: float


class Watched(Reference):
    """The slow simulator, which also remembers the fate of every job."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self.ended: list[Ended] = []
        super().__init__(*given, **more)

    def settle(
        self, outcome: Outcome, jobs: Any, reported: Any, merged: Any, unfinished: Fate
    ) -> None:
        version = self.version
        super().settle(outcome, jobs, reported, merged, unfinished)
        for job in jobs:
            if job in self.running:
                continue
            fate = unfinished
            if job in merged.used:
                fate = Fate.FRESH if job.version == version else Fate.STALE
            elif job in reported:
                fate = Fate.OVER if outcome.succeeded else Fate.FAILED
            elif job.absent:
                fate = Fate.ABSENT
            elif job.crashes and job.stop <= self.now:
                fate = Fate.CRASHED
            elif job.arrival <= self.now:
                fate = Fate.OVER
            self.ended.append(Ended(job, fate, self.now))


@dataclass(eq=False)
class ClusterJob:
    """A job of the cloud: what the cluster has played for it."""

    clients: list[int]
    rounds: list[Outcome]
    ended: list[Ended]
    change: Any
    start: Any
    fate: Fate | None = None
    decided: float = np.inf  # when the cloud has decided on its report
    round: float = np.inf  # in which of the cloud's rounds


@dataclass(eq=False)
class SlowHierarchy:
    """Plays a hierarchy for some rounds; the attributes are like those of a history."""

    federation: cafe.Federation
    hierarchy: Hierarchy
    task: cafe.Task | None
    rounds: int
    seed: int
    crash: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)
    model: Any = None

    def __post_init__(self) -> None:
        self.groups = [*self.hierarchy.clusters(self.federation).values()]
        self.played: dict[tuple[int, int], ClusterJob] = {}
        self.twins, self.scale = [], []
        task, seed = self.task, self.seed
        for k, group in enumerate(self.groups):
            mine = None if task is None else Shards.of([task.shards[i] for i in group.tolist()])
            part = None
            if task is not None and mine is not None:
                part = replace(task, shards=mine)
                self.scale.append(len(self.groups) * len(mine.rows) / len(task.shards.rows))
            who, seed_k = self.federation.take(group), cluster_seed(seed, k)
            twin = Watched(who, self.hierarchy.edge, part, seed=seed_k, crash=self.crash)
            self.twins.append(twin)
        if task is not None:
            self.model = task.learner.start(np.random.default_rng(0))
        link = self.hierarchy.links(np.array([*self.hierarchy.clusters(self.federation)]))
        sizes = [len(group) for group in self.groups]
        if task is not None:
            sizes = [int(task.shards.counts[group].sum()) for group in self.groups]
        links = cafe.Federation(
            len(self.groups),
            cafe.Constant(1e-300) if link is None else link,
            examples=np.array(sizes),
        )
        self.cloud = Watched(links, self.hierarchy.cloud, None, seed=seed)
        self.draws, self.cloud.draws = self.cloud.draws, self  # type: ignore[assignment]
        self.cloud.controller = _Noting(self.hierarchy.cloud, self)
        for _ in range(self.rounds):
            before = len(self.cloud.ended)
            self.cloud.step()
            for each in self.cloud.ended[before:]:
                found = self.played[each.job.invitation, each.job.client]
                found.fate, found.decided = each.fate, each.at
                found.round = len(self.cloud.outcomes) - 1
        self.outcomes = [self.outcome(each) for each in self.cloud.outcomes]

    def draw(
        self, number: int, invitation: Invitation, now: float, until: float | None
    ) -> list[JobDraw]:
        """Play the jobs of clusters when they start."""
        links = self.draws.draw(number, invitation, 0.0, until)
        found = []
        for link, k in zip(links, invitation.clients.tolist(), strict=True):
            steps = invitation.work.steps
            job = self.play(k, now, steps, invitation.work)
            self.played[number, k] = job
            end = self.twins[k].now
            found.append(JobDraw(steps, end - now, end + link.arrival, end + link.arrival, False,
                                 False))  # fmt: skip
        return found

    def play(self, cluster: int, now: float, steps: int, work: Work) -> ClusterJob:
        twin = self.twins[cluster]
        twin.now = max(twin.now, now)
        twin.set_model(self.model)
        first, ended, made = len(twin.outcomes), len(twin.ended), 0
        while made < steps:
            made += twin.step().succeeded
        change = None
        if twin.trainer is not None:
            scale = self.scale[cluster] if work.scaled else 1.0
            change = scale * (twin.trainer.models[-1] - self.model)
        group = self.groups[cluster].tolist()
        return ClusterJob(group, twin.outcomes[first:], twin.ended[ended:], change, self.model)

    def merge(self, ledger: Any, reports: Any) -> Any:
        """The answer of the cloud's policy; the model moves."""
        answer = self.hierarchy.cloud.merge(ledger, reports)
        if self.task is None:
            return answer
        moved = 0.0 if answer.keep is None else answer.keep * self.model
        moved = self.model if answer.of == "update" else moved
        where = zip(reports.invitation.tolist(), reports.client.tolist(), strict=True)
        for share, address in zip(answer.coefficient.tolist(), where, strict=True):
            job = self.played[address]
            moved = moved + share * (job.change + (job.start if answer.of == "model" else 0.0))
        self.model = moved
        return answer

    def round_of(self, time: float) -> float:
        """The number of the cloud's round in which something at this time is booked."""
        closed = [outcome.closed for outcome in self.cloud.outcomes]
        return next((k for k, end in enumerate(closed) if time <= end), np.inf)

    def outcome(self, cloud: Outcome) -> Outcome:
        """A round of the cloud, in terms of clients."""
        found = Outcome(cloud.round, cloud.opened, cloud.closed, cloud.succeeded, cloud.version)
        found.downloads = cloud.downloads
        for job in self.played.values():
            for each in job.rounds:
                if self.round_of(each.closed) == cloud.round:
                    found.invited += each.invited
                    found.reports += each.reports
                    found.downloads += each.downloads
            for one in job.ended:
                used = one.fate in USED
                if max(self.round_of(one.at), job.round if used else 0) != cloud.round:
                    continue
                spent, fate = one.job.spent(one.at), one.fate
                found.work += spent
                if used:
                    assert job.fate is not None
                    fate = max(one.fate, job.fate)  # fresh only if it is fresh on both levels
                found.fates[fate] += 1
                found.work_by_fate[fate] += spent
                if fate in USED:
                    found.used += 1
                    continue
                found.processing_waste += spent
                found.waste += spent if used else one.at - one.job.start
                found.absent_waste += one.at - one.job.start if fate == Fate.ABSENT else 0.0
        starts = [self.last_start(k, cloud.round) for k in range(self.federation.clients)]
        found.age = cloud.closed - float(np.mean(starts))
        return found

    def merges(self, client: int) -> list[tuple[ClusterJob, float]]:
        """In which report the cloud merged each of a client's jobs, and when that job started."""
        return [
            (job, one.job.start)
            for job in self.played.values()
            if job.fate in USED
            for one in job.ended
            if one.fate in USED and job.clients[one.job.client] == client
        ]

    def last_start(self, client: int, after: int) -> float:
        """When the last job of a client started that the model contains after a round."""
        starts = [start for job, start in self.merges(client) if job.round <= after]
        return max(starts, default=0.0)

    @property
    def age_by_client(self) -> list[float]:
        """The area below each client's age, round by round of the cloud, over the time."""
        found, closed = [], [0.0, *(outcome.closed for outcome in self.cloud.outcomes)]
        for client in range(self.federation.clients):
            area = 0.0
            for number, (begin, until) in enumerate(pairwise(closed)):
                age = begin - self.last_start(client, number - 1)
                area += (until - begin) * (age + (until - begin) / 2)
            found.append(area / closed[-1])
        return found

    @property
    def merged_by_client(self) -> list[int]:
        """The number of jobs of each client in the cloud's updates."""
        return [len(self.merges(client)) for client in range(self.federation.clients)]


@dataclass
class _Noting:
    """A controller that always returns the cloud's policy, with another merge."""

    policy: Policy
    slow: SlowHierarchy

    def __call__(self, ledger: Any, seen: Any) -> Policy:
        return replace(self.policy, merge=self.slow.merge)
