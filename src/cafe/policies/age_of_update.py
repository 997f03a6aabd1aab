"""Age of update: few channels, for the oldest clients that can use one (Yang et al., 2020)."""

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
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed


@dataclass(frozen=True)
class _OldestFeasible:
    """Invite the oldest of the clients that are present and were not late in the last rounds."""

    channels: int
    work: Work

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        late = np.array([client for some in ledger.state or [] for client in some], dtype=np.intp)
        clients = ledger.idle[~np.isin(ledger.idle, late)]
        if not len(clients):
            clients = ledger.idle
        return Invitation(oldest(ledger, clients, self.channels, rng), work=self.work)


@dataclass(frozen=True)
class _LateClients:
    """The clients that did not report by the deadline, a list for each of the last rounds."""

    pause: int

    def __call__(self, ledger: Ledger, outcome: Outcome, closed: Closed) -> list[list[int]]:
        rounds: list[list[int]] = [
            *(ledger.state or []),
            closed.jobs.client[~closed.reported].tolist(),
        ]
        return rounds[max(len(rounds) - self.pause, 0) :]


@recipe("synchronous", "Yang et al. (2020)", stand_in=True)
def age_of_update(
    *,
    channels: int,
    pause: int = 10,
    steps: int = 1,
    deadline: float | None = None,
    quorum: int = 1,
) -> Policy:
    """Age of update: the oldest clients that the channel lets through get the few channels.

    "Age-Based Scheduling Policy for Federated Learning in Mobile Edge Networks" (ICASSP 2020). Only
    a limited number of clients can use the channel in a round. The age of update of client k is the
    number of rounds since it was last merged: T(t + 1) = (T(t) + 1) (1 - S(t)), where S(t) is 1 if
    it is merged in round t. The server schedules clients whose channel is good enough to report by
    the deadline, so that the sum of an increasing, concave function of their ages is largest. If
    clients count equally, these are the oldest; ties are broken at random. Reports are averaged.

    A channel is good, in this recipe, if the client is present when the round opens and did not
    miss the deadline in one of the last ``pause`` rounds. The server learns both from the clients,
    not from the federation. Fading channels can be given to the federation as a presence, such as
    ``cafe.presence.OnOff``. If no channel is good, the oldest of the clients that are present are
    invited.

    This is a stand-in: the publication assigns sub-channels by their signal-to-noise ratio, and a
    federation has no radio channels.

    Not verified: the objective in the text of the publication, whether it weighs ages by the
    clients' examples, and the weights of reports.

    Args:
        channels: the number of channels, and so of clients invited per round.
        pause: rounds for which the channel of a client that missed a deadline counts as bad.
        steps: local gradient steps per report. They take time if the federation has ``per_step``.
        deadline: how long a round waits; None waits for all invited clients.
        quorum: reports needed for a round to succeed.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.age_of_update(channels=4, deadline=3.0)
        >>> cafe.simulate(cafe.Federation(20, cafe.Exponential(1.0)), policy, rounds=100)
        History(age_of_update(channels=4, deadline=3.0): 100 rounds, 100 updates)
    """
    given = non_defaults(age_of_update, locals())
    channels = check_whole("channels", channels)
    return Policy(
        "age_of_update",
        _OldestFeasible(channels, Work(steps)),
        merge=Mean(),
        carry=DropAll(),
        observe=_LateClients(check_whole("pause", pause, least=0)),
        parameters=given,
        cohort=channels,
        **closing(quorum, deadline, all_in=True),
    )
