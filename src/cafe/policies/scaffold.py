"""SCAFFOLD: control variates correct the drift of local steps (Karimireddy et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.decisions.build import closing, local_work, non_defaults
from cafe.decisions.carry import DropAll
from cafe.decisions.invite import Fraction
from cafe.errors import check_positive
from cafe.policies._recipe import recipe
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Reports
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy


@dataclass(frozen=True)
class ControlVariates:
    """The mean update, times the server's rate, and new control variates (option II).

    ``Merge.common`` is the server's variate c, and the offset of client k is -c_k. A job adds the
    sum c - c_k to its gradients, so its mean gradient without them is -(c - c_k) - update / (steps
    * rate): the next c_k.
    """

    server_rate: float

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        updates, added = reports.updates, reports.offsets
        common, rates = reports.common, reports.rates
        assert updates is not None
        assert added is not None
        assert common is not None
        assert rates is not None
        # A job that has not moved keeps its variate. Of the others, the new c_k is -offset, where
        # offset = added + update / (steps * rate), and c_k was common - added.
        span = reports.steps * rates
        moved = span > 0
        per_step = np.divide(1.0, span, out=np.zeros_like(span), where=moved).astype(np.float32)
        offset = updates * per_step[:, None]
        offset += added
        if not moved.all():
            offset[~moved] -= common
        change = -(per_step @ updates) - np.count_nonzero(moved) * common
        share = np.full(len(reports), self.server_rate / len(reports))
        mean = common + change / ledger.clients
        if not (np.isfinite(mean).all() and np.isfinite(offset).all()):
            return Merge(share)  # training has diverged: the round fails, the variates stay
        return Merge(share, offset=offset, common=mean)


@recipe("synchronous", "Karimireddy et al. (2020)")
def scaffold(
    *,
    server_rate: float = 1.0,
    fraction: float = 0.2,
    epochs: int | None = None,
    steps: int | None = None,
    deadline: float | None = None,
    quorum: int = 1,
) -> Policy:
    """SCAFFOLD: local steps are corrected by how a client's gradients differ from all clients'.

    "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning" (ICML 2020). The server keeps
    a control variate c, and one for each client, c_k. Client k adds c - c_k to each of its
    gradients. Its new control variate is the mean of its gradients in the round, without what it
    has added (option II). The server adds the mean update of the reporting clients times the
    server's rate to the model, and the sum of the changes of c_k, divided by the number of all
    clients, to c. So c is always the mean of all c_k. All of them begin at 0.

    Reports are weighed equally, as in the paper. The client's objectives are multiplied by their
    share of all examples, times the number of clients, so that the mean loss over all examples is
    minimised.

    A client that misses the deadline keeps its control variate. The server computes the variates
    from the updates, so clients upload only these. In each round a client downloads the model and
    one vector, c - c_k. The paper's clients keep c_k themselves: they download c and upload the
    change of c_k. Real clients must report their steps and their learning rate.

    Memory grows with the number of clients: the run stores a vector of the model's size for each
    client that has reported.

    Differs from the authors' code: not known, because the code was not available.

    Not verified: that 20 % of the clients is the fraction of the paper's main experiments. The
    server's rate of 1 is that of its experiments.

    Args:
        server_rate: the server's step size, eta_g.
        fraction: fraction of all clients that is invited in each round.
        epochs: local passes over a client's examples; one, unless steps are given.
        steps: local gradient steps instead of epochs.
        deadline: how long a round waits; None waits for all invited clients.
        quorum: reports needed for a round to succeed.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.scaffold(fraction=0.5, steps=5, deadline=2.0)
        >>> clients = cafe.Federation(10, cafe.Exponential(1.0))
        >>> task = cafe.testing.check.small_task(10)
        >>> cafe.simulate(clients, policy, task, rounds=20).updates
        20
    """
    given = non_defaults(scaffold, locals())
    work = local_work(epochs, steps)
    return Policy(
        "scaffold",
        Fraction(fraction, work),
        merge=ControlVariates(check_positive("server_rate", server_rate)),
        carry=DropAll(),
        needs=frozenset({"updates", "offsets", "rates", "steps"}),
        parameters=given,
        cohort=float(fraction),
        **closing(quorum, deadline, all_in=True),
    )
