"""The page of runs shows what was measured, and needs no other file."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.analysis.run_groups import group_runs
from cafe.report import (
    run_page,
)
from cafe.wording import (
    format_estimate,
    format_number,
)
from tests.support.html import check, rows_of
from tests.support.runs import (
    Run,
    federation,
    made_up,
    never_succeeding,
)


def written(folder: Path, results: list[Run], **options: Any) -> str:
    file = folder / "runs.html"
    run_page.write(file, results, **options)
    return file.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_of_several_policies_and_seeds(learned: list[Run], tmp_path: Path) -> None:
    held = np.arange(60).reshape(20, 3)
    options: dict[str, Any] = {"title": "A <page>", "story": ["1 < 2"], "class_counts": held}
    text = written(tmp_path, learned, **options)
    check(text)
    assert text == written(tmp_path, learned, **options)  # the same bytes
    assert "<h1>A &lt;page&gt;</h1><p>1 &lt; 2</p>" in text
    assert "class-counts-figure_1" in text
    assert text.count("<svg") == 6
    for picture in ("accuracy", "age", "fates", "weight", "theory"):
        assert f'id="{picture}-figure_1"' in text
    rows = rows_of(text)
    for group in group_runs(learned):
        for name in ("waste", "processing_waste", "client_seconds"):
            found = group.estimate(name)
            own = [row for row in rows if row and row[0] == group.label]
            assert any(format_estimate(found.mean, found.error) in row[1] for row in own), name
        assert group.policy in unescape(text)
    assert "different seeds" in text
    assert "Network traffic" in text
    assert "[run]\nrounds = 9" in text
    assert "1.2.3" in text


def test_the_page_shows_the_figures_of_the_history(ledgers: list[Run], tmp_path: Path) -> None:
    run = ledgers[0]
    text = written(tmp_path, [run])
    check(text)
    assert "blocks of the run" in text.replace("&#x27;", "'")
    assert 'id="accuracy-' not in text
    assert "not finished" not in text
    own = next(row for row in rows_of(text) if len(row) == 8 and row[1] == "0")
    history = run.history
    assert own[2:6] == [
        f"{history.rounds:,}",
        f"{history.updates:,}",
        format_number(history.virtual_time),
        format_number(history.waste_per_update),
    ]
    jobs = next(row for row in rows_of(text) if len(row) > 1 and row[1] == f"{history.jobs:,}")
    shown = {int(cell.split(" ")[0].replace(",", "")) for cell in jobs[2:]}
    assert shown == {count for count in history.fates.values() if count}


@pytest.mark.slow
def test_pages_of_large_runs_are_small(tmp_path: Path) -> None:
    policies = [f"mcu(quorum={q}, deadline=0.5)" for q in range(1, 7)]
    results = [
        Run(made_up(p, seed, 100_000, 100_000), {"text": "a\n" * 10**6})
        for p in policies
        for seed in (0, 1)
    ]
    text = written(tmp_path, results, class_counts=np.ones((100_000, 10), dtype=int))
    check(text)


@pytest.mark.slow
def test_a_run_in_which_no_round_succeeded(tmp_path: Path, ledgers: list[Run]) -> None:
    text = written(tmp_path, [never_succeeding()])
    check(text)
    assert "infinite" in text
    both = written(tmp_path, [never_succeeding(), ledgers[0]])
    check(both)
    best = re.findall(r"<li>(.*?)</li>", both)
    assert best
    assert all(ledgers[0].provenance["policy"].startswith(line[:3]) for line in best)
    # A run without updates is not the best in anything.
    assert not any("deadline 0.01" in line for line in best)


@pytest.mark.slow
def test_unfinished_runs_are_marked(tmp_path: Path, ledgers: list[Run]) -> None:
    run = ledgers[0]
    empty = replace(
        run.history,
        by_round={name: column[:0] for name, column in run.history.by_round.items()},
        age_by_client=np.full(20, np.nan),
        weight_by_client=np.full(20, np.nan),
    )
    cut = Run(empty, {}, federation(), finished=False)
    for results in ([cut], [cut, *ledgers]):
        text = written(tmp_path, results)
        check(text)
        assert "1 of the runs had not finished" in text


@pytest.mark.slow
def test_one_evaluation_or_none_is_accepted(tmp_path: Path) -> None:
    history = made_up("mcu(quorum=1, deadline=2)", 0, 30, 5)
    assert history.curve is not None
    for number_of in (0, 1):
        few = replace(history.curve, **{k: v[:number_of] for k, v in vars(history.curve).items()})
        check(written(tmp_path, [Run(replace(history, curve=few))]))
    values = replace(history.curve, accuracy=np.full(30, np.nan))
    text = written(tmp_path, [Run(replace(history, curve=values))])
    check(text)
    assert "accuracy" not in "".join(row[0] for row in rows_of(text) if row)
