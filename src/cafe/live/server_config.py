"""The settings of a server, and what is made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cafe.controllers import Controller, as_controller
from cafe.engine import StoppingRule
from cafe.engine.clusters import Cluster
from cafe.errors import (
    InputError,
    check_callable,
    check_flag,
    check_positive,
    check_type,
    check_whole,
)
from cafe.keywords import explain_keywords
from cafe.learn.server_optimisers import ServerOptimiser
from cafe.live.aggregation import Combine, GlobalModel, check_combination
from cafe.live.evaluation import ClientEvaluator, Evaluate, Evaluator, ServerEvaluator
from cafe.live.live_run import LiveRun
from cafe.live.model_layout import Arrays, Layout
from cafe.live.status_server import parse_address
from cafe.live.validation import ReportLimits
from cafe.live.wire import Wire
from cafe.randomness import check_seed
from cafe.rounds.hierarchy import Hierarchy
from cafe.rounds.policy import Policy

Model = Mapping[str, Any] | Callable[[], Mapping[str, Any]]


@explain_keywords
@dataclass(frozen=True, eq=False)
class ServerConfig:
    """The settings of a server.

    Attributes:
        policy: how it runs its rounds, or a controller that chooses a policy for each.
        model: the initial arrays, by name, or a function that returns them.
        rounds: the maximum number of rounds, failed ones included.
        updates: the maximum number of successful rounds.
        time: stop after the first round that closes after this many seconds.
        seed: the seed of all random numbers of the server.
        evaluate: a function from the model's arrays to its loss and accuracy; "clients": let the
            clients evaluate; None: do not evaluate.
        evaluate_every: the number of updates between two evaluations.
        evaluate_seconds: how long an evaluation may take.
        report_limits: limits on what clients may report.
        combine: how updates are combined; None adds them up.
        optimiser: what the server does with the combined update; None adds it to the model.
        clients: how many clients must be present before a round opens; None: as many as the policy
            declares, by default its quorum.
        wait: seconds to wait for them before the run is stopped.
        patience: this many failed rounds in a row stop the run.
        secure_aggregation: reject policies that need to see single updates or losses.
        metrics: the address at which the run's metrics and status are served, such as
            "127.0.0.1:9464"; None: they are not served.
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
    metrics: str | None = None

    def __post_init__(self) -> None:
        StoppingRule(self.rounds, self.updates, self.time)
        if isinstance(self.policy, Cluster | Hierarchy | list | tuple):
            raise InputError(
                "Two levels run in simulation only, by cafe.two_levels and cafe.simulate. A server "
                "on real clients needs one policy, such as cafe.policies.mcu(quorum=1, "
                "deadline=0.5)."
            )
        as_controller(self.policy)
        check_whole("evaluate_every", self.evaluate_every)
        check_positive("evaluate_seconds", self.evaluate_seconds)
        check_positive("wait", self.wait)
        check_whole("patience", self.patience)
        check_flag("secure_aggregation", self.secure_aggregation)
        check_seed(self.seed)
        check_combination(self.combine, self.optimiser)
        if self.report_limits is not None:
            wanted = "cafe.live.ReportLimits(...), or None"
            check_type("report_limits", self.report_limits, ReportLimits, wanted)
        if not callable(self.model):
            Layout.of(self.model)  # raises an error unless it is a model
        if self.clients is not None:
            check_whole("clients", self.clients)
        if self.metrics is not None:
            parse_address(self.metrics)
        if isinstance(self.evaluate, str) and self.evaluate != "clients":
            raise InputError(
                "evaluate must be a function from a model to its loss and accuracy, or "
                f"'clients'. Got '{self.evaluate}'."
            )
        if self.evaluate is not None and not isinstance(self.evaluate, str):
            wanted = "a function from a model to its loss and accuracy, 'clients', or None"
            check_callable("evaluate", self.evaluate, wanted)

    @property
    def controller(self) -> Controller:
        """Which policy is used in each round."""
        return as_controller(self.policy)

    @property
    def stopping_rule(self) -> StoppingRule:
        """When the run ends."""
        return StoppingRule(self.rounds, self.updates, self.time)

    def arrays(self) -> Arrays:
        """The initial model."""
        model = self.model() if callable(self.model) else self.model
        Layout.of(model)  # raises an error unless it is a model
        return {name: np.asarray(array) for name, array in model.items()}

    def evaluator(self) -> Evaluator | None:
        """How the model is evaluated; None if it is not."""
        if self.evaluate is None:
            return None
        if isinstance(self.evaluate, str):
            return ClientEvaluator(self.evaluate_seconds)
        return ServerEvaluator(self.evaluate, self.evaluate_seconds)

    def new_run(self, wire: Wire) -> LiveRun:
        """A run with these settings, before its first round."""
        return LiveRun(
            wire,
            self.controller,
            GlobalModel(self.arrays(), self.combine, self.optimiser),
            seed=self.seed,
            report_limits=self.report_limits,
            secure_aggregation=self.secure_aggregation,
        )
