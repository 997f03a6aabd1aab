"""The model again from the log: every report trained anew, every update merged anew.

If the training function gives the same arrays for the same job, as it does where it draws from
``job.rng()`` and sums in a fixed order, the replayed model is the served one to the bit. A log from
which a round, a report or a coefficient is missing gives another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cafe.errors import InputError
from cafe.live.aggregation import Combine
from cafe.live.client_work import ClientContext, LocalModel, Train, work
from cafe.live.global_model import GlobalModel
from cafe.live.job_records import REUSED, JobRecord, digest
from cafe.live.model_layout import Vector
from cafe.live.run_log import read_jobs, read_rounds
from cafe.live.wire import Order
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import ONE_STEP, Work


@dataclass(frozen=True, eq=False)
class Replayed:
    """What a replay came to.

    Attributes:
        model: the vector after the last update.
        updates: how many there were.
        reports: how many were in them.
        differing: the records whose report came out otherwise than it was when it was let in.
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
    """Go through a run's log and do all that counted again.

    Merges of updates are replayed, of policies that add them to the model; not server optimisers,
    nor vectors that clients add to their gradients: reports that used them differ.

    Args:
        folder: of the run.
        model: the arrays it began with.
        train: the clients' training function.
        settings: from a client's name to what it was set up with.
        seed: of the run.
        work_done: what jobs did of which the log does not say it, as in runs of older versions.
        combine: how updates were put together.
    """
    global_model = GlobalModel(
        {name: np.asarray(array) for name, array in model.items()}, combine, None
    )
    by_version = _merged(read_jobs(folder))
    reports = 0
    differing: list[JobRecord] = []
    used: dict[tuple[int, int], Vector] = {}  # each client's last report, which may be used again
    successes = [outcome for outcome in read_rounds(folder) if outcome.succeeded]
    if [outcome.version for outcome in successes] != [*range(1, len(successes) + 1)]:
        raise InputError("The log must have one successful round for every version. It has not.")
    for outcome in successes:
        chains = by_version.get(outcome.version, [])
        if len(chains) != outcome.used:
            raise InputError(
                f"The log must have the {outcome.used} reports of version {outcome.version}. Got "
                f"{len(chains)}."
            )
        updates = []
        for chain in chains:
            last = chain[-1]
            if last.fate == REUSED:
                update = used[last.client, last.invitation]
            else:
                update = _again(chain, global_model, train, settings, seed, work_done)
                if digest(update) != last.digest:
                    differing.append(last)
                used = {k: u for k, u in used.items() if k[0] != last.client}
                used[last.client, last.invitation] = update
            updates.append(update)
        coefficient = np.array([chain[-1].coefficient for chain in chains], dtype=float)
        began = [chain[0].version for chain in chains]
        if not global_model.move(outcome.version - 1, updates, began, Merge(coefficient)):
            raise InputError(f"Version {outcome.version} would have numbers that are not finite.")
        reports += len(chains)
    return Replayed(global_model.versions[len(successes)], len(successes), reports, differing)


def _merged(records: list[JobRecord]) -> dict[int, list[list[JobRecord]]]:
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


def _asked(record: JobRecord, work_done: Work) -> Work:
    """The work of a job; where time limited it, with the steps that its client reported."""
    if not record.work:
        return work_done
    work = Work(**record.work)
    if (work.seconds is not None or work.partial) and record.steps is not None:
        return replace(work, steps=max(record.steps, 1), epochs=None, seconds=None, partial=False)
    return work


def _again(
    chain: list[JobRecord],
    global_model: GlobalModel,
    train: Train,
    settings: Callable[[str], Mapping[str, Any]],
    seed: int,
    work_done: Work,
) -> Vector:
    """One client's jobs, one after the other."""
    local_models: tuple[LocalModel, ...] = ()
    update: Mapping[str, Any] = {}
    for record in chain:
        order = Order(
            record.name,
            record.client,
            record.round,
            record.version,
            seed,
            _asked(record, work_done),
            carry=True,
            after=local_models[-1].invitation if local_models else None,
            began=record.version if local_models else None,
            invitation=record.invitation,
        )
        report, local_models = work(
            train,
            order,
            global_model.arrays(record.version),
            ClientContext(run="again", settings=settings(record.name)),
            local_models=local_models,
        )
        assert report is not None
        update = report.update
    return global_model.layout.flat(update)
