"""The demo: its first sentence is measured, and honest where nothing is saved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from cafe import demo
from cafe.analysis.repeated_runs import Repeats, repeats
from cafe.demo import saved, tell
from cafe.errors import FileError
from cafe.fleet import phones
from cafe.progress import ProgressCallback
from cafe.report import page
from tests.report.conftest import Run, made_up


def text_of(renderable: Any) -> str:
    console = Console(width=160, markup=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_the_demo_tells_its_story(tmp_path: Path) -> None:
    lines: list[Any] = []
    stages: dict[str, list[float]] = {}

    @contextmanager
    def bar(label: str) -> Iterator[ProgressCallback]:
        yield stages.setdefault(label, []).append

    tell(tmp_path / "demo", lines.append, bar, seeds=2, budget=1200)
    told = "\n".join(line if isinstance(line, str) else text_of(line) for line in lines)

    first = re.match(
        r"Planned rounds reach 90% accuracy in ([\d.]+) min with ([\d.]+) client-hours of waste, "
        r"guessed ones in ([\d.]+) min with ([\d.]+) client-hours",
        told,
    )
    assert first
    time, waste, time_guessed, waste_guessed = map(float, first.groups())
    assert waste < waste_guessed / 5
    rows = {line[:5]: line for line in told.splitlines() if ": MCU, " in line}
    for name, minutes in (("guess", time_guessed), ("plan:", time)):
        seconds = float(re.split(r"  +", rows[name])[1].split(" ")[0].replace(",", ""))
        assert seconds == pytest.approx(60 * minutes, rel=0.01)

    found = re.search(
        r"the plan costs ([\d.]+), the guess ([\d.]+), and knowing .* cost (\d+\.\d+)", told
    )
    assert found
    planned, guessed, best = map(float, found.groups())
    assert best <= planned < guessed

    written = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    opening = lines[0].strip()
    assert re.search(r"</h1><p class=big>(.*?)</p>", written)[1] == opening  # type: ignore[index]
    assert len(written) < 2_000_000
    for name in ("report.html", "federation.csv", "responses.csv", "plan.svg"):
        assert (tmp_path / "demo" / name).stat().st_size > 0
    assert "report.html" in told
    for shares in stages.values():
        assert shares == sorted(shares)
        assert shares[-1] <= 1
    training = next(shares for label, shares in stages.items() if "Training" in label)
    assert len(training) > 100


def group(label: str, accuracy: float, slowness: float, seeds: int = 2) -> Repeats:
    """Runs that reach an accuracy in equal steps, the slower the longer."""
    found = []
    for seed in range(seeds):
        history = made_up(label, seed, 100, 5)
        assert history.curve is not None
        way = np.linspace(0, accuracy, 100)
        curve = replace(history.curve, accuracy=way, time=slowness * np.arange(1.0, 101.0))
        columns = history.by_round | {"waste": np.full(100, slowness)}
        found.append(Run(replace(history, curve=curve, by_round=columns)))
    return repeats(found)[0]


def test_what_is_saved_is_measured() -> None:
    text = saved([group("a", 0.99, 4.0), group("b", 0.99, 3.0)], 0.9)
    assert text.endswith(": 25% less time and 25% less waste.")
    # 0.9 is reached in round 91 of 100, of 3 and 4 s each.
    assert "in 4.55 min with 0.0758 client-hours" in text
    assert "in 6.07 min with 0.101 client-hours" in text


def test_nothing_saved_is_called_so() -> None:
    slower = saved([group("a", 0.99, 3.0), group("b", 0.99, 6.0)], 0.9)
    assert slower.endswith(": 100% more time and 100% more waste.")
    alike = saved([group("a", 0.99, 3.0), group("b", 0.99, 3.0)], 0.9)
    assert alike.endswith(": as much time and as much waste.")
    low = saved([group("a", 0.99, 3.0), group("b", 0.5, 3.0)], 0.9)
    assert low.startswith("Planned rounds did not reach 90% accuracy")
    only = saved([group("a", 0.5, 3.0), group("b", 0.99, 3.0)], 0.9)
    assert "guessed ones do not reach it" in only


def test_what_may_be_chance_is_called_so() -> None:
    def apart(slow: float) -> str:
        guess, planned = group("a", 0.99, 4.0), group("b", 0.99, 3.0)
        slower = replace(group("b", 0.99, slow).runs[1].history, seed=2)
        return saved([replace(g, runs=[*g.runs, Run(h)]) for g, h in (
            (guess, guess.runs[0].history), (planned, slower))], 0.9)  # fmt: skip

    doubt = "(less than two standard errors: no difference yet)"
    assert apart(5.0).count(doubt) == 2
    assert doubt not in apart(3.1)


def test_files_of_others_are_not_overwritten(tmp_path: Path) -> None:
    for name in (demo.PAGE, demo.LOG, demo.FITTED, demo.PICTURE):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("mine")
        with pytest.raises(FileError, match=r"would overwrite this file.* Name another folder"):
            tell(folder, print)
        assert [(path.name, path.read_text()) for path in folder.iterdir()] == [(name, "mine")]


def test_an_earlier_demo_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / demo.LOG).write_text("old")
    page.write(tmp_path / demo.PAGE, demo.TITLE, [])
    demo._refuse_strays(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be made"):
        tell(tmp_path / "file" / "demo", print)


def test_the_log_counts_its_failed_rounds(tmp_path: Path) -> None:
    fleet = phones(demo.CLIENTS, seed=demo.SEED, examples=demo.EXAMPLES)
    failed = demo._write_log(fleet, tmp_path / "log.csv")
    rows = (tmp_path / "log.csv").read_text().splitlines()[1:]
    reported = np.array([bool(row.split(",")[1]) for row in rows]).reshape(demo.ROUNDS, -1)
    assert failed == int((reported.sum(axis=1) < demo.QUORUM).sum()) > 0
