"""Runs on disk are what simulate plays, and resumed runs end with the same bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cafe.engine import simulate
from cafe.errors import FileError, InfeasibleError, InputError
from cafe.results import execute, execution, load
from cafe.rounds import History
from cafe.scenario import load_scenario

if TYPE_CHECKING:
    from tests.results.conftest import Lab


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every round."""
    monkeypatch.setattr(execution, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(execution, "CHECKPOINT_SHARE", 1e9)


def assert_same(one: History, other: History) -> None:
    """Equal in every number, its type included."""
    assert (one.policy, one.seed, one.open_jobs) == (other.policy, other.seed, other.open_jobs)
    arrays = [
        {**history.by_round, **vars(history), **(vars(history.curve) if history.curve else {})}
        for history in (one, other)
    ]
    for name, column in arrays[0].items():
        if isinstance(column, np.ndarray):
            assert column.dtype == arrays[1][name].dtype, name
            np.testing.assert_array_equal(column, arrays[1][name], err_msg=name)
    assert (one.model is None, one.curve is None) == (other.model is None, other.curve is None)


@pytest.mark.parametrize("label", ["agu", "awu", "fedavg", "mcu"])
@pytest.mark.parametrize("learning", [False, True], ids=["ledger", "learning"])
def test_execution_equals_simulate(lab: Lab, tmp_path: Path, learning: bool, label: str) -> None:
    scenario = lab.scenario(learning=learning)
    result = execute(scenario, label, 1, tmp_path / "run")
    played = simulate(
        scenario.federation, scenario.policy(label), scenario.task(1), seed=1, **scenario.run
    )
    assert_same(result.history, played)
    read = load(tmp_path / "run")
    assert_same(read.history, played)
    assert read.finished
    assert read.provenance == result.provenance
    assert read.federation is not None
    assert read.federation.latency == scenario.federation.latency


@pytest.mark.parametrize(
    "limits",
    ["updates = 7", "time = 11.3", "rounds = 50\nevaluate_every = 7", "rounds = 9\ntime = 99"],
)
def test_limits_and_evaluations_agree_with_simulate(lab: Lab, tmp_path: Path, limits: str) -> None:
    scenario = lab.scenario(("rounds = 60", limits), learning=True)
    result = execute(scenario, "agu", 0, tmp_path / "run")
    played = simulate(
        scenario.federation, scenario.policy("agu"), scenario.task(0), seed=0, **scenario.run
    )
    assert_same(result.history, played)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("learning", [False, True], ids=["ledger", "learning"])
@pytest.mark.slow
def test_resumed_run_writes_the_same_bytes(lab: Lab, tmp_path: Path, learning: bool) -> None:
    scenario, broken, whole = (
        lab.scenario(learning=learning),
        tmp_path / "broken",
        tmp_path / "whole",
    )
    execute(scenario, "agu", 0, whole)
    lab.stop_after(23, scenario, broken)
    said: list[str] = []
    assert not load(broken).finished
    assert load(broken).history.rounds == 23
    result = execute(scenario, "agu", 0, broken, resume=True, say=said.append)
    assert said == [f"{broken} continues from round 23."]
    assert lab.contents(broken) == lab.contents(whole)
    assert_same(result.history, load(whole).history)


def test_rounds_after_the_checkpoint_are_repeated(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, broken, whole = lab.scenario(learning=True), tmp_path / "broken", tmp_path / "whole"
    execute(scenario, "agu", 0, whole)
    with monkeypatch.context() as patch:
        patch.setattr(execution, "CHECKPOINT_SECONDS", 0.0)
        lab.stop_after(10, scenario, broken)
    log = broken / "events.jsonl"
    with log.open("ab") as file:  # rounds after the last checkpoint, the last one incomplete
        file.write((whole / "events.jsonl").read_bytes()[log.stat().st_size :][:1234])
    execute(scenario, "agu", 0, broken, resume=True)
    assert lab.contents(broken) == lab.contents(whole)


def test_run_without_a_checkpoint_starts_from_the_beginning(lab: Lab, tmp_path: Path) -> None:
    scenario, broken, whole = lab.scenario(), tmp_path / "broken", tmp_path / "whole"
    execute(scenario, "agu", 0, whole)
    lab.stop_after(10, scenario, broken)
    said: list[str] = []
    execute(scenario, "agu", 0, broken, resume=True, say=said.append)
    assert said == [f"{broken} has no checkpoint yet: starting from the beginning."]
    assert lab.contents(broken) == lab.contents(whole)


def test_resuming_an_empty_folder_starts_a_run_with_a_message(lab: Lab, tmp_path: Path) -> None:
    said: list[str] = []
    result = execute(lab.scenario(), "agu", 0, tmp_path / "new", resume=True, say=said.append)
    assert result.finished
    (sentence,) = said
    assert "no run to resume: starting from the beginning" in sentence
    execute(lab.scenario(), "agu", 0, tmp_path / "other", say=said.append)
    assert len(said) == 1


def test_diverging_model_is_reported(lab: Lab, tmp_path: Path) -> None:
    swap = ("rate = { beta = 150.0, gamma = 500.0 }", "rate = 1e38")
    scenario = lab.scenario(swap, ('server = { name = "adam", rate = 0.01 }', ""), learning=True)
    said: list[str] = []
    execute(scenario, "agu", 0, tmp_path / "run", say=said.append)
    (sentence,) = said
    assert "the model has diverged" in sentence


def test_a_finished_run_is_left_alone(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, folder = lab.scenario(), tmp_path / "run"
    first = execute(scenario, "agu", 0, folder)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    monkeypatch.setattr(execution, "Run", None)
    said: list[str] = []
    again = execute(scenario, "agu", 0, folder, resume=True, say=said.append)
    assert said == [f"{folder} is already finished."]
    assert_same(again.history, first.history)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_files_that_belong_to_no_run_are_not_overwritten(lab: Lab, tmp_path: Path) -> None:
    """Not even with ``overwrite``, which applies only to results of runs."""
    scenario = lab.scenario()
    (tmp_path / "model.npz").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(FileError, match="would overwrite this file, which belongs to no run"):
            execute(scenario, "agu", 1, tmp_path, overwrite=overwrite)
    assert [path.read_text() for path in tmp_path.glob("model*")] == ["mine"]


def test_results_are_overwritten_only_with_the_option(lab: Lab, tmp_path: Path) -> None:
    scenario, folder = lab.scenario(), tmp_path / "run"
    execute(scenario, "agu", 0, folder)
    before = lab.contents(folder)
    with pytest.raises(FileError, match=r"run: the folder already has results.*--resume"):
        execute(scenario, "agu", 1, folder)
    with pytest.raises(InputError, match="not both"):
        execute(scenario, "agu", 1, folder, resume=True, overwrite=True)
    assert lab.contents(folder) == before
    (folder / "mine.txt").write_text("kept")
    assert execute(scenario, "agu", 1, folder, overwrite=True).history.seed == 1
    assert (folder / "mine.txt").read_text() == "kept"


def test_resumed_run_has_the_same_number_of_threads(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, folder = lab.scenario(learning=True), tmp_path / "run"
    monkeypatch.setattr(execution, "cores", lambda: 1)
    lab.stop_after(5, scenario, folder)
    monkeypatch.setattr(execution, "cores", lambda: 2)
    result = execute(scenario, "agu", 0, folder, resume=True)
    assert result.provenance["threads"] == 1


def test_run_that_gives_up_explains_why_and_keeps_its_events(lab: Lab, tmp_path: Path) -> None:
    scenario = lab.scenario(("quorum = 9", "quorum = 20"), ("crash = 0.1", "patience = 30"))
    with pytest.raises(InfeasibleError, match="30 rounds in a row have failed"):
        execute(scenario, "agu", 0, tmp_path / "run")
    read = load(tmp_path / "run")
    assert not read.finished
    assert read.history.rounds == 29
    assert np.isnan(read.history.mean_age), "no checkpoint says how old the clients were"


def test_nothing_is_written_for_a_run_that_cannot_start(lab: Lab, tmp_path: Path) -> None:
    # The error appears only when the data are loaded: there are 10 classes.
    scenario = lab.scenario(("each = 3", "each = 11"), learning=True)
    with pytest.raises(InputError, match="11"):
        execute(scenario, "agu", 0, tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()


def test_run_without_a_success_reports_the_required_deadline(tmp_path: Path) -> None:
    """A deadline below every latency, and fewer rounds than the patience."""
    path = tmp_path / "hopeless.toml"
    path.write_text(
        "[federation]\nclients = 9\nrate = 1.0\n"
        '[policy]\nname = "mcu"\nquorum = 2\ndeadline = 1e-9\n[run]\nrounds = 20\n',
        encoding="utf-8",
    )
    said: list[str] = []
    result = execute(load_scenario(path), "mcu", 0, tmp_path / "run", say=said.append)
    assert result.history.updates == 0
    (sentence,) = said
    assert "deadline=1e-09" in sentence
    assert re.search(r"fastest report in them took [\d.e-]+ \(client \d\)", sentence)
