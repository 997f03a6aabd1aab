"""FedBuff, FedAsync, Oort and SAFA on real nodes, one of which is slower than the others.

A slow client holds its report until the run has come to a certain point, so nothing here depends on
time. Each run's own records are compared with what the scheme says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from cafe.flower.lab import Lab
from cafe.live.client_work import ClientContext, LocalModel, work
from cafe.live.job_records import JobRecord, Key
from cafe.live.model_layout import Layout, Vector
from cafe.live.run_log import read_jobs, read_rounds
from cafe.live.wire import Order, Report
from cafe.results import checkpoint
from cafe.rounds.jobs import Work
from tests.support.flower.accounts import chaos, read_notes, served, trained_again
from tests.support.flower.database import query
from tests.support.flower.trial import NODES, PATIENT, Trial, id_of_node
from tests.support.flower.waiting import wait_until

pytestmark = pytest.mark.federation

ALL = [f"node-{k + 1}" for k in range(NODES)]
Start = Callable[..., Trial]


@pytest.fixture
def start(lab: Lab) -> Iterator[Start]:
    """Prepares the run of a recipe; in the end no client holds its report any more."""
    made: list[Trial] = []

    def prepare(recipe: str, updates: int, **arguments: Any) -> Trial:
        trial = Trial(lab, recipe, clients=NODES, updates=updates, wait=PATIENT)
        (trial.script / "policy.json").write_text(json.dumps([recipe, arguments]))
        made.append(trial)
        return trial

    yield prepare
    for trial in made:
        for node in ALL:
            trial.tell(node, "-")


def finish(trial: Trial) -> list[JobRecord]:
    """Wait until a run has finished, check its books, and return its jobs."""
    trial.finish()
    trial.conserved()
    return read_jobs(trial.out)


def stored(trial: Trial) -> dict[str, Any]:
    """The arrays of a run's checkpoint."""
    kept = checkpoint.read(trial.out / checkpoint.NAME)
    assert kept is not None
    return dict(kept.state)


class Again:
    """The versions of a run's model, with every used job trained again.

    Args:
        trial: a finished run.
        rule: the next version, from all versions, the jobs that it uses, and this object.
    """

    def __init__(
        self, trial: Trial, rule: Callable[[list[Vector], list[JobRecord], Again], Any]
    ) -> None:
        self.task = chaos()
        self.arrays = self.task.start()
        self.layout = Layout.of(self.arrays)
        self.partition = {id_of_node(trial.lab, node): k for k, node in enumerate(ALL)}
        self.jobs = [job for job in read_jobs(trial.out) if job.arrived is not None]
        self.done: dict[Key, tuple[Report, tuple[LocalModel, ...]]] = {}
        self.versions: list[Vector] = [self.layout.flat(self.arrays)]
        for version in range(1, sum(outcome.succeeded for outcome in read_rounds(trial.out)) + 1):
            used = [job for job in self.jobs if job.merged == version]
            following = rule(self.versions, used, self)
            self.versions.append(np.asarray(following, dtype=np.float32))

    def report(self, job: JobRecord) -> Report:
        """What the client of a job reported."""
        if job.key not in self.done:
            after, local_models = None, tuple[LocalModel, ...]()
            if job.carried:  # from the model that its last job left
                last = [j for j in self.jobs if j.client == job.client and j.start < job.start][-1]
                self.report(last)
                after, local_models = last.invitation, self.done[last.key][1]
            order = Order(
                job.name, job.client, job.round, job.version, 0, Work(**job.work), carry=True,
                after=after, began=job.version, invitation=job.invitation,
            )  # fmt: skip
            model = self.layout.unflat(self.versions[job.version], {})
            node = ClientContext("again", {"partition-id": self.partition[job.name]})
            report, kept = work(self.task.train, order, model, node, local_models=local_models)
            assert report is not None
            assert report.carried == job.carried
            self.done[job.key] = report, kept
        return self.done[job.key][0]

    def model(self, job: JobRecord) -> Vector:
        """The model of a job's client, which its update started from plus the update."""
        return self.versions[job.version] + self.layout.flat(self.report(job).update)


def staleness(job: JobRecord) -> int:
    """How many updates the model has had between a job's start and its use."""
    assert job.merged is not None
    return job.merged - 1 - job.version


def test_fedbuff(start: Start) -> None:
    """Two reports make an update; who reports gets a new job at once; a stale report counts less.

    The first client holds its first report until the others have made three updates.
    """
    trial = start("fedbuff", 4, concurrency=NODES, goal=2, deadline=PATIENT)
    trial.tell("node-1", "hold")
    for node in ALL[1:]:
        trial.tell(node, "-", "-", "hold", "hold")
    trial.submit()
    trial.wait(lambda now: now["version"] == 3)  # now all clients hold a report
    trial.tell("node-1", "-", "hold", "hold", "hold")
    trial.wait(lambda now: now["reports"] == 1)
    trial.tell("node-2", "-")
    jobs = finish(trial)

    rounds = read_rounds(trial.out)
    assert [(outcome.reports, outcome.used) for outcome in rounds] == [(2, 2)] * 4
    # At first all clients; then one for each report but the last one, which ended the run.
    assert [outcome.invited for outcome in rounds] == [NODES + 1, 2, 2, 2]
    first = trial.jobs("node-1")[0]
    assert (first.fate, first.version, first.merged) == ("stale", 0, 4)
    assert first.coefficient == pytest.approx(0.25)  # a half by the goal, a half by 1 / sqrt(1 + 3)
    for job in jobs:
        assert job.coefficient == pytest.approx((1 + staleness(job)) ** -0.5 / 2)
    replayed = trained_again(trial.out)
    assert not replayed.differing
    assert (replayed.updates, replayed.reports) == (4, 8)
    assert replayed.model.tobytes() == served(trial.out).tobytes()


def test_fedasync(start: Start) -> None:
    """Every report is an update: the model is mixed with the client's, less if that is stale.

    The first client holds its first report until the others have made four updates.
    """
    trial = start("fedasync", 6, concurrency=NODES, mixing=0.6, prox=0.5, deadline=PATIENT)
    trial.tell("node-1", "hold")
    for node in ALL[1:]:
        trial.tell(node, "-", "-", *["hold"] * 4)
    trial.submit()
    trial.wait(lambda now: now["version"] == 4)  # now all clients hold a report
    trial.tell("node-1", "-", *["hold"] * 5)
    trial.wait(lambda now: now["version"] == 5)
    trial.tell("node-2", "-")
    jobs = finish(trial)

    rounds = read_rounds(trial.out)
    assert [(outcome.reports, outcome.used) for outcome in rounds] == [(1, 1)] * 6
    assert [outcome.invited for outcome in rounds] == [NODES, 1, 1, 1, 1, 1]
    first = trial.jobs("node-1")[0]
    assert (first.fate, first.version, first.merged) == ("stale", 0, 5)
    for job in jobs:
        assert job.coefficient == pytest.approx(0.6 * (1 + staleness(job)) ** -0.5)

    def mix(versions: list[Vector], used: list[JobRecord], again: Again) -> Vector:
        (job,) = used
        share = 0.6 / np.sqrt(1 + len(versions) - 1 - job.version)
        return np.asarray((1 - share) * versions[-1] + share * again.model(job))

    again = Again(trial, mix)
    np.testing.assert_allclose(served(trial.out), again.versions[-1], atol=1e-6)


def test_oort(start: Start) -> None:
    """1.3 times the goal is invited; new clients come first; utilities are from clients' losses.

    The last client holds its report in the first round.
    """
    given = {"goal": 2, "preferred": 0.01, "increment": 0.25, "window": 1, "deadline": PATIENT}
    trial = start("oort", 4, **given)
    trial.tell("node-4", "hold", "-", "-", "-")
    trial.submit()
    trial.wait(lambda now: now["version"] >= 1)
    trial.tell("node-4", "-")
    jobs = finish(trial)

    rounds = read_rounds(trial.out)
    assert [(outcome.invited, outcome.used) for outcome in rounds] == [(3, 2)] * 4
    assert {job.fate for job in jobs if job.merged is None} <= {"cancelled", "over"}
    invited = [{job.client for job in jobs if job.round == k} for k in range(4)]
    used = [{job.client for job in jobs if job.merged == k + 1} for k in range(4)]
    assert {*range(NODES)} - used[0] < invited[1]  # the two clients that have not been used
    assert not any(job.merged for job in trial.jobs("node-4") if job.round == 0)  # it held it

    def mean(versions: list[Vector], used: list[JobRecord], again: Again) -> Vector:
        models = [again.model(job) for job in used]
        return np.asarray(np.mean(models, axis=0))  # all have the same number of examples

    again = Again(trial, mean)
    np.testing.assert_allclose(served(trial.out), again.versions[-1], atol=1e-6)
    replayed = trained_again(trial.out)
    assert not replayed.differing
    assert replayed.model.tobytes() == served(trial.out).tobytes()

    def utility(job: JobRecord) -> float:
        report = again.report(job)
        assert report.rms_loss is not None
        assert report.examples is not None
        return report.examples * report.rms_loss

    last = {job.client: job for job in jobs if job.merged is not None}
    utilities, seconds = stored(trial)["memory"]
    for client in range(NODES):
        expected = utility(last[client]) if client in last else 0.0
        assert utilities[client] == pytest.approx(expected, rel=1e-3)
        arrived = last[client].arrived if client in last else None
        expected = 0.0 if arrived is None else arrived - last[client].start
        assert seconds[client] == pytest.approx(expected, rel=1e-4)
    gained = [sum(utility(job) for job in jobs if job.merged == k + 1) for k in range(4)]
    longer = sum(after < before for before, after in pairwise(gained))
    state = json.loads(bytes(stored(trial)["meta"]))["state"]
    assert state["preferred"] == pytest.approx(0.01 + 0.25 * longer)


def test_safa(start: Start, tmp_path: Path) -> None:
    """The model is the mean of every client's last model; slow jobs run on; spare reports wait.

    One report of four is picked. Only the first client is fast: it reports in rounds 0 and 1, and
    round 1 lasts until another client reports. That one fails in round 2, and continues from its
    own model in round 3. The third client never reports.
    """
    trial = start("safa", 4, fraction=0.25, deadline=PATIENT)
    trial.settings["notes"] = f"{tmp_path}"
    trial.tell("node-1", "-", "-", "hold", "hold")
    for node in ALL[1:]:
        trial.tell(node, "hold")
    trial.submit()
    trial.wait(lambda now: (now["round"], now["reports"]) == (1, 1))
    trial.tell("node-4", "-", "-", "raise", "-")
    wait_for_failure(trial, "node-4", tmp_path)
    trial.tell("node-2", "-", "hold", "hold", "hold")
    jobs = finish(trial)

    by_node = {node: {job.round: job for job in trial.jobs(node)} for node in ALL}
    fates = {n: {k: (j.fate, j.merged) for k, j in found.items()} for n, found in by_node.items()}
    assert fates == {
        "node-1": {0: ("fresh", 1), 1: ("stale", 3)},  # the second waited for the next update
        "node-2": {0: ("stale", 3)},  # one job in three rounds
        "node-3": {},
        "node-4": {0: ("stale", 2), 2: ("crashed", None), 3: ("stale", 4)},
    }
    assert [job for job in jobs if job.carried] == [by_node["node-4"][3]]
    assert by_node["node-4"][3].version == 0  # its own model started from there
    assert [outcome.used for outcome in read_rounds(trial.out)] == [1, 1, 2, 1]

    caches: list[dict[int, Vector]] = [{}]

    def mean(versions: list[Vector], used: list[JobRecord], again: Again) -> Vector:
        cache = caches[-1] | {job.client: again.model(job) for job in used}
        caches.append(cache)
        models = [cache.get(client, versions[0]) for client in range(NODES)]
        return np.asarray(np.mean(models, axis=0))

    again = Again(trial, mean)
    np.testing.assert_allclose(served(trial.out), again.versions[-1], atol=1e-6)
    memory = stored(trial)["memory"]
    assert memory.shape == (NODES, len(again.versions[0]))
    for client in range(NODES):
        expected = caches[-1].get(client, again.versions[0])
        np.testing.assert_allclose(memory[client], expected, atol=1e-6)


def wait_for_failure(trial: Trial, node: str, notes: Path) -> None:
    """Wait until a client has raised an error and the server has fetched it.

    Until then the SuperLink keeps the order.
    """
    words = "SELECT message_id FROM message_ins WHERE dst_node_id = ? AND run_id = ?"

    def fetched() -> bool:
        told = "raise" in read_notes(notes).told.values()
        return told and not query(
            trial.lab, words, int(id_of_node(trial.lab, node)), int(trial.run)
        )

    wait_until(fetched, trial.log)
