"""What is checked after a run of the tests' app with faults."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cafe.live.job_records import RESTARTED, REUSED, JobRecord, count_fates
from cafe.live.replay import Replayed, replay
from cafe.live.run_log import read_jobs, read_rounds
from cafe.results import checkpoint, load
from cafe.rounds.outcome import Fate
from tests.support.flower.announcements import Announcements
from tests.support.flower.trial import APP, read_live

Order = tuple[str, int]  # the name of the client and the number of the invitation
# What clients are told to send and the server must refuse.
FALSE = (
    "nan", "inf", "shape", "dtype", "missing", "version", "replay", "examples", "text",
    "oversize", "pickle", "bomb", "empty", "extra",
)  # fmt: skip
DISCARDED = {fate.name.lower() for fate in Fate if fate >= Fate.OVER}


def chaos() -> Any:
    """The module ``task`` of the tests' app."""
    sys.path.insert(0, str(APP))
    try:
        return importlib.import_module("chaos.task")
    finally:
        sys.path.remove(str(APP))


def trained_again(out: Path) -> Replayed:
    """Replay a run of the app of the tests."""
    partition = {
        client["name"]: int(client["label"].removeprefix("node-")) - 1
        for client in read_live(out)["clients"]
        if client["label"]
    }
    task = chaos()
    return replay(out, task.start(), task.train, lambda name: {"partition-id": partition[name]})


def served(out: Path) -> np.ndarray[Any, Any]:
    """The model that a run ended with."""
    with np.load(out / "arrays.npz") as arrays:
        return np.concatenate([arrays["weight"].ravel(), arrays["bias"]])


@dataclass
class ClientNotes:
    """What the clients of a run have written: the orders that they got, and what they did.

    Attributes:
        received: how often each order was received.
        trained: the orders whose training ended.
        told: what the client was told to do, by order; "received" if nothing.
    """

    received: Counter[Order] = field(default_factory=Counter)
    trained: set[Order] = field(default_factory=set)
    told: dict[Order, str] = field(default_factory=dict)


def read_notes(folder: Path) -> ClientNotes:
    """The notes of all clients of a run."""
    found = ClientNotes()
    for path in sorted(folder.glob("*.jsonl")):
        for line in map(json.loads, path.read_text().splitlines()):
            order = (line["client"], line["invitation"])
            if line["did"] == "trained":
                found.trained.add(order)
                continue
            found.received[order] += 1
            found.told[order] = line["did"].removeprefix("told ")
    return found


def accounts(said: Announcements, notes: Path) -> dict[str, Any]:
    """Check the files of a finished run, and return its figures.

    Args:
        said: what its servers have announced.
        notes: the folder of its clients' notes.
    """
    out = said.out
    history, lines, seen = load(out).history, read_jobs(out), read_notes(notes)
    jobs = [job for job in lines if job.fate != REUSED]
    _check_rounds(said, out)
    check_orders(jobs, open_orders(out), seen)
    _check_books(out, lines)
    again = trained_again(out)
    assert not again.differing, f"{len(again.differing)} reports differ from their digests"
    equal = again.model.tobytes() == served(out).tobytes()
    assert equal, "the replayed model differs"
    interrupted = [job for job in jobs if job.reason == RESTARTED]
    return {
        "rounds": history.rounds,
        "updates": history.updates,
        "jobs": len(jobs),
        "open_jobs": history.open_jobs,
        "fates": dict(count_fates(jobs)),
        "orders_received": len(seen.received),
        "orders_received_twice": sum(count > 1 for count in seen.received.values()),
        "orders_trained": len(seen.trained),
        "interrupted_rounds": len({job.round for job in interrupted}),
        "interrupted_jobs": len(interrupted),
        "interrupted_jobs_trained": sum(order_of(job) in seen.trained for job in interrupted),
        "reports_used": history.reports_used,
        "reports_reused": history.reports_reused,
        "clipped": sum(job.clipped is not None for job in jobs),
        "refusals": refusals(jobs),
        "announced": len(said.versions),
        "announced_and_lost": len(said.lost()),
        "replayed_reports": again.reports,
        "replay_equals_model": equal,
        "accuracy": history.accuracy,
        "seconds": round(history.virtual_time, 1),
    }


def _check_rounds(said: Announcements, out: Path) -> None:
    """Every announced version is in the log, and no time has gone back."""
    rounds = read_rounds(out)
    assert [outcome.round for outcome in rounds] == [*range(len(rounds))]
    versions = [outcome.version for outcome in rounds if outcome.succeeded]
    assert versions == [*range(1, len(versions) + 1)]
    said.watch()
    assert max(said.versions, default=0) == len(versions)
    lost = said.lost()
    assert not lost, f"versions {lost} were announced, and were not safe"
    assert not said.backwards, said.backwards
    times = [time for outcome in rounds for time in (outcome.opened, outcome.closed)]
    assert times == sorted(times), "a round opened before the last one closed"


def order_of(job: JobRecord) -> Order:
    """What identifies the order of a job."""
    return job.name, job.invitation


def open_orders(out: Path) -> set[Order]:
    """The orders of jobs without a fate when the run ended: their reports are still kept."""
    kept = checkpoint.read(out / checkpoint.NAME)
    assert kept is not None
    meta = json.loads(bytes(kept.state["meta"]))
    records = [
        *meta["running"],
        *(record for chain in meta["pending"].values() for record in chain),
    ]
    return {(record["name"], record["invitation"]) for record in records}


def check_orders(jobs: list[JobRecord], still_open: set[Order], notes: ClientNotes) -> None:
    """Check that every order has one fate, and that it agrees with what the client has done.

    Args:
        jobs: all jobs with a fate.
        still_open: the orders of all other jobs.
        notes: what the clients have written.
    """
    fates = Counter(order_of(job) for job in jobs)
    twice = [order for order, count in fates.items() if count > 1 or order in still_open]
    assert not twice, f"orders with two fates: {twice}"
    unknown = [order for order in notes.received if order not in fates and order not in still_open]
    assert not unknown, f"clients received these orders, which have no fate: {unknown}"
    arrived = [job for job in jobs if job.arrived is not None]
    invented = [job for job in arrived if order_of(job) not in notes.trained]
    assert not invented, f"reported, and not trained by the client: {invented}"
    wronged = honest_and_refused(jobs, notes)
    assert not wronged, f"honest, and refused: {wronged}"
    # The error of a client that was told to fail says so; no other client may fail.
    failed = [job for job in jobs if "function failed" in job.reason]
    unexpected = [job for job in failed if "told to fail" not in job.reason]
    assert not unexpected, f"failed without an instruction to fail: {unexpected}"


def honest_and_refused(jobs: list[JobRecord], notes: ClientNotes) -> list[JobRecord]:
    """Refused jobs whose clients were not told to send a false report."""
    refused = [job for job in jobs if job.fate == "refused"]
    return [job for job in refused if notes.told.get(order_of(job)) not in FALSE]


def _check_books(out: Path, lines: list[JobRecord]) -> None:
    """Check the totals of a run against its jobs."""
    history, rounds, live = load(out).history, read_rounds(out), read_live(out)
    jobs = [job for job in lines if job.fate != REUSED]
    assert count_fates(jobs) == history.fates == live["fates"]
    without = sum(outcome.invited for outcome in rounds) - len(jobs) - history.open_jobs
    assert without == 0, f"{without} jobs have no fate"
    assert len(open_orders(out)) == history.open_jobs
    used = [job for job in lines if job.coefficient is not None]
    assert len(used) == history.reports_used == history.merged_by_client.sum()
    reused = [job for job in lines if job.fate == REUSED]
    assert len(reused) == history.reports_reused
    # No job runs longer than its round, so a discarded one is charged until its round has closed.
    for outcome in rounds:
        ended = [job for job in jobs if job.booked == outcome.round and job.fate in DISCARDED]
        waste = sum(rounds[job.round].closed - job.start for job in ended)
        assert abs(waste - outcome.waste) < 1e-6, f"round {outcome.round}: waste {waste}, {outcome}"
    assert abs(live["waste"] - history.waste) < 1e-6
    assert history.by_round["work"].sum() >= history.by_round["processing_waste"].sum() - 1e-6


def refusals(jobs: list[JobRecord]) -> dict[str, int]:
    """How many reports were rejected, by reason."""
    return dict(Counter(_kind(job.reason) for job in jobs if job.fate == "refused"))


def _kind(reason: str) -> str:
    """A reason without the values in it."""
    return re.split(r"[\d:,(]", reason)[0].strip()
