"""Energy harvesting: among the clients with charge, the oldest work (Liu et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.decisions.build import closing, non_defaults
from cafe.decisions.carry import DropAll
from cafe.decisions.choose import oldest
from cafe.decisions.weigh import Mean
from cafe.errors import check_whole
from cafe.policies._recipe import recipe
from cafe.rounds.jobs import Invitation, Work
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy


@dataclass(frozen=True)
class _Oldest:
    """Invite the present clients that were merged longest ago."""

    cohort: int
    work: Work

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        return Invitation(oldest(ledger, ledger.idle, self.cohort, rng), work=self.work)


@recipe("synchronous", "Liu et al. (2021)", stand_in=True)
def energy_harvesting(
    *, cohort: int, steps: int = 1, deadline: float | None = None, quorum: int = 1
) -> Policy:
    """Energy harvesting: of the clients with enough charge, those with the highest age work.

    "Age-Aware Communication Strategy in Federated Learning with Energy Harvesting Devices" (2021).
    Clients store the energy that they harvest, and a job costs a fixed amount. A client takes part
    only if its battery holds that amount. Of the charged clients the server invites those that were
    merged longest ago; ties are broken at random. Reports are averaged.

    The batteries belong to the federation: give it ``presence=cafe.presence.Battery(...)``. Then a
    client is present while its battery holds the energy of a job. With another presence, or
    without one, all clients that are present count as charged.

    This is a stand-in: the text of the publication was not available. The choice by age among
    charged clients is its principle; its optimisation of the transmissions is not implemented.

    Not verified: the age function, its threshold, and the weights of reports.

    Args:
        cohort: clients invited per round; fewer if fewer are charged.
        steps: local gradient steps per report. They take time if the federation has ``per_step``.
        deadline: how long a round waits; None waits for all invited clients.
        quorum: reports needed for a round to succeed. A round opens when as many are charged.

    Example:
        >>> import cafe
        >>> charge = cafe.presence.Battery(capacity=3.0, cost=1.0, harvest=0.5, slot=1.0)
        >>> phones = cafe.Federation(20, cafe.Exponential(1.0), presence=charge)
        >>> policy = cafe.policies.energy_harvesting(cohort=5, deadline=2.0)
        >>> cafe.simulate(phones, policy, rounds=100)
        History(energy_harvesting(cohort=5, deadline=2.0): 100 rounds, 100 updates)
    """
    given = non_defaults(energy_harvesting, locals())
    cohort = check_whole("A cohort", cohort)
    return Policy(
        "energy_harvesting",
        _Oldest(cohort, Work(steps)),
        merge=Mean(),
        carry=DropAll(),
        parameters=given,
        cohort=cohort,
        **closing(quorum, deadline, all_in=True),
    )
