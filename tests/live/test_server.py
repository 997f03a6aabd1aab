"""A whole run: it waits for clients, resumes where it stopped, and reports problems."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.errors import CafeError, FileError, InfeasibleError, InputError
from cafe.learn.base import Score
from cafe.learn.server_optimisers import Momentum
from cafe.live.aggregation import Median
from cafe.live.job_records import PlayedRound
from cafe.live.live_run import LiveRun
from cafe.live.run_log import ARRAYS, read_jobs, read_rounds
from cafe.live.server import RunHooks, serve
from cafe.live.server_config import ServerConfig
from cafe.live.wire import Order, Report
from cafe.policies import agu, awu, fedavg, mcu
from cafe.report import run_page
from cafe.results import checkpoint, load
from cafe.results.storage import lock_folder, read_arrays
from cafe.rounds.policy import Policy
from tests.support.serving import MCU, assert_sound, config, read_status, stopped_after, wire
from tests.support.virtual_runs import VirtualWire, start


def test_a_run_from_beginning_to_end(tmp_path: Path) -> None:
    said: list[str] = []
    history = serve(wire(), config(evaluate=lambda model: (1.0, 0.5)), tmp_path, say=said.append)
    assert history.rounds == 5
    assert_sound(tmp_path)
    loaded = load(tmp_path)
    assert loaded.finished
    assert loaded.federation is None
    for name, column in history.by_round.items():
        np.testing.assert_array_equal(loaded.history.by_round[name], column)
    model = read_arrays(tmp_path / ARRAYS, "")
    flat = np.concatenate([model["weight"].ravel(), model["bias"]])
    assert loaded.history.model is not None
    np.testing.assert_array_equal(loaded.history.model, flat)
    state = read_status(tmp_path)
    assert (state["state"], state["round"], state["rounds"]) == ("finished", 5, 5)
    assert state["version"] == history.updates
    assert state["pid"] == os.getpid()
    assert len(state["clients"]) == state["present"] == 6
    assert {client["label"] for client in state["clients"]} <= {f"bc{k:03d}b" for k in range(6)} | {
        ""
    }
    assert said[-1].startswith(f"Finished: {history.updates} of 5 rounds succeeded.")
    assert "outside training" in said[-1]
    assert [s for s in said if s.startswith("Joined")] == [
        f"Joined: client c{k:03d}." for k in range(6)
    ]
    assert sum(s.startswith("Round ") for s in said) == 5


@pytest.mark.parametrize(
    ("limit", "reached"),
    [
        ({"updates": 3}, lambda h: h.updates == 3),
        ({"time": 1.7}, lambda h: h.virtual_time - 0.5 < 1.7 <= h.virtual_time),
        ({"rounds": 4, "updates": 99}, lambda h: h.rounds == 4),
    ],
)
def test_first_limit_that_is_reached_ends_the_run(
    tmp_path: Path, limit: dict[str, Any], reached: Any
) -> None:
    assert reached(serve(wire(), config(**limit), tmp_path))


def test_a_finished_run_is_left_alone(tmp_path: Path) -> None:
    first = serve(wire(), config(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    said: list[str] = []
    other = wire(seed=9)
    again = serve(other, config(), tmp_path, say=said.append)
    assert said == [f"The run in {tmp_path} is finished: nothing is left to do."]
    assert not other.orders
    assert again.by_round["closed"].tolist() == first.by_round["closed"].tolist()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_overwrite_starts_a_new_run(tmp_path: Path) -> None:
    serve(wire(), config(rounds=7), tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    history = serve(wire(), config(awu(deadline=0.4), seed=3, rounds=4), tmp_path, overwrite=True)
    assert (history.rounds, history.seed) == (4, 3)
    assert_sound(tmp_path)
    assert {job.booked for job in read_jobs(tmp_path)} == {0, 1, 2, 3}
    assert (tmp_path / "notes.txt").read_text() == "mine"


def kept_in(folder: Path) -> dict[str, bytes]:
    """All that a run keeps."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (config(seed=1), "seed was 0 and is 1"),
        (config(mcu(quorum=3, deadline=0.5)), "policy was .*quorum=2.* and is .*quorum=3"),
        (config(optimiser=Momentum()), "optimiser was null and is .*Momentum"),
        (config(combine=Median()), "combine was .*Sum.* and is .*Median"),
        (replace(config(), model={"weight": np.zeros((2, 3), np.float32)}), "model.bias was"),
        (replace(config(), model={n: a.astype(float) for n, a in start().items()}), "<f8"),
    ],
    ids=["seed", "policy", "optimiser", "combine", "arrays", "kind"],
)
@pytest.mark.parametrize("finished", [True, False])
def test_folder_of_another_run_is_refused(
    tmp_path: Path, changed: ServerConfig, words: str, finished: bool
) -> None:
    at = wire()
    if finished:
        serve(at, config(), tmp_path)
    else:
        stopped_after(2, tmp_path, at, config())
    before = kept_in(tmp_path)
    with pytest.raises(FileError, match=words):
        serve(at, changed, tmp_path)
    assert kept_in(tmp_path) == before


def test_one_server_at_a_time(tmp_path: Path) -> None:
    said: list[str] = []
    with lock_folder(tmp_path), pytest.raises(FileError, match="another process is using"):
        serve(wire(), config(), tmp_path, overwrite=True, say=said.append)
    assert said[0].startswith("Stopped: ")
    assert not (tmp_path / "run.json").exists()
    serve(wire(), config(), tmp_path)


@pytest.mark.parametrize(
    "policy",
    [
        MCU,
        mcu(quorum=2, deadline=0.3, late="keep"),
        agu(quorum=5, deadline=0.4),
        agu(quorum=5, deadline=0.4, pool="union"),
        fedavg(fraction=0.6, deadline=0.7, quorum=2),
    ],
    ids=str,
)
def test_run_stopped_after_every_round_is_resumed(tmp_path: Path, policy: Policy) -> None:
    at, given = wire(seed=2), config(policy, rounds=8, optimiser=Momentum())
    clock: list[float] = []
    for rounds in range(1, 8):
        stopped_after(rounds, tmp_path, at, given)
        clock.append(read_status(tmp_path)["now"])
        at.t += 1000.0  # no server ran meanwhile, so no age grew
    history = serve(at, given, tmp_path)
    assert history.rounds == 8
    assert history.virtual_time < 10.0
    assert clock == sorted(clock)
    assert_sound(tmp_path)
    lost = [job for job in read_jobs(tmp_path) if job.fate == "crashed"]
    assert all(job.reason == "the server was restarted" for job in lost)
    assert bool(lost) == (policy.parameters.get("late") == "keep")


def test_resumed_run_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    """If no job runs beyond its round, a stop between rounds changes nothing."""
    for policy in (MCU, agu(quorum=5, deadline=0.4, pool="union")):
        given = config(policy, rounds=9, optimiser=Momentum())
        whole = serve(wire(seed=2), given, tmp_path / f"{policy.name}-whole")
        at = wire(seed=2)
        stopped_after(4, tmp_path / policy.name, at, given)
        parts = serve(at, given, tmp_path / policy.name)
        np.testing.assert_array_equal(parts.by_round["fates"], whole.by_round["fates"])
        np.testing.assert_allclose(parts.by_round["closed"], whole.by_round["closed"])
        np.testing.assert_allclose(parts.age_by_client, whole.age_by_client)
        assert parts.model is not None
        assert whole.model is not None
        assert parts.model.tobytes() == whole.model.tobytes()


def test_too_few_clients(tmp_path: Path) -> None:
    at = wire(names=["c000"])
    said: list[str] = []
    with pytest.raises(InfeasibleError, match="1 of 2 required clients are present"):
        serve(at, config(wait=30.0), tmp_path, say=said.append)
    assert 30.0 <= at.t < 32.0
    assert read_status(tmp_path)["state"] == "stopped"
    assert "Start more clients" in read_status(tmp_path)["why"]
    assert sum(s.startswith("Waiting: 1 of 2 required clients") for s in said) == 3
    assert said[-1].startswith("Stopped: ")
    at.names.append("c001")
    assert serve(at, config(), tmp_path).rounds == 5
    assert_sound(tmp_path)


def test_run_waits_for_the_given_number_of_clients(tmp_path: Path) -> None:
    def more(at: VirtualWire) -> None:
        if at.polls == 4:
            at.names.append("c002")

    at = wire(names=["c000", "c001"], on_poll=more)
    serve(at, config(clients=3), tmp_path)
    assert at.orders[0].round == 0
    assert sum(order.round == 0 for order in at.orders) == 3


def test_server_waits_again_when_clients_leave(tmp_path: Path) -> None:
    everyone = [f"c{k:03d}" for k in range(6)]

    def away(at: VirtualWire) -> None:
        at.names = everyone[:1] if 3 <= at.polls <= 8 else everyone

    said: list[str] = []
    serve(wire(on_poll=away), config(), tmp_path, say=said.append)
    assert sum(s.startswith("Disconnected: ") for s in said) == 5
    assert sum(s.startswith("Joined: ") for s in said) == 11
    assert any(s.startswith("Waiting: 1 of 2 required") for s in said)
    assert_sound(tmp_path)


def test_run_ends_after_patience_failed_rounds(tmp_path: Path) -> None:
    at = wire(behave=lambda order: "report" if order.round < 2 else "lost")
    with pytest.raises(InfeasibleError, match="3 rounds in a row have failed under mcu") as error:
        serve(at, config(patience=3, rounds=50), tmp_path)
    assert "The fastest report took" in str(error.value)
    assert len(read_rounds(tmp_path)) == 5
    state = read_status(tmp_path)
    assert (state["state"], state["why"]) == ("stopped", str(error.value))
    # The count of failed rounds is kept after a restart, but one success resets it.
    with pytest.raises(InfeasibleError, match="4 rounds in a row"):
        serve(at, config(patience=3, rounds=50), tmp_path)
    at.behave = lambda order: "report"
    assert serve(at, config(patience=3, rounds=50), tmp_path).rounds == 50
    assert_sound(tmp_path)


def test_run_without_any_report_ends(tmp_path: Path) -> None:
    at = wire(behave=lambda order: "silent")
    with pytest.raises(
        InfeasibleError, match=r"No client reported, and the last round lasted 0\.5 s"
    ):
        serve(at, config(patience=2), tmp_path)


def test_policy_must_have_a_deadline(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Give the policy a deadline"):
        serve(wire(), config(fedavg(fraction=0.5)), tmp_path)


def test_initial_model_must_be_finite(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="finite"):
        serve(wire(), replace(config(), model={"w": np.array([np.nan])}), tmp_path)


@pytest.mark.parametrize("name", ["responses.csv", "events.jsonl", "arrays.npz", "clients.npz"])
def test_file_that_belongs_to_no_run_is_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("client,seconds\na,1\n")
    said: list[str] = []
    for overwrite in (False, True):
        with pytest.raises(FileError, match="would overwrite this file, which belongs to no run"):
            serve(wire(), config(), tmp_path, overwrite=overwrite, say=said.append)
    assert said[0].startswith("Stopped: ")
    assert (tmp_path / name).read_text() == "client,seconds\na,1\n"


def test_invalid_run_does_not_delete_the_old_one(tmp_path: Path) -> None:
    serve(wire(), config(), tmp_path)
    before = kept_in(tmp_path)
    bad = replace(config(), model={"w": np.array([np.nan], np.float32)})
    with pytest.raises(InputError, match="must contain finite numbers"):
        serve(wire(), bad, tmp_path, overwrite=True)
    assert kept_in(tmp_path) == before


def test_status_file_contains_the_name_of_the_run(tmp_path: Path) -> None:
    serve(wire(), config(), tmp_path, name="17")
    assert read_status(tmp_path)["run"] == "17"


@pytest.mark.slow
def test_a_page_of_a_live_run(tmp_path: Path) -> None:
    at, given = wire(), config(evaluate=lambda model: (2.0, 0.25), rounds=6)
    folder = tmp_path / "run"
    stopped_after(1, folder, at, given)
    (folder / checkpoint.NAME).rename(tmp_path / "aside")
    assert len(load(folder).history.age_by_client) == 0
    (tmp_path / "aside").rename(folder / checkpoint.NAME)
    unfinished = load(folder)
    assert not unfinished.finished
    assert unfinished.history.rounds == 1
    run_page.write(tmp_path / "unfinished.html", [unfinished])
    assert "had not finished" in (tmp_path / "unfinished.html").read_text()
    serve(at, given, folder)
    finished = load(folder)
    assert finished.history.curve is not None
    run_page.write(tmp_path / "finished.html", [finished])
    page = (tmp_path / "finished.html").read_text()
    assert "had not finished" not in page
    assert "Accuracy and loss" in page


def test_messages_about_a_round(tmp_path: Path) -> None:
    def behave(order: Order) -> str:
        return ("report", "lost", "unreachable", "malformed", "not finite", "silent")[order.number]

    at = VirtualWire(cafe.Federation(6, cafe.Constant(0.2)), behave=behave)
    said: list[str] = []
    serve(at, config(mcu(quorum=1, deadline=0.5), rounds=1), tmp_path, say=said.append)
    assert "Lost the job of client c001: it crashed." in said
    assert "Rejected the report of client c003: it is no report at all." in said
    assert "Rejected the report of client c004: the update contains NaN or infinity." in said
    assert (
        "Round 0 succeeded: 1 of 6 reported (1 late, 1 crashed, 2 refused, 1 absent), 1 used; "
        "version 1." in said
    )


def test_lost_local_model_is_reported(tmp_path: Path) -> None:
    at = VirtualWire(cafe.Federation(3, cafe.Constant(0.2)))
    at.behave = lambda order: "silent" if order.round == 0 and order.number == 2 else "report"

    def forget(wire: VirtualWire) -> None:
        wire.local_models.pop("c000", None)

    at.on_poll = forget
    said: list[str] = []
    serve(at, config(agu(quorum=3, deadline=0.5), rounds=2), tmp_path, say=said.append)
    assert "Local model lost: bc000b started from the global model instead." in said
    assert sum("Local model lost" in s for s in said) == 1


def test_reports_are_weighted_by_the_examples_they_report(tmp_path: Path) -> None:
    """FedAvg weighs by the numbers of examples that clients report."""

    def tamper(report: Report, order: Order) -> Report:
        bias = np.full(2, order.number, np.float32)
        weight = np.zeros((2, 3), np.float32)
        return replace(report, update={"weight": weight, "bias": bias}, examples=1 + order.number)

    at = VirtualWire(cafe.Federation(3, cafe.Constant(0.2)), tamper=tamper)
    history = serve(at, config(fedavg(fraction=1.0, deadline=1.0), rounds=1), tmp_path)
    assert history.model is not None
    np.testing.assert_allclose(history.model[6:], 1.0 + (0 * 1 + 1 * 2 + 2 * 3) / 6)


def test_errors_are_subclasses_of_cafe_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CafeError):
        serve(wire(), config(), tmp_path / "file")


def test_hooks_are_called_before_a_round_is_saved(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []

    def begin(run: LiveRun) -> None:
        seen.append(("begin", len(run.outcomes), read_rounds_if_any(tmp_path)))

    def played(run: LiveRun, played: PlayedRound) -> None:
        seen.append(("played", played.outcome.round, read_rounds_if_any(tmp_path)))

    hooks = RunHooks(begin, played)
    serve(wire(), config(rounds=2), tmp_path, hooks=hooks)
    assert seen == [("begin", 0, 0), ("played", 0, 0), ("played", 1, 1)]


def test_evaluator_of_the_hooks_replaces_that_of_the_settings(tmp_path: Path) -> None:
    said: list[str] = []

    def evaluator(run: LiveRun) -> tuple[Score | None, str]:
        version = run.ledger.version
        return (Score(0.5, None), "") if version == 2 else (None, "why" * (version == 3))

    given = config(updates=3, evaluate=lambda model: 1 / 0)
    hooks = RunHooks(evaluator=evaluator)
    serve(wire(), given, tmp_path, say=said.append, hooks=hooks)
    told = [line for line in said if "valuated" in line]
    assert told == ["Evaluated version 2: loss 0.5.", "Version 3 was not evaluated: why."]


def read_rounds_if_any(folder: Path) -> int:
    path = folder / "events.jsonl"
    return len(read_rounds(folder)) if path.exists() else 0
