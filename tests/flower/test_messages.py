"""Orders, reports and local models as Flower's messages, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import ConfigRecord, MetricRecord, RecordDict

from cafe.flower import array_records, messages
from cafe.flower.array_records import MalformedError
from cafe.flower.messages import MODEL, ORDER, REPORT, STOPPED, UPDATE
from cafe.live.client_work import LocalModel
from cafe.live.wire import Order, Report
from cafe.rounds.jobs import Work
from tests.support.flower.reports import (
    GOOD,
    MOST,
    UPDATES,
    content,
    header,
    npy,
    raw,
    rejection,
    send_through,
)


def test_object_ids_of_orders_and_evaluations_are_unpredictable() -> None:
    order = Order("7", 0, 1, 1, 0)
    assert len({messages.order_record(order, "run").object_id for _ in range(3)}) == 3
    assert len({messages.evaluation_record(5.0).object_id for _ in range(3)}) == 3


shares = st.floats(0, 2)
ways: dict[str, Any] = {
    "prox": shares,
    "partial": st.booleans(),
    "scaled": st.booleans(),
    "download": shares,
    "upload": shares,
}
order_values: dict[str, Any] = {
    "client": st.text(max_size=20),
    "number": st.integers(0, 2**31),
    "round": st.integers(0, 2**31),
    "version": st.integers(0, 2**31),
    "seed": st.integers(0, 2**62),
    "seconds": st.none() | st.floats(0.001, 1e6),
    "carry": st.booleans(),
    "after": st.none() | st.integers(0, 2**31),
    "began": st.none() | st.integers(0, 2**31),
    "invitation": st.integers(0, 2**31),
    "work": st.one_of(
        st.builds(Work, steps=st.integers(1, 9), **ways),
        st.builds(Work, epochs=st.integers(1, 9), **ways),
        st.builds(Work, seconds=st.floats(0.001, 1e6), **ways),
    ),
}


@given(st.builds(Order, **order_values), st.text(max_size=20))
def test_orders_survive_packing(order: Order, run: str) -> None:
    record = send_through(messages.order_record(order, run))
    assert messages.read_order(record) == (order, run)


@given(
    report=st.builds(
        Report,
        update=st.just(UPDATES),
        invitation=st.integers(0, 2**40),
        version=st.integers(0, 2**40),
        carried=st.booleans(),
        examples=st.none() | st.integers(-(2**62), 2**62),
        loss=st.none() | st.floats(),
        label=st.text(max_size=40),
        took=st.floats(0, 1e6),
        steps=st.none() | st.integers(-(2**62), 2**62),
        rms_loss=st.none() | st.floats(),
        labels=st.none() | st.lists(st.integers(0, 2**40), min_size=1, max_size=9).map(tuple),
        rate=st.none() | st.floats(),
    )
)
def test_reports_survive_packing(report: Report) -> None:
    back = messages.read_report(send_through(messages.report_content(report)), MOST)
    assert back is not None
    plain = ("invitation", "version", "carried", "examples", "label", "took", "steps", "labels")
    for name in plain:
        assert getattr(back, name) == getattr(report, name)
    for name in ("loss", "rms_loss", "rate"):
        assert repr(getattr(back, name)) == repr(getattr(report, name))
    assert list(back.update) == list(UPDATES)
    for name, array in UPDATES.items():
        np.testing.assert_array_equal(back.update[name], array)


def test_client_that_gave_up_sends_a_stopped_message() -> None:
    assert messages.read_report(messages.report_content(None), MOST) is None
    # With any other value, the message counts as a report, and its values are missing.
    with pytest.raises(MalformedError):
        messages.read_report(RecordDict({REPORT: ConfigRecord({STOPPED: "yes"})}), MOST)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_local_models_survive_packing(count: int) -> None:
    state = RecordDict({"another key": ConfigRecord({"run": "x"})})
    model: dict[str, Any] = {"w": np.array(3.5, np.float32), "n": np.arange(4)}
    kept = [
        LocalModel(f"run {n}", n, n + 5, model, {"w": np.array(n, np.float32)}, *losses)
        for n, losses in enumerate([(), (0.5,), (0.5, 0.75)])
    ]
    messages.store_local_models(state, tuple(kept))
    messages.store_local_models(state, tuple(kept[:count]))
    back = messages.read_local_models(state)
    assert "another key" in state
    assert len(state) == 1 + 3 * count
    for mine, theirs in zip(back, kept[:count], strict=True):
        for which in ("run", "invitation", "began", "loss", "rms_loss"):
            assert getattr(mine, which) == getattr(theirs, which)
        for which in ("model", "update"):
            ours, others = getattr(mine, which), getattr(theirs, which)
            assert list(ours) == list(others)
            for name, array in others.items():
                assert ours[name].shape == array.shape
                assert ours[name].dtype == array.dtype
                np.testing.assert_array_equal(ours[name], array)


@pytest.mark.parametrize("name", ["invitation", "version", "examples", "steps"])
@pytest.mark.parametrize("value", ["1", True, 1.0, [1], b"1"])
def test_integers_are_required(name: str, value: Any) -> None:
    assert "integer" in rejection(content(**{name: value}))


def test_required_and_optional_values_of_a_report() -> None:
    for name in ("invitation", "version"):
        assert name in rejection(content(**{name: None}))
    silent = messages.read_report(content(examples=None), MOST)
    assert silent is not None
    rest = (silent.examples, silent.steps, silent.loss, silent.rms_loss, silent.labels)
    assert (*rest, silent.rate) == (None,) * 6


@pytest.mark.parametrize("value", [3, "1", True, b"1", [1.0], ["1"], [True], [1] * 100_001])
def test_label_counts(value: Any) -> None:
    why = rejection(content(labels=value))
    assert "integer" in why


@pytest.mark.parametrize("name", ["loss", "rms_loss", "took", "rate"])
@pytest.mark.parametrize("value", ["1.5", True, [1.0], b"1"])
def test_numbers_are_required(name: str, value: Any) -> None:
    assert "a number was expected" in rejection(content(**{name: value}))


@pytest.mark.parametrize(
    "changes", [{"carried": 1}, {"carried": "yes"}, {"label": 7}, {"label": ["a"]}], ids=str
)
def test_text_is_required(changes: dict[str, Any]) -> None:
    assert "its label must be text" in rejection(content(**changes))
    assert "'carried'" in rejection(content(carried=None))


def test_missing_and_unexpected_records_are_rejected() -> None:
    whole = content()
    assert messages.read_report(whole, MOST) is not None
    assert "it has no 'report'" in rejection(RecordDict({UPDATE: whole[UPDATE]}))
    assert "it has no 'update'" in rejection(RecordDict({REPORT: whole[REPORT]}))
    assert "unexpected record, more" in rejection(
        RecordDict(dict(whole) | {"more": MetricRecord({"a": 1})})
    )
    swapped = RecordDict({UPDATE: whole[REPORT], REPORT: whole[UPDATE]})
    assert "it has no" in rejection(swapped)
    assert "it has no" in rejection(RecordDict({}))


values = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.booleans(),
    st.lists(st.integers(-9, 9), max_size=3),
)
names = st.sampled_from([REPORT, UPDATE, MODEL, ORDER, STOPPED, "x"])
more = ["loss", "rms_loss", "label", "labels", "steps", "took", "rate"]
fields = st.sampled_from([*GOOD, *more, STOPPED, "x"])
configs = st.dictionaries(fields, values).map(lambda v: ConfigRecord(v))
likely = st.fixed_dictionaries({n: values | st.just(v) for n, v in GOOD.items()}).map(ConfigRecord)
metrics = st.dictionaries(fields, st.integers(0, 9) | st.floats()).map(
    lambda v: MetricRecord({**v})
)
headers = st.builds(
    header,
    st.sampled_from(["<f4", ">f8", "|O", "|b1", "<f3", "x"]),
    st.sampled_from(["True", "False", "0"]),
    st.lists(st.integers(-1, 4), max_size=3).map(lambda n: f"({', '.join(map(str, n))},)"),
)
datas = st.binary(max_size=40) | st.builds(npy, headers, st.binary(max_size=64))
stypes = st.sampled_from(["numpy.ndarray", "numpy.ndarray", "pickle"])
sent_arrays = st.builds(raw, datas, stypes) | st.just(array_records.pack_arrays(UPDATES))
replies = st.dictionaries(names, configs | metrics | sent_arrays).map(RecordDict) | st.builds(
    lambda u, r: RecordDict({UPDATE: u, REPORT: r}), sent_arrays, likely | configs
)


@given(replies)
@settings(max_examples=300)
def test_any_reply_is_a_report_or_malformed(reply: RecordDict) -> None:
    try:
        report = messages.read_report(reply, 100)
    except MalformedError:
        assert rejection(reply, 100)
        return
    if report is None:
        assert reply[REPORT][STOPPED] is True
        return
    for value, kind in (
        (report.invitation, int), (report.version, int),
        (report.carried, bool), (report.label, str), (report.took, float),
    ):  # fmt: skip
        assert type(value) is kind
    assert {type(report.loss), type(report.rms_loss)} <= {float, type(None)}
    assert {type(report.examples), type(report.steps)} <= {int, type(None)}
    assert report.labels is None or {type(count) for count in report.labels} <= {int}
    assert all(type(a) is np.ndarray and a.dtype.kind in "fiub" for a in report.update.values())


@given(replies)
def test_any_reply_is_a_score_or_none(reply: RecordDict) -> None:
    score = messages.read_score("t", reply)
    if score is not None:
        assert (type(score.loss), type(score.examples)) == (float, int)
        assert score.accuracy is None or type(score.accuracy) is float


def test_scores() -> None:
    good: dict[str, Any] = {"loss": 0.5, "accuracy": 0.25, "examples": 9}
    found = messages.read_score("t", RecordDict({REPORT: ConfigRecord(good)}))
    assert found is not None
    assert (found.ticket, found.loss, found.accuracy, found.examples) == ("t", 0.5, 0.25, 9)
    for bad in ({"loss": "0.5"}, {"examples": 1.5}, {"accuracy": True}, {"examples": True}):
        record = ConfigRecord(good | bad)
        assert messages.read_score("t", RecordDict({REPORT: record})) is None
    assert messages.read_score("t", RecordDict({})) is None
    plain = ConfigRecord({"loss": 1, "examples": 1})
    answer = messages.read_score("t", RecordDict({REPORT: plain}))
    assert answer is not None
    assert (answer.loss, answer.accuracy) == (1.0, None)
