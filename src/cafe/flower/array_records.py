"""Named arrays as Flower's records, and back. Arrays from clients are not trusted.

Flower sends arrays in NumPy's file format. NumPy's own loader is not used for arrays from clients:
it evaluates the header as Python, fails on bad headers with many kinds of exceptions, and trusts
the sizes in it.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray

from cafe.live.model_layout import Arrays

_MAGIC = b"\x93NUMPY\x01\x00"  # the first bytes of an array
_MAX_HEADER = 1024  # bytes
_PART = 4 << 20  # bytes of a part; Flower itself would cut arrays of more than 5 MiB
# Exactly what NumPy writes for arrays of numbers.
_HEADER = re.compile(
    rb"\{'descr': '([<>|][fiub]\d{1,2})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)


class MalformedError(ValueError):
    """The received data does not have the form of a report."""


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> ArrayRecord:
    """A record with one entry per array."""
    return ArrayRecord({name: Array(np.asarray(a, order="C")) for name, a in arrays.items()})


def pack_parts(arrays: Mapping[str, NDArray[Any]]) -> ArrayRecord:
    """A record of arrays in parts, whose object ids in Flower cannot be predicted.

    Flower cuts arrays into objects and names each object by the hash of its content. A client that
    can predict a name, for example of a model that is sent again, can register that name with
    false content, and the server could no longer send it. So arrays are cut here, into smaller
    parts than Flower's, and each part ends with random bytes, which NumPy ignores.
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


def join_parts(record: ArrayRecord) -> Arrays:
    """The arrays that :func:`pack_parts` has packed."""
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


def read_arrays(record: ArrayRecord, max_bytes: int) -> Arrays:
    """The arrays of a record from a client, as views of the received bytes.

    Args:
        record: the record; its arrays are not copied, so no more memory is used, whatever sizes
            their headers contain.
        max_bytes: how many bytes all arrays together may have.

    Raises:
        MalformedError: if the record is larger, or an array is not a valid array of numbers.
    """
    total = sum(len(array.data) for array in record.values())
    if total > max_bytes + _MAX_HEADER * len(record):
        raise MalformedError(f"it has {total:,} bytes, and at most {max_bytes:,} are allowed")
    return {name: _read_array(name, array) for name, array in record.items()}


def _read_array(name: str, sent: Array) -> NDArray[Any]:
    if sent.stype != "numpy.ndarray":
        raise MalformedError(f"{name[:40]} is not in NumPy's format")
    data = memoryview(sent.data)
    begin = len(_MAGIC) + 2 + int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + 2], "little")
    header = _HEADER.fullmatch(bytes(data[len(_MAGIC) + 2 : min(begin, _MAX_HEADER)]))
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
        raise MalformedError(
            f"{name[:40]} claims to be {shape} of {descr.decode()}: {error}"
        ) from None
