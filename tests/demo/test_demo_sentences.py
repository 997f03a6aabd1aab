"""The first sentence is based on measurements, and says so if nothing is saved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cafe.analysis.run_groups import RunGroup, group_runs
from cafe.demo.demo_sentences import describe_savings
from tests.support.runs import Run, made_up


def group(label: str, accuracy: float, slowness: float, seeds: int = 2) -> RunGroup:
    """Runs whose accuracy rises in equal steps; slower runs take longer."""
    found = []
    for seed in range(seeds):
        history = made_up(label, seed, 100, 5)
        assert history.curve is not None
        way = np.linspace(0, accuracy, 100)
        curve = replace(history.curve, accuracy=way, time=slowness * np.arange(1.0, 101.0))
        columns = history.by_round | {"processing_waste": np.full(100, slowness)}
        found.append(Run(replace(history, curve=curve, by_round=columns)))
    return group_runs(found)[0]


def test_savings_are_measured() -> None:
    text = describe_savings(group("a", 0.99, 4.0), group("b", 0.99, 3.0), 0.9)
    assert text.endswith("The plan needs 25% less time and 25% less wasted work.")
    # 0.9 is reached in round 91 of 100, of 3 and 4 s each.
    assert "in 4.55 min and " in text
    assert "of which 0.0758 are wasted. Guessed rounds need 6.07 min" in text
    assert "of which 0.101 are wasted. The plan" in text


def test_text_without_savings() -> None:
    slower = describe_savings(group("a", 0.99, 3.0), group("b", 0.99, 6.0), 0.9)
    assert slower.endswith("needs 100% more time and 100% more wasted work.")
    alike = describe_savings(group("a", 0.99, 3.0), group("b", 0.99, 3.0), 0.9)
    assert alike.endswith("needs as much time and as much wasted work.")
    low = describe_savings(group("a", 0.99, 3.0), group("b", 0.5, 3.0), 0.9)
    assert low.startswith("Planned rounds did not reach 90% accuracy")
    only = describe_savings(group("a", 0.5, 3.0), group("b", 0.99, 3.0), 0.9)
    assert "guessed ones do not reach it" in only


def test_insignificant_savings_are_marked() -> None:
    def apart(slow: float) -> str:
        guess, planned = group("a", 0.99, 4.0), group("b", 0.99, 3.0)
        slower = replace(group("b", 0.99, slow).runs[1].history, seed=2)
        guess = replace(guess, runs=[*guess.runs, Run(guess.runs[0].history)])
        return describe_savings(guess, replace(planned, runs=[*planned.runs, Run(slower)]), 0.9)

    doubt = "(less than two standard errors: not significant)"
    assert apart(5.0).count(doubt) == 2
    assert doubt not in apart(3.1)
