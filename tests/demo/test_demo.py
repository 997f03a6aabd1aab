"""The demo runs as a whole, and overwrites no files of others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cafe.demo import demo
from cafe.demo.demo import run_demo
from cafe.errors import FileError
from cafe.progress import ProgressCallback
from cafe.report import (
    page,
)
from tests.support.terminal import text_of


@pytest.mark.slow
def test_demo_prints_and_writes_its_results(tmp_path: Path) -> None:
    lines: list[Any] = []
    stages: dict[str, list[float]] = {}

    @contextmanager
    def bar(label: str) -> Iterator[ProgressCallback]:
        yield stages.setdefault(label, []).append

    run_demo(tmp_path / "demo", lines.append, bar, seeds=2, budget=1200)
    told = "\n".join(line if isinstance(line, str) else text_of(line) for line in lines)

    spent = r"([\d.]+) min and ([\d.]+) client-hours of work, of which ([\d.]+) are wasted"
    first = re.match(
        f"Planned rounds reach 90% accuracy in {spent}. Guessed rounds need {spent}. "
        r"The plan needs (\d+)[^%]*% less time.* and (\d+)[^%]*% less wasted work",
        told,
    )
    assert first
    time, work, waste, time_guessed, work_guessed, waste_guessed, less, saved = map(
        float, first.groups()
    )
    assert waste <= work  # nothing is wasted that was not done
    assert waste_guessed <= work_guessed
    assert waste < waste_guessed / 3
    assert less == pytest.approx(100 * (1 - time / time_guessed), abs=1.5)
    assert saved == pytest.approx(100 * (1 - waste / waste_guessed), abs=1.5)
    rows = {line[:5]: line for line in told.splitlines() if ": MCU, " in line}
    for name, minutes in (("guess", time_guessed), ("plan:", time)):
        seconds = float(re.split(r"  +", rows[name])[2].split(" ")[0].replace(",", ""))
        assert seconds == pytest.approx(60 * minutes, rel=0.01)

    found = re.search(
        r"the plan costs ([\d.]+), the guess ([\d.]+), and a plan that .* costs (\d+\.\d+)", told
    )
    assert found
    planned, guessed, best = map(float, found.groups())
    assert best <= planned < guessed

    written = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    opening = lines[0].strip()
    assert written.index("<h1>The plan</h1>") < written.index("<h1>Training with the plan")
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


def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    for name in (demo.PAGE, demo.LOG, demo.FITTED, demo.PICTURE):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("mine")
        with pytest.raises(FileError, match=r"would overwrite this file.* Choose another folder"):
            run_demo(folder, print)
        assert [(path.name, path.read_text()) for path in folder.iterdir()] == [(name, "mine")]


def test_earlier_demo_may_be_overwritten(tmp_path: Path) -> None:
    (tmp_path / demo.LOG).write_text("old")
    page.write(tmp_path / demo.PAGE, demo.TITLE, [])
    demo.check_output(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be created"):
        run_demo(tmp_path / "file" / "demo", print)
