"""The ClientApp."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from cafe.flower import messages
from cafe.live.client_work import ClientContext, Job, Train, work
from cafe.live.model_layout import Arrays
from cafe.rounds.jobs import ONE_STEP

Judge = Callable[[Arrays, Job], tuple[float, float | None, int]]


def client(train: Train, *, evaluate: Judge | None = None) -> ClientApp:
    """A Flower ClientApp around a training function.

    Args:
        train: ``train(model, job)``, from the arrays of a model, by name, and a
            :class:`cafe.live.Job` to the arrays after training; or to a :class:`cafe.live.Trained`
            that also says how many examples there were. It should ask ``job.go_on()`` now and then,
            and return when the server does not wait any more.
        evaluate: ``evaluate(model, job)``, to a loss, an accuracy or None, and how many examples
            they are the mean over.
    """
    app = ClientApp()

    @app.train()
    def on_train(message: Message, context: Context) -> Message:
        received = time.monotonic()
        order, run = messages.order_from(message.content.config_records[messages.ORDER])
        order = replace(order, **messages.vectors_from(message.content))
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
            local_models=messages.local_models_in(context.state),
            received=received,
        )
        messages.keep_local_models(context.state, local_models)
        return reply(message, messages.report_content(report), received)

    @app.evaluate()
    def on_evaluate(message: Message, context: Context) -> Message:
        received = time.monotonic()
        if evaluate is None:
            raise ValueError(
                "This client has no evaluate function: give one to cafe.flower.client."
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
        return reply(message, RecordDict({messages.REPORT: ConfigRecord(values)}), received)

    return app


def _model(message: Message) -> Arrays:
    return messages.joined(message.content.array_records[messages.MODEL])


def reply(message: Message, content: RecordDict, received: float) -> Message:
    """An answer that does not depend on this machine's clock.

    Flower dates a reply by the client's clock, and drops it where that differs by more than the
    message lives. Here it is dated by the server's clock: when the message was made, plus the time
    that passed since it came.
    """
    answer = Message(content, reply_to=message)
    passed = time.monotonic() - received
    kept = vars(answer.metadata)
    if "_created_at" in kept and "_ttl" in kept:
        kept["_created_at"] = message.metadata.created_at + passed
        kept["_ttl"] = max(message.metadata.ttl - passed, 1e-3)
    return answer
