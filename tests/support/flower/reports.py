"""Reports as Flower's messages, well-formed and forged."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from cafe.flower import array_records, messages
from cafe.flower.array_records import MalformedError
from cafe.flower.messages import REPORT, UPDATE

MOST = 10**6
GOOD: dict[str, Any] = {"invitation": 7, "version": 3, "carried": False, "examples": 5}
UPDATES: dict[str, Any] = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.ones(2, np.float64),
}
BODY = np.arange(3, dtype="<f4").tobytes()


def send_through(record: Any) -> Any:
    """A record after it was sent and received."""
    children = {key: send_through(child) for key, child in (record.children or {}).items()}
    return type(record).inflate(record.deflate(), children or None)


def content(update: Any = None, /, **changes: Any) -> RecordDict:
    """A reply with a report, some of whose values are changed."""
    values = {name: value for name, value in (GOOD | changes).items() if value is not None}
    record = (
        update if isinstance(update, ArrayRecord) else array_records.pack_arrays(update or UPDATES)
    )
    return RecordDict({UPDATE: record, REPORT: ConfigRecord(values)})


def raw(data: bytes, stype: str = "numpy.ndarray") -> ArrayRecord:
    """An array with any bytes as its data."""
    return ArrayRecord({"w": Array(dtype="float32", shape=(3,), stype=stype, data=data)})


def npy(header: str, body: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """A file in NumPy's format with any header."""
    text = header.encode() + b"\n"
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + body


def header(descr: str = "<f4", fortran: str = "False", shape: str = "(3,)") -> str:
    return f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}"


def rejection(reply: RecordDict, most: int = MOST) -> str:
    with pytest.raises(MalformedError) as error:
        messages.read_report(reply, most)
    return str(error.value)
