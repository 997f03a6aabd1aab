"""What theory expects of runs, in the quantities that are measured in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cafe.analysis.policy_labels import parse_policy
from cafe.analysis.run_costs import RATIOS
from cafe.analysis.run_records import RunRecord, federation_of
from cafe.errors import CafeError

if TYPE_CHECKING:
    from cafe.analysis.run_groups import RunGroup
    from cafe.federation import Federation
    from cafe.theory import Expectation


def expected_values(group: RunGroup) -> tuple[dict[str, float], str]:
    """Expected values by the names of :data:`RATIOS`, and why there are none.

    Both are empty where theory does not cover the policy.
    """
    if not _applies(group):
        return {}, ""
    federation, why = federation_of(group.runs[0])
    try:
        expected = _expected(group, federation)
        return expected, "" if expected else why
    except CafeError as error:  # theory cannot calculate with every federation
        return {}, f"{error}"


def expected_age(theory: Expectation, rounds: Sequence[int]) -> float:
    """The mean age to expect of runs with these numbers of rounds, which start with all ages 0.

    A round adds its length Y to a client's age, after it has set it to 0 with probability r. So the
    age after round j is E[Y] (1 - (1 - r)^j) / r on average: the age before a round is independent
    of the round, so no other property of Y or of the merged clients matters. The age also grows
    during the round, which adds E[Y^2] / 2 to the integral over time.
    """
    setting = theory.setting
    if not sum(rounds):
        return theory.age
    often, lasts, ages = setting.participation, setting.duration, 0.0
    for number in rounds:
        missed = -np.expm1(number * np.log1p(-np.minimum(often, 1 - 1e-16)))  # 1 - (1 - r)^R
        with np.errstate(divide="ignore", invalid="ignore"):
            early = (number - missed / often) / often
        # Where r R is small, the difference above is rounding error; then no client is merged.
        sums = np.where(often * number > 1e-6, early, number * (number - 1) / 2)
        ages += float(setting.number @ sums) / setting.clients
    return lasts.mean * ages / sum(rounds) + lasts.second / (2 * lasts.mean)


def _applies(group: RunGroup) -> bool:
    """Whether theory covers the policy and what happened in the runs."""
    name, arguments = parse_policy(group.policy)
    plain = arguments.get("late", "drop") == "drop" and "cohort" not in arguments
    known = name in ("mcu", "awu", "agu") and any(h.rounds for h in group.histories)
    return known and plain and not group.fates["crashed"]


def _expected(group: RunGroup, federation: Federation | None) -> dict[str, float]:
    name, arguments = parse_policy(group.policy)
    theory = _expectation(group.runs[0], federation, arguments)
    if theory is None:
        return {}
    found = {k: getattr(theory, k, None) for k in RATIOS}
    found["age"] = expected_age(theory, [h.rounds for h in group.histories])
    if name == "agu":
        union = arguments.get("pool") == "union"
        waste = theory.agu_waste_union if union else theory.agu_waste
        for k in found:
            if "waste" in k or (union and k in ("age", "reports_per_update")):
                found[k] = None
        if waste is not None:
            found["waste"], found["waste_per_time"] = waste, waste / theory.update_interval
    return {k: float(v) for k, v in found.items() if v is not None}


def _expectation(
    run: RunRecord, federation: Federation | None, arguments: Mapping[str, str]
) -> Expectation | None:
    """The expectation that the run has, or the one calculated from its federation."""
    given: Expectation | None = getattr(run, "expected", None)
    if given is not None or federation is None or "deadline" not in arguments:
        return given
    from cafe.theory import expect

    target = int(arguments["target"]) if "target" in arguments else None
    if arguments.get("close_when_all") == "True":
        target = target or federation.clients
    return expect(
        federation,
        quorum=int(arguments.get("quorum", 1)),
        deadline=float(arguments["deadline"]),
        target=target,
    )
