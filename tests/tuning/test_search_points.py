"""Points of a search: their ranges, their spread, and their neighbours."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.errors import InputError
from cafe.policies import recipes, resolve
from cafe.tuning.search_points import (
    MOST_NUMBERS,
    PolicySetting,
    Ranges,
    make_setting,
    neighbours,
    sequence_of_settings,
)
from cafe.tuning.spaces import MODEL_NUMBERS, SPACES, space_of

FEDERATION = cafe.Federation(40, cafe.Exponential(rate=1.0))
REQUIRED: dict[str, dict[str, Any]] = {
    "flanp": {"threshold": 0.01},
    "fedtune": {"alpha": 0.5, "beta": 0.5, "gamma": 0.0, "delta": 0.0},
}


def ranges(asynchronous: bool = False, **kept: Any) -> Ranges:
    return Ranges(FEDERATION, kept, {}, asynchronous)


def some(name: str, count: int, given: Ranges) -> list[PolicySetting]:
    return [*islice(sequence_of_settings(SPACES[name], given), count)]


@pytest.mark.parametrize("name", SPACES)
def test_settings_of_every_space_make_valid_policies(name: str) -> None:
    for setting in some(name, 20, ranges(**REQUIRED.get(name, {}))):
        policy: Any = resolve(name)(**setting.parameters)
        policy.check(FEDERATION)


def test_every_recipe_with_one_level_has_a_space() -> None:
    assert SPACES.keys() | {"hierarchical", "cost_aware_hierarchical"} == recipes().keys()


def test_deadlines_reach_from_the_first_report_to_the_last() -> None:
    low, high = ranges().deadlines
    assert 40 * -np.expm1(-low) == pytest.approx(0.1, rel=1e-6)
    assert 40 * np.exp(-high) == pytest.approx(1e-4, rel=1e-6)
    deadlines = [each.parameters["deadline"] for each in some("salvage", 16, ranges())]
    gaps = np.diff(np.log(sorted([low, *deadlines, high])))
    assert gaps.max() < 2.5 * np.log(high / low) / 17, "spread evenly"
    assert all(float(f"{value:.4g}") == value for value in deadlines)


def test_settings_differ_and_end_when_there_are_no_more() -> None:
    small = Ranges(cafe.Federation(3, cafe.Exponential(rate=1.0)), {"deadline": 1.0}, {}, False)
    found = [*sequence_of_settings(SPACES["timely"], small)]
    pairs = {(each.parameters["cohort"], each.parameters["goal"]) for each in found}
    assert len(pairs) == len(found)
    assert pairs == {(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)}


def test_kept_numbers_are_not_searched() -> None:
    for setting in some("fedbuff", 10, ranges(asynchronous=True, concurrency=12)):
        assert setting.parameters["concurrency"] == 12
        assert 1 <= setting.parameters["goal"] <= 12
        assert [each.name for each in setting.asked] == ["goal"]


def test_numbers_of_the_model_keep_their_defaults() -> None:
    for name in SPACES:
        for setting in some(name, 3, ranges()):
            assert not MODEL_NUMBERS & setting.parameters.keys()
    kept = some("fedprox", 1, ranges(prox=0.3))[0]
    assert kept.parameters["prox"] == 0.3
    assert kept.parameters["fraction"] * 40 == pytest.approx(
        round(kept.parameters["fraction"] * 40)
    )


def test_asynchronous_policies_only_give_up_lost_clients() -> None:
    found = {each.parameters["deadline"] for each in some("fedasync", 5, ranges(asynchronous=True))}
    assert found == {float(f"{-np.log(0.01):.4g}")}


def test_neighbours_change_one_number() -> None:
    given = ranges()
    start = make_setting(SPACES["over_selection"], given, [0.5] * MOST_NUMBERS)
    near = neighbours(
        start, lambda point: make_setting(SPACES["over_selection"], given, point), 1.2
    )
    goal, deadline = start.parameters["goal"], start.parameters["deadline"]
    changed = [(each.parameters["goal"], each.parameters["deadline"]) for each in near]
    assert {(a, b) for a, b in changed if b == deadline} == {(goal - 1, b) for b in [deadline]} | {
        (goal + 1, deadline)
    }
    others = sorted(b / deadline for a, b in changed if a == goal and b != deadline)
    assert others == pytest.approx([1 / 1.2, 1.2], rel=1e-3)


def test_edges_of_a_range() -> None:
    low = make_setting(SPACES["salvage"], ranges(), [0.0] * MOST_NUMBERS)
    high = make_setting(SPACES["salvage"], ranges(), [1.0] * MOST_NUMBERS)
    assert (low.asked[0].at_edge, high.asked[0].at_edge) == ("shortest", "longest")
    assert low.asked[0].moved(0.5) == 0.0
    assert high.asked[0].moved(2.0) == 1.0


def test_own_recipes_are_searched_by_the_names_of_their_parameters() -> None:
    def own(*, quorum: int, deadline: float, cohort: int, taste: int) -> None: ...

    with pytest.raises(InputError, match="--keep taste=1"):
        space_of("my:own", own, {})
    space = space_of("my:own", own, {"taste": 2})
    found = make_setting(space, ranges(taste=2), [0.5] * MOST_NUMBERS)
    assert found.parameters.keys() == {"quorum", "deadline", "cohort", "taste"}

    def no_deadline(*, quorum: int, fraction: float, extra: float = 2.0) -> None: ...

    found = make_setting(space_of("my:b", no_deadline, {}), ranges(), [0.5] * MOST_NUMBERS)
    assert found.parameters.keys() == {"quorum", "fraction"}
