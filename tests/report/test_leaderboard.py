"""The leaderboard of the page lists all policies, and says which differences are clear."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from cafe.analysis.run_groups import group_runs
from cafe.report import run_page
from cafe.report.leaderboard import first_groups, kind_of, leaderboard
from tests.analysis.test_accuracy_costs import group
from tests.support.html import check, rows_of
from tests.support.runs import Run, made_up


def test_rows_are_ranked_and_say_what_is_clear() -> None:
    fast, slow = group([0.9], [0.9], label="fast"), group([0.1, 0.9], [0.1, 0.9], label="slow")
    never = group([0.1] * 5, [0.1] * 5, label="<never>")
    text = "".join(leaderboard([never, slow, fast], 0.9))
    _, first, second, third = rows_of(text)
    kind = "synchronous"
    costs = ["2", "-", "", "1 (#1)", "15 (#1)", "90%"]
    assert first[:-1] == ["1", "fast", kind, "2 of 2", *costs]
    assert second[:7] == ["2", "slow", kind, "2 of 2", "4", "+2", "yes"]
    assert third[:7] == ["3", "<never>", kind, "0 of 2", "≥ 10", "≥ +8", "yes"]
    assert third[7:9] == ["≥ 5 (#3)", "≥ 75 (#3)"]
    assert "lower bound" in text
    all_ = "".join(leaderboard([slow, fast], 0.9))
    assert "reached by" not in all_
    assert "lower bound" not in all_


def test_one_policy_has_no_leaderboard() -> None:
    assert leaderboard([group([0.9])], 0.9) == []
    ledgers = [Run(made_up(f"mcu(quorum={q}, deadline=1)", 0, 9, 4, curve=False)) for q in (1, 2)]
    assert leaderboard(group_runs(ledgers)) == []


def test_bars_and_their_legend_show_the_fates_that_occur(learned: list[Run]) -> None:
    groups = group_runs(learned)
    text = "".join(leaderboard(groups))
    bars = re.findall(r"<span class=bar role=img aria-label='([^']*)'>(.*?)</span>", text)
    assert len(bars) == len(groups)
    for label, parts in bars:
        widths = [float(width) for width in re.findall(r"width:([\d.]+)%", parts)]
        assert sum(widths) == pytest.approx(100, abs=0.05)
        assert len(widths) == len(label.split(", "))
    assert "merged fresh" in text
    assert "cancelled" not in text
    assert {kind_of(each) for each in groups} == {"synchronous", "semi-asynchronous"}


def test_page_with_thirty_policies(tmp_path: Path) -> None:
    """Every policy is in the leaderboard; plots draw its first ten."""
    runs = [
        Run(made_up(f"mcu(quorum={q}, deadline=0.5)", seed, 30, 20), {"label": f"policy-{q}"})
        for q in range(1, 31)
        for seed in (0, 1)
    ]
    path = tmp_path / "page.html"
    run_page.write(path, runs)
    text = path.read_text()
    check(text)
    board = text[text.index("<h2>Leaderboard") : text.index("<h2>Results")]
    assert len(rows_of(board)[1:]) == 30
    assert "The first 10 of 30 policies of the leaderboard are drawn." in unescape(text)
    groups = group_runs(runs)
    assert first_groups([groups], 30) == groups
    few = first_groups([groups], 4)
    assert [each.label for each in few] == [row[1] for row in rows_of(board)[1:5]]
    assert len(first_groups([groups[:15], groups[15:]], 4)) == 4
