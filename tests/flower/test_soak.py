"""A short soak test: some faults, after which every order and round is accounted for."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from cafe.live.job_records import JobRecord
from cafe.results import events
from tests.support.flower.accounts import ClientNotes, check_orders, honest_and_refused
from tests.support.flower.announcements import Announcements
from tests.support.flower.proxied_lab import proxied_federation
from tests.support.flower.soak import POLICIES, RATES, soak
from tests.support.flower.soak_page import total_faults
from tests.support.flower.waiting import unhurried


@pytest.mark.federation
def test_short_soak_accounts_for_every_order() -> None:
    """A run of each policy; in the first the server is killed, in the second the SuperLink."""
    faults = ("bad", "server", "cut", "superlink", "unresponsive", "leave")
    with proxied_federation(3, RATES) as proxied:
        found = soak(
            proxied,
            dict.fromkeys(POLICIES, 3),
            seed=7,
            deadline=unhurried(4.0),
            apart=(1.0, 2.0),
            faults=faults,
        )
    assert found["servers_started"] >= 5  # two were killed
    assert found["servers_ended_by_themselves"] == []
    assert total_faults(found) >= 10
    assert [*found["runs"]] == [*POLICIES]
    for run in found["runs"].values():
        assert run["rounds"] == 3
        assert run["announced_and_lost"] == 0
        assert run["replay_equals_model"]
        assert run["replayed_reports"] == run["reports_used"] > 0
    assert sum(run["interrupted_rounds"] for run in found["runs"].values()) >= 1


def write_rounds(folder: Path, *closed: float) -> None:
    """A log of successful rounds that closed at these times."""
    rounds = [
        {"round": k, "succeeded": True, "version": k + 1, "closed": at}
        for k, at in enumerate(closed)
    ]
    (folder / events.NAME).write_text("".join(f"{json.dumps(r)}\n" for r in rounds))


def write_live(folder: Path, version: int, now: float = 0.0, **ages: tuple[int, float]) -> None:
    """A ``live.json`` with merges and ages of clients."""
    clients = [{"name": name, "merged": m, "age": age} for name, (m, age) in ages.items()]
    live: dict[str, Any] = {"state": "open", "version": version, "now": now, "clients": clients}
    (folder / "live.json").write_text(json.dumps(live))


def test_announced_version_that_changes_counts_as_lost(tmp_path: Path) -> None:
    said = Announcements(tmp_path)
    write_rounds(tmp_path, 1.0, 2.0)
    for version in (1, 2):
        write_live(tmp_path, version)
        said.watch()
    write_rounds(tmp_path, 1.0, 2.0, 3.0)
    assert said.lost() == []
    write_rounds(tmp_path, 1.0, 2.5, 3.0)
    assert said.lost() == [2]
    write_live(tmp_path, 4)  # the log does not have it
    said.watch()
    assert said.lost() == [2, 4]
    said.note_kill()  # there is no checkpoint
    assert said.lost() == [1, 2, 4]


@pytest.mark.parametrize(
    ("now", "ages", "found"),
    [
        (11.0, {"a": (1, 5.0), "b": (0, 11.0)}, 0),
        (11.0, {"a": (2, 2.0), "b": (0, 11.0), "c": (0, 0.5)}, 0),  # merged again; c has joined
        (9.0, {"a": (1, 3.0), "b": (0, 9.0)}, 1),  # the clock
        (11.0, {"a": (1, 4.0), "b": (0, 11.0)}, 1),  # younger without a merge
        (11.0, {"a": (2, 6.0), "b": (0, 11.0)}, 1),  # older than the last merge
        (11.0, {"a": (0, 11.0), "b": (0, 11.0)}, 1),  # a merge is forgotten
    ],
)
def test_times_that_go_back_are_found(
    tmp_path: Path, now: float, ages: dict[str, tuple[int, float]], found: int
) -> None:
    said = Announcements(tmp_path)
    write_live(tmp_path, 0, 10.0, a=(1, 4.0), b=(0, 10.0))
    said.watch()
    write_live(tmp_path, 0, now, **ages)
    said.watch()
    assert len(said.backwards) == found


JOB = JobRecord(0, "7", 2, 0, False, 0.0, fate="fresh", arrived=1.0, invitation=4)
LATE = replace(JOB, fate="late", arrived=None, invitation=5)
NOTES = ClientNotes(Counter({("7", 4): 1, ("7", 5): 2}), {("7", 4)})


@pytest.mark.parametrize(
    ("jobs", "still_open", "notes", "why"),
    [
        ([JOB, LATE], set(), NOTES, ""),
        ([JOB], {("7", 5)}, NOTES, ""),
        ([JOB], set(), NOTES, "have no fate"),
        ([JOB, LATE, JOB], set(), NOTES, "two fates"),
        ([JOB, LATE], {("7", 5)}, NOTES, "two fates"),
        ([replace(LATE, arrived=1.0)], set(), ClientNotes(), "not trained by the client"),
        ([replace(LATE, reason="function failed: x")], set(), ClientNotes(), "instruction to fail"),
    ],
)
def test_order_without_its_one_fate_is_found(
    jobs: list[JobRecord], still_open: set[tuple[str, int]], notes: ClientNotes, why: str
) -> None:
    expected = pytest.raises(AssertionError, match=why) if why else nullcontext()
    with expected:
        check_orders(jobs, still_open, notes)


def test_refused_honest_client_is_found() -> None:
    jobs = [replace(LATE, fate="refused", invitation=k) for k in (4, 5)]
    notes = ClientNotes(told={("7", 4): "nan", ("7", 5): "received"})
    assert honest_and_refused(jobs, notes) == jobs[1:]
