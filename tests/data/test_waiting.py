"""The command line says what it waits for while a dataset is fetched."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cafe import cli, console
from cafe.data.fetch import Files
from cafe.reproduce import trials

SCENARIO = """
[federation]
clients = 2
rate = 1.0
[policy]
name = "mcu"
quorum = 1
deadline = 1.0
[task]
dataset = "mnist"
partition = "iid"
[learner]
name = "softmax"
[run]
rounds = 3
"""


@pytest.fixture(params=["simulate", "compare --jobs 1"])
def verb(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SCENARIO)
    name, *options = str(request.param).split()
    return ["cafe", name, "small.toml", *options]


def run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_a_fetch_is_announced_once(
    verb: list[str],
    fetcher: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(verb, monkeypatch) == 0
    said = capsys.readouterr().err
    first = said.splitlines()[0]
    assert all(word in first for word in ("Fetching mnist", "the fake fetcher", "CAFE_DATA"))
    assert said.count("Fetching") == 1
    assert fetcher.calls == 1
    assert run([*verb, "--overwrite"], monkeypatch) == 0
    assert "Fetching" not in capsys.readouterr().err, "it is in the cache"


def test_failed_fetch_is_a_one_line_error(
    verb: list[str],
    fetcher: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fetcher.files = None
    assert run(verb, monkeypatch) == 2
    said = capsys.readouterr().err
    assert "Error: small.toml: " in said
    assert "task.dataset" in said
    assert "the fake fetcher: it is empty" in said
    assert fetcher.calls == 1
    assert not Path("results").exists(), "nothing was begun"


def test_finished_run_needs_no_data(
    verb: list[str], fetcher: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(verb, monkeypatch) == 0
    for file in cache.iterdir():
        file.unlink()
    fetcher.files = None
    assert run([*verb, "--resume"], monkeypatch) == 0


@pytest.mark.parametrize("verb", ["simulate"], indirect=True)
def test_long_fetch_reports_its_progress(
    verb: list[str],
    files: Files,
    fetcher: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reported = threading.Semaphore(0)

    def say(sentence: str) -> None:
        print(sentence, file=sys.stderr)
        if sentence.endswith("s elapsed"):
            reported.release()

    def slow(_: Any) -> Files:
        for _ in range(2):  # lines about the elapsed time
            assert reported.acquire(timeout=600)
        return files

    monkeypatch.setattr(console, "say", say)
    monkeypatch.setattr(console, "LINES_APART", 0.05)
    monkeypatch.setattr(type(fetcher), "__call__", slow)
    assert run(verb, monkeypatch) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[1].endswith("s elapsed")
    assert sum(line.endswith("s elapsed") for line in lines) >= 2


def test_a_terminal_shows_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Console, "is_terminal", True)
    with console.waiting("Fetching."):
        time.sleep(0.2)
    said = capsys.readouterr().err
    assert said.startswith("Fetching.\n")
    assert "━" in said
    assert "0:00:0" in said


def test_experiments_announce_a_fetch(fetcher: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []

    @contextmanager
    def fetching(sentence: str) -> Iterator[None]:
        said.append(sentence)
        yield

    monkeypatch.setattr(trials, "load_scenario", trials.load_scenario.__wrapped__)
    monkeypatch.setattr(trials, "_LOADED", [])  # what other tests have loaded
    trials.fetch_data("fig-age-cycle", fetching)
    trials.fetch_data("search", fetching)
    assert not said
    trials.fetch_data("fig-iid-quorum", fetching)
    assert len(said) == fetcher.calls == 1
