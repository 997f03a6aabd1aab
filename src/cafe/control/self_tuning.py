"""A controller that starts with no knowledge, and tunes deadline and quorum by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np

from cafe.control.estimate import EstimatedClients, estimate
from cafe.control.first_look import FirstLook
from cafe.control.longer_rounds import longer_round, silent_clients
from cafe.control.noise_probe import (
    StayingShare,
    can_probe,
    has_sketches,
    read_share,
    with_probe,
)
from cafe.control.recent_rounds import Change, RecentRounds, added_rows, find_change
from cafe.control.robust_plan import RobustPlan, robust_plan
from cafe.control.tuner_state import TunerState
from cafe.control.tuning_reasons import (
    LOOK_AGAIN,
    NO_UPDATES,
    explain_change,
    explain_first,
    explain_move,
    explain_noise,
)
from cafe.controllers import Choice
from cafe.errors import InfeasibleError, check_positive, check_whole
from cafe.federation import Federation
from cafe.fitting.observations import Observations
from cafe.keywords import explain_keywords
from cafe.latency import Exponential
from cafe.planner.goal_choice import GoalWord, choose_goal
from cafe.planner.goals import Goal
from cafe.planner.limits import build_limits
from cafe.planner.to_accuracy import ToAccuracy
from cafe.policies.mcu import mcu
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy

NAME = "self_tuning"
_PLANS = (0, 1, 2, 4, 7, 11, 16, 22, 29)  # rounds after the first one in which plans are renewed
_EVERY = 10  # ... and from then on
_FEWEST = 3  # reports that a plan needs, unless there are fewer clients
_ENOUGH = 0.5  # a look that fewer of its clients answered is followed by a longer one ...
_LONGER = 3.0  # ... by this factor
_LOOKS = 2  # such looks in a row
_STOP_GROWS = 4.0  # the factor of the hard stop after a look that too few answered
_FIRST_PROBE = 3  # updates after which gradient noise is measured ...
_PROBES_GROW = 4  # ... and so many times as many for each further time
_AGAIN = 1.01  # how long the second look waits, in first looks
_SLOWER = 1.2  # times as long as before, from which on the time scale is looked for again
_GAIN = 0.01  # a plan that costs less by a smaller share is not worth a move
_SAFE = 0.99  # ... unless fewer rounds than this would succeed


@explain_keywords
@dataclass(frozen=True)
class SelfTuning:
    """Tunes the deadline and the quorum of the paper's rounds to clients that nobody measured.

    The first round looks for the time scale. Later rounds follow the plan that is best for the
    clients as the last rounds show them, and the plan is renewed every few rounds, or at once if
    the response times contradict it.

    Attributes:
        waste_price: extra mean age that you accept to save one client-second of waste.
        broadcast_price: extra mean age that you accept to save one broadcast.
        goal: what to minimise, as in :func:`cafe.plan`: the time to a given accuracy if neither
            prices nor a goal are given.
        at_most: upper limits of the plan, as in :func:`cafe.plan`.
        at_least: lower limits of the plan.
        steps: gradient steps that a client takes in a round.
        first_stop: seconds after which the first round ends in any case.

    Example:
        >>> import cafe
        >>> from cafe.control import SelfTuning
        >>> clients = cafe.Federation(50, cafe.LogNormal(mu=2.0, sigma=0.5))
        >>> run = cafe.simulate(clients, SelfTuning(), rounds=30)
        >>> run
        History(SelfTuning(): 30 rounds, 30 updates)
    """

    waste_price: float | None = None
    broadcast_price: float | None = None
    goal: Goal | GoalWord | None = None
    at_most: Mapping[str, float] | str | None = None
    at_least: Mapping[str, float] | str | None = None
    steps: int = 1
    first_stop: float = 3600.0

    def __post_init__(self) -> None:
        example = Federation(2, Exponential(1.0))
        choose_goal(example, self.goal, self.waste_price, self.broadcast_price)
        build_limits(self.at_most, self.at_least)
        object.__setattr__(self, "steps", check_whole("steps", self.steps))
        stop = check_positive("first_stop", self.first_stop)
        object.__setattr__(self, "first_stop", stop)

    def __str__(self) -> str:
        given = [
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if getattr(self, each.name) != each.default
        ]
        return f"SelfTuning({', '.join(given)})"

    def __call__(self, ledger: Ledger, seen: Observations | None) -> Choice:
        """The policy of the next round, and why it changed."""
        state = TunerState.read(ledger.control)
        if not ledger.round or ledger.control is None:
            first = replace(state, version=ledger.version, rows=0 if seen is None else len(seen))
            return self._look(first, self._stop(), "")
        state = state.after_round(ledger, seen, added_rows(seen, state.rows))
        if seen is None or not any(state.counts):
            return self._nobody(state)
        recent = RecentRounds.of(seen, state.counts)
        state, said = self._probed(ledger, state)
        if state.deadline is None or state.looking:
            return self._after_look(ledger, state, recent)
        change = find_change(recent)
        if change is not None or state.fails_often:
            return self._changed(ledger, state, recent, change)
        if state.longer:
            heard = silent_clients(recent) < 0.8 * state.silent
            fruitless = 0 if heard or not state.silent else state.fruitless + 1
            state = replace(state, fruitless=fruitless)
        surprised = state.failed and state.success > _SAFE
        if self._due(state, ledger.round) or surprised or state.longer or said:
            return self._plan(ledger, state, recent, said)
        return self._keep(ledger, state, "")

    def _probed(self, ledger: Ledger, state: TunerState) -> tuple[TunerState, str]:
        """The state after a round that may have probed the updates, and what it has shown."""
        if state.probe == 1:
            return replace(state, probe=2 if has_sketches(ledger) else 0), ""
        if state.probe == 2:
            state = replace(state, probe=0, probes=state.probes + 1)
            found = read_share(ledger.memory)
            if found is not None:
                if state.stays is not None:
                    found = StayingShare(*state.stays).then(found)
                state = replace(state, stays=(found.share, found.error))
                return state, explain_noise(found.noise_ratio)
        if state.deadline is None or not self._wants_noise_ratio or not can_probe(ledger):
            return state, ""
        due = _FIRST_PROBE * _PROBES_GROW**state.probes
        return (replace(state, probe=1), "") if ledger.version >= due else (state, "")

    @property
    def _wants_noise_ratio(self) -> bool:
        """Whether the goal depends on a noise ratio that nobody has given."""
        goal = self._goal
        return isinstance(goal, ToAccuracy) and goal.noise_ratio is None

    @property
    def _goal(self) -> Goal | None:
        """The goal without prices, before what it lacks is filled in."""
        if isinstance(self.goal, str):
            return ToAccuracy(cast(Any, self.goal)) if self.goal != "j" else None
        priced = self.waste_price is not None or self.broadcast_price is not None
        return ToAccuracy() if self.goal is None and not priced else self.goal

    def _due(self, state: TunerState, now: int) -> bool:
        if state.plans < len(_PLANS):
            return now - state.planned >= _PLANS[state.plans] - _PLANS[max(state.plans - 1, 0)]
        return now - state.planned >= _EVERY

    def _stop(self) -> float:
        """The longest time that the first round may take."""
        longest = [x.value for x in build_limits(self.at_most, None) if x.quantity == "deadline"]
        return min([self.first_stop, *longest])

    def _look(self, state: TunerState, stop: float, reason: str, least: float = 0.0) -> Choice:
        """A round that looks for the time scale."""
        longest = [x.value for x in build_limits(self.at_most, None) if x.quantity == "deadline"]
        stop = min([stop, *longest])
        close = FirstLook(stop, min(least, stop))
        policy = replace(
            mcu(quorum=1, deadline=stop, steps=self.steps),
            name=NAME, close=close, parameters={"first_look": True, "deadline": stop},
        )  # fmt: skip
        state = replace(
            state, looking=True, looks=state.looks + 1, longest=stop, longer=False, probe=0
        )
        return Choice(policy, state.to_json(), reason)

    def _nobody(self, state: TunerState) -> Choice:
        stop = _STOP_GROWS * state.longest
        reason = (
            f"No client has reported within {state.longest:.4g} s: the next round waits up to "
            f"{stop:.4g} s."
        )
        return self._look(state, stop, reason)

    def _after_look(self, ledger: Ledger, state: TunerState, recent: RecentRounds) -> Choice:
        """Plan after a look, or look longer if too few clients have answered."""
        last = recent.last if recent.rounds else np.zeros(0, dtype=bool)
        rows, reports = int(last.sum()), int((last & recent.reported).sum())
        total = int(recent.reported.sum())
        waited = float(recent.waited[last].max()) if rows else state.longest
        if not total:
            return self._nobody(state)
        if total < min(_FEWEST, max(ledger.clients, 1)):
            stop = _STOP_GROWS * max(waited, state.longest if not reports else waited)
            reason = (
                f"Only {total} reports have arrived, within {waited:.4g} s: the next round waits "
                f"up to {stop:.4g} s."
            )
            return self._look(state, max(stop, state.longest), reason, least=_LONGER * waited)
        if reports < _ENOUGH * rows and state.looks < _LOOKS:
            reason = (
                f"{reports} of {rows} clients have reported within {waited:.4g} s: the next round "
                "waits longer, to see whether the others are slow or offline."
            )
            stop = max(state.longest, _LONGER * waited)
            return self._look(state, stop, reason, least=_LONGER * waited)
        if state.looks < _LOOKS:
            again = significant(_AGAIN * waited)
            return self._look(state, again, "", least=again)
        return self._plan(ledger, replace(state, looking=False, looks=0), recent, "")

    def _changed(
        self, ledger: Ledger, state: TunerState, recent: RecentRounds, change: Change | None
    ) -> Choice:
        """Forget what is out of date; look again if the clients have become slower."""
        rounds = state.failed if change is None else change.rounds
        reason = explain_change(change, rounds)
        state = replace(state.forgetting(rounds), looks=0)
        recent = recent_end(recent, rounds)
        slower = change is None or change.factor > _SLOWER
        if slower or not recent.reported.any():
            assert state.deadline is not None
            stop = max(10 * state.deadline, self._stop())
            return self._look(state, stop, f"{reason} {LOOK_AGAIN}", least=state.deadline)
        return self._plan(ledger, state, recent, reason)

    def _plan(self, ledger: Ledger, state: TunerState, recent: RecentRounds, reason: str) -> Choice:
        """Renew the plan, and keep the present one if the new one is hardly better."""
        found = estimate(recent)
        state = replace(state, planned=ledger.round, plans=state.plans + 1, longer=False)
        present = max(ledger.clients - ledger.absent, 1)
        try:
            made = self._best(found, state.stays)
        except InfeasibleError as problem:
            if state.deadline is None:
                waited = float(np.median(recent.seconds[recent.reported]))
                limit = self._stop()
                state = replace(state, deadline=min(2 * waited, limit), quorum=1, present=present)
            said = f"{reason} No plan keeps the limits: {problem}".strip()
            return self._keep(ledger, state, said)
        before = state.deadline
        chosen = made.search.expect(made.quorum, made.deadline)
        if before is None:
            reason = explain_first(made, recent)
            if self._wants_noise_ratio and not can_probe(ledger):
                reason = f"{reason} {NO_UPDATES}"
        else:
            old = made.search.expect(min(state.quorum, found.federation.clients), before)
            cost = made.goal.cost(old)
            gain = 1.0 - made.cost / cost if np.isfinite(cost) else 1.0
            kept = all(limit.keeps(old) for limit in made.search.limits)
            safe = old.success_probability > min(_SAFE, chosen.success_probability - 0.01)
            if kept and gain < _GAIN and safe:
                state = replace(state, success=old.success_probability)
                return self._explore(ledger, state, recent, made, reason)
            reason = " ".join(filter(None, [reason, explain_move(made, state, old, gain)]))
        state = replace(
            state,
            deadline=significant(made.deadline),
            quorum=made.quorum,
            present=present,
            success=chosen.success_probability,
        )
        return self._explore(ledger, state, recent, made, reason)

    def _explore(
        self,
        ledger: Ledger,
        state: TunerState,
        recent: RecentRounds,
        made: RobustPlan,
        reason: str,
    ) -> Choice:
        """The policy of the plan, or that of a longer round if one is worth its time."""
        longer = longer_round(made, recent, state)
        if longer is None:
            return self._keep(ledger, state, reason)
        assert state.deadline is not None
        state = replace(
            state,
            longer=True,
            silent=longer.silent,
            extra=state.extra + longer.deadline / state.deadline - 1.0,
        )
        reason = f"{reason} {longer.reason}".strip()
        return self._keep(ledger, state, reason, significant(longer.deadline))

    def _best(self, found: EstimatedClients, stays: tuple[float, float] | None) -> RobustPlan:
        given: Goal | GoalWord | None = self._goal
        if self._wants_noise_ratio and stays is not None:
            ratio = StayingShare(*stays).noise_ratio
            given = replace(cast(ToAccuracy, given), noise_ratio=ratio)
        given = self.goal if given is None else given
        goal, _ = choose_goal(found.federation, given, self.waste_price, self.broadcast_price)
        return robust_plan(found, goal, build_limits(self.at_most, self.at_least))

    def _keep(
        self, ledger: Ledger, state: TunerState, reason: str, deadline: float | None = None
    ) -> Choice:
        """The policy of the plan, with a quorum for the clients that are present now."""
        assert state.deadline is not None
        present = ledger.clients - ledger.absent
        quorum = state.quorum
        if present != state.present:
            quorum = int(quorum * present / max(state.present, 1))
        quorum = max(1, min(quorum, max(present, 1)))
        policy = tuned_policy(quorum, deadline or state.deadline, self.steps)
        if state.probe:
            policy = with_probe(policy, compare=state.probe == 2)
        return Choice(
            policy,
            replace(state, looking=False).to_json(),
            reason,
        )


def tuned_policy(quorum: int, deadline: float, steps: int) -> Policy:
    """The paper's policy, under the name that all rounds of the controller share."""
    return replace(mcu(quorum=quorum, deadline=deadline, steps=steps), name=NAME)


def significant(seconds: float) -> float:
    """Seconds with four digits, so that rounding errors of response times change nothing."""
    return float(f"{seconds:.4g}")


def recent_end(recent: RecentRounds, rounds: int) -> RecentRounds:
    """The rows of the last few rounds only."""
    keep = recent.round >= recent.rounds - rounds
    known, code = np.unique(recent.code[keep], return_inverse=True)
    return RecentRounds(
        recent.seconds[keep],
        recent.waited[keep],
        code.reshape(-1).astype(np.intp),
        recent.round[keep] - (recent.rounds - rounds),
        tuple(recent.names[i] for i in known.tolist()),
        min(rounds, recent.rounds),
    )
