"""FedTune: the number of participants and of local passes follow the user's preferences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cafe.decisions.build import closing, non_defaults
from cafe.decisions.carry import DropAll
from cafe.decisions.invite import Sample
from cafe.decisions.weigh import BySize
from cafe.errors import InputError, check_not_negative, check_positive, check_whole
from cafe.latency.base import Floats
from cafe.policies._recipe import recipe
from cafe.rounds.jobs import Invitation, Work
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed

# The overheads in their order: computation time, transmission time, computation load, transmission
# load. More participants are good (1) for the first two, more passes for the second and the last.
_FOR_CLIENTS = np.array([1.0, 1.0, -1.0, -1.0])
_FOR_EPOCHS = np.array([-1.0, 1.0, -1.0, 1.0])
_LARGEST = 1e9  # slopes grow no further, so that they stay finite
_ROUNDING = 1e-9  # suggestions whose sum is a smaller part of them than this cancel out


@dataclass(frozen=True)
class _Tuner:
    """Chooses the number of participants, M, and of passes, E, from the state and the score."""

    cohort: int
    epochs: int
    preferences: tuple[float, float, float, float]
    gain: float
    penalty: float
    quorum: int

    def settings(self, ledger: Ledger) -> dict[str, Any]:
        """The policy's state with the M and E that apply now."""
        state: dict[str, Any] = ledger.state or {
            "cohort": min(self.cohort, ledger.clients),
            "epochs": self.epochs,
            "spent": [0.0] * 4,
            "accuracy": None,
            "last": None,
            "before": None,
            "cohort slopes": [1.0] * 4,
            "epochs slopes": [1.0] * 4,
        }
        if ledger.score is None:
            return state
        accuracy = ledger.score.accuracy
        if accuracy is None:
            raise InputError(
                "The policy fedtune needs the accuracy of the model, but the task has none. Give "
                "it a task with classes."
            )
        if state["accuracy"] is None:
            return state | {"accuracy": accuracy}
        if accuracy - state["accuracy"] <= self.gain:
            return state
        spent = np.array(state["spent"]) / (accuracy - state["accuracy"])
        now = {"cohort": state["cohort"], "epochs": state["epochs"], "overheads": spent.tolist()}
        moved = self._moved(state, now, ledger.clients) if state["last"] else {}
        fresh = {"spent": [0.0] * 4, "accuracy": accuracy, "last": now, "before": state["last"]}
        return state | moved | fresh

    def _moved(self, state: dict[str, Any], now: dict[str, Any], clients: int) -> dict[str, Any]:
        """The new M and E, and the slopes from which they follow."""
        last, before = state["last"], state["before"]
        spent, earlier = np.array(now["overheads"]), np.array(last["overheads"])
        change = np.divide(spent - earlier, spent, out=np.zeros(4), where=spent > 0)
        worse = float(change @ self.preferences) > 0
        found: dict[str, Any] = {}
        for name, signs, least, most in (
            ("cohort", _FOR_CLIENTS, self.quorum, clients),
            ("epochs", _FOR_EPOCHS, 1, None),
        ):
            slopes = np.array(state[f"{name} slopes"])
            went = np.sign(now[name] - last[name])
            if before is not None and went:
                favoured = signs == went
                step = np.abs(earlier - before["overheads"])
                ratio = np.divide(np.abs(spent - earlier), step, out=slopes.copy(), where=step > 0)
                slopes = np.where(favoured, ratio, slopes * (self.penalty if worse else 1.0))
                slopes = np.minimum(slopes, _LARGEST)
            terms = signs * self.preferences * slopes * np.abs(change)
            tie = abs(terms.sum()) <= _ROUNDING * np.abs(terms).sum()
            value = max(now[name] + (0 if tie else int(np.sign(terms.sum()))), least)
            found[name] = value if most is None else min(value, most)
            found[f"{name} slopes"] = slopes.tolist()
        return found


@dataclass(frozen=True)
class _InviteTuned:
    """Invite M random clients for E passes each."""

    tuner: _Tuner

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        chosen = self.tuner.settings(ledger)
        work = Work(epochs=chosen["epochs"], scaled=False)
        return Sample(chosen["cohort"], work)(ledger, rng)


@dataclass(frozen=True)
class _AddOverheads:
    """Add a round's overheads to the state, also those of failed rounds."""

    tuner: _Tuner

    def __call__(self, ledger: Ledger, outcome: Outcome, closed: Closed) -> dict[str, Any]:
        state = self.tuner.settings(ledger)
        held: Floats = np.maximum(ledger.examples[closed.jobs.client], 0) * float(state["epochs"])
        spent = [float(held.max(initial=0.0)), 1.0, float(held.sum()), float(len(held))]
        return state | {"spent": [a + b for a, b in zip(state["spent"], spent, strict=True)]}


@recipe("synchronous", "Zhang et al. (2022)")
def fedtune(
    *,
    cohort: int = 20,
    epochs: int = 20,
    alpha: float = 0.25,
    beta: float = 0.25,
    gamma: float = 0.25,
    delta: float = 0.25,
    gain: float = 0.01,
    penalty: float = 10.0,
    deadline: float | None = None,
    quorum: int = 1,
) -> Policy:
    """FedTune: numbers of participants and of local passes follow preferences about overheads.

    The rule of "FedTune: Automatic Tuning of Federated Learning Hyper-Parameters from System
    Perspective" (2022). Four overheads of each round are added up: computation time (the largest
    number of examples that a participant passes over), transmission time (1), computation load (the
    examples of all participants) and transmission load (the number of participants, M). Each time
    the accuracy of the model has risen by more than ``gain``, the sums are divided by the rise and
    compared with the previous ones. M and the number of passes E then change by 1, in the direction
    that the overheads, weighed by the preferences, suggest. After a change that made the overheads
    worse, the suggestions against it count ``penalty`` times as much.

    The server must evaluate the model after each update: an advantage that most policies do not
    have. The first rise only gives the numbers for the first comparison.

    Differs from the authors' code: the code compares the transmission load with the transmission
    time when it judges whether the overheads became worse; here it is compared with its own last
    value. The code divides by zero if an overhead is equal twice, which is guarded here: the slope
    stays as it was. If the suggestions for M or E cancel out, the code decreases the number, here
    it stays. The code's slopes start at 1e9, here at 1, and the accuracy of the start model takes
    the place of 0. The code counts mini-batches instead of examples.

    Not verified: the starting values of the slopes, and whether the publication divides changes by
    the new or by the old overheads; the new ones are used, as in the code.

    Args:
        cohort: participants in the first rounds, M; all clients if there are fewer.
        epochs: local passes over a client's examples in the first rounds, E.
        alpha: preference for little computation time. The four preferences add up to 1.
        beta: preference for little transmission time.
        gamma: preference for little computation load.
        delta: preference for little transmission load.
        gain: the rise of the accuracy after which M and E change (epsilon).
        penalty: how much more the suggestions against a change count that made things worse.
        deadline: how long a round waits; None waits for all invited clients.
        quorum: reports needed for a round to succeed, at most ``cohort``. M does not fall below it.

    Example:
        >>> import cafe
        >>> task = cafe.testing.check.small_task(10)
        >>> who = cafe.Federation(10, cafe.Exponential(1.0))
        >>> load = cafe.policies.fedtune(
        ...     cohort=8, epochs=5, alpha=0, beta=0, gamma=0, delta=1, deadline=3.0
        ... )
        >>> run = cafe.simulate(who, load, task, rounds=20)
        >>> bool(run.by_round["invited"][-1] < 8)
        True
    """
    given = non_defaults(fedtune, locals())
    named = {"alpha": alpha, "beta": beta, "gamma": gamma, "delta": delta}
    weights = [check_not_negative(name, value) for name, value in named.items()]
    if abs(sum(weights) - 1.0) > 1e-9:
        raise InputError(
            f"alpha, beta, gamma and delta must add up to 1. Got alpha={alpha}, beta={beta}, "
            f"gamma={gamma}, delta={delta}, which add up to {sum(weights):g}."
        )
    if check_positive("penalty", penalty) < 1:
        raise InputError(f"penalty must be at least 1. Got {penalty}.")
    tuner = _Tuner(
        check_whole("A cohort", cohort),
        check_whole("epochs", epochs),
        (weights[0], weights[1], weights[2], weights[3]),
        check_positive("gain", gain),
        float(penalty),
        check_whole("The quorum", quorum),
    )
    if quorum > tuner.cohort:
        raise InputError(
            f"The quorum must be at most cohort ({cohort}), the participants of the first rounds. "
            f"Got {quorum}: no round could succeed. Lower the quorum or raise cohort."
        )
    return Policy(
        "fedtune",
        _InviteTuned(tuner),
        merge=BySize(),
        carry=DropAll(),
        observe=_AddOverheads(tuner),
        needs=frozenset({"scores", "sizes"}),
        parameters=given,
        **closing(quorum, deadline, all_in=True),
    )
