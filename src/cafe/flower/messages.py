"""Orders and reports as Flower's messages, and back. Data from clients is not trusted."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from flwr.app import ConfigRecord, RecordDict

from cafe.flower.array_records import MalformedError, join_parts, pack_arrays, read_arrays
from cafe.live.client_work import LocalModel
from cafe.live.wire import ClientScore, Order, Report
from cafe.rounds.jobs import Work

MODEL, ORDER, UPDATE, REPORT, STOPPED = "model", "order", "update", "report", "stopped"
VECTORS = ("offset", "frozen")  # fields of an order that are arrays, each sent in its own record
NONCE = "nonce"
_LOCAL_MODEL = "cafe.memory."  # prefix of the names of records in a client's state
_MAX_COUNTS = 100_000  # classes
T = TypeVar("T")


def make_nonce() -> str:
    """Random text that makes the id of a message unpredictable.

    A client that could predict the id of another client's order could answer it.
    """
    return secrets.token_hex(16)


def order_record(order: Order, run: str) -> ConfigRecord:
    """An order as a record, without its arrays.

    Values that are None are left out, because the format has no null.
    """
    values = {name: value for name, value in vars(order).items() if name not in VECTORS}
    values |= {"run": run, NONCE: make_nonce()}
    values |= {f"work.{name}": value for name, value in asdict(values.pop("work")).items()}
    values["keeps"] = [*order.keeps] or None
    return ConfigRecord({name: value for name, value in values.items() if value is not None})


def read_order(record: ConfigRecord) -> tuple[Order, str]:
    """An order without its arrays, and the key of the run that it belongs to."""
    values: dict[str, Any] = dict(record)
    work = {n.removeprefix("work."): v for n, v in values.items() if n.startswith("work.")}
    rest = {n: v for n, v in values.items() if not n.startswith("work.")}
    run = str(rest.pop("run"))
    rest.pop(NONCE, "")
    rest["keeps"] = tuple(rest.get("keeps", ()))
    return Order(**rest, work=Work(**work)), run


def read_vectors(content: RecordDict) -> dict[str, Any]:
    """Those arrays of an order that were sent with it, by the name of the field."""
    sent = content.array_records
    return {name: join_parts(sent[name]) for name in VECTORS if name in sent}


def evaluation_record(seconds: float) -> ConfigRecord:
    """The record that asks a client to evaluate a model within some seconds."""
    return ConfigRecord({"seconds": seconds, NONCE: make_nonce()})


def report_content(report: Report | None) -> RecordDict:
    """A report as a message's content; None: the client has stopped at its deadline."""
    if report is None:
        return RecordDict({REPORT: ConfigRecord({STOPPED: True})})
    values = {n: v for n, v in vars(report).items() if n != "update" and v is not None}
    if report.labels is not None:
        values["labels"] = [*report.labels]
    return RecordDict({UPDATE: pack_arrays(report.update), REPORT: ConfigRecord(values)})


def read_report(content: RecordDict, max_bytes: int) -> Report | None:
    """A report from a client; None if the client has stopped at its deadline.

    Raises:
        MalformedError: if the content is not a report, or its update has more than ``max_bytes``.
    """
    try:
        values: dict[str, Any] = dict(content.config_records[REPORT])
        if values.get(STOPPED) is True:
            return None
        extra = set(content) - {REPORT, UPDATE}
        if extra:
            raise MalformedError(f"it has an unexpected record, {sorted(extra)[0][:40]}")
        update = read_arrays(content.array_records[UPDATE], max_bytes)
        label, carried = values.get("label", ""), values["carried"]
        if not isinstance(label, str) or not isinstance(carried, bool):
            raise MalformedError("its label must be text, and carried must be true or false")
        return Report(
            update,
            _integer(values["invitation"]),
            _integer(values["version"]),
            carried,
            _optional(_integer, values.get("examples")),
            _optional(_number, values.get("loss")),
            label,
            _number(values.get("took", 0.0)),
            _optional(_integer, values.get("steps")),
            _optional(_number, values.get("rms_loss")),
            _optional(_counts, values.get("labels")),
            _optional(_number, values.get("rate")),
        )
    except KeyError as error:
        raise MalformedError(f"it has no {str(error)[:40]}") from None


def read_score(ticket: str, content: RecordDict) -> ClientScore | None:
    """A client's evaluation result; None if it cannot be read."""
    try:
        values: dict[str, Any] = dict(content.config_records[REPORT])
        return ClientScore(
            ticket,
            _number(values["loss"]),
            _optional(_number, values.get("accuracy")),
            _integer(values["examples"]),
        )
    except (KeyError, MalformedError):
        return None


def read_local_models(state: RecordDict) -> list[LocalModel]:
    """The local models in a client's state, which Flower keeps between messages."""
    found = []
    for name, record in state.config_records.items():
        if not name.startswith(_LOCAL_MODEL):
            continue
        model, update = (state.array_records[f"{name}.{part}"] for part in (MODEL, UPDATE))
        found.append(
            LocalModel(
                str(record["run"]),
                int(str(record["invitation"])),
                int(str(record["began"])),
                {key: array.numpy() for key, array in model.items()},
                {key: array.numpy() for key, array in update.items()},
                _optional(_number, record.get("loss")),
                _optional(_number, record.get("rms_loss")),
            )
        )
    return found


def store_local_models(state: RecordDict, local_models: tuple[LocalModel, ...]) -> None:
    """Replace the local models in a client's state."""
    for name in [name for name in state if name.startswith(_LOCAL_MODEL)]:
        del state[name]
    for k, local_model in enumerate(local_models):
        name = f"{_LOCAL_MODEL}{k}"
        values: dict[str, Any] = {
            "run": local_model.run,
            "invitation": local_model.invitation,
            "began": local_model.began,
            "loss": local_model.loss,
            "rms_loss": local_model.rms_loss,
        }
        state[name] = ConfigRecord({n: value for n, value in values.items() if value is not None})
        state[f"{name}.{MODEL}"] = pack_arrays(local_model.model)
        state[f"{name}.{UPDATE}"] = pack_arrays(local_model.update)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise MalformedError(f"an integer was expected, got {value!r}"[:100])
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedError(f"a number was expected, got {value!r}"[:100])
    return float(value)


def _counts(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > _MAX_COUNTS:
        raise MalformedError(f"its label counts must be a list of at most {_MAX_COUNTS:,} integers")
    return tuple(_integer(count) for count in value)


def _optional(read: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else read(value)
