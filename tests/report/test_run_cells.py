"""Tables of runs show the estimates, and mark the lowest costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cafe.analysis.run_groups import group_runs
from cafe.report import (
    run_cells,
)
from cafe.wording import (
    TRAFFIC,
    format_estimate,
    format_number,
)
from tests.support.runs import (
    Run,
)


def test_page_shows_the_network_traffic(learned: list[Run], ledgers: list[Run]) -> None:
    """Logistic regression of 3 classes on 3 features has 12 numbers of 4 bytes."""
    [mcu, *_] = learned
    sums = {name: mcu.history.by_round[name].sum() for name in TRAFFIC}
    assert sums["downloads"] == mcu.history.jobs == 20 * 60
    assert sums["bytes_down"] == 48 * sums["downloads"]
    assert sums["bytes_up"] == 48 * mcu.history.by_round["reports"].sum()
    cells = run_cells.traffic(group_runs(learned))
    assert cells is not None
    assert cells.columns == ["", "models sent", "sent to clients, bytes", "received, bytes"]
    for group, row in zip(group_runs(learned), cells.rows, strict=True):
        assert row[1] == run_cells.format_mean(group.estimate("downloads"))
    # Where nothing is learned there is no model with a size.
    cells = run_cells.traffic(group_runs(ledgers))
    assert cells is not None
    assert cells.columns == ["", "models sent"]
    # Logs of earlier versions have no counts of bytes.
    none = {name: np.zeros(mcu.history.rounds) for name in TRAFFIC}
    old = replace(mcu.history, by_round=mcu.history.by_round | none)
    assert run_cells.traffic(group_runs([replace(mcu, history=old)])) is None


def test_the_table_against_theory(ledgers: list[Run]) -> None:
    (group, *_) = group_runs(ledgers)
    cells = run_cells.theory(group)
    assert cells is not None
    row = next(r for r in cells.rows if r[:2] == ["waste", "client-s per update"])
    found, expected = group.estimate("waste"), group.expected["waste"]
    off = (found.mean - expected) / found.error
    shown = format_estimate(found.mean, found.error)
    assert row[2:5] == [shown, format_number(expected), f"{off:+.1f}"]


def test_clearly_least_cost_is_marked_in_every_denominator(learned: list[Run]) -> None:
    """The policies have the same seeds, so the differences of runs with the same seed count."""
    groups = group_runs(learned)
    for cells, (_, names) in zip(run_cells.costs(groups), run_cells.COSTS, strict=True):
        for column, name in enumerate(names, start=1):
            values = [group.values(name) for group in groups]
            least = min(values, key=np.mean)
            more = [each - least for each in values]
            clear = [e.mean() > 2 * e.std(ddof=1) / len(e) ** 0.5 for e in more if e.any()]
            starred = [row[column].endswith(" *") for row in cells.rows]
            assert starred == [bool(clear) and all(clear) and not e.any() for e in more]


def test_differences_are_paired_by_seed(learned: list[Run]) -> None:
    groups = group_runs(learned)
    cells = run_cells.differences(groups)
    assert cells is not None
    differences = groups[2].values("waste") - groups[0].values("waste")
    error = differences.std(ddof=1) / 3**0.5
    assert cells.rows[1][1] == format_estimate(differences.mean(), error)
    assert differences.mean() < 0  # AGU wastes less, and meets the same response times
    assert run_cells.differences(group_runs(learned[:-1])) is None
    assert run_cells.differences(group_runs(learned[:3])) is None
    assert run_cells.differences(group_runs(learned[::3])) is None
