"""What the theory is compared with: slow sums of positive terms, and rounds played one by one.

Nothing here uses a formula of :mod:`cafe.theory`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.federation import Federation
from cafe.latency import (
    Constant,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Mixture,
    Uniform,
    Weibull,
)
from cafe.latency.base import Floats
from cafe.theory import Expectation, expect

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Counted:
    """What :class:`cafe.theory.Turnout` claims, from the whole distribution of n."""

    masses: Floats
    success: float
    failure: float
    reports_when_failed: float
    missing_when_failed: float
    inverse_reports: float
    others_suffice: Floats
    others_fall_short: Floats
    participation: Floats
    share: Floats


Counter = Callable[[ArrayLike, ArrayLike, ArrayLike, int], Counted]


def count(report: ArrayLike, miss: ArrayLike, number: ArrayLike, quorum: int) -> Counted:
    """Every figure in O(N^2), by adding positive terms only: no digit is lost, however small it is.

    One client after another joins the distribution of n. Leaving client k out is the distribution
    of those before it, times the value that those after it add: ``value[j]`` is the expectation of
    a function of j plus the reports of all later clients.
    """
    chances = np.asarray(report, dtype=float)
    kind = np.repeat(np.arange(chances.size), np.asarray(number, dtype=int))
    p, q, clients = chances[kind], np.asarray(miss, dtype=float)[kind], kind.size
    before = np.zeros((clients + 1, clients + 2))
    before[0, 0] = 1.0
    for k in range(clients):
        before[k + 1] = q[k] * before[k]
        before[k + 1, 1:] += p[k] * before[k, :-1]
    masses = before[clients, : clients + 1]
    j = np.arange(clients + 2.0)
    value = np.stack([j >= quorum - 1, j < quorum - 1, (j >= quorum - 1) / (j + 1)]).astype(float)
    without = np.zeros((3, clients))
    for k in reversed(range(clients)):
        without[:, k] = value @ before[k]
        shifted = np.concatenate([value[:, 1:], value[:, -1:]], axis=1)
        value = q[k] * value + p[k] * shifted
    suffice, short, share = without[:, np.searchsorted(kind, np.arange(chances.size))]
    n = np.arange(clients + 1.0)
    return Counted(
        masses=masses,
        success=float(masses[quorum:].sum()),
        failure=float(masses[:quorum].sum()),
        reports_when_failed=float((n * masses)[:quorum].sum()),
        missing_when_failed=float(((clients - n) * masses)[:quorum].sum()),
        inverse_reports=float((masses[1:] / n[1:])[quorum - 1 :].sum()),
        others_suffice=suffice,
        others_fall_short=short,
        participation=chances * suffice,
        share=chances * share,
    )


@dataclass(frozen=True)
class Played:
    """What happened, round by round; arrays over rounds, or over rounds and clients."""

    came: Flags  # reported by the deadline
    absent: Flags
    used: Flags
    success: Flags
    full: Flags  # closed by the target, if there is one
    length: Floats
    waste: Floats  # a discarded client is charged the round's length
    processing_waste: Floats  # ... its own time
    absent_waste: Floats
    work: Floats
    age_area: Floats  # the integral of each client's age over the round; NaN before its first use
    agu_round: Floats  # the aggregated-gradient scheme's waste, booked when a round succeeds
    agu_union: Floats


def play(
    federation: Federation,
    quorum: int,
    deadline: float,
    target: int | None,
    rounds: int,
    seed: int,
    steps: int = 1,
    cohort: int | None = None,
) -> Played:
    """Play rounds in the paper's words (Sec. 3 and 4), one after the other, with a clock."""
    rng = np.random.default_rng(seed)
    computing = steps * federation.step_time(np.arange(federation.clients))
    clients, now = federation.clients, 0.0
    origin = np.full(clients, np.nan)  # when the last used work of each client began
    kept = np.zeros(clients)  # reports of each client in failed rounds since the last update
    owed_round = owed_union = 0.0
    rows = []
    for times in federation.sample(rng, rounds) + computing:
        invited = np.ones(clients, dtype=bool)
        if cohort is not None:
            invited[rng.permutation(clients)[cohort:]] = False
        absent = np.isinf(times) & invited
        times = np.where(invited, times, np.inf)
        came = times <= deadline
        here, length, full = came, deadline, False
        if target is not None and came.sum() >= target:
            # Ties at the target's time are broken at random.
            first = np.lexsort((rng.random(clients), times))[:target]
            here, length, full = np.zeros(clients, dtype=bool), float(times[first[-1]]), True
            here[first] = True
        success = bool(here.sum() >= quorum)
        used = here if success else np.zeros(clients, dtype=bool)
        spent = np.where(invited, np.minimum(times, length), 0.0)
        area = length * (now - origin) + length**2 / 2
        # The aggregated-gradient scheme: a failed round's reports wait for the next success.
        owed_round += deadline * (clients - came.sum())
        owed_union += deadline * (clients - came.sum())
        kept += came
        booked = (0.0, 0.0)
        if success:
            lost = kept[~came].sum()
            booked = (owed_round + deadline * lost, owed_union)
            owed_round = owed_union = 0.0
            kept[:] = 0.0
        rows.append(
            (
                came,
                absent,
                used,
                success,
                full,
                length,
                length * float(invited.sum() - used.sum()),
                float(spent[~used].sum()),
                length * float(absent.sum()),
                float(spent.sum()),
                area,
                *booked,
            )
        )
        origin[used] = now
        now += length
    return Played(*(np.asarray(column) for column in zip(*rows, strict=True)))


@dataclass(frozen=True)
class Game:
    """One federation and the rules of its rounds: what is expected, and what was seen."""

    federation: Federation
    quorum: int
    deadline: float
    target: int | None
    steps: int = 1
    cohort: int | None = None
    rounds: int = 6_000
    batches: int = 60

    @cached_property
    def played(self) -> Played:
        """The rounds."""
        rules = (self.quorum, self.deadline, self.target)
        return play(
            self.federation,
            *rules,
            rounds=self.rounds,
            seed=20_260_117,
            steps=self.steps,
            cohort=self.cohort,
        )

    @cached_property
    def expected(self) -> Expectation:
        """The theory."""
        return expect(
            self.federation,
            quorum=self.quorum,
            deadline=self.deadline,
            target=self.target,
            cohort=self.cohort,
            steps=self.steps,
        )

    @property
    def invited(self) -> int:
        """How many clients a round invites."""
        return self.federation.clients if self.cohort is None else self.cohort

    @property
    def ones(self) -> Floats:
        """One per round, to divide by."""
        return np.ones(self.rounds)

    def agree(self, claim: ArrayLike, top: ArrayLike, bottom: ArrayLike | None = None) -> None:
        """Assert that a claim is the ratio of two sums over rounds, within 4.5 standard errors.

        The standard error is the delta method's over batches of rounds, which also serves sums
        that depend on earlier rounds. An event seen in few rounds, or none, has no usable standard
        error, so a tolerance of ten rounds is added. Rounds that are NaN, before a client's first
        use, are left out.
        """
        above = np.asarray(top, dtype=float).reshape(self.rounds, -1)
        below = np.broadcast_to(
            np.reshape(self.ones if bottom is None else bottom, (self.rounds, -1)), above.shape
        ).astype(float)
        seen = ~np.isnan(above)
        split = (self.batches, self.rounds // self.batches, above.shape[1])
        high = np.where(seen, above, 0.0).reshape(split).sum(axis=1)
        low = np.where(seen, below, 0.0).reshape(split).sum(axis=1)
        ratio = high.sum(axis=0) / low.sum(axis=0)
        spread = (high - ratio * low).std(axis=0, ddof=1) * self.batches**0.5
        error = spread / low.sum(axis=0)
        off = np.abs(np.ravel(claim) - ratio)
        assert np.all(off <= 4.5 * error + 10 / self.rounds * np.maximum(np.abs(ratio), 1.0)), (
            f"claimed {np.ravel(claim)}, seen {ratio} +- {error}: "
            f"{np.max(off / np.maximum(error, 1e-300)):.1f} standard errors"
        )


def _equal() -> Federation:
    return Federation(8, Exponential(1.0))


def _unequal() -> Federation:
    rates = [0.3, 0.5, 0.9, 1.0, 1.6, 2.5, 6.0]
    return Federation.exponential(rates, availability=[1.0, 0.6, 0.9, 0.5, 0.8, 1.0, 0.7])


def _smooth_groups() -> Federation:
    """Families with a density, so that any target is allowed."""
    mixed = Mixture([Exponential(3.0), Uniform(1.0, 2.5)], [0.7, 0.3])
    return Federation.join(
        Federation(2, Weibull(0.7, 0.8)),
        Federation(2, LogNormal(-0.3, 0.8), availability=0.9),
        Federation(2, Gamma(2.5, 0.3)),
        Federation(1, Uniform(0.2, 1.4), availability=0.8),
        Federation(2, mixed),
    )


def _all_groups() -> Federation:
    """... and those without: observed and constant times."""
    return Federation.join(
        _smooth_groups(),
        Federation(2, Empirical([0.3, 0.5, 0.5, 0.9, 1.7], [1.0, 2.0, 1.0, 1.0, 0.5])),
        Federation(1, Constant(0.6), availability=0.75),
        Federation(1, Constant(0.8)),
        Federation(1, Constant(4.0)),
    )


def _computing() -> Federation:
    """Gradient steps take time on most clients, and not the same on all of them."""
    return Federation.join(
        Federation(3, Exponential(1.5), per_step=0.1),
        Federation(2, Weibull(1.4, 0.8), per_step=np.array([0.04, 0.2])),
        Federation(2, LogNormal(-0.3, 0.8), availability=0.9, per_step=0.02),
        _smooth_groups(),
    )


def _observed() -> Federation:
    return Federation(6, Empirical([0.2, 0.4, 0.4, 0.7, 1.5, 3.0]), availability=0.85)


GAMES = {
    "equal": Game(_equal(), 5, 0.9, None),
    "equal, first come": Game(_equal(), 1, 0.2, None),
    "equal, until all": Game(_equal(), 3, 1.8, 8),
    "equal, until six": Game(_equal(), 4, 1.2, 6),
    "unequal": Game(_unequal(), 4, 0.8, None),
    "unequal, until all": Game(_unequal(), 2, 4.0, 7),
    "unequal, until five": Game(_unequal(), 3, 1.1, 5),
    "unequal, until the quorum": Game(_unequal(), 3, 1.5, 3),
    "groups": Game(_all_groups(), 7, 0.75, None),
    "groups, until all": Game(_smooth_groups(), 4, 3.0, 9),
    "groups, until six": Game(_smooth_groups(), 4, 1.0, 6),
    "observed, until four": Game(_observed(), 3, 1.0, 4),
    "five steps": Game(
        Federation.join(_computing(), Federation(2, Empirical([0.2, 0.4]), per_step=0.06)),
        7,
        1.2,
        None,
        steps=5,
    ),
    "three steps, until eight": Game(_computing(), 5, 1.5, 8, steps=3),
    "equal, a cohort": Game(_equal(), 3, 0.9, None, cohort=5),
    "equal, a cohort until three": Game(_equal(), 2, 1.2, 3, cohort=5),
    "unequal, a cohort": Game(_unequal(), 2, 0.8, None, cohort=4),
    "unequal, one client": Game(_unequal(), 1, 0.8, None, cohort=1),
    "unequal, a cohort until all": Game(_unequal(), 1, 2.0, 4, cohort=4),
    "unequal, a cohort until its quorum": Game(_unequal(), 3, 1.5, 3, cohort=3),
    "groups, a cohort": Game(_all_groups(), 4, 0.75, None, cohort=8),
    "groups, a cohort until five": Game(_smooth_groups(), 3, 1.0, 5, cohort=7),
    "three steps, a cohort until six": Game(_computing(), 3, 1.5, 6, steps=3, cohort=10),
}


def until_deadline(names: dict[str, Game]) -> list[str]:
    return [name for name, game in names.items() if game.target is None and game.cohort is None]
