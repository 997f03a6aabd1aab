"""Labels of policies are short and unique."""

from __future__ import annotations

from dataclasses import replace

from cafe.analysis.policy_labels import short_labels
from cafe.analysis.run_groups import group_runs
from tests.support.runs import Run, made_up


def test_labels() -> None:
    assert short_labels(["mcu(quorum=1, deadline=17.496123)"]) == ["mcu, quorum 1, deadline 17.5"]
    alike = ["mcu(quorum=1, deadline=0.50001)", "mcu(quorum=1, deadline=0.50002)"]
    assert short_labels(alike) == alike
    assert short_labels(["something else"]) == ["something else"]
    run = made_up("mcu(quorum=1, deadline=2)", 0, 9, 4)
    told = [Run(run, {"label": label}) for label in ("patient", "mcu")]
    assert [g.label for g in group_runs(told)] == ["patient", "mcu, quorum 1, deadline 2"]
    other = replace(run, policy="mcu(quorum=1, deadline=3)")
    twice = [Run(history, {"label": "patient"}) for history in (run, other)]
    assert [g.label for g in group_runs(twice)] == [
        "patient: mcu, quorum 1, deadline 2",
        "patient: mcu, quorum 1, deadline 3",
    ]
