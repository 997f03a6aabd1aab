"""Flower's usual messages: what its own strategies send, and what unchanged ClientApps reply.

A message has an ArrayRecord, the model, and a ConfigRecord. A reply has one ArrayRecord, the model
after training, and one MetricRecord with the number of examples. Data from clients is not trusted.

The ids of messages and of arrays up to 5 MiB cannot be predicted, see
:func:`cafe.flower.array_records.pack_parts`. Flower cuts larger arrays itself; the ids of their
first parts are those of Flower's own strategies.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, MetricRecord, RecordDict
from numpy.typing import NDArray

from cafe.errors import InputError
from cafe.flower.array_records import MalformedError, pack_arrays, read_arrays
from cafe.live.model_layout import Arrays, Layout

ROUND, DEADLINE = "server-round", "deadline"  # keys that are added to a configuration
_WIDEST = 8  # bytes of a number: a client may return wider numbers than it was sent
_METRICS = 1 << 20  # bytes that all but the arrays of a reply may have


@dataclass(frozen=True)
class RecordKeys:
    """The keys of records, as in Flower's strategies.

    Attributes:
        arrays: of the ArrayRecord in a message.
        config: of the ConfigRecord in a message.
        examples: of the number of examples in the MetricRecord of a reply.
    """

    arrays: str = "arrays"
    config: str = "config"
    examples: str = "num-examples"


@dataclass(frozen=True, eq=False)
class TrainedReply:
    """The reply to a training message.

    Attributes:
        update: the returned arrays minus those that were sent, for all arrays that are learned.
        rest: the returned arrays that are not learned, such as counters.
        metrics: the reply without its arrays.
        examples: the number of examples of its client.
    """

    update: Arrays
    rest: Arrays
    metrics: RecordDict
    examples: int


def max_reply_bytes(layout: Layout) -> int:
    """How many bytes the arrays of a reply may have."""
    return _WIDEST * sum(int(np.prod(shape, dtype=np.int64)) for shape in layout.shapes.values())


def max_message_bytes(layout: Layout) -> int:
    """How many bytes a reply may have, metrics and headers included."""
    return max_reply_bytes(layout) + _METRICS + 2048 * len(layout.shapes)


def pack_model(model: Arrays) -> ArrayRecord:
    """A model as clients expect it, with random bytes after each array, which NumPy ignores."""
    record = pack_arrays(model)
    for array in record.values():
        array.data += secrets.token_bytes(16)
    return record


def unpack_model(record: ArrayRecord) -> Arrays:
    """The arrays of a record of the server itself."""
    return {name: array.numpy() for name, array in record.items()}


def read_trained(
    content: RecordDict, sent: Arrays, layout: Layout, keys: RecordKeys
) -> TrainedReply:
    """The reply of a client that has trained.

    Raises:
        MalformedError: if it is not the reply that Flower's own strategies expect.
    """
    if len(content.array_records) != 1:
        raise MalformedError(
            f"it has {len(content.array_records)} ArrayRecords, and exactly one is expected"
        )
    metrics, examples = read_metrics(content, keys)
    (record,) = content.array_records.values()
    returned = read_arrays(record, max_reply_bytes(layout))
    odd = sorted(returned.keys() ^ layout.shapes.keys())
    if odd:
        raise MalformedError(f"array '{odd[0][:40]}' is missing or unexpected")
    for name, shape in layout.shapes.items():
        if returned[name].shape != shape:
            raise MalformedError(
                f"{name[:40]} must have the shape {shape}, got {returned[name].shape}"
            )
    learned = layout.learned
    update = {name: _difference(returned[name], sent[name], layout.kinds[name]) for name in learned}
    rest = {name: np.array(array) for name, array in returned.items() if name not in learned}
    for name, array in rest.items():
        if not np.isfinite(array).all():
            raise MalformedError(f"{name[:40]} contains NaN or infinity")
    return TrainedReply(update, rest, metrics, examples)


def _difference(returned: NDArray[Any], sent: NDArray[Any], kind: str) -> NDArray[Any]:
    """What a client has changed. Infinity, which may result, is rejected later."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.subtract(returned, sent, dtype=np.float64).astype(kind))


def read_metrics(content: RecordDict, keys: RecordKeys) -> tuple[RecordDict, int]:
    """The records of a reply without its arrays, and its number of examples.

    Raises:
        MalformedError: if it has not exactly one MetricRecord with a number of examples.
    """
    found = content.metric_records
    if len(found) != 1:
        raise MalformedError(f"it has {len(found)} MetricRecords, and exactly one is expected")
    (name,) = found
    examples = found[name].get(keys.examples)
    if examples is None:
        raise MalformedError(f"its metrics have no '{keys.examples}'")
    if isinstance(examples, float) and examples.is_integer():
        examples = int(examples)
    if not isinstance(examples, int):
        raise MalformedError(
            f"its '{keys.examples}' must be a whole number, got {examples!r}"[:100]
        )
    others = RecordDict()
    for key, record in content.items():
        if not isinstance(record, ArrayRecord):
            others[key] = record
    return others, examples


def as_metrics(given: Any) -> MetricRecord | None:
    """What a function of the user returned, as a MetricRecord or None."""
    if given is None or isinstance(given, MetricRecord):
        return given
    raise InputError(f"A function for metrics must return a MetricRecord or None. Got {given!r}.")


def average_metrics(replies: list[RecordDict], weighted_by_key: str) -> MetricRecord:
    """The mean of each metric, weighted by examples, like the default of Flower's FedAvg.

    A metric that only some clients send is averaged over them. Values that are not finite are left
    out; if no other value exists, the mean is NaN. A list counts only if it is as long as the first
    one.

    Args:
        replies: replies that each have one MetricRecord.
        weighted_by_key: the metric that contains the weight. It is not part of the result.

    Example:
        >>> from flwr.app import MetricRecord, RecordDict
        >>> from cafe.flower.stock_messages import average_metrics
        >>> values = [{"loss": 1.0, "num-examples": 1}, {"loss": 2.0, "num-examples": 3}]
        >>> replies = [RecordDict({"metrics": MetricRecord(each)}) for each in values]
        >>> dict(average_metrics(replies, "num-examples"))
        {'loss': 1.75}
    """
    records = [next(iter(reply.metric_records.values())) for reply in replies]
    means = MetricRecord()
    for key in dict.fromkeys(key for record in records for key in record):
        if key == weighted_by_key:
            continue
        sent = [record for record in records if key in record]
        form = np.shape(sent[0][key])
        same = [record for record in sent if np.shape(record[key]) == form]
        values = np.array([record[key] for record in same], dtype=np.float64)
        weights = np.array([record[weighted_by_key] for record in same], dtype=np.float64)
        mean = _finite_mean(values, weights.reshape(-1, *([1] * len(form))))
        means[key] = mean.tolist()
    return means


def _finite_mean(values: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """The weighted mean over rows of the finite values; NaN where there is none."""
    finite = np.isfinite(values)
    total = (finite * weights).sum(axis=0)
    summed = (np.where(finite, values, 0.0) * weights).sum(axis=0)
    unknown = np.full(np.shape(summed), np.nan)
    return np.asarray(np.divide(summed, total, out=unknown, where=total > 0))
