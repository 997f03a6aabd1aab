"""A ClientApp around a training function."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from cafe.errors import check_callable
from cafe.flower import messages
from cafe.flower.array_records import join_parts
from cafe.live.client_work import ClientContext, Job, Train, work
from cafe.live.model_layout import Arrays
from cafe.rounds.jobs import ONE_STEP

Evaluate = Callable[[Arrays, Job], tuple[float, float | None, int]]


def client(train: Train, *, evaluate: Evaluate | None = None) -> ClientApp:
    """A Flower ClientApp around a training function.

    Args:
        train: ``train(model, job)`` gets the arrays of a model, by name, and a
            :class:`cafe.live.Job`. It returns the arrays after training, or a
            :class:`cafe.live.Trained` that also contains the number of examples. It should call
            ``job.go_on()`` from time to time, and return when that is false: then the server no
            longer waits.
        evaluate: ``evaluate(model, job)`` returns a loss, an accuracy or None, and the number of
            examples that they are averaged over. It is needed only if the server asks clients to
            evaluate.

    Example:
        >>> from cafe.flower import client
        >>> def train(model, job):
        ...     return {"w": model["w"] + 1.0}
        >>> app = client(train)  # what client_app.py of a Flower app must define
    """
    check_callable("train", train, "a function of a model and a job")
    if evaluate is not None:
        check_callable("evaluate", evaluate, "a function of a model and a job, or None")
    app = ClientApp()

    @app.train()
    def on_train(message: Message, context: Context) -> Message:
        received = time.monotonic()
        order, run = messages.read_order(message.content.config_records[messages.ORDER])
        order = replace(order, **messages.read_vectors(message.content))
        model = _model(message)
        settings = dict(context.node_config)
        report, local_models = work(
            train,
            order,
            model,
            ClientContext(
                run=run,
                settings=settings,
                config=dict(context.run_config),
                label=str(settings.get("name", "")),
            ),
            local_models=messages.read_local_models(context.state),
            received=received,
        )
        messages.store_local_models(context.state, local_models)
        return make_reply(message, messages.report_content(report), received)

    @app.evaluate()
    def on_evaluate(message: Message, context: Context) -> Message:
        received = time.monotonic()
        if evaluate is None:
            raise ValueError(
                "The server asks clients to evaluate, but this app has no evaluate function. "
                "Pass one to cafe.flower.client."
            )
        seconds = float(str(message.content.config_records[messages.ORDER]["seconds"]))
        job = Job(
            f"{context.node_id}",
            -1,
            -1,
            -1,
            ONE_STEP,
            0,
            dict(context.node_config),
            dict(context.run_config),
            until=received + seconds,
        )
        loss, accuracy, examples = evaluate(_model(message), job)
        values: dict[str, Any] = {"loss": float(loss), "examples": int(examples)}
        values |= {} if accuracy is None else {"accuracy": float(accuracy)}
        return make_reply(message, RecordDict({messages.REPORT: ConfigRecord(values)}), received)

    return app


def _model(message: Message) -> Arrays:
    return join_parts(message.content.array_records[messages.MODEL])


def make_reply(message: Message, content: RecordDict, received: float) -> Message:
    """A reply that does not depend on this machine's clock.

    Flower dates a reply by the client's clock, and drops it if that differs from the server's clock
    by more than the message's lifetime. Here the date is the server's: when the message was
    created, plus the time since it was received (``received``, on the monotonic clock).
    """
    answer = Message(content, reply_to=message)
    passed = time.monotonic() - received
    kept = vars(answer.metadata)
    if "_created_at" in kept and "_ttl" in kept:
        kept["_created_at"] = message.metadata.created_at + passed
        kept["_ttl"] = max(message.metadata.ttl - passed, 1e-3)
    return answer
