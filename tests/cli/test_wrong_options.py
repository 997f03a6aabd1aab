"""Wrong options of every command: each ends with code 2 and one sentence, without a traceback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer

from cafe import cli
from tests.support.command_line import PLAN, Run
from tests.support.public_calls.samples import SCENARIO

CLIENTS = "--clients 6 --rate 1"
VALID = {  # a valid call of each command, in the folder of the fixture `files`
    "plan": PLAN,
    "expect": f"expect {CLIENTS} --quorum 2 --deadline 1",
    "frontier": f"frontier {CLIENTS}",
    "fit": "fit log.csv",
    "simulate": "simulate scenario.toml",
    "compare": "compare scenario.toml",
    "sweep": "sweep sweep.toml",
    "report": "report folder",
    "policies": "policies",
    "reproduce": "reproduce theory",
    "demo": "demo",
    "federate init": "federate init app",
    "federate up": "federate up app",
    "federate run": "federate run app",
    "federate status": "federate status app",
    "federate down": "federate down app",
}
WRONG = {  # by type of value
    "integer": ("text", "1.5", "-1"),
    "float": ("text", "-1", "nan"),
    "path": ("folder", "folder/missing/file.xyz", "binary"),
}
ACCEPTED = {  # a folder that may hold results, or be made
    "report --output": {"binary"},
    "reproduce --output": {"folder", "folder/missing/file.xyz"},
    "simulate --output": {"folder", "folder/missing/file.xyz"},
    "compare --output": {"folder", "folder/missing/file.xyz"},
    "sweep --output": {"folder", "folder/missing/file.xyz"},
    "demo --output": {"folder", "folder/missing/file.xyz"},
}
OTHERS = [
    "plan",
    "plan --clients 6",
    "plan --unknown 3",
    f"{PLAN} --federation f.toml",
    f"{PLAN} --at-most waste",
    f"{PLAN} --at-most =3",
    f"{PLAN} --at-most nonsense=3",
    f"{PLAN} --at-least waste=text",
    f"{PLAN} --goal nonsense",
    f"{PLAN} --plot picture.xyz",
    f"{PLAN} --plot folder/missing/picture.svg",
    f"{PLAN} --report page.txt",
    "expect --clients 6 --rate 1",
    f"expect {CLIENTS} --quorum 7 --deadline 1",
    "fit",
    "fit missing.csv",
    "fit folder",
    "fit binary",
    "fit scenario.toml",
    "fit log.csv --output fit.txt",
    "simulate",
    "simulate missing.toml",
    "simulate folder",
    "simulate binary",
    "simulate log.csv",
    "simulate scenario.toml --resume --overwrite",
    "compare scenario.toml --policies nonsense",
    "compare scenario.toml --policies mcu,mcu",
    "compare scenario.toml --seeds 0",
    "report",
    "report missing",
    "report folder --output page.txt",
    "report log.csv",
    "reproduce nonsense",
    "policies more",
    "nonsense",
    "federate nonsense",
    "federate init folder",
    "federate run folder",
    "federate run folder --set nonsense",
    "federate up folder",
    "federate up missing",
]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("mine")
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    sweep = '[sweep]\nscenario = "scenario.toml"\nminimise = "mean_age"\nseeds = 1\n'
    sweep += "[sweep.values]\npolicy.quorum = [2, 3]\n"
    (tmp_path / "sweep.toml").write_text(sweep)
    (tmp_path / "log.csv").write_text("client,seconds\na,1\nb,2\na,3\nb,2.5\n")


def commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} ")
        else:
            yield f"{prefix}{name}", command


def wrong_options() -> Iterator[str]:
    """Each option of each command with each wrong value of its type."""
    for name, command in commands(typer.main.get_command(cli.app)):  # type: ignore[arg-type]
        for parameter in command.params:
            if not isinstance(parameter, click.Option) or parameter.is_flag:
                continue
            option = max(parameter.opts, key=len)
            for value in WRONG.get(parameter.type.name, ()):
                if value not in ACCEPTED.get(f"{name} {option}", ()):
                    yield f"{VALID[name]} {option} {value}"


def check(ran: Run) -> None:
    said = ran.err.strip()
    assert ran.code == 2, (ran.code, ran.out, said)
    assert "Traceback" not in said
    assert said.count("Error: ") == 1
    usage, _, sentence = said.rpartition("Error: ")
    assert len(sentence.split()) >= 3
    assert usage or sentence.endswith((".", "?")), sentence  # click's own sentences have no period


def test_every_command_has_a_valid_call() -> None:
    known = {name for name, _ in commands(typer.main.get_command(cli.app))}  # type: ignore[arg-type]
    assert known == VALID.keys()


@pytest.mark.parametrize("command", [*wrong_options()])
def test_wrong_value_of_an_option(run: Run, command: str) -> None:
    if command.startswith("federate"):
        pytest.importorskip("flwr")
    check(run(command))


@pytest.mark.parametrize("command", OTHERS)
def test_other_mistakes(run: Run, command: str) -> None:
    if command.startswith("federate"):
        pytest.importorskip("flwr")
    check(run(command))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
@pytest.mark.parametrize("command", ["fit log.csv", "simulate scenario.toml"])
def test_unreadable_files(run: Run, command: str) -> None:
    Path(command.split()[1]).chmod(0)
    check(run(command))


def test_there_are_many_wrong_options() -> None:
    assert sum(1 for _ in wrong_options()) + len(OTHERS) > 150
