"""The books: every job's fate, what was wasted, how old every client is. Arrays, no loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.learn.base import Score
from cafe.rounds.history import Column, Curve, History
from cafe.rounds.jobs import Jobs, Mask, Reports, Running, Whole, pick, since
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Fate, Outcome
from cafe.rounds.policy import HOLD, LOCAL, RUN, Carried, Carry, Closed, Merge, Policy

_NOBODY = np.empty(0, dtype=np.intp)
_NO_JOBS = Running.none()


@dataclass(eq=False)
class Kept:
    """Reports and local models that clients have kept, an entry per client.

    Attributes:
        held: whose report is offered to the next merge.
        pending: how many jobs in it have no fate yet.
        fate: which one they will have if it is dropped.
        charge: what they will then be charged, from start to their round's close.
        spent: and in true processing time.
        start: of the last job in it.
        version: that it began from.
        round: of the last job in it.
        arrived: when its report came.
    """

    held: Mask
    pending: Whole
    fate: Whole
    charge: Floats
    spent: Floats
    start: Floats
    version: Whole
    round: Whole
    arrived: Floats

    def then(self, others: Kept) -> Kept:
        """These clients, followed by others."""
        pairs = zip(vars(self).values(), vars(others).values(), strict=True)
        return Kept(*(np.concatenate(pair) for pair in pairs))

    @classmethod
    def none(cls, clients: int) -> Kept:
        """Nobody has kept anything."""
        count = np.zeros(clients, dtype=np.int64)
        time = np.zeros(clients)
        return cls(
            held=np.zeros(clients, dtype=bool),
            pending=count,
            fate=count.copy(),
            charge=time,
            spent=time.copy(),
            start=time.copy(),
            version=count.copy(),
            round=count.copy(),
            arrived=time.copy(),
        )


@dataclass(frozen=True, eq=False)
class Used:
    """What a merge used: fresh reports by job, held ones by client, and their coefficients."""

    jobs: Indices
    held: Indices
    coefficient: Floats

    @classmethod
    def nothing(cls) -> Used:
        """What a failed round used."""
        return cls(_NOBODY, _NOBODY, np.empty(0))

    @classmethod
    def by(cls, merge: Merge, index: Indices, held: Indices) -> Used:
        """What a merge used of the jobs at ``index``, followed by what clients ``held``."""
        counted = merge.coefficient != 0
        if np.count_nonzero(counted) == len(counted):
            return cls(index, held, merge.coefficient)
        fresh = counted[: len(index)]
        return cls(index[fresh], held[counted[len(index) :]], merge.coefficient[counted])


@dataclass(eq=False)
class Books:
    """The ledger's arithmetic.

    Attributes:
        ledger: what policies see of it.
        kept: what clients have kept.
        area: each client's age summed over time up to ``settled``.
        settled: up to when.
        weight: the sum of each client's coefficients.
        joined: when each client joined; its age is counted from then.
    """

    ledger: Ledger
    kept: Kept
    area: Floats
    settled: Floats
    weight: Floats
    joined: Floats

    @classmethod
    def new(cls, examples: Whole) -> Books:
        """Before the first round."""
        n = len(examples)
        return cls(Ledger.new(examples), Kept.none(n), *(np.zeros(n) for _ in range(4)))

    def admit(self, count: int) -> None:
        """Let so many new clients in, now."""
        self.ledger.admit(count)
        self.kept = self.kept.then(Kept.none(count))
        zero, now = np.zeros(count), np.full(count, self.ledger.now)
        for name, new in (("area", zero), ("settled", now), ("weight", zero), ("joined", now)):
            setattr(self, name, np.concatenate([getattr(self, name), new]))

    @property
    def age_by_client(self) -> Floats:
        """Each client's age, averaged over the time since it joined."""
        now = self.ledger.now
        area = self.area + self._since(slice(None), now)
        return np.divide(area, now - self.joined, out=np.zeros_like(area), where=self.joined < now)

    def history(
        self,
        policy: str,
        seed: int,
        by_round: dict[str, Column],
        running: Running,
        scores: Sequence[tuple[int, Score]] | None,
        model: NDArray[Any] | None,
    ) -> History:
        """What a run with these books did and cost.

        Args:
            policy: as it is written.
            seed: of the run.
            by_round: its rounds.
            running: the jobs that run on.
            scores: of its model, each after so many rounds; None where nothing is learned.
            model: the last one.
        """
        return History(
            policy=policy,
            seed=seed,
            by_round=by_round,
            age_by_client=self.age_by_client,
            merged_by_client=self.ledger.merged.copy(),
            weight_by_client=self.weight.copy(),
            open_jobs=len(running) + int(self.kept.pending.sum()),
            curve=None if scores is None else Curve.of(scores, by_round),
            model=model,
        )

    def held(self, jobs: Running, index: Indices) -> Indices:
        """Whose earlier report is offered to a merge: not theirs who have reported again."""
        if not self.kept.held.any():
            return _NOBODY
        waiting = self.kept.held.copy()
        waiting[jobs.client[index]] = False
        return np.flatnonzero(waiting)

    def reports(self, jobs: Running, index: Indices, held: Indices) -> Reports:
        """What a merge is offered: the jobs at ``index``, followed by what clients ``held``."""
        kept, version = self.kept, jobs.version
        if jobs.local.any():
            version = np.where(jobs.local, kept.version[jobs.client], version)
        pairs = (
            (jobs.client, held),
            (jobs.start, kept.start[held]),
            (version, kept.version[held]),
            (jobs.round, kept.round[held]),
            (jobs.local, np.ones(len(held), dtype=bool)),
            (jobs.arrival, kept.arrived[held]),
        )
        columns: list[Any] = [
            np.concatenate([fresh[index], old]) if len(old) else pick(fresh, index)
            for fresh, old in pairs
        ]
        return Reports(*columns)

    def _since(self, clients: Indices | slice, now: float) -> Floats:
        """The area under the age since it was last settled: a trapezium.

        (now - settled) ((now + settled) / 2 - last start), in place: these are long vectors.
        """
        before = self.settled[clients]
        height = now + before
        height /= 2
        height -= self.ledger.last_start[clients]
        height *= now - before
        return height

    def close(
        self,
        outcome: Outcome,
        jobs: Running,
        reported: Mask,
        used: Used,
        carried: Carried,
        unfinished: Fate,
        refused: Mask | None = None,
    ) -> tuple[Running, Indices]:
        """Book a closed round and move the clock.

        Args:
            outcome: when it closed and whether it succeeded; the rest is filled in.
            jobs: all that were open.
            reported: which of them have reported.
            used: what the update was made of.
            carried: the policy's answer to what outlives the round.
            unfinished: the fate of jobs that are cut off by the close.
            refused: which of the jobs that will never report have sent what was not accepted.

        Returns:
            The jobs that run on, and which of the jobs have their report or local model kept.
        """
        now, ledger = outcome.closed, self.ledger
        fates, reports = outcome.fates, int(np.count_nonzero(reported))
        # In most rounds nobody is lost, nothing runs on and nothing is kept: None costs nothing.
        lost = self._lost(outcome, jobs, reported, refused)
        runs = _asked(carried, RUN, ~reported if lost is None else ~(reported | lost))
        keeps = _asked(carried, HOLD | LOCAL, reported)
        wastes = np.ones(len(jobs), dtype=bool)
        wastes[used.jobs] = False
        if runs is not None:
            wastes &= ~runs
        if keeps is not None:
            wastes &= ~keeps

        spent = np.minimum(jobs.stop, now)
        spent -= jobs.start
        wasted = np.flatnonzero(wastes)
        outcome.work = float((spent if runs is None else spent[~runs]).sum())
        outcome.waste = float(since(now, pick(jobs.start, wasted)).sum())
        outcome.processing_waste = float(spent[wasted].sum())

        discarded = Fate.OVER if outcome.succeeded else Fate.FAILED
        thrown = int(np.count_nonzero(reported & wastes))
        fates[discarded] += thrown
        # A report that came together with the last one of a target was one too many.
        over = int(np.count_nonzero(jobs.arrival <= now)) - reports
        if over and runs is not None:
            over = int(np.count_nonzero(wastes & ~reported & (jobs.arrival <= now)))
        fates[Fate.OVER] += over
        fates[unfinished] += len(wasted) - thrown - over
        if lost is not None:
            fates[unfinished] -= np.count_nonzero(lost)
        outcome.reports = reports
        outcome.used = len(used.coefficient)
        if outcome.used:
            self._merge(outcome, jobs, used)
        kept = _NOBODY if keeps is None else np.flatnonzero(keeps)
        if self._keeping or len(kept):
            self._keep(outcome, jobs, kept, runs, used, spent, discarded, carried)

        running = _NO_JOBS if runs is None else jobs.take(np.flatnonzero(runs))
        ledger.busy[:] = False
        ledger.busy[running.client] = True
        ledger.now = now
        ledger.round += 1
        ledger.version += int(outcome.succeeded)
        outcome.version = ledger.version
        outcome.age = now - float(ledger.last_start.sum()) / ledger.clients
        return running, kept

    def _lost(
        self, outcome: Outcome, jobs: Running, reported: Mask, refused: Mask | None
    ) -> Mask | None:
        """Book the jobs that will never report and are known to: which they are, None if none."""
        now = outcome.closed
        never = np.isinf(jobs.arrival)
        if not never.any():
            return None
        absent = np.isinf(jobs.stop)
        lost = never & ~reported & ((jobs.stop <= now) | absent)  # who crashes later is at work
        absent &= lost
        outcome.absent_waste = float(since(now, jobs.start[absent]).sum())
        outcome.fates[Fate.ABSENT] += np.count_nonzero(absent)
        outcome.fates[Fate.CRASHED] += np.count_nonzero(lost & ~absent)
        if refused is not None:
            outcome.fates[Fate.CRASHED] -= np.count_nonzero(refused)
            outcome.fates[Fate.REFUSED] += np.count_nonzero(refused)
        return lost

    @property
    def _keeping(self) -> bool:
        return bool(self.ledger.local.any() or self.kept.held.any())

    def _merge(self, outcome: Outcome, jobs: Running, used: Used) -> None:
        """Reset the ages of those who are in the update; their kept jobs are in it too."""
        ledger, kept, fresh = self.ledger, self.kept, used.jobs
        clients = (
            np.concatenate([jobs.client[fresh], used.held])
            if len(used.held)
            else jobs.client[fresh]
        )
        self.area[clients] += self._since(clients, outcome.closed)
        self.settled[clients] = outcome.closed
        ledger.last_start[jobs.client[fresh]] = pick(jobs.start, fresh)
        ledger.last_start[used.held] = kept.start[used.held]
        ledger.last_round[clients] = ledger.round
        ledger.merged[clients] += 1
        self.weight[clients] += used.coefficient

        began = pick(jobs.version, fresh)
        if jobs.local.any():
            began = np.where(jobs.local[fresh], kept.version[jobs.client[fresh]], began)
        stale = int(np.count_nonzero(began != ledger.version))
        outcome.fates[Fate.FRESH] += len(fresh) - stale
        outcome.fates[Fate.STALE] += stale
        if not self._keeping:
            return
        # A newer report that began from the global model takes the place of a kept one.
        self._drop(outcome, jobs.client[fresh][~jobs.local[fresh]])
        for_stale = kept.version[clients] != ledger.version
        pending = kept.pending[clients]
        outcome.fates[Fate.FRESH] += pending[~for_stale].sum()
        outcome.fates[Fate.STALE] += pending[for_stale].sum()
        self._clear(clients)

    def _keep(
        self,
        outcome: Outcome,
        jobs: Running,
        index: Indices,
        runs: Mask | None,
        used: Used,
        spent: Floats,
        fate: Fate,
        carried: Carried,
    ) -> None:
        """Keep the reports of the jobs at ``index``, and what was kept before if it may stay."""
        ledger, kept = self.ledger, self.kept
        open_ = np.ones(len(jobs), dtype=bool)
        open_[used.jobs] = False
        clients, local, open_ = jobs.client[index], jobs.local[index], open_[index]
        newly = np.zeros(ledger.clients, dtype=bool)
        newly[clients] = True
        had = ledger.local | kept.held
        stays = carried.kept if isinstance(carried.kept, np.ndarray) else np.full(1, carried.kept)
        # What a client is going on from cannot be taken from it while it runs.
        going_on = np.zeros(ledger.clients, dtype=bool)
        if runs is not None:
            going_on[jobs.client[runs & jobs.local]] = True
        self._drop(outcome, np.flatnonzero(had & ~newly & ~stays & ~going_on))
        self._drop(outcome, clients[~local])
        kept.version[clients[~local]] = jobs.version[index][~local]
        kept.pending[clients] += open_
        kept.charge[clients] += np.where(open_, outcome.closed - jobs.start[index], 0.0)
        kept.spent[clients] += np.where(open_, spent[index], 0.0)
        kept.fate[clients] = fate
        kept.start[clients] = jobs.start[index]
        kept.round[clients] = jobs.round[index]
        kept.arrived[clients] = jobs.arrival[index]
        code = carried.jobs[index] if isinstance(carried.jobs, np.ndarray) else int(carried.jobs)
        kept.held[clients] = np.bitwise_and(code, int(HOLD)) != 0
        ledger.local[clients] = np.bitwise_and(code, int(LOCAL)) != 0

    def _drop(self, outcome: Outcome, clients: Indices) -> None:
        """Throw away what clients have kept: now its jobs have their fate, and are charged."""
        kept = self.kept
        some = clients[kept.pending[clients] > 0]
        outcome.waste += float(kept.charge[some].sum())
        outcome.processing_waste += float(kept.spent[some].sum())
        np.add.at(outcome.fates, kept.fate[some], kept.pending[some])
        self._clear(clients)

    def _clear(self, clients: Indices) -> None:
        kept = self.kept
        kept.held[clients] = False
        kept.pending[clients] = 0
        kept.charge[clients] = 0.0
        kept.spent[clients] = 0.0
        self.ledger.local[clients] = False


def checked(policy: Policy, merge: Merge, reports: Reports) -> Merge:
    """A policy's merge, which must have a coefficient for each report."""
    if merge.coefficient.shape != (len(reports),):
        raise InputError(
            f"The policy {policy.name} must give each of the {len(reports)} reports a "
            f"coefficient. Got {merge.coefficient!r}."
        )
    return merge


def as_closed(
    succeeded: bool, jobs: Running, reported: Mask, used: Used, reports: Reports | None
) -> Closed:
    """What the server knows of a closed round: not when others would have arrived."""
    is_used = np.zeros(len(jobs), dtype=bool)
    is_used[used.jobs] = True
    known = Jobs(jobs.client, jobs.start, jobs.version, jobs.round, jobs.local)
    arrived = np.where(reported, jobs.arrival, np.nan)
    return Closed(succeeded, known, reported, is_used, arrived, reports)


def _asked(carried: Carried, what: Carry, among: Mask) -> Mask | None:
    """For which of some jobs a policy asked this; None: for none of all."""
    if isinstance(carried.jobs, np.ndarray):
        asked = among & (np.bitwise_and(carried.jobs, int(what)) != 0)
        return asked if asked.any() else None
    return among if carried.jobs & what else None
