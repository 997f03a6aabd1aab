"""What a self-tuning controller remembers between rounds: plain values for JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from cafe.fitting.observations import Observations
from cafe.rounds.ledger import Ledger

MOST_ROUNDS = 40  # older rounds are forgotten
UNLIKELY = 1e-3  # the probability of a row of failed rounds that contradicts the plan


@dataclass(frozen=True)
class TunerState:
    """The memory of a self-tuning controller when a round opens.

    Attributes:
        counts: how many response times each of the last rounds brought, the oldest first.
        failed: how many of the last rounds failed in a row.
        rows: the number of response times that the controller has seen.
        version: the version of the model.
        present: how many clients were present when the plan was made.
        looks: how many rounds in a row have looked for the time scale.
        looking: whether the open round looks for it.
        longest: how long the last look may have lasted.
        deadline: the planned deadline; None before the first plan.
        quorum: the planned quorum.
        success: the expected share of rounds that succeed with the plan.
        planned: the round in which the plan was made or confirmed.
        plans: how many plans were made since the clients last changed.
        longer: whether the open round waits longer than planned, to see what comes later.
        extra: the time that such rounds have taken since the clients last changed, in planned
            rounds.
        silent: how many clients had never reported before such a round.
        fruitless: how many such rounds in a row have brought no report of them.
        probe: 1 while a round sketches the updates, 2 while the next one compares them; else 0.
        probes: how many such pairs of rounds there were.
        stays: the share of the spread of updates that stays from round to round, and its error.
    """

    counts: tuple[int, ...] = ()
    failed: int = 0
    rows: int = 0
    version: int = 0
    present: int = 0
    looks: int = 0
    looking: bool = False
    longest: float = 0.0
    deadline: float | None = None
    quorum: int = 1
    success: float = 1.0
    planned: int = 0
    plans: int = 0
    longer: bool = False
    extra: float = 0.0
    silent: int = 0
    fruitless: int = 0
    probe: int = 0
    probes: int = 0
    stays: tuple[float, float] | None = None

    @classmethod
    def read(cls, control: Any) -> TunerState:
        """The state that the controller returned last; a new one before the first round."""
        if not isinstance(control, dict):
            return cls()
        stays = control["stays"]
        more = {"counts": tuple(control["counts"]), "stays": stays and tuple(stays)}
        return cls(**{**control, **more})

    def to_json(self) -> dict[str, Any]:
        """The state as a Choice contains it."""
        stays = None if self.stays is None else [*self.stays]
        return {**asdict(self), "counts": [*self.counts], "stays": stays}

    def after_round(self, ledger: Ledger, seen: Observations | None, added: int) -> TunerState:
        """The state after a round that brought so many response times."""
        failed = self.failed + 1 if ledger.version == self.version else 0
        return replace(
            self,
            counts=(*self.counts, added)[-MOST_ROUNDS:],
            failed=failed,
            rows=0 if seen is None else len(seen),
            version=ledger.version,
        )

    @property
    def fails_often(self) -> bool:
        """Whether more rounds have failed in a row than the plan can explain."""
        return self.failed >= 2 and (1.0 - self.success) ** self.failed < UNLIKELY

    def forgetting(self, rounds: int) -> TunerState:
        """The state that remembers only the last few rounds, in which the clients were the same."""
        return replace(self, counts=self.counts[-rounds:], plans=0, extra=0.0, fruitless=0)
