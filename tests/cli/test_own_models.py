"""Own modules and own data from the command line: run, compare, report, resume, refuse."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.command_line import Run
from tests.support.torch_scenarios import LEARNER, MODULE, SCENARIO, TASK, write_data, write_files

pytest.importorskip("torch")
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    sys.modules.pop("nets", None)


def test_simulate_compare_and_report(run: Run) -> None:
    ran = run("simulate torch.toml")
    assert ran.code == 0, ran.err
    assert "evaluated once, at the end, on 40 test examples" in ran.err
    assert "evaluate_every" in ran.err
    ran = run("compare torch.toml --policies mcu,awu --jobs 1")
    assert ran.code == 0, ran.err
    assert ran.err.count("evaluated once") == 1
    assert run("report results --output page.html").code == 0
    page = Path("page.html").read_text()
    assert "awu" in page
    assert "Accuracy and loss are those on 40 test examples, to save time." in page


def test_nothing_is_said_if_the_scenario_says_how_often(run: Run) -> None:
    Path("torch.toml").write_text(f"{SCENARIO}evaluate_every = 2\n")
    assert "evaluated" not in run("simulate torch.toml").err
    lines = Path("results/torch/mcu-seed-0/events.jsonl").read_text().splitlines()
    scores = [line for line in map(json.loads, lines) if "after" in line]
    assert [score["after"] for score in scores] == [2, 4, 6]
    assert not any("examples" in score for score in scores)


def unfinished(run: Run) -> Path:
    """A run that ended before its results were written."""
    assert run("simulate torch.toml").code == 0
    folder = Path("results/torch/mcu-seed-0")
    (folder / "result.json").unlink()
    return folder


def test_a_resumed_run_ends_with_the_same_bytes(run: Run) -> None:
    folder = unfinished(run)
    first = {path.name: path.read_bytes() for path in folder.glob("[cem]*[!l]")}
    (folder / "checkpoint.npz").unlink()
    assert run("simulate torch.toml --resume").code == 0
    assert {path.name: path.read_bytes() for path in folder.glob("[cem]*[!l]")} == first


def test_changed_data_are_not_resumed(run: Run) -> None:
    unfinished(run)
    write_data(Path("data.npz"), seed=1)
    ran = run("simulate torch.toml --resume")
    assert ran.code == 2
    assert "started with other settings: task.sha256.file was" in ran.err


def test_a_changed_module_is_not_resumed(run: Run) -> None:
    unfinished(run)
    Path("nets.py").write_text(MODULE.replace("self.layers(x)", "self.layers(-x)"))
    sys.modules.pop("nets", None)
    ran = run("simulate torch.toml --resume")
    assert ran.code == 2
    assert "started with other settings: learner.sha256.module was" in ran.err


def test_mistakes_leave_no_results(run: Run) -> None:
    for text, said in (
        (SCENARIO.replace("data.npz", "none.npz"), "there is no such file"),
        (SCENARIO.replace("nets:Net", "nets:Nat"), "Did you mean 'Net'?"),
        (SCENARIO.replace(LEARNER, f"{LEARNER}shape = [5]\n"), "shape must have as many values"),
        (SCENARIO.replace(TASK, f"{TASK}rte = 1\n"), "the key task.rte is not known"),
    ):
        Path("torch.toml").write_text(text)
        ran = run("simulate torch.toml")
        assert ran.code == 2
        assert said in ran.err
        assert "Traceback" not in ran.err
        assert not Path("results/torch/mcu-seed-0/run.json").exists()


def test_labels_that_are_not_numbers(run: Run) -> None:
    write_data(Path("data.npz"), y_train=np.array(["cat"] * 120))
    ran = run("simulate torch.toml")
    assert ran.code == 2
    assert "task.file: data.npz: x_train and y_train: y of examples must be numbers" in ran.err


def test_the_example_of_the_documentation(run: Run, tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "examples"
    for name in ("cnn.py", "cnn.toml"):
        shutil.copy(examples / name, tmp_path)
    ran = run("simulate cnn.toml --rounds 4")
    assert ran.code == 0, ran.err
    assert "on 360 test examples" in ran.err
