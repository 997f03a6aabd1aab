"""The search for the best setting: successive halving, a refinement, and finalists on fresh seeds.

All settings of a stage are run with the same seeds, so that differences are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from cafe.errors import InfeasibleError, InputError
from cafe.progress import ProgressCallback
from cafe.tuning.measured_setting import MeasuredSetting, SearchGoal, interval_of
from cafe.tuning.run_totals import NoRun, RunLength, RunRequest, RunTotals, simulate_totals
from cafe.tuning.search_points import PolicySetting, neighbours
from cafe.workers.backends import RunCalls

FIRST_SEEDS, MORE_SEEDS = 4, 8
CHOICE_SEEDS, REPORT_SEEDS = (8, 16), (16, 32)  # more only if they are needed
KEPT = 3  # one of this many settings goes on
LEAST_KEPT = 4
FINALISTS = 4
FACTORS = (1.4, 1.15, 1.05, 1.02)  # by which the refinement changes a number
REPEATS = 6  # passes with a factor, as long as they find a better setting
PRECISE = 0.01  # a share of the cost: differences below it, and errors below twice it, are small
CHOICE, REPORT = 1_000, 2_000  # the first seeds for the choice and for the report
SEED_BLOCK = 10_000  # seeds of one search
TRIES = (1, 16, 36, 48)  # settings of the first stage by the number of searched numbers
STAGES = (0.3, 0.5, 0.65, 0.8, 1.0)  # the share of the work that is done after each stage


@dataclass(frozen=True)
class SearchSize:
    """The size of a search.

    Attributes:
        tries: settings of the first stage.
        length: the length of its runs.
        growth: how much longer the runs of the second stage and of the finalists are.
    """

    tries: int
    length: RunLength
    growth: tuple[int, int]

    @classmethod
    def of(cls, clients: int, numbers: int, tries: int | None) -> SearchSize:
        """The size for a federation; with many clients, averages over clients need less time."""
        many = clients > 1000
        length = RunLength(1.0 if many else 3.0, max(400, 4 * clients))
        chosen = TRIES[min(numbers, len(TRIES) - 1)] if tries is None else tries
        return cls(chosen, length, (2, 3) if many else (2, 4))


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes:
        finalists: the settings that were run with fresh seeds, the best first.
        tried: how many settings were run.
        invalid: how many settings were skipped because their numbers do not fit together.
        stuck: how many were left out because a round would never end.
        reason: why the first of the skipped ones could not be run; empty if none was skipped.
        rounds: how many rounds were simulated.
        runs: how many runs were simulated.
    """

    finalists: tuple[MeasuredSetting, ...]
    tried: int
    invalid: int
    stuck: int
    reason: str
    rounds: int
    runs: int


@dataclass(eq=False)
class HalvingSearch:
    """A search in progress.

    Attributes:
        request: a run of the policy; the search sets its parameters, length and seed.
        goal: what is minimised.
        calls: where runs are simulated.
        first_seed: the first seed; a search has ``SEED_BLOCK`` seeds.
    """

    request: RunRequest
    goal: SearchGoal
    calls: RunCalls
    first_seed: int
    failed: dict[str, NoRun] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    rounds: int = 0
    runs: int = 0

    def measure(
        self,
        settings: Sequence[PolicySetting],
        length: RunLength,
        seeds: range,
        known: Sequence[MeasuredSetting] = (),
        progress: ProgressCallback | None = None,
    ) -> list[MeasuredSetting]:
        """Run settings with seeds, those of ``known`` with more of them; the best first.

        Settings that cannot be run are left out.
        """
        before = {each.setting.key: each.runs for each in known}
        asked = [each for each in settings if each.key not in self.failed]
        requests = [
            replace(self.request, parameters=each.parameters, length=length, seed=seed)
            for each in asked
            for seed in (self.first_seed + number for number in seeds)
        ]
        done: dict[int, RunTotals | NoRun] = {}
        for index, result in self.calls(simulate_totals, requests):
            if not isinstance(result, RunTotals | NoRun):
                raise InputError(f"A simulation was lost. {result.reason}")
            done[index] = result
            if progress is not None:
                progress(len(done) / len(requests))
        found = []
        for number, each in enumerate(asked):
            results = [done[number * len(seeds) + i] for i in range(len(seeds))]
            self.seen.add(each.key)
            failures = [one for one in results if isinstance(one, NoRun)]
            if failures:
                self.failed[each.key] = failures[0]
                continue
            new = [one for one in results if isinstance(one, RunTotals)]
            self.runs += len(new)
            self.rounds += round(sum(one.amounts["rounds"] for one in new))
            runs = (*before.get(each.key, ()), *new)
            found.append(MeasuredSetting(each, self.goal, runs))
        return sorted(found, key=lambda one: one.rank)


def find_best(
    search: HalvingSearch,
    settings: Iterator[PolicySetting],
    at: Callable[[Sequence[float]], PolicySetting],
    size: SearchSize,
    progress: ProgressCallback | None = None,
) -> SearchResult:
    """HalvingSearch the settings.

    Args:
        search: the search, before its first run.
        settings: the settings of the first stage.
        at: the setting at a point, for the refinement.
        size: how many settings, and how long their runs are.
        progress: called with the share that is done.

    Raises:
        InfeasibleError: if no setting works.
    """

    def stage(number: int) -> ProgressCallback:
        begin, end = (0.0, *STAGES)[number], STAGES[number]
        return lambda done: progress(begin + (end - begin) * done) if progress else None

    first = search.measure(
        [*islice(settings, size.tries)], size.length, range(FIRST_SEEDS), (), stage(0)
    )
    if not any(np.isfinite(each.cost) for each in first):
        raise nothing_works(search)
    longer = _times(size.length, size.growth[0])
    second = search.measure(_kept(first), longer, range(MORE_SEEDS), (), stage(1))
    second = _refine(search, second, at, longer, stage(2))
    longest = _times(size.length, size.growth[1])
    chosen = _choose(search, _finalists(second), longest, stage(3))
    finalists = _report(search, chosen, longest, stage(4))
    if progress is not None:
        progress(1.0)
    failures = [*search.failed.values()]
    return SearchResult(
        (*finalists,),
        len(search.seen) - len(failures),
        sum(each.invalid for each in failures),
        sum(not each.invalid for each in failures),
        failures[0].reason if failures else "",
        search.rounds,
        search.runs,
    )


def nothing_works(search: HalvingSearch) -> InfeasibleError:
    """The error for a search in which no setting works."""
    name, failures = search.request.name, [*search.failed.values()]
    if failures:
        return InfeasibleError(
            f"No setting of the policy {name} can be simulated: {len(failures)} of "
            f"{len(search.seen)} failed. The first reason: {failures[0].reason}"
        )
    return InfeasibleError(
        f"No round of the policy {name} succeeded with any of {len(search.seen)} settings. Give "
        "some of its numbers (--keep), or check the federation."
    )


def _kept(found: Sequence[MeasuredSetting]) -> list[PolicySetting]:
    """The best third, and the best settings that merge every client that counts.

    The cost of a setting that never merged a client is a lower bound, which grows with the rounds.
    In short runs it may be lower than all costs that are known.
    """
    best = [*found[: max(len(found) // KEPT, LEAST_KEPT)]]
    known = [each for each in found if not each.never_merged][:LEAST_KEPT]
    return [each.setting for each in [*best, *(each for each in known if each not in best)]]


def _refine(
    search: HalvingSearch,
    found: list[MeasuredSetting],
    at: Callable[[Sequence[float]], PolicySetting],
    length: RunLength,
    progress: ProgressCallback,
) -> list[MeasuredSetting]:
    """The settings and neighbours of the best ones, the best first."""
    known = {each.setting.key for each in found}
    for number, factor in enumerate(FACTORS):
        for _ in range(REPEATS):
            best = found[0]
            near = {each.key: each for each in neighbours(best.setting, at, factor)}
            new = [each for key, each in near.items() if key not in known]
            known |= near.keys()
            more = search.measure(new, length, range(MORE_SEEDS))
            found = sorted([*found, *more], key=lambda one: one.rank)
            if found[0] is best:
                break
        progress((number + 1) / len(FACTORS))
    return found


def _finalists(found: Sequence[MeasuredSetting]) -> list[PolicySetting]:
    """The best settings that are not clearly worse than the best, at least two; equal ones once."""
    different = list[MeasuredSetting]()
    for each in found:
        same = any(np.array_equal(each.measured.by_run, x.measured.by_run) for x in different)
        if not same and (len(different) < 2 or not each.is_worse_than(found[0])):
            different.append(each)
    return [each.setting for each in different[:FINALISTS]]


def _choose(
    search: HalvingSearch,
    settings: Sequence[PolicySetting],
    length: RunLength,
    progress: ProgressCallback,
) -> list[PolicySetting]:
    """The finalists, the best first; more seeds until the others are separated from the best."""
    left, out, done = list[MeasuredSetting](), list[MeasuredSetting](), 0
    for end in CHOICE_SEEDS:
        going = [each.setting for each in left] or settings
        left = search.measure(going, length, range(CHOICE + done, CHOICE + end), left)
        done = end
        progress(end / CHOICE_SEEDS[-1])
        worse = [each for each in left if each.is_worse_than(left[0])]
        out += worse
        left = [each for each in left if each not in worse]
        if len(left) == 1 or _is_settled(left):
            break
    return [each.setting for each in [*left, *sorted(out, key=lambda one: one.rank)]]


def _report(
    search: HalvingSearch,
    settings: Sequence[PolicySetting],
    length: RunLength,
    progress: ProgressCallback,
) -> list[MeasuredSetting]:
    """The finalists on seeds that no choice has seen; the first one stays the first."""
    found, done = list[MeasuredSetting](), 0
    for end in REPORT_SEEDS:
        found = search.measure(settings, length, range(REPORT + done, REPORT + end), found)
        found = sorted(found, key=lambda one: (one.setting.key != settings[0].key, one.rank))
        done = end
        progress(end / REPORT_SEEDS[-1])
        if _is_settled(found[:1]):
            break
    return found


def _is_settled(left: Sequence[MeasuredSetting]) -> bool:
    """Whether the cost of the best is known well, and no other can differ from it by much."""
    best, enough = left[0], PRECISE * abs(left[0].cost)
    low, high = best.interval
    others = [interval_of(each.minus(best)) for each in left[1:]]
    return high - low <= 4 * enough and all(end <= enough for _, end in others)


def _times(length: RunLength, factor: int) -> RunLength:
    return RunLength(length.merges * factor, length.most * factor)
