"""A Flower strategy that runs CAFe's rounds with unchanged ClientApps."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result
from flwr.serverapp.strategy import Strategy as FlowerStrategy

from cafe.controllers import Controller, display_name
from cafe.errors import (
    InputError,
    check_flag,
    check_path,
    check_positive,
    check_type,
    check_whole,
    is_finite_number,
)
from cafe.flower.array_records import pack_arrays
from cafe.flower.metrics_file import read_metrics_file
from cafe.flower.stock_messages import RecordKeys, average_metrics
from cafe.flower.stock_policy import check_policy
from cafe.flower.stock_run import MetricsFn, StockRun, aggregate_with
from cafe.flower.stock_wire import StockWire
from cafe.flower.strategy_arguments import check_arrays, check_names
from cafe.flower.strategy_evaluation import (
    ClientMetrics,
    EvaluateFn,
    ServerMetrics,
    StrategyEvaluator,
)
from cafe.live.model_layout import Layout
from cafe.live.run_log import ARRAYS, REMEDY
from cafe.live.server import RunHooks, serve
from cafe.live.server_config import ServerConfig
from cafe.results.storage import read_arrays
from cafe.rounds.policy import Policy

FOLDER = "results/live"
TIMEOUT = 3600.0  # seconds; Flower's default


class Strategy(FlowerStrategy):
    """A Flower strategy that runs a policy of CAFe with unchanged ClientApps.

    ``start`` runs CAFe's own loop: deadline and quorum, validation of reports, ages, and files from
    which an unfinished run is resumed. Clients get Flower's usual messages. Reports are weighted as
    the policy says: :func:`cafe.policies.mcu` counts each report the same,
    :func:`cafe.policies.fedavg` weighs it by its client's ``num-examples``, like Flower's FedAvg.

    Args:
        policy: for example ``cafe.policies.mcu(...)``; or a controller that chooses a policy for
            each round. A policy that needs CAFe's own client, such as AGU, is refused.
        folder: where the run's files are written. An unfinished run in it is resumed; of a finished
            run, the result is returned.
        overwrite: start over, and delete the run that is in the folder.
        fraction_evaluate: the share of the idle clients that evaluate each new model; 0: none.
        configure: ``configure(server_round, config)`` returns the configuration that clients get in
            a round, for example with a smaller learning rate. ``config`` is a copy of
            ``train_config``. None: ``train_config`` is sent in all rounds.
        train_metrics_aggr_fn: as in Flower's FedAvg. It gets the replies that are in an update,
            without their arrays. None: means weighted by examples.
        evaluate_metrics_aggr_fn: the same for evaluation metrics.
        weighted_by_key: the metric that contains the number of examples of a client.
        arrayrecord_key: the key of the model in messages.
        configrecord_key: the key of the configuration in messages.
        more: what to reject, how to combine updates and so on: any other field of
            :class:`cafe.live.server_config.ServerConfig`. ``evaluate_seconds`` is how long clients
            may take to evaluate; by default, the policy's deadline.

    Raises:
        InputError: if the policy cannot be run with unchanged ClientApps, or an argument is wrong.

    Example:
        >>> import cafe
        >>> from cafe.flower import Strategy
        >>> strategy = Strategy(cafe.policies.mcu(quorum=3, deadline=8.0), folder="results/mcu")
    """

    def __init__(
        self,
        policy: Policy | Controller,
        *,
        folder: str | Path = FOLDER,
        overwrite: bool = False,
        fraction_evaluate: float = 1.0,
        configure: Callable[[int, ConfigRecord], ConfigRecord] | None = None,
        train_metrics_aggr_fn: MetricsFn | None = None,
        evaluate_metrics_aggr_fn: MetricsFn | None = None,
        weighted_by_key: str = "num-examples",
        arrayrecord_key: str = "arrays",
        configrecord_key: str = "config",
        **more: Any,
    ) -> None:
        check_names([*inspect.signature(Strategy).parameters][:-1], more)
        for name, key in (
            ("weighted_by_key", weighted_by_key),
            ("arrayrecord_key", arrayrecord_key),
            ("configrecord_key", configrecord_key),
        ):
            check_type(name, key, str, "a text, the key of a record")
        check_flag("overwrite", overwrite)
        known = is_finite_number(fraction_evaluate) and not isinstance(fraction_evaluate, bool)
        if not known or not 0 <= fraction_evaluate <= 1:
            raise InputError(
                "fraction_evaluate must be a number from 0 to 1, the share of the clients that "
                f"evaluate. Got {fraction_evaluate!r}."
            )
        for name, function in (
            ("configure", configure),
            ("train_metrics_aggr_fn", train_metrics_aggr_fn),
            ("evaluate_metrics_aggr_fn", evaluate_metrics_aggr_fn),
        ):
            if function is not None and not callable(function):
                raise InputError(f"{name} must be a function or None. Got {function!r}.")
        self._evaluate_seconds: float | None = more.get("evaluate_seconds")
        # Checked here, so that a mistake shows before any client is asked.
        self._config = ServerConfig(policy, dict, updates=1, **more)
        if isinstance(policy, Policy):
            check_policy(policy)
        self._folder, self._overwrite = check_path("folder", folder), overwrite
        self._fraction, self._configure = float(fraction_evaluate), configure
        self._train_metrics = train_metrics_aggr_fn or average_metrics
        self._evaluate_metrics = evaluate_metrics_aggr_fn or average_metrics
        self._keys = RecordKeys(arrayrecord_key, configrecord_key, weighted_by_key)
        self._check_overrides()

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = TIMEOUT,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: EvaluateFn | None = None,
    ) -> Result:
        """Run the policy until the model was updated ``num_rounds`` times, and return the result.

        Args:
            grid: the Grid of the ServerApp.
            initial_arrays: the initial model. Arrays of floating-point numbers are learned. Others,
                such as counters, become the mean of the returned ones, rounded to their type.
            num_rounds: the number of successful rounds. A failed round leaves the model as it is
                and is repeated; ``patience`` failed rounds in a row stop the run.
            timeout: the longest time of an evaluation, in seconds. A training round does not use
                it: it ends by the policy, at the latest at its deadline.
            train_config: the configuration of training messages. ``server-round``, the number of
                the model's round, and ``deadline``, the seconds that the server waits, are added.
            evaluate_config: the configuration of evaluation messages.
            evaluate_fn: evaluates a model on the server, as in Flower: before the first round and
                after each successful one.

        Returns:
            The final arrays, and the metrics by the model's round. After a resumed run, the metrics
            of the rounds before it are included.

        Raises:
            InputError: if an argument is wrong.
            InfeasibleError: if too few clients come, or too many rounds in a row fail.
        """
        arrays = check_arrays(initial_arrays)
        check_whole("num_rounds", num_rounds)
        timeout = check_positive("timeout", timeout)
        for name, given in (("train_config", train_config), ("evaluate_config", evaluate_config)):
            if given is not None and not isinstance(given, ConfigRecord):
                raise InputError(f"{name} must be a ConfigRecord of Flower or None. Got {given!r}.")
        if evaluate_fn is not None and not callable(evaluate_fn):
            raise InputError(f"evaluate_fn must be a function or None. Got {evaluate_fn!r}.")
        say = logging.getLogger("flwr").info
        config = replace(self._config, model=arrays, updates=num_rounds)
        wire = StockWire(
            grid,
            Layout.of(arrays),
            self._keys,
            self._configuration(train_config),
            evaluate_config or ConfigRecord(),
            say,
        )
        if not wire.limited:
            say("With this Grid, replies of any size are read: see docs/security.md.")
        key = self._keys.examples
        hooks = StockRun(
            wire,
            self._folder,
            aggregate_with(self._train_metrics, key, "training", say),
            evaluate_fn,
            say,
        )
        by_clients = None
        if self._fraction > 0:
            aggregate = aggregate_with(self._evaluate_metrics, key, "evaluation", say)
            seconds = self._evaluate_seconds
            by_clients = ClientMetrics(wire, self._fraction, seconds, timeout, aggregate)
        by_server = None if evaluate_fn is None else ServerMetrics(evaluate_fn, timeout)
        evaluator = None
        if by_clients or by_server:
            evaluator = StrategyEvaluator(by_clients, by_server, hooks.keep, say)
        self.summary()
        try:
            history = serve(
                wire,
                config,
                self._folder,
                overwrite=self._overwrite,
                name=_run_name(grid),
                say=say,
                hooks=RunHooks(hooks.begin, hooks.played, evaluator),
            )
        finally:
            hooks.close()
        if history.updates < num_rounds and config.time is None:
            raise InputError(
                f"num_rounds is {num_rounds}, but the run in {self._folder} is finished after "
                f"{history.updates} rounds. Start over (overwrite=True), or choose another folder."
            )
        return self._result(arrays)

    def _configuration(self, train_config: ConfigRecord | None) -> Callable[[int], ConfigRecord]:
        """The configuration of a round, as a function of its number."""

        def configuration(server_round: int) -> ConfigRecord:
            config = ConfigRecord({**(train_config or {})})
            if self._configure is None:
                return config
            made: Any = self._configure(server_round, config)
            if not isinstance(made, ConfigRecord):
                raise InputError(f"configure must return a ConfigRecord of Flower. Got {made!r}.")
            return made

        return configuration

    def _result(self, arrays: dict[str, Any]) -> Result:
        """The result of the finished run in the folder."""
        found = read_arrays(self._folder / ARRAYS, REMEDY)
        result = Result(pack_arrays({name: found[name] for name in arrays}))
        read_metrics_file(self._folder, result)
        return result

    def summary(self) -> None:
        """Log the policy, the folder and who evaluates."""
        say = logging.getLogger("flwr").info
        say("CAFe: policy %s; files in %s", display_name(self._config.controller), self._folder)
        say("CAFe: %.0f %% of the idle clients evaluate each model", 100 * self._fraction)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Raise an error: only Flower's own loop calls this method."""
        self._refuse("configure_train")

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Raise an error: only Flower's own loop calls this method."""
        self._refuse("aggregate_train")

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Raise an error: only Flower's own loop calls this method."""
        self._refuse("configure_evaluate")

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Raise an error: only Flower's own loop calls this method."""
        self._refuse("aggregate_evaluate")

    @staticmethod
    def _refuse(method: str) -> NoReturn:
        raise InputError(
            f"{method} was called, but the start of cafe.flower.Strategy runs CAFe's own loop, "
            "which does not call it. So wrappers of strategies, such as differential privacy, do "
            "not work around it. Use Flower's strategy with cafe.flower.watch(grid, ...), which "
            "keeps a deadline and a quorum."
        )

    def _check_overrides(self) -> None:
        """Raise an error if a subclass overrides a method that is never called."""
        for name in _LOOP:
            if getattr(type(self), name) is not getattr(Strategy, name):
                raise InputError(
                    f"{type(self).__name__} overrides {name}, which cafe.flower.Strategy never "
                    "calls: its start runs CAFe's own loop. To change the configuration from round "
                    "to round, pass configure=...; for metrics, pass train_metrics_aggr_fn or "
                    "evaluate_metrics_aggr_fn; for other aggregation, combine= and optimiser=."
                )


_LOOP = ("configure_train", "aggregate_train", "configure_evaluate", "aggregate_evaluate")


def _run_name(grid: Grid) -> str:
    """The id of the run, for ``live.json``; empty if the grid has none."""
    return f"{getattr(getattr(grid, 'run', None), 'run_id', '')}"
