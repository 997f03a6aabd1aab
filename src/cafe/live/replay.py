"""Replay: compute the model again from the log, with every job trained and merged again.

If the training function returns the same arrays for the same job, as it does if it draws from
``job.rng()`` and sums in a fixed order, the replayed model equals that of the run bit for bit. It
differs if a round, a report or a coefficient is missing in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cafe.errors import InputError
from cafe.live.aggregation import Combine, GlobalModel
from cafe.live.client_work import ClientContext, LocalModel, Train, work
from cafe.live.clipping import scaled
from cafe.live.job_records import REUSED, JobRecord, Key, digest
from cafe.live.model_layout import Vector
from cafe.live.run_log import read_jobs, read_rounds
from cafe.live.wire import Order
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import ONE_STEP, Work


@dataclass(frozen=True, eq=False)
class Replayed:
    """The result of a replay.

    Attributes:
        model: the vector after the last update.
        updates: how many updates there were.
        reports: how many reports were in them.
        differing: the records whose replayed update differs from the one that was accepted.
    """

    model: Vector
    updates: int
    reports: int
    differing: list[JobRecord]


def replay(
    folder: str | Path,
    model: Mapping[str, Any],
    train: Train,
    settings: Callable[[str], Mapping[str, Any]],
    *,
    seed: int = 0,
    work_done: Work = ONE_STEP,
    combine: Combine | None = None,
) -> Replayed:
    """Repeat all jobs and merges in a run's log.

    Policies that add updates to the model can be replayed. Server optimisers, and vectors that
    clients add to their gradients, are not replayed: reports that used them differ.

    Args:
        folder: the run's folder.
        model: the initial arrays.
        train: the clients' training function.
        settings: from a client's name to its settings.
        seed: the run's seed.
        work_done: the work of jobs whose work is not in the log, as in runs of older versions.
        combine: how updates were combined.
    """
    arrays = {name: np.asarray(array) for name, array in model.items()}
    global_model = GlobalModel(arrays, combine)
    again = _Jobs(global_model, train, settings, seed, work_done)
    by_version = _merged_chains(read_jobs(folder))
    reports = 0
    successes = [outcome for outcome in read_rounds(folder) if outcome.succeeded]
    versions = [outcome.version for outcome in successes]
    if versions != [*range(1, len(successes) + 1)]:
        raise InputError(
            "The log must have one successful round for every version, in order. Got rounds for "
            f"versions {versions}."
        )
    for outcome in successes:
        chains = by_version.get(outcome.version, [])
        if len(chains) != outcome.used:
            raise InputError(
                f"The log must have the {outcome.used} reports of version {outcome.version}. Got "
                f"{len(chains)}."
            )
        updates = [again.update(chain) for chain in chains]
        coefficient = np.array([chain[-1].coefficient for chain in chains], dtype=float)
        began = [chain[0].version for chain in chains]
        if not global_model.move(outcome.version - 1, updates, began, Merge(coefficient)):
            raise InputError(f"Version {outcome.version} would contain NaN or infinity.")
        reports += len(chains)
    last = global_model.versions[len(successes)]
    return Replayed(last, len(successes), reports, again.differing)


def _merged_chains(records: list[JobRecord]) -> dict[int, list[list[JobRecord]]]:
    """The chains of jobs in each version, in the order in which they were merged."""
    found: dict[int, list[list[JobRecord]]] = {}
    open_: dict[int, list[JobRecord]] = {}
    for record in records:
        if record.merged is None:
            continue
        open_.setdefault(record.client, []).append(record)
        if record.coefficient is not None:
            found.setdefault(record.merged, []).append(open_.pop(record.client))
    return found


@dataclass(eq=False)
class _Jobs:
    """Does the jobs of a log again."""

    model: GlobalModel
    train: Train
    settings: Callable[[str], Mapping[str, Any]]
    seed: int
    work_done: Work

    def __post_init__(self) -> None:
        self.differing: list[JobRecord] = []
        self._last: dict[Key, Vector] = {}  # each client's last report, which may be used again

    def update(self, chain: list[JobRecord]) -> Vector:
        """The update of a chain of jobs."""
        last = chain[-1]
        if last.fate == REUSED:
            return self._last[last.key]
        update = self._train(chain)
        if digest(update) != last.digest:
            self.differing.append(last)
        self._last = {key: kept for key, kept in self._last.items() if key[0] != last.client}
        self._last[last.key] = update if last.clipped is None else scaled(update, last.clipped)
        return self._last[last.key]

    def _train(self, chain: list[JobRecord]) -> Vector:
        local_models: tuple[LocalModel, ...] = ()
        update: Mapping[str, Any] = {}
        for record in chain:
            order = Order(
                record.name,
                record.client,
                record.round,
                record.version,
                self.seed,
                self._work(record),
                carry=True,
                after=local_models[-1].invitation if local_models else None,
                began=record.version if local_models else None,
                invitation=record.invitation,
            )
            report, local_models = work(
                self.train,
                order,
                self.model.arrays(record.version),
                ClientContext(run="replay", settings=self.settings(record.name)),
                local_models=local_models,
            )
            assert report is not None
            update = report.update
        return self.model.layout.flat(update)

    def _work(self, record: JobRecord) -> Work:
        """The work of a job; if time limited the job, with the steps that its client reported."""
        if not record.work:
            return self.work_done
        asked = Work(**record.work)
        if (asked.seconds is not None or asked.partial) and record.steps is not None:
            steps = max(record.steps, 1)
            return replace(asked, steps=steps, epochs=None, seconds=None, partial=False)
        return asked
