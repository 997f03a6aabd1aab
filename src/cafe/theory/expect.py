"""All expected quantities of a federation with a given quorum and deadline, in one object."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from cafe.federation import Federation, total
from cafe.latency.base import Floats
from cafe.theory.age import age_by_kind
from cafe.theory.bound import Variance
from cafe.theory.broadcasts import broadcasts
from cafe.theory.presence_warnings import presence_warnings
from cafe.theory.setting import Setting, check_federation
from cafe.theory.waste import (
    absent_waste_per_round,
    agu_waste_per_update,
    processing_waste_per_round,
    waste_per_round,
)


def expect(
    federation: Federation,
    *,
    quorum: int,
    deadline: float,
    target: int | None = None,
    cohort: int | None = None,
    steps: int = 1,
) -> Expectation:
    """Compute the expected waste, broadcasts, age and other quantities of a federation's rounds.

    Args:
        federation: the clients; a presence is replaced by its long-run share of time.
        quorum: reports needed for a round to succeed, the paper's M.
        deadline: how long a round waits, the paper's T.
        target: close a round as soon as this many clients have reported; with the number of all
            invited clients, a round closes when all of them have reported.
        cohort: invite this many clients in each round, drawn uniformly without replacement, instead
            of all.
        steps: gradient steps that a client takes in a round; they take time if the federation's
            ``per_step`` is above 0.

    Example:
        >>> import cafe
        >>> federation = cafe.Federation(clients=100, latency=cafe.Exponential(rate=1.0))
        >>> expected = cafe.expect(federation, quorum=30, deadline=0.5)
        >>> round(expected.waste, 2), round(expected.broadcasts, 3), round(expected.age, 3)
        (31.25, 1.021, 1.539)
    """
    check_federation(federation)
    setting = Setting(federation.at_steps(steps), quorum, deadline, target, cohort)
    return Expectation(setting, presence_warnings(federation, setting.cohort))


@dataclass(frozen=True, eq=False)
class Expectation:
    """The expected quantities of a setting. Each is computed at its first use and then cached.

    "Per update" includes the failed rounds before a successful one. Times are in the latency's
    unit.

    Attributes:
        setting: the federation and the rules of its rounds.
        warnings: what the quantities do not account for; usually empty.
    """

    setting: Setting
    warnings: tuple[str, ...] = ()

    @property
    def quorum(self) -> int:
        """M, the reports needed for a round to succeed."""
        return self.setting.quorum

    @property
    def deadline(self) -> float:
        """T, how long a round waits."""
        return self.setting.deadline

    @property
    def cohort(self) -> int:
        """C, the number of clients that are invited in a round."""
        return self.setting.invited

    @property
    def target(self) -> int | None:
        """K, the number of reports at which a round closes; None if there is no target."""
        return self.setting.target

    @property
    def success_probability(self) -> float:
        """Pr(n >= M) = 1 - q, the probability that a round succeeds."""
        return self.setting.turnout.success

    @property
    def everybody_probability(self) -> float:
        """Pr(all invited clients report); if it is large, a round length of T is a poor model."""
        return self.setting.turnout.all_report

    @property
    def expected_reports(self) -> float:
        """E[n], the reports that arrive by the deadline, per round."""
        return self.setting.turnout.mean

    @cached_property
    def reports_per_update(self) -> float:
        """E[reports used | the round succeeds], the mean number of reports in an update."""
        return _over(self.setting.used, self.success_probability)

    @cached_property
    def broadcasts(self) -> float:
        """E[C_b], the rounds per update."""
        return broadcasts(self.setting.turnout)

    @cached_property
    def messages(self) -> float:
        """Invitations sent per update, C x broadcasts; a client that is absent counts too."""
        return self.setting.invited * self.broadcasts

    @cached_property
    def waste_per_round(self) -> float:
        """E[C_w] of one round, in client-seconds."""
        return waste_per_round(self.setting)

    @cached_property
    def waste(self) -> float:
        """E[C_w] per update (Theorem 1), in client-seconds.

        A discarded client is charged the whole length of the round.
        """
        return _over(self.waste_per_round, self.success_probability)

    @cached_property
    def waste_per_gradient(self) -> float:
        """E[C_w] per used report."""
        return _over(self.waste_per_round, self.setting.used)

    @cached_property
    def waste_per_time(self) -> float:
        """E[C_w] per unit of time: the mean number of clients whose current work is wasted."""
        return self.waste_per_round / self.round_duration

    @cached_property
    def processing_waste_per_round(self) -> float:
        """Processing time of discarded work in one round, in client-seconds."""
        return processing_waste_per_round(self.setting)

    @cached_property
    def processing_waste(self) -> float:
        """Processing time of discarded work per update, in client-seconds."""
        return _over(self.processing_waste_per_round, self.success_probability)

    @cached_property
    def processing_waste_per_gradient(self) -> float:
        """Processing time of discarded work per used report."""
        return _over(self.processing_waste_per_round, self.setting.used)

    @cached_property
    def processing_waste_per_time(self) -> float:
        """Processing time of discarded work per unit of time."""
        return self.processing_waste_per_round / self.round_duration

    @cached_property
    def absent_waste(self) -> float | None:
        """Part of the waste per update that is charged to absent clients.

        None with a target below the number of invited clients.

        It is the same part of :attr:`waste` and of :attr:`processing_waste`.
        """
        part = absent_waste_per_round(self.setting)
        return None if part is None else _over(part, self.success_probability)

    @cached_property
    def agu_waste(self) -> float | None:
        """Waste per update if gradients of failed rounds are used when their client reports again.

        This is the scheme AGU. None if a target below N closes rounds early, or if a cohort is
        invited, because the scheme has no such rounds.
        """
        return self._agu_waste("round")

    @cached_property
    def agu_waste_union(self) -> float | None:
        """Waste per update if every gradient since the last update is used.

        This is the scheme AGU with the option ``pool="union"``. None in the same cases as
        :attr:`agu_waste`.
        """
        return self._agu_waste("union")

    def _agu_waste(self, pool: Literal["round", "union"]) -> float | None:
        if self.setting.target_turnout is not None or self.setting.cohort is not None:
            return None
        return (
            agu_waste_per_update(self.setting, pool) if self.success_probability else float("inf")
        )

    @cached_property
    def client_seconds(self) -> float:
        """Client-seconds per update, used or wasted.

        Each invited client counts from the broadcast to its report or to the end of the round.
        """
        return _over(self.setting.work, self.success_probability)

    @property
    def round_duration(self) -> float:
        """E[Y], the mean length of a round; the deadline unless rounds close early."""
        return self.setting.duration.mean

    @cached_property
    def update_interval(self) -> float:
        """Mean time between two updates of the model."""
        return self.round_duration * self.broadcasts

    @cached_property
    def _age_by_kind(self) -> Floats:
        return age_by_kind(self.setting)

    @cached_property
    def age(self) -> float:
        """The mean over clients of the time-averaged age (Theorem 2)."""
        return total(self.setting.number, self._age_by_kind) / self.setting.clients

    @cached_property
    def worst_age(self) -> float:
        """The time-averaged age of the client that is updated least."""
        return float(self._age_by_kind.max())

    @cached_property
    def normalised_age(self) -> float:
        """The age in multiples of the deadline, E[age] / T."""
        return self.age / self.deadline

    @cached_property
    def age_by_client(self) -> Floats:
        """The time-averaged age of each client."""
        return self.setting.federation.by_client(self._age_by_kind)

    @cached_property
    def participation_by_client(self) -> Floats:
        """Each client's Pr(its report is used), per round: it is invited, reports, and n >= M."""
        return self.setting.federation.by_client(self.setting.participation)

    @cached_property
    def share_by_client(self) -> Floats:
        """Each client's weight in an average update, E[1/n; k reports, n >= M]; they sum to 1 - q.

        With a target, n counts the reports that are used.
        """
        return self.setting.federation.by_client(self.setting.share)

    @cached_property
    def mean_share(self) -> float:
        """S~ = (1 - q) / N, the mean of :attr:`share_by_client`."""
        return self.success_probability / self.setting.clients

    @cached_property
    def bias(self) -> float:
        """How unequal the clients' weights in the average update are: 0 if equal, at most 1.

        It is the total variation distance between the clients' shares and equal shares. If it is
        above 0, plain averaging converges to the optimum of the objective weighted by the shares,
        not to that of the federation.
        """
        turnout = self.setting.turnout
        if turnout.success == 0:
            return float("nan")
        if self.setting.federation.kinds == 1:
            return 0.0
        excess = np.abs(self.setting.share / turnout.success - 1 / turnout.clients)
        return total(turnout.number, excess) / 2

    @cached_property
    def merit(self) -> float:
        """g(M) = M Pr(n~ >= M-1), averaged over the clients (Remark 4)."""
        turnout = self.setting.turnout
        return self.quorum * total(turnout.number, turnout.others_suffice) / turnout.clients

    @cached_property
    def variance(self) -> Variance:
        """The exact variance factors that the corrected bound needs."""
        return Variance.of(self.setting)

    @property
    def noise_factor(self) -> float:
        """e_M = E[1/n; n >= M]."""
        return float(self.variance.noise)

    @property
    def sampling_factor(self) -> float:
        """c_M = E[(N-n) / (n (N-1)); n >= M], with all N clients, invited or not."""
        return float(self.variance.sampling)

    def to_dict(self) -> dict[str, float | int | None]:
        """All scalar quantities by name, ready for JSON; cohort and target only if there is one."""
        values = {name: getattr(self, name) for name in SCALARS}
        if self.setting.cohort is not None:
            values["cohort"] = self.cohort
        if self.target is not None:
            values["target"] = self.target
        return values


SCALARS = (
    "quorum", "deadline", "waste", "processing_waste", "broadcasts", "messages", "age",
    "normalised_age", "success_probability", "expected_reports", "reports_per_update",
    "worst_age", "round_duration",
    "update_interval", "client_seconds", "waste_per_round", "waste_per_gradient", "waste_per_time",
    "processing_waste_per_round", "processing_waste_per_gradient", "processing_waste_per_time",
    "absent_waste", "agu_waste", "agu_waste_union", "everybody_probability", "mean_share", "bias",
    "merit",
    "noise_factor", "sampling_factor",
)  # fmt: skip


def _over(part: float, whole: float) -> float:
    """The ratio; if ``whole`` is 0, it is infinite for a positive part and NaN for part 0."""
    if whole > 0:
        return part / whole
    return float("inf") if part > 0 else float("nan")
