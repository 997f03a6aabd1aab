"""Tables that compare policies: costs to an accuracy, client time by fate, fairness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cafe.analysis.run_groups import RunGroup, group_runs
from cafe.report import comparison_cells
from cafe.rounds import Fate
from cafe.wording import format_share
from tests.analysis.test_accuracy_costs import group
from tests.support.runs import Run, never_succeeding


def with_work(work: dict[Fate, float], total: float, label: str, seeds: int = 2) -> RunGroup:
    """Runs with one round; in run k, k + 1 times this client time for each fate."""
    runs = []
    base = group(*[[0.5]] * seeds, label=label)
    for k, history in enumerate(base.histories, 1):
        row = np.zeros((1, len(Fate)))
        for fate, time in work.items():
            row[0, fate] = k * time
        columns = history.by_round | {"work_by_fate": row, "work": np.array([k * total])}
        runs.append(Run(replace(history, by_round=columns), {"label": label}))
    [found] = group_runs(runs)
    return found


def test_shares_of_client_time() -> None:
    """6 of 10 s in fresh jobs, 3 in late ones, 1 in a kept report without a fate."""
    first = with_work({Fate.FRESH: 6.0, Fate.LATE: 3.0}, 10.0, "first")
    second = with_work({Fate.FRESH: 5.0, Fate.CANCELLED: 5.0}, 10.0, "second")
    cells = comparison_cells.work_shares([first, second])
    assert cells is not None
    assert cells.columns == ["", "merged fresh", "late", "cancelled", "open"]
    assert cells.rows == [["first", "60%", "30%", "0", "10%"], ["second", "50%", "0", "50%", "0"]]
    cells = comparison_cells.work_share_differences([first, second])
    assert cells is not None
    assert cells.rows == [["second", "-10", "-30", "+50", "-10"]]


def test_standard_error_of_a_share_is_that_of_the_ratio_of_sums() -> None:
    """Fresh 6 of 10 and 14 of 20: 2/3; residuals -2/3 and 2/3, over a mean of 15."""
    first = with_work({Fate.FRESH: 6.0}, 10.0, "first")
    [one, two] = first.histories
    row = np.zeros((1, len(Fate)))
    row[0, Fate.FRESH] = 14.0
    two = replace(two, by_round=two.by_round | {"work_by_fate": row})
    [uneven] = group_runs([Run(h, {"label": "first"}) for h in (one, two)])
    found = uneven.estimate("work_share_fresh")
    assert found.mean == pytest.approx(2 / 3)
    assert found.error == pytest.approx((2 / 3) / 15)  # std(-2/45, 2/45) / sqrt(2) = 2/45


def test_old_logs_have_no_client_time_by_fate() -> None:
    old = group([0.5], [0.6])
    unknown = {"work_by_fate": np.full((1, len(Fate)), np.nan)}
    runs = [Run(replace(h, by_round=h.by_round | unknown), {}) for h in old.histories]
    groups = group_runs(runs)
    assert comparison_cells.work_shares(groups) is None
    assert comparison_cells.work_share_differences(groups) is None


def test_fairness_leaves_out_what_no_run_has() -> None:
    """Ages 1 and merges 1 of three clients; accuracies are known for one policy."""
    old, base = group([0.5], [0.6]), group([0.5], [0.6], label="new")
    cells = comparison_cells.fair([old])
    assert cells is not None
    assert cells.columns == ["", "oldest, s", "over mean", "least merged over mean"]
    assert cells.rows[0][1:] == ["1", "1", "1"]
    each = [np.array([0.25, 0.5, 0.75]), np.array([0.35, 0.5, 0.65])]
    [new] = group_runs(
        [
            Run(replace(h, accuracy_by_client=a), {"label": "new"})
            for h, a in zip(base.histories, each, strict=True)
        ]
    )
    cells = comparison_cells.fair([old, new])
    assert cells is not None
    assert cells.columns[4:] == ["worst accuracy", "spread"]
    assert cells.rows[0][4:] == ["-", "-"]
    assert cells.rows[1][4] == format_share(0.3, 0.05)  # of three clients, a tenth is one
    against = comparison_cells.fair_differences([new, old])
    assert against is not None
    assert against.rows[0][1:] == ["0", "0", "0", "-", "-"]
    twice = [new, replace(new, label="again")]
    against = comparison_cells.fair_differences(twice)
    assert against is not None
    assert against.rows[0][4] == "0"


def test_costs_until_an_accuracy() -> None:
    """2, 4 and 6 s; in the other policy one run of 8 s does not reach 0.9."""
    first = group([0.9], [0.1, 0.9], [0.1, 0.1, 0.9], label="first")
    other = group([0.9], [0.1, 0.9], [0.1] * 4, label="other")
    cells = comparison_cells.spent_until([first, other], 0.9)
    assert cells is not None
    assert cells.title.startswith("What it took to reach an accuracy of 90%: costs up to the first")
    assert "at most 2 s after the one before" in cells.title
    assert cells.columns[:3] == ["", "reached by", "time, s"]
    assert cells.rows[0][:3] == ["first", "3 of 3", "4.0 ± 1.2"]
    assert cells.rows[1][:3] == ["other", "2 of 3", "≥ 4.7 ± 1.8"]
    against = comparison_cells.spent_differences([first, other], 0.9)
    assert against is not None
    assert against.rows[0][:2] == ["other", "≥ +0.67 ± 0.67"]
    assert comparison_cells.spent_differences([first], 0.9) is None
    assert comparison_cells.spent_until(group_runs([never_succeeding()]), 0.9) is None
    default = comparison_cells.spent_until([first])
    assert default is not None
    assert "90%" in default.title
    assert "≥" not in default.title
