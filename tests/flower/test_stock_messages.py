"""Flower's usual messages: packed for any client, and read without trust."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg

from cafe.errors import InputError
from cafe.flower.array_records import MalformedError
from cafe.flower.stock_messages import (
    RecordKeys,
    as_metrics,
    average_metrics,
    pack_model,
    read_metrics,
    read_trained,
)
from cafe.live.model_layout import Layout
from tests.support.flower.reports import raw, send_through
from tests.support.flower.stock_grid import named_arrays

MODEL: dict[str, Any] = {"w": np.array([1.0, 2.0], np.float32), "n": np.array(3)}
LAYOUT, KEYS = Layout.of(MODEL), RecordKeys()


def reply(model: dict[str, Any] | ArrayRecord, /, **metrics: Any) -> RecordDict:
    arrays = model if isinstance(model, ArrayRecord) else named_arrays(model)
    values = {"num-examples": 4, **metrics}
    known = {name: value for name, value in values.items() if value is not None}
    made: RecordDict = send_through(RecordDict({"arrays": arrays, "metrics": MetricRecord(known)}))
    return made


def records(*values: dict[str, Any]) -> list[RecordDict]:
    return [RecordDict({"metrics": MetricRecord(each)}) for each in values]


def test_clients_read_the_model_as_usual_and_cannot_predict_its_name() -> None:
    first, second = pack_model(MODEL), pack_model(MODEL)
    assert first.object_id != second.object_id
    for record in (first, send_through(second)):
        assert [*record] == [*MODEL]
        for array, expected in zip(record.to_numpy_ndarrays(), MODEL.values(), strict=True):
            np.testing.assert_array_equal(array, expected)
            assert array.dtype == expected.dtype


def test_update_is_the_difference_in_the_type_of_the_model() -> None:
    wider = {"w": np.array([1.5, 1.0]), "n": np.array(8.0)}
    found = read_trained(reply(wider, loss=0.5), MODEL, LAYOUT, KEYS)
    assert found.update["w"].tolist() == [0.5, -1.0]
    assert found.update["w"].dtype == np.float32
    assert [*found.update] == ["w"]
    assert found.rest["n"] == 8.0
    assert found.examples == 4
    assert [*found.metrics] == ["metrics"]
    assert found.metrics["metrics"]["loss"] == 0.5


def test_number_too_large_for_the_model_becomes_infinity_which_is_rejected_later() -> None:
    found = read_trained(reply(MODEL | {"w": np.array([1e300, 0.0])}), MODEL, LAYOUT, KEYS)
    assert np.isinf(found.update["w"][0])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (reply({"w": MODEL["w"]}), "array 'n' is missing or unexpected"),
        (reply(MODEL | {"x" * 90: np.ones(1)}), r"array 'x{40}' is missing or unexpected"),
        (reply(MODEL | {"w": np.ones((2, 1))}), r"w must have the shape \(2,\), got \(2, 1\)"),
        (reply(MODEL | {"w": np.ones(1000)}), "at most 24 are allowed"),
        (reply(MODEL | {"n": np.array(math.nan)}), "n contains NaN or infinity"),
        (reply(raw(b"garbage")), "not an array of numbers"),
        (reply(MODEL, **{"num-examples": None}), "no 'num-examples'"),
        (reply(MODEL, **{"num-examples": 2.5}), "must be a whole number, got 2.5"),
        (reply(MODEL, **{"num-examples": [4]}), "must be a whole number"),
        (RecordDict({"metrics": MetricRecord({"num-examples": 1})}), "0 ArrayRecords"),
        (RecordDict({"a": named_arrays(MODEL), "b": named_arrays(MODEL)}), "2 ArrayRecords"),
        (RecordDict({"arrays": named_arrays(MODEL)}), "0 MetricRecords"),
    ],
)
def test_replies_that_are_not_as_usual_are_malformed(content: RecordDict, words: str) -> None:
    with pytest.raises(MalformedError, match=words):
        read_trained(content, MODEL, LAYOUT, KEYS)


def test_whole_floats_count_as_examples() -> None:
    assert read_metrics(reply(MODEL, **{"num-examples": 12.0}), KEYS)[1] == 12


def test_other_records_of_a_reply_are_kept_for_the_users_function() -> None:
    content = reply(MODEL)
    content["note"] = ConfigRecord({"device": "phone"})
    assert {*read_metrics(content, KEYS)[0]} == {"metrics", "note"}


def test_means_equal_those_of_fedavg() -> None:
    replies = records(
        {"num-examples": 1, "loss": 3.0, "count": 2, "each": [1.0, 2.0]},
        {"num-examples": 7, "loss": -1.0, "count": 9, "each": [0.0, 4.0]},
    )
    stock = FedAvg().train_metrics_aggr_fn(replies, "num-examples")
    mine = average_metrics(replies, "num-examples")
    assert [*mine] == [*stock]
    for name, value in stock.items():
        assert mine[name] == pytest.approx(value)


def test_mean_of_a_metric_that_not_all_clients_send() -> None:
    found = average_metrics(
        records(
            {"n": 1, "loss": 1.0, "bad": math.nan, "each": [1.0]},
            {"n": 3, "loss": 2.0, "each": [5.0, 6.0]},
            {"n": 2, "loss": math.inf, "bad": math.inf},
        ),
        "n",
    )
    assert found["loss"] == pytest.approx((1 * 1 + 3 * 2) / 4)
    assert math.isnan(float(str(found["bad"])))
    assert found["each"] == [1.0]


def test_only_metric_records_are_metrics() -> None:
    assert as_metrics(None) is None
    with pytest.raises(InputError, match="must return a MetricRecord or None"):
        as_metrics({"loss": 1.0})
