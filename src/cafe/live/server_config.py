"""What a server is told to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cafe.control import Controller, as_controller
from cafe.engine import StoppingRule
from cafe.engine.clusters import Cluster
from cafe.errors import InputError, check_positive, check_whole
from cafe.learn.server_optimisers import ServerOptimiser
from cafe.live.aggregation import Combine
from cafe.live.evaluation import ByClients, Evaluate, OnServer, Scorer
from cafe.live.model_layout import Arrays
from cafe.live.validation import ReportLimits
from cafe.rounds.policy import Policy

Model = Mapping[str, Any] | Callable[[], Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class ServerConfig:
    """What a server is told.

    Attributes:
        policy: how it runs its rounds, or a controller that chooses a policy for each.
        model: the arrays to begin with, by name, or a function that gives them.
        rounds: how many rounds at most, failed ones included.
        updates: how many successful rounds at most.
        time: stop after the first round that closes after so many seconds.
        seed: of all that the server draws.
        evaluate: from the model's arrays to its loss and accuracy; "clients": ask them; None: not.
        evaluate_every: how many updates apart.
        evaluate_seconds: how long an evaluation may take.
        report_limits: limits on what clients may report.
        combine: how updates are put together; None adds them up.
        optimiser: what the server does with the update; None adds it to the model.
        clients: wait for so many before a round; None: for as many as the quorum.
        wait: seconds to wait for them, before the run is stopped.
        patience: so many failed rounds in a row stop the run.
        secure_aggregation: refuse policies that need to see single updates or losses.
    """

    policy: Policy | Controller
    model: Model
    rounds: int | None = None
    updates: int | None = None
    time: float | None = None
    seed: int = 0
    evaluate: Evaluate | str | None = None
    evaluate_every: int = 1
    evaluate_seconds: float = 60.0
    report_limits: ReportLimits | None = None
    combine: Combine | None = None
    optimiser: ServerOptimiser | None = None
    clients: int | None = None
    wait: float = 300.0
    patience: int = 100
    secure_aggregation: bool = False

    def __post_init__(self) -> None:
        StoppingRule(self.rounds, self.updates, self.time)
        if isinstance(self.policy, Cluster | list | tuple):
            raise InputError(
                "Two levels run in simulation only, by cafe.two_levels. A server on real clients "
                "needs one policy, such as cafe.policies.mcu(quorum=1, deadline=0.5)."
            )
        as_controller(self.policy)
        check_whole("evaluate_every", self.evaluate_every)
        check_positive("evaluate_seconds", self.evaluate_seconds)
        check_positive("wait", self.wait)
        check_whole("patience", self.patience)
        if not isinstance(self.secure_aggregation, bool):
            raise InputError(
                f"secure_aggregation must be true or false. Got {self.secure_aggregation!r}."
            )
        if self.clients is not None:
            check_whole("clients", self.clients)
        if isinstance(self.evaluate, str) and self.evaluate != "clients":
            raise InputError(
                "evaluate is a function from a model to its loss and accuracy, or the word "
                f"'clients'. Got '{self.evaluate}'."
            )

    @property
    def limits(self) -> StoppingRule:
        """When the run ends."""
        return StoppingRule(self.rounds, self.updates, self.time)

    @property
    def controller(self) -> Controller:
        """Which policy holds in each round."""
        return as_controller(self.policy)

    def arrays(self) -> Arrays:
        """The model to begin with."""
        model = self.model() if callable(self.model) else self.model
        return {name: np.asarray(array) for name, array in model.items()}

    def scorer(self) -> Scorer | None:
        """How the model is evaluated."""
        if self.evaluate is None:
            return None
        if isinstance(self.evaluate, str):
            return ByClients(self.evaluate_seconds)
        return OnServer(self.evaluate, self.evaluate_seconds)
