"""Orders and reports as Flower's messages, and back. What comes back is not trusted.

Flower sends arrays in NumPy's own format. They are read here without NumPy's loader, which takes
the header for Python, fails on a bad one in too many ways, and believes the sizes in it.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from numpy.typing import NDArray

from cafe.live.client_work import LocalModel
from cafe.live.model_layout import Arrays
from cafe.live.wire import ClientScore, Order, Report
from cafe.rounds.jobs import Work

MODEL, ORDER, UPDATE, REPORT, STOPPED = "model", "order", "update", "report", "stopped"
VECTORS = ("offset", "frozen")  # arrays of an order, which are records of their own
NONCE = "nonce"
T = TypeVar("T")
_MOST_COUNTS = 100_000  # classes
_MAGIC, _LONGEST = b"\x93NUMPY\x01\x00", 1024  # what an array begins with; bytes of its header
_PART = 4 << 20  # bytes of an array that are sent in one; Flower would cut more than 5 MiB
# What NumPy writes for arrays of numbers, and nothing else.
_HEADER = re.compile(
    rb"\{'descr': '([<>|][fiub]\d{1,2})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)


class MalformedError(ValueError):
    """Something that does not have the form of a report."""


def packed(arrays: Mapping[str, NDArray[Any]]) -> ArrayRecord:
    """Named arrays for the wire."""
    return ArrayRecord({name: Array(np.asarray(a, order="C")) for name, a in arrays.items()})


def unforeseen(arrays: Mapping[str, NDArray[Any]]) -> ArrayRecord:
    """Named arrays for the wire, of which nobody can know beforehand what Flower will call them.

    Flower cuts arrays into pieces and names these by hashes of their content. Who knows a name
    beforehand, as that of a model which is sent again, can register it with a false content, and
    the server could not send it. So arrays are cut here, smaller than Flower would, and each part
    ends with random bytes, which NumPy does not read.
    """
    record = ArrayRecord()
    for name, given in arrays.items():
        array = np.asarray(given, order="C")
        shape, flat = ",".join(map(str, array.shape)), array.reshape(-1)
        step = _PART // array.itemsize
        for k, at in enumerate(range(0, max(flat.size, 1), step)):
            part = Array(flat[at : at + step])
            part.data += secrets.token_bytes(16)
            record[f"{k}|{shape}|{name}"] = part
    return record


def joined(record: ArrayRecord) -> Arrays:
    """What :func:`unforeseen` has cut, whole."""
    parts: dict[str, list[NDArray[Any]]] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for key, part in record.items():
        _, shape, name = key.split("|", 2)
        parts.setdefault(name, []).append(part.numpy())
        shapes[name] = tuple(map(int, shape.split(","))) if shape else ()
    return {
        name: (some[0] if len(some) == 1 else np.concatenate(some)).reshape(shapes[name])
        for name, some in parts.items()
    }


def unpacked(record: ArrayRecord, most: int) -> Arrays:
    """Named arrays from the wire, of at most so many bytes in all.

    A view of the bytes that came: no more memory is taken, whatever a header claims.
    """
    whole = sum(len(array.data) for array in record.values())
    if whole > most + _LONGEST * len(record):
        raise MalformedError(f"it has {whole:,} bytes, and at most {most:,} are taken")
    return {name: _array(name, array) for name, array in record.items()}


def _array(name: str, sent: Array) -> NDArray[Any]:
    if sent.stype != "numpy.ndarray":
        raise MalformedError(f"{name[:40]} is not in NumPy's format")
    data = memoryview(sent.data)
    begin = len(_MAGIC) + 2 + int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + 2], "little")
    header = _HEADER.fullmatch(bytes(data[len(_MAGIC) + 2 : min(begin, _LONGEST)]))
    if data[: len(_MAGIC)] != _MAGIC or header is None:
        raise MalformedError(f"{name[:40]} is not an array of numbers in NumPy's format")
    descr, fortran, sizes = header.groups()
    shape = tuple(int(size) for size in sizes.split(b",") if size.strip())
    body = data[begin:]
    try:
        kind = np.dtype(descr.decode())
        if math.prod(shape) * kind.itemsize != len(body):
            raise ValueError(f"it has {len(body)} bytes")
        flat = np.frombuffer(body, dtype=kind)
        return flat.reshape(shape, order="F" if fortran == b"True" else "C")
    except (TypeError, ValueError) as error:
        raise MalformedError(f"{name[:40]} says {shape} of {descr.decode()}: {error}") from None


def nonce() -> str:
    """Nobody can foresee it: who could tell the id of another's order could answer in its place."""
    return secrets.token_hex(16)


def order_record(order: Order, run: str) -> ConfigRecord:
    """An order for the wire, but for its arrays.

    What is None is left out, since the format has no word for it.
    """
    values = {name: value for name, value in vars(order).items() if name not in VECTORS}
    values |= {"run": run, NONCE: nonce()}
    values |= {f"work.{name}": value for name, value in asdict(values.pop("work")).items()}
    values["keeps"] = [*order.keeps] or None
    return ConfigRecord({name: value for name, value in values.items() if value is not None})


def vectors_from(content: RecordDict) -> dict[str, Any]:
    """The arrays of an order from the wire, as far as there are any."""
    sent = content.array_records
    return {name: joined(sent[name]) for name in VECTORS if name in sent}


def question(seconds: float) -> ConfigRecord:
    """That a client shall say what it thinks of a model, for the wire."""
    return ConfigRecord({"seconds": seconds, NONCE: nonce()})


def order_from(record: ConfigRecord) -> tuple[Order, str]:
    """An order from the wire, and which run it belongs to."""
    values: dict[str, Any] = dict(record)
    work = {n.removeprefix("work."): v for n, v in values.items() if n.startswith("work.")}
    rest = {n: v for n, v in values.items() if not n.startswith("work.")}
    run = str(rest.pop("run"))
    rest.pop(NONCE, "")
    rest["keeps"] = tuple(rest.get("keeps", ()))
    return Order(**rest, work=Work(**work)), run


def report_content(report: Report | None) -> RecordDict:
    """A report for the wire; None says that the client gave up at its deadline."""
    if report is None:
        return RecordDict({REPORT: ConfigRecord({STOPPED: True})})
    values = {n: v for n, v in vars(report).items() if n != "update" and v is not None}
    if report.labels is not None:
        values["labels"] = [*report.labels]
    return RecordDict({UPDATE: packed(report.update), REPORT: ConfigRecord(values)})


def report_from(content: RecordDict, most: int) -> Report | None:
    """A report from the wire, of at most so many bytes; None where the client gave up."""
    try:
        values: dict[str, Any] = dict(content.config_records[REPORT])
        if values.get(STOPPED) is True:
            return None
        extra = set(content) - {REPORT, UPDATE}
        if extra:
            raise MalformedError(f"it has a record too many, {sorted(extra)[0][:40]}")
        update = unpacked(content.array_records[UPDATE], most)
        label, carried = values.get("label", ""), values["carried"]
        if not isinstance(label, str) or not isinstance(carried, bool):
            raise MalformedError("its label must be a text, and carried must be true or false")
        return Report(
            update,
            _whole(values["invitation"]),
            _whole(values["version"]),
            carried,
            _maybe(_whole, values.get("examples")),
            _maybe(_number, values.get("loss")),
            label,
            _number(values.get("took", 0.0)),
            _maybe(_whole, values.get("steps")),
            _maybe(_number, values.get("rms_loss")),
            _maybe(_counts, values.get("labels")),
        )
    except KeyError as error:
        raise MalformedError(f"it has no {str(error)[:40]}") from None


def score_from(ticket: str, content: RecordDict) -> ClientScore | None:
    """A client's evaluation result; None if it cannot be read."""
    try:
        values: dict[str, Any] = dict(content.config_records[REPORT])
        accuracy = values.get("accuracy")
        return ClientScore(
            ticket,
            _number(values["loss"]),
            None if accuracy is None else _number(accuracy),
            _whole(values["examples"]),
        )
    except (KeyError, MalformedError):
        return None


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise MalformedError(f"a whole number was expected, got {value!r}"[:100])
    return value


def _maybe(read: Callable[[Any], T], value: Any) -> T | None:
    """What a value reads as, where there is one."""
    return None if value is None else read(value)


def _counts(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > _MOST_COUNTS:
        raise MalformedError("its label counts must be a list of whole numbers, not too long")
    return tuple(_whole(count) for count in value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedError(f"a number was expected, got {value!r}"[:100])
    return float(value)


_MEMORY = "cafe.memory."


def local_models_in(state: RecordDict) -> list[LocalModel]:
    """The local models that a client has kept in Flower's state for it."""
    found = []
    for name, record in state.config_records.items():
        if not name.startswith(_MEMORY):
            continue
        model, update = (state.array_records[f"{name}.{part}"] for part in (MODEL, UPDATE))
        found.append(
            LocalModel(
                str(record["run"]),
                int(str(record["invitation"])),
                int(str(record["began"])),
                {key: array.numpy() for key, array in model.items()},
                {key: array.numpy() for key, array in update.items()},
                _maybe(_number, record.get("loss")),
                _maybe(_number, record.get("rms_loss")),
            )
        )
    return found


def keep_local_models(state: RecordDict, local_models: tuple[LocalModel, ...]) -> None:
    """Leave local models for the next job, in place of those that were there."""
    for name in [name for name in state if name.startswith(_MEMORY)]:
        del state[name]
    for n, local_model in enumerate(local_models):
        name = f"{_MEMORY}{n}"
        values: dict[str, Any] = {
            "run": local_model.run,
            "invitation": local_model.invitation,
            "began": local_model.began,
            "loss": local_model.loss,
            "rms_loss": local_model.rms_loss,
        }
        state[name] = ConfigRecord({n: value for n, value in values.items() if value is not None})
        state[f"{name}.{MODEL}"] = packed(local_model.model)
        state[f"{name}.{UPDATE}"] = packed(local_model.update)
