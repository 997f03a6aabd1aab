"""What is checked after a soak test, and the page with its results."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cafe.live.job_records import JobRecord
from cafe.live.replay import Replayed, replay
from cafe.live.run_log import read_jobs, read_rounds
from cafe.results import checkpoint, events, load
from cafe.rounds.outcome import Fate
from tests.support.flower.trial import APP, read_live


@dataclass(frozen=True)
class FalseReports:
    """A client was instructed to send false reports, from one round to another."""

    node: str
    first: int
    last: int


@dataclass
class Notes:
    """What was done to a federation, and what its server announced meanwhile."""

    faults: Counter[str] = field(default_factory=Counter)
    false_reports: list[FalseReports] = field(default_factory=list)
    announced: dict[int, str] = field(default_factory=dict)  # version: its round's line in the log
    unsafe: set[int] = field(
        default_factory=set
    )  # announced, but not in the checkpoint of a killed server
    broken: list[str] = field(default_factory=list)  # nodes that could not be restored

    def watch(self, out: Path, now: dict[str, Any]) -> None:
        """Store the log line of the announced version: it must never change."""
        if now["version"] > 0 and now["version"] not in self.announced:
            self.announced[now["version"]] = _line(out, now["version"])

    def killed(self, out: Path) -> None:
        """Check that the checkpoint of a killed server contains every version that it announced."""
        self.watch(out, read_live(out))
        kept = checkpoint.read(out / checkpoint.NAME)
        safe = 0 if kept is None else int(json.loads(bytes(kept.state["meta"]))["version"])
        self.unsafe |= {version for version in self.announced if version > safe}

    def lost(self, out: Path) -> list[int]:
        """Announced versions that were not in a checkpoint, or whose log line has changed."""
        changed = {v for v, line in self.announced.items() if not line or _line(out, v) != line}
        return sorted(self.unsafe | changed)


def _line(out: Path, version: int) -> str:
    """The line of the round that produced a version; empty if there is none."""
    for text in (out / events.NAME).read_text().splitlines():
        try:
            line = json.loads(text)
        except ValueError:  # the last line may be incomplete
            continue
        if line.get("succeeded") and line["version"] == version:
            return text
    return ""


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


def accounts(out: Path, notes: Notes, nodes: Mapping[str, str]) -> dict[str, Any]:
    """Check the files of a finished soak, and return its figures.

    Args:
        out: the run's folder.
        notes: what was seen during the run.
        nodes: the name of each node, by its id.
    """
    history, jobs, rounds = load(out).history, read_jobs(out), read_rounds(out)
    assert [outcome.round for outcome in rounds] == [*range(len(rounds))]
    versions = [outcome.version for outcome in rounds if outcome.succeeded]
    assert versions == [*range(1, len(versions) + 1)]
    assert history.updates == len(versions)
    notes.watch(out, read_live(out))
    assert max(notes.announced, default=0) == len(versions)
    lost = notes.lost(out)
    assert not lost, f"versions {lost} were announced, and were not safe"
    assert not notes.broken, f"could not be restored: {notes.broken}"

    assert len({(job.client, job.round, job.invitation) for job in jobs}) == len(jobs), (
        "a job has two fates"
    )
    fates = Counter(job.fate for job in jobs)
    assert fates == Counter({k: v for k, v in history.fates.items() if v})
    without = sum(outcome.invited for outcome in rounds) - len(jobs) - history.open_jobs
    assert without == 0, f"{without} jobs have no fate"
    used = [job for job in jobs if job.coefficient is not None]
    assert len(used) == history.reports_used
    # The error of a client that was instructed to fail says so; no other client may fail.
    failed = [job for job in jobs if "function failed" in job.reason]
    unexpected = [job for job in failed if "told to fail" not in job.reason]
    assert not unexpected, f"failed without an instruction to fail: {unexpected}"
    wronged = honest_and_refused(jobs, notes.false_reports, nodes)
    assert not wronged, f"honest, and refused: {wronged}"

    again = trained_again(out)
    assert not again.differing, f"{len(again.differing)} reports differ from their digests"
    equal = again.model.tobytes() == served(out).tobytes()
    assert equal, "the replayed model differs"
    return {
        "rounds": history.rounds,
        "updates": history.updates,
        "faults": dict(sorted(notes.faults.items())),
        "faults_injected": sum(notes.faults.values()),
        "jobs": len(jobs),
        "fates": {fate.name.lower(): fates[fate.name.lower()] for fate in Fate},
        "reports_used": history.reports_used,
        "refused": fates["refused"],
        "refusals": refusals(jobs),
        "announced": len(notes.announced),
        "announced_and_lost": len(lost),
        "jobs_without_a_fate": without,
        "replayed_reports": again.reports,
        "replay_equals_model": equal,
        "accuracy": history.accuracy,
        "seconds": round(history.virtual_time, 1),
    }


def honest_and_refused(
    jobs: list[JobRecord], false_reports: list[FalseReports], nodes: Mapping[str, str]
) -> list[JobRecord]:
    """Refused reports of clients that sent no false reports within one round of it."""
    return [
        job
        for job in jobs
        if job.fate == "refused"
        and not any(
            each.node == nodes[job.name] and each.first - 1 <= job.round <= each.last + 1
            for each in false_reports
        )
    ]


def refusals(jobs: list[JobRecord]) -> dict[str, int]:
    """How many reports were rejected, by reason."""
    return dict(Counter(_kind(job.reason) for job in jobs if job.fate == "refused"))


def _kind(reason: str) -> str:
    """A reason without the values in it."""
    return re.split(r"[\d:,(]", reason)[0].strip()


def page(found: dict[str, Any]) -> str:
    """The figures as a page."""

    def rows(counts: dict[str, int]) -> list[str]:
        return [f"| {name} | {count} |" for name, count in counts.items() if count]

    lines = [
        "# Soak",
        "",
        f"{found['nodes']} real SuperNodes ran {found['rounds']} rounds of AGU in "
        f"{found['seconds'] / 60:.0f} minutes, with {found['faults_injected']} faults in a seeded "
        "order.",
        "`events.jsonl` and `jobs.jsonl` are the log of the run. This command wrote them and this",
        "page:",
        "",
        "```sh",
        found["command"],
        "```",
        "",
        "| | |",
        "| --- | --- |",
        f"| rounds that succeeded | {found['updates']} of {found['rounds']} |",
        f"| servers started, one after another | {found['servers_started']} |",
        f"| jobs, each with one fate | {found['jobs']} |",
        f"| jobs without a fate | {found['jobs_without_a_fate']} |",
        f"| reports used | {found['reports_used']} |",
        f"| reports refused | {found['refused']} |",
        f"| announced successes | {found['announced']} |",
        f"| of them, lost or changed later | {found['announced_and_lost']} |",
        f"| reports trained again from the log | {found['replayed_reports']} |",
        "| model trained again from the log | "
        + (
            "equal to the model of the run, to the bit |"
            if found["replay_equals_model"]
            else "differs |"
        ),
        f"| accuracy at the end | {found['accuracy']:.3f} |",
        "",
        "| fault | how often |",
        "| --- | --- |",
        *rows(found["faults"]),
        "",
        "| fate | jobs |",
        "| --- | --- |",
        *rows(found["fates"]),
        "",
        "| reason for a refused report | how often |",
        "| --- | --- |",
        *rows(found["refusals"]),
        "",
    ]
    return "\n".join(lines)
