"""The books: the fate of every job, the waste, and the age of every client, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.engine.closing_round import FAILED, OVER, ClosingRound, each_once, fate_counts
from cafe.engine.fates import NO_CLIENTS, JobFates, spent_on
from cafe.engine.kept_reports import KeptReports
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.learn.base import Score
from cafe.rounds.answers import HOLD, LOCAL
from cafe.rounds.history import Column, Curve, History
from cafe.rounds.jobs import (
    Codes,
    Mask,
    Reports,
    Running,
    Whole,
    constant_column,
    take_rows,
)
from cafe.rounds.ledger import Ledger, LedgerColumns
from cafe.rounds.outcome import OPEN
from cafe.rounds.policy_changes import PolicyChange


@dataclass(eq=False)
class Books:
    """The accounting of a run.

    Attributes:
        columns: the ledger's arrays. Only the books write to them.
        ledger: what policies see of the arrays.
        kept: the reports and local models that clients keep.
        area: each client's age, integrated over time up to ``settled``.
        settled: the time up to which each client's age is integrated.
        weight: the sum of each client's coefficients.
        joined: when each client joined; its age is counted from then.
    """

    columns: LedgerColumns
    ledger: Ledger
    kept: KeptReports
    area: Floats
    settled: Floats
    weight: Floats
    joined: Floats

    @classmethod
    def new(cls, examples: Whole) -> Books:
        """The books before the first round, of clients with these numbers of examples."""
        n, columns = len(examples), LedgerColumns.new(examples)
        return cls(columns, Ledger(columns), KeptReports.none(n), *(np.zeros(n) for _ in range(4)))

    def admit(self, examples: Whole) -> None:
        """Add clients with these numbers of examples. Their age begins now."""
        new, count = LedgerColumns.new(examples), len(examples)
        new.last_start += self.ledger.now
        for column in fields(new):
            pair = (getattr(self.columns, column.name), getattr(new, column.name))
            setattr(self.columns, column.name, np.concatenate(pair))
        self.ledger.attach(self.columns)
        self.kept = self.kept.then(KeptReports.none(count))
        zero, now = np.zeros(count), np.full(count, self.ledger.now)
        for name, more in (("area", zero), ("settled", now), ("weight", zero), ("joined", now)):
            setattr(self, name, np.concatenate([getattr(self, name), more]))

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
        policy_changes: Sequence[PolicyChange] = (),
    ) -> History:
        """The history of a run with these books.

        Args:
            policy: the text of the policy.
            seed: the seed of the run.
            by_round: its rounds, as an array per field.
            running: the jobs that are still running.
            scores: the scores of its model, each with the number of rounds before it; None without
                a task.
            model: the parameters of its last model; None without a task.
            policy_changes: how its controller changed the policy.
        """
        return History(
            policy=policy,
            seed=seed,
            by_round=by_round,
            age_by_client=self.age_by_client,
            merged_by_client=self.columns.merged.copy(),
            weight_by_client=self.weight.copy(),
            open_jobs=len(running) + int(self.kept.pending.sum()),
            curve=None if scores is None else Curve.of(scores, by_round),
            model=model,
            policy_changes=(*policy_changes,),
        )

    def offer(self, jobs: Running, index: Indices) -> tuple[Reports, Indices]:
        """What a merge is offered: the reports of some jobs, followed by held reports.

        Args:
            jobs: the jobs of the round.
            index: those of them that have reported.

        Returns:
            The reports, and the clients whose held reports are among them, in this order. A held
            report of a client that has reported again is not offered.
        """
        held = self._held(jobs, index)
        kept, version, steps, trained = self.kept, jobs.version, jobs.steps, jobs.trained
        if jobs.local.any():
            version = np.where(jobs.local, kept.version[jobs.client], version)
            steps = np.where(jobs.local, kept.steps[jobs.client], 0) + steps
            trained = np.where(jobs.local, kept.seconds[jobs.client], 0.0) + spent_on(jobs)
        fresh = (
            jobs.client,
            jobs.start,
            version,
            jobs.round,
            jobs.local,
            jobs.invitation,
            steps,
            jobs.note,
            jobs.arrival,
            trained,
        )
        if not len(held):
            found: list[Any] = [take_rows(column, index) for column in fresh]
            found.append(constant_column(np.int64(0), len(index)))
            return Reports(*found), held
        old = (
            held,
            kept.start[held],
            kept.version[held],
            kept.round[held],
            np.ones(len(held), dtype=bool),
            kept.invitation[held],
            kept.steps[held],
            kept.note[held],
            kept.arrived[held],
            kept.seconds[held],
        )
        both: list[Any] = [np.concatenate([a[index], b]) for a, b in zip(fresh, old, strict=True)]
        both.append(np.concatenate([np.zeros(len(index), dtype=np.int64), kept.used[held]]))
        return Reports(*both), held

    def _held(self, jobs: Running, index: Indices) -> Indices:
        """The clients whose held reports are offered."""
        if not self.kept.held.any():
            return NO_CLIENTS
        waiting = self.kept.held.copy()
        waiting[jobs.client[index]] = False
        return np.flatnonzero(waiting)

    def _since(self, clients: Indices | slice, now: float) -> Floats:
        """The integral of the age since ``settled``, the area of a trapezium.

        It is (now - settled) ((now + settled) / 2 - last start), computed in place, because the
        vectors may be long.
        """
        before = self.settled[clients]
        height = now + before
        height /= 2
        height -= self.columns.last_start[clients]
        height *= now - before
        return height

    def close(self, closing: ClosingRound) -> JobFates:
        """Book a closed round, fill in its outcome, and move the clock to its close."""
        outcome, columns, ledger = closing.outcome, self.columns, self.ledger
        outcome.reports = int(np.count_nonzero(closing.reported))
        outcome.used = len(closing.used.coefficient)
        simple = closing.simple and not self._any_kept
        fates = self._close_simply(closing) if simple else self._close_all(closing)
        if closing.runs is not None:
            fates.running = closing.jobs.take(np.flatnonzero(closing.runs))
        ledger.forget_marks()
        columns.busy[:] = False
        columns.busy[fates.running.client] = True
        ledger.working = len(fates.running)
        ledger.now = outcome.closed
        ledger.round += 1
        ledger.version += int(outcome.succeeded)
        outcome.version = ledger.version
        outcome.age = outcome.closed - float(columns.last_start.sum()) / ledger.clients
        return fates

    def _close_simply(self, closing: ClosingRound) -> JobFates:
        """Book a round with at most two fates: one of all reports, and one of all other jobs.

        The result is that of the general case. With a million clients it takes half as long.
        """
        outcome, jobs, reported = closing.outcome, closing.jobs, closing.reported
        used, runs = closing.used, closing.runs
        mine = int(FAILED if not outcome.succeeded else OVER)
        rest = OPEN if runs is not None else int(closing.unfinished)
        if outcome.used:
            stale = take_rows(jobs.version, used.jobs) != self.ledger.version
            late = int(np.count_nonzero(stale))
            outcome.fates[0], outcome.fates[1] = outcome.used - late, late  # FRESH, STALE
            closing.charge_used(stale, late)
            self._credit(closing)
            wasted = NO_CLIENTS if runs is not None else np.flatnonzero(~reported)
        else:
            outcome.fates[mine] = outcome.reports
            wasted = np.arange(len(jobs)) if runs is None else np.flatnonzero(reported)
        if runs is None:
            outcome.fates[rest] += len(jobs) - outcome.reports
        closing.charge(wasted)
        work = outcome.work_by_fate
        if not outcome.used:
            work[mine] = closing.spent[reported].sum()
        if runs is None:
            work[rest] += (
                outcome.processing_waste if outcome.used else closing.spent[~reported].sum()
            )

        def fate() -> Codes:
            found = np.where(reported, np.int8(mine), np.int8(rest))
            if outcome.used:
                found[used.jobs] = stale
            return found

        return JobFates(fate)

    def _close_all(self, closing: ClosingRound) -> JobFates:
        """Book any round, by the fate of each of its jobs."""
        outcome, keeps = closing.outcome, closing.keeps
        fate = closing.fates()
        fates = JobFates(lambda: fate)
        if outcome.used:
            self._merge(closing, fates)
        closing.charge(np.flatnonzero(fate >= OVER))
        counts = fate_counts(fate)
        outcome.fates += counts
        closing.charge_fates(fate, counts)
        if keeps is not None:
            fates.kept = np.flatnonzero(keeps)
        if self._any_kept or keeps is not None:
            self._keep(closing, fates)
        return fates

    @property
    def keeping(self) -> Mask:
        """Which clients keep a report or a local model."""
        return self.columns.local | self.kept.held

    @property
    def _any_kept(self) -> bool:
        return bool(self.columns.local.any() or self.kept.held.any())

    def _merge(self, closing: ClosingRound, fates: JobFates) -> None:
        """Reset the ages of the clients in the update, and end the kept jobs that are in it."""
        self._credit(closing)
        outcome, jobs, used = closing.outcome, closing.jobs, closing.used
        kept, fresh = self.kept, used.jobs
        mine = jobs.client[fresh]
        began = take_rows(jobs.version, fresh)
        local = jobs.local[fresh] if jobs.local.any() else None
        if local is not None:
            began = np.where(local, kept.version[mine], began)
        fates.by_job[fresh] = began != self.ledger.version  # FRESH is 0, STALE is 1
        if not self._any_kept:
            return
        outcome.reused = int(np.count_nonzero(kept.used[used.held]))
        going_on = NO_CLIENTS if local is None else np.unique(mine[local])
        for some in (going_on, used.held):
            kept.end(outcome, fates, some, kept.version[some] != self.ledger.version)
        kept.used[used.held] += 1
        kept.clear(going_on, self.columns)
        # A newer report that began from the global model replaces a kept one.
        newer = mine if local is None else mine[~local]
        self.kept.drop(outcome, fates, each_once(newer) if closing.repeats else newer, self.columns)

    def _credit(self, closing: ClosingRound) -> None:
        """Reset the ages of the clients in the update, and count their merges."""
        outcome, jobs, used = closing.outcome, closing.jobs, closing.used
        columns, kept, fresh = self.columns, self.kept, used.jobs
        mine = jobs.client[fresh]
        clients = np.concatenate([mine, used.held]) if len(used.held) else mine
        self.area[clients] += self._since(clients, outcome.closed)
        self.settled[clients] = outcome.closed
        columns.last_start[mine] = take_rows(
            jobs.start, fresh
        )  # of several jobs of a client, the last one counts
        if len(used.held):
            columns.last_start[used.held] = kept.start[used.held]
        columns.last_round[clients] = self.ledger.round
        if closing.repeats:
            np.add.at(columns.merged, clients, 1)
            np.add.at(self.weight, clients, used.coefficient)
        else:
            columns.merged[clients] += 1
            self.weight[clients] += used.coefficient

    def _keep(self, closing: ClosingRound, fates: JobFates) -> None:
        """Keep the reports of some jobs, and drop earlier ones that the policy no longer keeps."""
        outcome, jobs, used = closing.outcome, closing.jobs, closing.used
        runs, carried, spent = closing.runs, closing.carried, closing.spent
        columns, kept, index = self.columns, self.kept, fates.kept
        in_update = np.zeros(len(jobs), dtype=bool)
        in_update[used.jobs] = True
        in_update = in_update[index]
        clients, local = jobs.client[index], jobs.local[index]
        newly = np.zeros(self.ledger.clients, dtype=bool)
        newly[clients] = True
        had = self.keeping
        stays = carried.kept if isinstance(carried.kept, np.ndarray) else np.full(1, carried.kept)
        # A local model is kept as long as a running job continues from it.
        going_on = np.zeros(self.ledger.clients, dtype=bool)
        if runs is not None:
            going_on[jobs.client[runs & jobs.local]] = True
        self.kept.drop(
            outcome, fates, np.flatnonzero(had & ~newly & ~stays & ~going_on), self.columns
        )
        self.kept.drop(outcome, fates, clients[~local], self.columns)
        kept.version[clients[~local]] = jobs.version[index][~local]
        kept.pending[clients] += ~in_update
        kept.charge[clients] += np.where(in_update, 0.0, outcome.closed - jobs.start[index])
        kept.spent[clients] += np.where(in_update, 0.0, spent[index])
        kept.fate[clients] = OVER if outcome.succeeded else FAILED
        kept.used[clients] = in_update
        for name in ("start", "round", "invitation", "note"):
            getattr(kept, name)[clients] = getattr(jobs, name)[index]
        kept.arrived[clients] = jobs.arrival[index]
        for column, more in ((kept.steps, jobs.steps), (kept.seconds, spent_on(jobs))):
            column[clients] = np.where(local, column[clients], 0) + more[index]
        code = carried.jobs[index] if isinstance(carried.jobs, np.ndarray) else int(carried.jobs)
        kept.held[clients] = np.bitwise_and(code, int(HOLD)) != 0
        columns.local[clients] = np.bitwise_and(code, int(LOCAL)) != 0
