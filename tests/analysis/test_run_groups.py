"""Groups of runs: estimates are those of the histories, and only seeds differ within a group."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.analysis.policy_labels import parse_policy
from cafe.analysis.run_groups import by_scenario, group_runs
from cafe.errors import InputError
from cafe.policies import agu, fedavg, mcu
from cafe.report import (
    run_cells,
    run_page,
)
from cafe.report.run_sentences import count_runs
from cafe.rounds import History
from tests.support.runs import (
    AWU,
    MCU,
    Kept,
    Run,
    federation,
    kept,
    made_up,
    played,
)

# Names of quantities in a history, by their names in the theory and in reports.
SAME = {
    "broadcasts": "broadcasts_per_update",
    "waste": "waste_per_update",
    "waste_per_gradient": "waste_per_gradient",
    "waste_per_time": "waste_per_time",
    "processing_waste": "processing_waste_per_update",
    "processing_waste_per_gradient": "processing_waste_per_gradient",
    "processing_waste_per_time": "processing_waste_per_time",
    "absent_waste": "absent_waste_per_update",
    "client_seconds": "client_seconds_per_update",
    "age": "mean_age",
}


@pytest.mark.parametrize(
    "policy",
    [
        mcu(quorum=11, deadline=0.7),
        mcu(quorum=5, deadline=0.7, late="keep"),
        mcu(quorum=5, deadline=0.7, target=9),
        agu(quorum=12, deadline=0.7, pool="union"),
        fedavg(fraction=0.3, deadline=1.0),
    ],
    ids=str,
)
def test_group_of_one_run_equals_its_history(policy: Any) -> None:
    run = played(policy, seed=3, rounds=80)
    (group,) = group_runs([run])
    for name, attribute in SAME.items():
        assert group.estimate(name).mean == pytest.approx(getattr(run.history, attribute)), name
    share = run.history.updates / run.history.rounds
    assert group.estimate("success_probability").mean == pytest.approx(share)
    assert group.worst_age.mean == run.history.age_by_client.max()
    assert {k: v for k, v in group.fates.items() if k != "open"} == run.history.fates
    assert sum(group.fates.values()) == run.history.jobs


def test_several_runs_are_pooled(learned: list[Run]) -> None:
    group = group_runs(learned)[0]
    histories = [run.history for run in learned[:3]]
    waste, updates = sum(h.waste for h in histories), sum(h.updates for h in histories)
    found = group.estimate("waste")
    assert found.mean == pytest.approx(waste / updates)
    assert found.count == 3
    assert group.final_values("accuracy").tolist() == [h.accuracy for h in histories]
    each = group.relative_weights
    assert each.sum() == pytest.approx(len(each))
    weight = np.mean([h.weight_by_client[4] / h.updates for h in histories])
    assert each[4] == pytest.approx(weight * len(each))


def test_runs_are_grouped_by_policy_and_sorted_by_seed(learned: list[Run]) -> None:
    groups = group_runs([*learned[::-1]])
    assert [group.seeds for group in groups] == [[0, 1, 2]] * 3
    assert [parse_policy(group.policy)[0] for group in groups] == ["agu", "awu", "mcu"]
    assert groups[-1].label == "mcu, quorum 11, deadline 0.7"


def test_empty_list_of_runs_is_refused() -> None:
    with pytest.raises(InputError, match="At least one result is required"):
        group_runs([])


def test_run_without_rounds_is_accepted() -> None:
    history = made_up("mcu(quorum=1, deadline=2)", 0, 9, 4)
    empty: History = replace(
        history,
        by_round={name: column[:0] for name, column in history.by_round.items()},
        age_by_client=np.full(4, np.nan),
        weight_by_client=np.full(4, np.nan),
        curve=None,
    )
    (group,) = group_runs([Run(empty, {}, federation(4), finished=False)])
    assert np.isnan(group.estimate("waste").mean)
    assert group.ages.size == 0
    assert group.expected == {}
    assert group.unfinished == 1


@pytest.mark.slow
def test_duplicate_runs_count_once(tmp_path: Path) -> None:
    both = [kept(policy=policy, seed=seed) for policy in (MCU, AWU) for seed in (0, 1)]
    again = [kept("again", seed=1), *both]
    groups = group_runs(again)
    assert [group.seeds for group in groups] == [[0, 1], [0, 1]]
    for group, alone in zip(groups, group_runs(both), strict=True):
        assert group.label == alone.label
        assert group.estimate("waste") == alone.estimate("waste")
    assert run_cells.differences(groups) is not None
    run_page.write(tmp_path / "page.html", again)
    assert "1 run left out: another run has the same" in (tmp_path / "page.html").read_text()
    run_page.write(tmp_path / "page.html", both)
    assert "left out" not in (tmp_path / "page.html").read_text()


def test_of_duplicate_runs_the_longest_counts() -> None:
    for results in ([kept(rounds=3), kept("b", rounds=9)], [kept(rounds=9), kept("b", rounds=3)]):
        (group,) = group_runs(results)
        assert [history.rounds for history in group.histories] == [9]


@pytest.mark.parametrize(
    "other",
    [{"learner": {"name": "mlp"}}, {"run": {"rounds": 3}}, {"files": {"clients.csv": "1"}}],
    ids=str,
)
def test_runs_of_other_scenarios_are_not_duplicates(other: Any) -> None:
    results = [kept(), kept("b", seed=1, **other), kept("b", AWU, seed=1, **other)]
    groups = group_runs(results)
    assert [group.label for group in groups] == [
        "a: mcu, quorum 1, deadline 2",
        "b: mcu, quorum 1, deadline 2",
        "b: awu, quorum 1, deadline 2",
    ]
    assert [len(each) for each in by_scenario(groups)] == [1, 2]
    assert count_runs(groups).startswith("2 scenarios, up to 2 policies each, 3 runs")
    (same,) = group_runs([kept(), kept("b", seed=1)])
    assert same.label == "mcu, quorum 1, deadline 2"


def test_scenarios_are_labelled_by_their_folders() -> None:
    def called(*results: Kept) -> list[str]:
        return [group.scenario for group in group_runs(results)]

    assert called(kept("x/a"), kept("x/b", task={})) == ["a", "b"]
    ways = called(kept("x/a"), kept("y/a", task={}))
    assert ways == ["results/x/a/mcu-seed-0", "results/y/a/mcu-seed-0"]
    assert called(kept("a"), replace(kept("a", task={}), folder=Path("live"))) == ["a", "live"]
