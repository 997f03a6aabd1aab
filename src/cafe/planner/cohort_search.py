"""The search for a cohort and a target: how many clients to invite, and when enough have reported.

For each cohort and target on a grid, the best deadline is found on a federation of few kinds that
stands for the true one. The grid is then refined around the best choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from cafe.errors import InfeasibleError, InputError, did_you_mean
from cafe.federation import Federation
from cafe.planner.deadline_search import DeadlineSearch, Optimum
from cafe.planner.goals import Goal, Prices
from cafe.planner.representatives import representatives
from cafe.progress import ProgressCallback
from cafe.theory import Turnout

KINDS = 64  # kinds of the federation on which cohorts and targets are compared
SHARES = (0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.9999)  # of reports by a deadline
FACTORS = (1.3, 1.12, 1.05, 1.02)  # between deadlines beside the best one
REACH = 0.9  # the share of rounds that must reach a given target
OVER = (1.0, 1.1, 1.2, 1.35, 1.55, 1.8, 2.2, 3.0, 5.0, 10.0, 30.0, 100.0)  # cohort / target
PARTS = (1.0, 0.85, 0.6, 0.3)  # target / cohort
PER_DECADE = 3  # cohorts on the grid, if no target is given
STEPS = (1.2, 1.08, 1.03, 1.01)  # factors of the refinement

Size = int | Literal["auto", "all"] | None


def check_size(name: str, value: Size, clients: int) -> None:
    """Raise an error unless a size is a whole number, ``"auto"``, ``"all"`` or None."""
    if value is None or (isinstance(value, str) and value in ("auto", "all")):
        return
    if isinstance(value, str):
        hint = did_you_mean(value, ["auto", "all"])
        raise InputError(f"{name} must be a whole number, 'auto' or 'all'. Got '{value}'. {hint}")
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 1 <= value <= clients:
        raise InputError(
            f"{name} must be a whole number from 1 to the number of clients ({clients}), 'auto' or "
            f"'all'. Got {value!r}."
        )


def charges_for_work(goal: Goal) -> bool:
    """Whether the goal charges for clients' work, so that it does not always invite all clients."""
    if isinstance(goal, Prices):
        return goal.waste > 0
    return getattr(goal, "spend", None) == "client-seconds"


def choose_cohort(
    search: DeadlineSearch,
    cohort: Size,
    target: Size,
    progress: ProgressCallback | None = None,
) -> DeadlineSearch:
    """The search with the best cohort and target.

    A number is kept. ``"auto"`` is chosen. ``"all"`` stands for all clients, or all invited ones.
    A target of None never closes a round early. A cohort of None stands for all clients, or for
    ``"auto"`` if a number is given as target: to bring that many reports, it may be best to invite
    more.

    With a target of its own, a goal that does not charge for work would always invite all clients.
    Then the cohort with the least cost x cohort is chosen: 1 % more invitations must save 1 % of
    the cost. A target that is given must be reached by the deadline in 90 % of rounds.

    Raises:
        InfeasibleError: if no cohort and target keep the limits.
    """
    clients = search.federation.clients
    check_size("The cohort", cohort, clients)
    check_size("The target", target, clients)
    if isinstance(target, int | np.integer):
        search = replace(search, reach=REACH)
    if cohort is None:
        cohort = "auto" if isinstance(target, int | np.integer) else "all"
    if cohort == "all":
        cohort = clients
    least = max(search.quorum or 1, 1 if isinstance(target, str) or target is None else target)
    if not isinstance(cohort, str) and cohort < least:
        what = "quorum" if search.quorum == least else "target"
        raise InputError(
            f"The cohort must be at least the {what} ({least}). Got {cohort}: fewer clients are "
            "invited than must report."
        )
    if not isinstance(target, str) and target is not None and target < (search.quorum or 1):
        raise InputError(
            f"The target must be at least the quorum ({search.quorum}). Got {target}: a round may "
            "close early only once it has succeeded."
        )
    if not isinstance(cohort, str) and target != "auto":
        closing = cohort if target == "all" else target
        return _with(search, int(cohort), None if closing is None else int(closing))
    overbook = isinstance(target, int | np.integer) and not charges_for_work(search.goal)
    grid = _Grid(search, representatives(search.federation, KINDS), overbook)
    pairs = list(_pairs(cohort, target, least, clients))
    best = grid.best(pairs, None if progress is None else lambda done: progress(0.7 * done))
    for i, step in enumerate(STEPS):
        before = None
        while best != before:
            before = best
            near = [
                (c, k)
                for c, k in _around(best, step, cohort, target)
                if least <= c <= clients and (k is None or least <= k <= c)
            ]
            best = grid.best([best, *near])
        if progress:
            progress(0.7 + 0.3 * (i + 1) / len(STEPS))
    return _with(search, *best)


def _with(search: DeadlineSearch, cohort: int, target: int | None) -> DeadlineSearch:
    """The search with this cohort and target; a cohort of all clients is none."""
    everybody = cohort == search.federation.clients
    return replace(search, cohort=None if everybody else cohort, target=target)


Pair = tuple[int, int | None]


def _pairs(cohort: Size, target: Size, least: int, clients: int) -> Iterable[Pair]:
    """The first grid of cohorts and targets."""
    if not isinstance(cohort, str) and cohort is not None:
        cohorts = [int(cohort)]
    elif isinstance(target, int | np.integer):
        cohorts = [int(min(np.ceil(over * target), clients)) for over in (*OVER, np.inf)]
    else:
        points = int(PER_DECADE * np.log10(clients / least)) + 2
        cohorts = np.geomspace(least, clients, points).round().astype(int).tolist()
    for c in sorted(set(cohorts)):
        if target == "auto":
            targets: list[int | None] = [*sorted({max(round(part * c), least) for part in PARTS})]
        else:
            targets = [c if target == "all" else None if target is None else int(target)]
        for k in targets:
            yield c, k


def _around(best: Pair, step: float, cohort: Size, target: Size) -> Iterable[Pair]:
    """Choices beside the best one: a larger or smaller cohort, a larger or smaller target."""
    c, k = best
    for factor in (1 / step, step):
        other = round(c * factor) if round(c * factor) != c else c + (1 if factor > 1 else -1)
        if isinstance(cohort, str):
            if target == "auto" and k is not None:
                yield other, min(max(round(k * factor), 1), other)
            yield other, other if target == "all" else k
        if target == "auto" and k is not None:
            yield c, round(k * factor) if round(k * factor) != k else k + (1 if factor > 1 else -1)


@dataclass(frozen=True, eq=False)
class _Grid:
    """Cohorts and targets that were tried, with their scores."""

    search: DeadlineSearch
    few: Federation
    overbook: bool
    scores: dict[Pair, float] = field(default_factory=dict)
    turnouts: dict[float, Turnout] = field(default_factory=dict)

    def best(self, pairs: Iterable[Pair], progress: ProgressCallback | None = None) -> Pair:
        """The best of the pairs; the one that invites fewest if several are equally good."""
        todo = sorted(set(pairs), key=lambda pair: (pair[0], pair[1] or 0))
        for i, pair in enumerate(todo):
            if pair not in self.scores:
                self.scores[pair] = self._score(pair)
            if progress:
                progress((i + 1) / len(todo))
        found = min(todo, key=lambda pair: self.scores[pair])
        if self.scores[found] == np.inf:
            raise InfeasibleError(
                "No cohort, target, quorum and deadline keep the limits: "
                f"{'; '.join(str(limit) for limit in self.search.limits) or 'no round succeeds'}. "
                "Relax a limit, or give a cohort to see by how much it is missed."
            )
        return found

    def _score(self, pair: Pair) -> float:
        cohort, target = pair
        search = replace(
            self.search, federation=self.few, cohort=cohort, target=target, turnouts=self.turnouts
        )
        deadlines = search.some_deadlines(SHARES)
        found = [o for t in deadlines if (o := search.at(t)) is not None]
        if not found:
            return float("inf")
        best = min(found, key=lambda o: o.cost)
        for factor in FACTORS:
            best = min([best, *self._beside(search, best, factor)], key=lambda o: o.cost)
        return best.cost * (cohort if self.overbook else 1.0)

    def _beside(self, search: DeadlineSearch, best: Optimum, factor: float) -> list[Optimum]:
        low, high = search.allowed(0.0, np.inf)
        times = [best.deadline / factor, best.deadline * factor]
        found = [search.at(t) for t in times if low <= t <= high]
        return [o for o in found if o is not None]
