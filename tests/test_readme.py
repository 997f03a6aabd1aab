"""The README: its commands run as given from a fresh clone, and its figures are those measured."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cafe.demo.demo import run_demo
from tests.support.markdown import ROOT, tracked
from tests.support.shown_output import appears, check_session

README = (ROOT / "README.md").read_text(encoding="utf-8")
Shell = Callable[[str], subprocess.CompletedProcess[str]]


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert found, language
    return [str(block) for block in found]


def shown_commands() -> Iterator[tuple[str, str]]:
    """Each command of a console block, and the output shown with it."""
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def sh_commands() -> list[str]:
    """The commands of sh blocks, without comments."""
    lines = "".join(blocks("sh")).splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.strip()]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tracked files."""
    folder = tmp_path_factory.mktemp("clone")
    for path in tracked():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return folder


@pytest.fixture(scope="module")
def shell(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Runs a command in the copy; ``cafe`` is that of the copy, in this environment."""
    programs = tmp_path_factory.mktemp("bin")
    cafe = programs / "cafe"
    cafe.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m cafe "$@"\n')
    cafe.chmod(0o755)
    path = f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(clone / "src"), "COLUMNS": "100"}

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command], cwd=clone, env=environment, capture_output=True, text=True
        )

    return run


@pytest.mark.slow
def test_commands_print_what_is_shown(shell: Shell) -> None:
    commands = list(shown_commands())
    assert len(commands) >= 5
    for command, shown in commands:
        done = shell(command)
        assert not done.returncode, f"{command}\n{done.stderr}"
        printed = done.stdout
        assert appears(shown, printed), f"{command}\nprints\n{printed}\nbut is shown with\n{shown}"


@pytest.mark.slow
def test_python_session_prints_what_is_shown() -> None:
    names: dict[str, object] = {}
    for block in blocks("python"):
        check_session(block, names)
        assert len([line for line in block.splitlines() if line.startswith(">>>")]) <= 12


def test_each_command_for_a_shell_is_checked() -> None:
    """Every command is of a kind that one of the tests below runs or checks."""
    for command in sh_commands():
        assert re.match(r"make |pip install |cafe federate |\. \.venv/bin/activate$", command)


@pytest.mark.parametrize("command", [c for c in sh_commands() if c.startswith("make ")])
def test_make_knows_the_target(command: str, shell: Shell) -> None:
    """Only what make would do: .ci/run runs the targets themselves."""
    done = shell(f"{command} --dry-run")
    assert not done.returncode, done.stderr


def test_make_setup_creates_the_environment_that_is_activated() -> None:
    assert "make setup" in sh_commands()
    assert re.search(r"^VENV +:= \.venv$", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("command", [c for c in sh_commands() if c.startswith("pip ")])
def test_installed_extras_exist(command: str, clone: Path) -> None:
    """The package is installed from the clone; test_packaging.py installs it for real."""
    [*_, what] = shlex.split(command)
    found = re.fullmatch(r"\.(?:\[([\w,]+)\])?", what)
    assert found, "the package is not on a registry, so it is installed from the clone"
    project = tomllib.loads((clone / "pyproject.toml").read_text())["project"]
    asked = set((found[1] or "").split(",")) - {""}
    assert asked <= project["optional-dependencies"].keys()


@pytest.mark.federation
@pytest.mark.slow
def test_commands_of_a_federation_run(shell: Shell, clone: Path) -> None:
    """As given, except that the run has fewer rounds, and a deadline that busy machines keep."""
    pytest.importorskip("flwr", reason="a federation needs Flower")
    commands = [command for command in sh_commands() if command.startswith("cafe federate ")]
    init, *before, last = commands
    assert [command.split()[2] for command in commands] == ["init", "up", "run", "down"]
    done = shell(init)
    assert not done.returncode, f"{init}\n{done.stderr}"
    server = clone / init.split()[3] / "digits" / "server_app.py"
    text = server.read_text()
    assert "deadline=8.0" in text
    server.write_text(text.replace("deadline=8.0", "deadline=300.0"))
    try:
        for command in before:
            done = shell(f"{command} --rounds 2" if " run " in command else command)
            assert not done.returncode, f"{command}\n{done.stdout}\n{done.stderr}"
    finally:
        done = shell(last)
    assert not done.returncode, done.stderr


# ---------------------------------------------------------------- changes of a Flower app


def added(block: str) -> str:
    """The lines that a diff adds, without their indentation."""
    lines = [line[1:].strip() for line in block.splitlines() if line.startswith("+")]
    return "\n".join(lines)


def test_changes_of_a_flower_app_are_few_and_use_real_names() -> None:
    flower = pytest.importorskip("cafe.flower")
    watched, strategy = (added(block) for block in blocks("diff"))
    assert len(watched.splitlines()) == 2
    assert len(strategy.splitlines()) == 1
    for code, name in ((watched, "watch"), (strategy, "Strategy")):
        calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
        assert any(ast.unparse(call.func).split(".")[-1] == name for call in calls)
        assert callable(getattr(flower, name))


# ---------------------------------------------------------------- figures


def results_row(word: str) -> str:
    rows = [line for line in README.splitlines() if line.startswith("| ") and word in line]
    assert len(rows) == 1, word
    return rows[0]


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def test_speed_is_that_of_the_benchmark() -> None:
    page = (ROOT / "benchmarks" / "results" / "simulate-peers.md").read_text()
    row = results_row("pfl-research").split("|")[1]
    ratios = {
        name: numbers(re.sub(r"\(.*?\)", "", line.split("|", 2)[2]))
        for name in ("pfl-research", "Flower")
        for line in page.splitlines()
        if line.startswith(f"| cafe over {name}")
    }
    one, five = ([ratios[name][i] for name in ("pfl-research", "Flower")] for i in (0, 1))
    assert numbers(row) == [
        *(float(f"{r:.2g}") for r in one),
        5,
        *(float(f"{r:.2g}") for r in five),
    ]
    row = results_row("A million clients").split("|")[1]
    seconds = re.search(r"1,000,000 clients, 100 rounds: seconds \| ([\d.]+)", page)
    memory = re.search(r"largest memory of the process, GiB \| ([\d.]+)", page)
    assert seconds is not None
    assert memory is not None
    assert numbers(row) == [100, float(f"{float(seconds[1]):.2g}"), float(memory[1])]


def test_studies_are_quoted_as_they_are() -> None:
    reality = (ROOT / "studies" / "reality" / "README.md").read_text()
    own, other = re.findall(r"(\d+) of (\d+)(?= real figures| are)", " ".join(reality.split()))
    row = results_row("predicts a real federation")
    assert [f"{a} of {b}" for a, b in (own, other)] == re.findall(r"\d+ of \d+", row)
    soak = json.loads((ROOT / "studies" / "soak" / "result.json").read_text())
    runs = soak["runs"].values()
    assert all(run["replay_equals_model"] for run in runs)
    assert not any(run["announced_and_lost"] for run in runs)
    faults = [soak["faults"], *soak["faults_of_proxies"].values()]
    orders = sum(run["jobs"] + run["open_jobs"] for run in runs)
    assert numbers(results_row("lost no update")) == [
        sum(sum(counts.values()) for counts in faults),
        orders,
        soak["servers_started"],
        soak["nodes"],
        sum(run["rounds"] for run in runs),
        round(soak["seconds"] / 60),
    ]


def study_rows(study: str, name: str) -> list[list[float]]:
    """The numbers of each row of a study's tables whose first cell is a name."""
    page = (ROOT / "studies" / study / "README.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
    assert rows, name
    return [numbers(row.removeprefix(f"| {name} |")) for row in rows]


def test_studies_of_plans_are_quoted_as_they_are() -> None:
    median = study_rows("control", "after 30 rounds, median over fleets")[0][0]
    worst = study_rows("control", "after 30 rounds, worst fleet and seed")[0][0]
    row = results_row("A deadline that tunes itself")
    assert numbers(row.split("|")[1]) == [30, median, worst]
    row = results_row("waits too long if the aim is an accuracy")
    default, proposed = (
        study_rows("payoff", name)[0][0] for name in ("goal of small gaps", "proposed goal")
    )
    assert numbers(row.split("|")[1]) == [default, proposed]


def test_claims_are_counted_as_in_the_reproduction() -> None:
    page = (ROOT / "paper" / "README.md").read_text()
    sentence = re.search(r"Of \d+ claims of the paper .*? do not hold\.", page)
    assert sentence is not None
    assert sentence[0] in README


@pytest.mark.slow
def test_savings_are_those_of_the_demo(tmp_path: Path) -> None:
    """The training runs depend on rounding, so the figures may differ a little elsewhere."""
    printed: list[Any] = []
    run_demo(tmp_path / "demo", printed.append)
    first = re.findall(r"([\d.]+) client-hours of work, of which ([\d.]+) are wasted", printed[0])
    (_, planned), (_, guessed) = ((float(work), float(waste)) for work, waste in first)
    row = results_row("`make demo`")
    saved, phones, accuracy, by_plan, by_guess = numbers(row.split("|")[1])
    assert saved == pytest.approx(100 * (1 - planned / guessed), abs=4)
    assert by_plan == pytest.approx(planned, rel=0.25)
    assert by_guess == pytest.approx(guessed, rel=0.25)
    assert f"{accuracy:g}% accuracy" in printed[0]
    assert "not significant" in printed[0]
    assert any(f"{phones:g} phones" in part for part in printed if isinstance(part, str))
