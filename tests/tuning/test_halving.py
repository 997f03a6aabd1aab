"""The search on costs that are known: runs are made up, so every cost and every seed is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.errors import InfeasibleError
from cafe.planner import Prices
from cafe.tuning.halving import CHOICE, REPORT, HalvingSearch, SearchResult, SearchSize, find_best
from cafe.tuning.measured_setting import SearchGoal
from cafe.tuning.run_totals import NoRun, RunLength, RunRequest, RunTotals
from cafe.tuning.search_points import PolicySetting, Ranges, make_setting, sequence_of_settings
from cafe.tuning.spaces import SPACES

FEDERATION = cafe.Federation(20, cafe.Exponential(rate=1.0))
Play = Callable[[RunRequest], RunTotals | NoRun]


def bowl(request: RunRequest, noise: float = 0.2) -> RunTotals:
    """Waste per update is least at a deadline of 0.7, and noise is the same for all settings."""
    deadline = request.parameters["deadline"]
    common = np.random.default_rng(request.seed).normal()
    waste = 5 + math.log(deadline / 0.7) ** 2 + noise * common
    amounts = dict.fromkeys(("rounds", "updates", "time", "work", "jobs"), 10.0)
    return RunTotals({**amounts, "area": 0.0, "waste": 10 * waste}, np.full(20, 10.0), request.seed)


def search(
    play: Play, tries: int = 16, name: str = "salvage"
) -> tuple[SearchResult, list[RunRequest]]:
    asked = list[RunRequest]()

    def calls(work: Callable[[Any], Any], given: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        for number, request in reversed([*enumerate(given)]):  # results come in any order
            asked.append(request)
            yield number, play(request)

    ranges = Ranges(FEDERATION, {}, {}, False)

    def at(point: Sequence[float]) -> PolicySetting:
        return make_setting(SPACES[name], ranges, point)

    request = RunRequest(FEDERATION, name, {}, None, RunLength(1.0, 1), 0)
    made = HalvingSearch(request, SearchGoal(Prices(1.0, 0.0), (), False), calls, first_seed=0)
    size = SearchSize(tries, RunLength(3.0, 100), (2, 4))
    return find_best(made, sequence_of_settings(SPACES[name], ranges), at, size), asked


def test_the_best_deadline_is_found_and_refined() -> None:
    found, _ = search(bowl)
    best = found.finalists[0]
    assert best.parameters["deadline"] == pytest.approx(0.7, rel=0.1)
    assert best.cost == pytest.approx(5.0, abs=0.2)
    assert all(each.is_worse_than(best) for each in found.finalists[1:]), "the noise is common"


def test_settings_of_a_stage_have_the_same_seeds_and_the_report_has_fresh_ones() -> None:
    found, asked = search(bowl)
    lengths = {each.length.merges for each in asked}
    assert lengths == {3.0, 6.0, 12.0}
    for merges, seeds in ((3.0, range(4)), (6.0, range(8))):
        by_setting: dict[float, set[int]] = {}
        for each in asked:
            if each.length.merges == merges:
                by_setting.setdefault(each.parameters["deadline"], set()).add(each.seed)
        assert all(chosen == {*seeds} for chosen in by_setting.values())
    used = {run.seed for each in found.finalists for run in each.runs}
    assert min(used) >= REPORT > CHOICE
    assert found.runs == len(asked)
    assert found.rounds == 10 * len(asked)


def test_the_search_is_deterministic() -> None:
    first, second = search(bowl)[0], search(bowl)[0]
    assert [x.parameters for x in first.finalists] == [x.parameters for x in second.finalists]
    assert first.finalists[0].cost == second.finalists[0].cost


def test_settings_that_cannot_be_run_are_counted() -> None:
    def some(request: RunRequest) -> RunTotals | NoRun:
        if request.parameters["deadline"] < 0.3:
            return NoRun("too short.", invalid=True)
        if request.parameters["deadline"] > 3:
            return NoRun("it never ends.", invalid=False)
        return bowl(request)

    found, _ = search(some)
    assert found.invalid > 0
    assert found.stuck > 0
    assert found.reason in ("too short.", "it never ends.")
    assert found.finalists[0].parameters["deadline"] == pytest.approx(0.7, rel=0.1)


def test_an_error_if_nothing_works() -> None:
    with pytest.raises(InfeasibleError, match=r"failed. The first reason: no\."):
        search(lambda request: NoRun("no.", invalid=True))

    def never(request: RunRequest) -> RunTotals:
        made = bowl(request)
        return RunTotals({**made.amounts, "updates": 0.0}, made.merged, made.seed)

    with pytest.raises(InfeasibleError, match="No round of the policy salvage succeeded"):
        search(never)


def test_noise_that_is_not_common_leaves_several_settings() -> None:
    def noisy(request: RunRequest) -> RunTotals:
        own = round(request.parameters["deadline"] * 1e4)
        shift = np.random.default_rng([request.seed, own]).normal()
        made = bowl(request, noise=0.0)
        waste = made.amounts["waste"] + 10 * shift
        return RunTotals({**made.amounts, "waste": waste}, made.merged, made.seed)

    found, _ = search(noisy)
    best, others = found.finalists[0], found.finalists[1:]
    assert any(not each.is_worse_than(best) for each in others)
    assert len(best.runs) == 32, "the cost is not known well, so all seeds are used"


def test_equal_settings_are_simulated_once_at_the_end() -> None:
    """The quorum changes nothing here, so finalists differ in their deadlines only."""
    found, _ = search(lambda request: bowl(request), 36, "mcu")
    deadlines = [each.parameters["deadline"] for each in found.finalists]
    assert len({*deadlines}) == len(deadlines)
