"""The server dies at any step, or the power fails: announced rounds are kept, the run resumes."""

from __future__ import annotations

import copy
import itertools
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.errors import FileError
from cafe.live import server_config
from cafe.live.live_run import LiveRun
from cafe.live.order_log import NAME as ORDERS
from cafe.live.order_log import read_unsaved
from cafe.live.run_log import RunLog, read_jobs, read_rounds
from cafe.live.server import serve
from cafe.live.server_config import ServerConfig
from cafe.policies import agu, mcu
from cafe.results import checkpoint, load
from cafe.results.storage import AppendOnlyFile
from cafe.rounds.policy import Policy
from tests.support.chaos import picky
from tests.support.policies import refilling
from tests.support.serving import Killed, assert_sound, config
from tests.support.virtual_runs import VirtualWire, exponential

POLICIES = [
    agu(quorum=3, deadline=0.4, pool="union"),
    mcu(quorum=2, deadline=0.3, target=3, late="keep"),
    refilling(4, 3),
    picky(),
]
STEPS = ((os, "fsync"), (os, "replace"), (Path, "unlink"), (AppendOnlyFile, "flush"))
SUCCEEDED = re.compile(r"Round (\d+) succeeded: .* version (\d+)\.")


def wire() -> VirtualWire:
    return VirtualWire(exponential(5, 2.0), seed=3)


def given(policy: Policy, rounds: int = 3) -> ServerConfig:
    return config(policy, rounds=rounds, evaluate=lambda model: (1.0, 0.5))


@dataclass(eq=False)
class DiskImage:
    """What is left when the server is killed: its files, its clients, and its printed lines."""

    files: dict[str, bytes]
    wire: VirtualWire
    said: list[str]
    safe: dict[str, bytes]  # files as they would be found after a power cut

    def restore(self, folder: Path, power: bool) -> None:
        folder.mkdir()
        for name, data in (self.safe if power else self.files).items():
            (folder / name).write_bytes(data)


@dataclass(eq=False)
class DiskRecorder:
    """Stores a :class:`DiskImage` before every step that writes to the disk."""

    folder: Path
    wire: VirtualWire
    said: list[str] = field(default_factory=list)
    images: list[DiskImage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.synced: dict[str, bytes] = {}  # the synced content of each file, by its current name
        self.named: dict[str, bytes] = {}  # files whose names are synced too

    def on(self, patch: pytest.MonkeyPatch) -> None:
        for owner, name in STEPS:
            patch.setattr(owner, name, self.watched(getattr(owner, name), name))

    def watched(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        def step(*args: Any, **more: Any) -> Any:
            self.take()
            answer = original(*args, **more)
            if name == "fsync":
                self.sync(args[0])
            elif name == "replace":
                old, new = (Path(path).name for path in args)
                self.synced[new] = self.synced.pop(old, b"")
            return answer

        return step

    def files(self) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in self.folder.iterdir() if p.name != ".lock"}

    def sync(self, handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if path.is_dir():
            self.named = {name: self.synced.get(name, b"") for name in self.files()}
        else:
            self.synced[path.name] = path.read_bytes()
            if path.name in self.named:
                self.named[path.name] = self.synced[path.name]

    def take(self) -> None:
        files, safe = self.files(), {}
        for name, data in files.items():
            kept = self.named.get(name, b"")
            if name.endswith((".jsonl", ".csv")) and name in self.synced:
                kept = self.synced[name]  # it existed before, and was only appended to
                kept += data[len(kept) : (len(kept) + len(data)) // 2]
            if kept or name in self.named:
                safe[name] = kept
        self.images.append(DiskImage(files, copy.deepcopy(self.wire), list(self.said), safe))


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> dict[int, bytes]:
    """When each client's last merged job began, by round, as each checkpoint should have it."""
    found: dict[int, bytes] = {}
    original = RunLog.save

    def save(log: RunLog) -> None:
        ledger = log._run.ledger
        found[ledger.round] = ledger.last_start.tobytes()
        original(log)

    monkeypatch.setattr(RunLog, "save", save)
    return found


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[LiveRun]:
    """Every run that is made."""
    made: list[LiveRun] = []

    class Noted(LiveRun):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            made.append(self)

    monkeypatch.setattr(server_config, "LiveRun", Noted)
    return made


def record_images(
    folder: Path, policy: Policy, patch: pytest.MonkeyPatch, *, overwrite: bool = False
) -> list[DiskImage]:
    """Serve a run, with an image before every step."""
    recorder = DiskRecorder(folder, wire())
    folder.mkdir(exist_ok=True)
    with patch.context() as context:
        recorder.on(context)
        serve(recorder.wire, given(policy), folder, say=recorder.said.append, overwrite=overwrite)
    assert_sound(folder)
    return recorder.images


def assert_resumes(
    image: DiskImage,
    folder: Path,
    policy: Policy,
    power: bool,
    ages: dict[int, bytes],
    runs: list[LiveRun],
) -> None:
    image.restore(folder, power)
    kept = checkpoint.read(folder / checkpoint.NAME)
    saved = 0 if kept is None else json.loads(bytes(kept.state["meta"]))["round"]
    unsaved = read_unsaved(folder / ORDERS, saved)
    announced = [found.groups() for s in image.said if (found := SUCCEEDED.match(s))]
    was = dict(ages)
    restored: list[int] = []

    def say(sentence: str) -> None:
        if sentence.startswith("Resuming from round"):
            ledger = runs[-1].ledger
            restored.append(ledger.round)
            assert ledger.round == saved + bool(unsaved.records)
            assert ledger.last_start.tobytes() == was.get(saved, bytes(8 * ledger.clients))
            assert runs[-1].now() > clock_before(image, power) - 1e-9
            assert f"round {ledger.round}, version {ledger.version}." in sentence

    before = read_rounds(folder) if kept is not None else []
    at = copy.deepcopy(image.wire)
    at.t += 50.0  # no server ran meanwhile
    history = serve(at, given(policy), folder, say=say)
    resumed = kept is not None or bool(unsaved.records)
    assert bool(restored) == (resumed and not image_is_finished(image, power))
    assert history.rounds == 3
    assert history.virtual_time < 10.0
    assert_sound(folder)
    assert_orders_have_fates(at, folder, history.open_jobs)
    rounds = read_rounds(folder)
    for number, version in announced:
        assert rounds[int(number)].succeeded
        assert rounds[int(number)].version == int(version)
    if restored:
        for old, new in zip(before[:saved], rounds, strict=False):
            assert (old.closed, old.version) == (new.closed, new.version)
    status = image.files.get("live.json")
    if status and kept is not None:
        shown = json.loads(status)["version"]
        assert sum(outcome.succeeded for outcome in rounds[: len(before)]) >= shown


def clock_before(image: DiskImage, power: bool) -> float:
    """The latest time that the files of a killed server show, or that survives a power cut."""
    if power:
        lines = image.safe.get(ORDERS, b"").splitlines(keepends=True)
        return max([json.loads(line)["now"] for line in lines if line.endswith(b"\n")], default=0.0)
    status = image.files.get("live.json")
    return float(json.loads(status)["now"]) if status else 0.0


def assert_orders_have_fates(at: VirtualWire, folder: Path, open_jobs: int) -> None:
    """Every order that was ever sent has one fate, or its job is open."""
    sent = [(order.number, order.invitation) for order in at.orders]
    assert len(set(sent)) == len(sent)
    jobs = {job.key: job for job in read_jobs(folder)}
    assert len(set(sent) - set(jobs)) == open_jobs
    for key in set(jobs) - set(sent):  # written down, and killed before it was sent
        assert (jobs[key].fate, jobs[key].reason) == ("crashed", "the server was restarted")


def image_is_finished(image: DiskImage, power: bool) -> bool:
    return "result.json" in (image.safe if power else image.files)


@pytest.mark.parametrize(
    ("policy", "power"),
    [*((policy, False) for policy in POLICIES), (POLICIES[0], True), (POLICIES[2], True)],
    ids=lambda value: value.name if isinstance(value, Policy) else "power-cut" * value or "killed",
)
@pytest.mark.slow
def test_server_killed_at_any_step_resumes(
    tmp_path: Path,
    policy: Policy,
    power: bool,
    monkeypatch: pytest.MonkeyPatch,
    saved: dict[int, bytes],
    runs: list[LiveRun],
) -> None:
    images = record_images(tmp_path / "whole", policy, monkeypatch)
    assert len(images) > 40
    ages = dict(saved)
    for n, image in enumerate(images):
        assert_resumes(image, tmp_path / f"{n}", policy, power, ages, runs)


@pytest.mark.slow
def test_server_killed_while_overwriting_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = POLICIES[0]
    folder = tmp_path / "whole"
    serve(VirtualWire(exponential(7, 1.0), seed=8), config(policy, rounds=3), folder)
    with monkeypatch.context() as patch:
        images = record_images(folder, policy, patch, overwrite=True)
    for n, image in enumerate(images[::3]):
        image.restore(tmp_path / f"{n}", power=False)
        whole = (tmp_path / f"{n}" / "run.json").exists()
        try:
            history = serve(copy.deepcopy(image.wire), given(policy), tmp_path / f"{n}")
        except FileError as error:
            # The old run was still there, and is not mixed with the new one.
            assert whole
            with pytest.raises(ValueError, match="started with other settings"):
                raise ValueError(f"{error}") from None
        else:
            assert history.rounds == 3
            assert len(history.age_by_client) == 5
            assert_sound(tmp_path / f"{n}")


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.slow
def test_interrupt_at_any_step(
    tmp_path: Path, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with Ctrl-C, after which the process still cleans up."""
    for n in itertools.count(1, 2):
        left = n

        def dying(original: Callable[..., Any]) -> Callable[..., Any]:
            def step(*args: Any, **more: Any) -> Any:
                nonlocal left
                left -= 1
                if left == 0:
                    raise Killed
                return original(*args, **more)

            return step

        folder, at, said = tmp_path / f"{n}", wire(), list[str]()
        with monkeypatch.context() as patch:
            for owner, name in STEPS:
                patch.setattr(owner, name, dying(getattr(owner, name)))
            try:
                serve(at, given(policy, 4), folder, say=said.append)
            except Killed:
                pass
            else:
                assert n > 30
                break
        at.t += 100.0
        assert serve(at, given(policy, 4), folder).rounds == 4
        assert_sound(folder)
        rounds = read_rounds(folder)
        for sentence in said:
            found = SUCCEEDED.match(sentence)
            assert not found or rounds[int(found[1])].version == int(found[2])


def test_ages_continue_from_the_checkpoint(tmp_path: Path) -> None:
    """Time during which no server ran does not count towards ages."""
    policy = POLICIES[0]
    at = wire()

    def say(sentence: str) -> None:
        if sentence.startswith("Round 2 "):
            raise Killed

    with pytest.raises(Killed):
        serve(at, given(policy, 4), tmp_path, say=say)
    before = load(tmp_path).history.age_by_client
    at.t += 1e6
    after = serve(at, given(policy, 4), tmp_path)
    assert np.all(after.age_by_client < before + 2.0)
    assert after.virtual_time < 3.0
