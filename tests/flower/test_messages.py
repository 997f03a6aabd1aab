"""Orders and reports on Flower's messages: what comes back is read, or refused, and never run."""

from __future__ import annotations

import io
import pickle
import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

pytest.importorskip("flwr")

from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

from cafe.flower import array_records, messages
from cafe.flower.array_records import MalformedError
from cafe.flower.messages import MODEL, ORDER, REPORT, STOPPED, UPDATE
from cafe.live.client_work import LocalModel
from cafe.live.wire import Order, Report
from cafe.rounds.jobs import Work

MOST = 10**6
GOOD: dict[str, Any] = {"invitation": 7, "version": 3, "carried": False, "examples": 5}
UPDATES: dict[str, Any] = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.ones(2, np.float64),
}

kinds = st.sampled_from(["<f2", "<f4", "<f8", "<i4", "<i8", "|u1", "|i1", "|b1", ">f4"])
arrays = kinds.flatmap(
    lambda kind: hnp.arrays(
        np.dtype(kind), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    )
)


def sent(record: Any) -> Any:
    """What is on the other side of a wire, byte for byte."""
    children = {key: sent(child) for key, child in (record.children or {}).items()}
    return type(record).inflate(record.deflate(), children or None)


def content(update: Any = None, /, **changes: Any) -> RecordDict:
    """A reply with a report in it, some of whose values are others."""
    values = {name: value for name, value in (GOOD | changes).items() if value is not None}
    record = (
        update if isinstance(update, ArrayRecord) else array_records.pack_arrays(update or UPDATES)
    )
    return RecordDict({UPDATE: record, REPORT: ConfigRecord(values)})


def raw(data: bytes, stype: str = "numpy.ndarray") -> ArrayRecord:
    """An array of which the sender says what it likes."""
    return ArrayRecord({"w": Array(dtype="float32", shape=(3,), stype=stype, data=data)})


def npy(header: str, body: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """A file in NumPy's format with a header of one's own."""
    text = header.encode() + b"\n"
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + body


def header(descr: str = "<f4", fortran: str = "False", shape: str = "(3,)") -> str:
    return f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}"


@contextmanager
def little_memory() -> Iterator[None]:
    """No more than a megabyte may be taken inside, whatever a header claims."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


BODY = np.arange(3, dtype="<f4").tobytes()


@given(st.dictionaries(st.text(max_size=9), arrays, max_size=4))
def test_arrays_there_and_back(model: dict[str, Any]) -> None:
    back = array_records.read_arrays(
        array_records.pack_arrays(model), sum(a.nbytes for a in model.values())
    )
    assert list(back) == list(model)
    for name, array in model.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (0,), (2, 0)])
def test_what_numpy_writes_is_read(order: Any, shape: tuple[int, ...]) -> None:
    array = np.asarray(np.arange(np.prod(shape), dtype="<f4").reshape(shape), order=order)
    file = io.BytesIO()
    np.save(file, array)
    back = array_records.read_arrays(raw(file.getvalue()), MOST)["w"]
    np.testing.assert_array_equal(back, array)
    assert back.shape == shape


def test_no_copy_is_made_of_what_came() -> None:
    record = array_records.pack_arrays({"w": np.zeros(10**6, np.float32)})
    with little_memory():
        array_records.read_arrays(record, 4 * 10**6)


def names_of(record: ArrayRecord) -> set[str]:
    """What Flower calls a record and all of its pieces."""
    return set(get_all_nested_objects(record))


@given(st.dictionaries(st.text(max_size=9), arrays, max_size=4))
def test_models_arrive_though_nobody_can_foresee_them(model: dict[str, Any]) -> None:
    one, two = array_records.pack_parts(model), array_records.pack_parts(model)
    found = array_records.join_parts(one)
    assert list(found) == list(model)
    for name, array in model.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()
    if model:
        assert names_of(one).isdisjoint(names_of(two))
    assert names_of(array_records.pack_arrays(model)) == names_of(array_records.pack_arrays(model))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_no_piece_of_a_large_model_can_be_foreseen(value: float) -> None:
    """Not even where all of its numbers are equal."""
    model = {"w": np.full((2, 2_000_000), value, np.float32)}  # 16 MB: Flower makes four pieces
    assert len(names_of(array_records.pack_arrays(model))) < 6  # some of which have one name
    seen: set[str] = set()
    for _ in range(3):
        record = array_records.pack_parts(model)
        names = names_of(record)
        assert len(names) == 1 + 2 * len(record) >= 9
        assert names.isdisjoint(seen)
        seen |= names
        np.testing.assert_array_equal(array_records.join_parts(record)["w"], model["w"])


def test_no_order_or_question_can_be_foreseen() -> None:
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
def test_orders_there_and_back(order: Order, run: str) -> None:
    record = sent(messages.order_record(order, run))
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
    )
)
def test_reports_there_and_back(report: Report) -> None:
    back = messages.read_report(sent(messages.report_content(report)), MOST)
    assert back is not None
    plain = ("invitation", "version", "carried", "examples", "label", "took", "steps", "labels")
    for name in plain:
        assert getattr(back, name) == getattr(report, name)
    assert repr((back.loss, back.rms_loss)) == repr((report.loss, report.rms_loss))
    assert list(back.update) == list(UPDATES)
    for name, array in UPDATES.items():
        np.testing.assert_array_equal(back.update[name], array)


def test_who_gave_up_says_so() -> None:
    assert messages.read_report(messages.report_content(None), MOST) is None
    # A word that only looks like it is a report without the rest.
    with pytest.raises(MalformedError):
        messages.read_report(RecordDict({REPORT: ConfigRecord({STOPPED: "yes"})}), MOST)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_local_models_there_and_back(count: int) -> None:
    state = RecordDict({"somebody else's": ConfigRecord({"run": "x"})})
    model: dict[str, Any] = {"w": np.array(3.5, np.float32), "n": np.arange(4)}
    kept = [
        LocalModel(f"run {n}", n, n + 5, model, {"w": np.array(n, np.float32)}, *losses)
        for n, losses in enumerate([(), (0.5,), (0.5, 0.75)])
    ]
    messages.store_local_models(state, tuple(kept))
    messages.store_local_models(state, tuple(kept[:count]))
    back = messages.read_local_models(state)
    assert "somebody else's" in state
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


def refused(reply: RecordDict, most: int = MOST) -> str:
    with pytest.raises(MalformedError) as error:
        messages.read_report(reply, most)
    return str(error.value)


class Bomb:
    """Runs something when it is unpickled."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("it was run",))


def pickled() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([Bomb()], dtype=object), allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x01\x00\xff\xff",
        b"PK\x03\x04" + bytes(100),
        pickle.dumps(Bomb()),
        pickled(),
        npy(header("|O"), bytes(24)),
        npy(header("<U1"), bytes(12)),
        npy(header("<c8"), bytes(24)),
        npy(header("<M8[s]"), bytes(24)),
        npy(header("|V4"), bytes(12)),
        npy(header("<f3"), bytes(9)),
        npy(header("<f99"), bytes(297)),
        npy(header("3f4"), bytes(36)),
        npy(header(shape="(10000000000000,)"), BODY),
        npy(header(shape="(4,)"), BODY),
        npy(header(shape="(2,)"), BODY),
        npy(header(shape="(0,)"), BODY),
        npy(header(), b""),
        npy(header(), BODY + b"\0"),
        npy(header(shape="(-3,)"), BODY),
        npy(header(shape="(-1, -3)"), BODY),
        npy(header(shape="(0, -3)")),
        npy(header(shape=f"(0, 1{'0' * 30})")),
        npy(header(shape="(3.0,)"), BODY),
        npy(header(shape="(True, 3)"), BODY),
        npy(header(shape="(3L,)"), BODY),
        npy(header(shape="(10**30,)"), BODY),
        npy(header(shape="3"), BODY),
        npy(header(shape="[3]"), BODY),
        npy(header(shape="(" + "1, " * 80 + "3)"), BODY),
        npy(header(fortran="0"), BODY),
        npy(header() + " " * 2000, BODY),
        npy(header(), BODY, version=(2, 0)),
        npy(header(), BODY, version=(3, 0)),
        npy(header(), BODY, version=(9, 9)),
        npy("{'descr': (", BODY),
        npy("{'descr': (), 'fortran_order': False, 'shape': (3,), }", BODY),
        npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", BODY),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 1: 2}", BODY),
        npy("{'shape': (3,)}", BODY),
        npy("(" * 900, BODY),
        npy("__import__('os').abort()", BODY),
        npy("\x00" * 60, BODY),
    ],
)
def test_what_is_no_array_of_numbers(data: bytes) -> None:
    with little_memory():
        why = refused(content(raw(data)))
    assert why.startswith("w ")
    assert len(why) < 400


def test_a_side_of_nothing_is_nothing() -> None:
    with little_memory():
        report = messages.read_report(content(raw(npy(header(shape="(0, 10000000000000)")))), MOST)
    assert report is not None
    assert report.update["w"].size == 0


def test_arrays_in_another_format() -> None:
    assert "NumPy" in refused(content(raw(npy(header(), BODY), stype="torch.Tensor")))
    assert messages.read_report(content(raw(npy(header(), BODY))), MOST) is not None


@given(st.binary(max_size=300))
def test_no_bytes_are_more_than_refused(data: bytes) -> None:
    for some in (data, npy(header(), BODY)[: len(data)] + data, npy("{" + f"{data!r}", data)):
        refused(content(raw(some)))


def test_too_many_bytes_are_not_looked_at() -> None:
    update = {"w": np.zeros(1000, np.float32)}
    assert messages.read_report(content(update), 4000) is not None
    assert "at most 100 are allowed" in refused(content(update), 100)
    many = {f"{n}": np.zeros(100, np.float32) for n in range(100)}
    assert messages.read_report(content(many), 40_000) is not None
    assert "bytes" in refused(content({"w": np.zeros(10**5)}), 1000)


@pytest.mark.parametrize("name", ["invitation", "version", "examples", "steps"])
@pytest.mark.parametrize("value", ["1", True, 1.0, [1], b"1"])
def test_whole_numbers(name: str, value: Any) -> None:
    assert "integer" in refused(content(**{name: value}))


def test_what_a_report_must_and_may_say() -> None:
    for name in ("invitation", "version"):
        assert name in refused(content(**{name: None}))
    silent = messages.read_report(content(examples=None), MOST)
    assert silent is not None
    rest = (silent.examples, silent.steps, silent.loss, silent.rms_loss, silent.labels)
    assert rest == (None,) * 5


@pytest.mark.parametrize("value", [3, "1", True, b"1", [1.0], ["1"], [True], [1] * 100_001])
def test_label_counts(value: Any) -> None:
    why = refused(content(labels=value))
    assert "integer" in why


@pytest.mark.parametrize("name", ["loss", "rms_loss", "took"])
@pytest.mark.parametrize("value", ["1.5", True, [1.0], b"1"])
def test_numbers(name: str, value: Any) -> None:
    assert "a number was expected" in refused(content(**{name: value}))


@pytest.mark.parametrize(
    "changes", [{"carried": 1}, {"carried": "yes"}, {"label": 7}, {"label": ["a"]}], ids=str
)
def test_words(changes: dict[str, Any]) -> None:
    assert "its label must be text" in refused(content(**changes))
    assert "'carried'" in refused(content(carried=None))


def test_records_too_many_or_too_few() -> None:
    whole = content()
    assert messages.read_report(whole, MOST) is not None
    assert "it has no 'report'" in refused(RecordDict({UPDATE: whole[UPDATE]}))
    assert "it has no 'update'" in refused(RecordDict({REPORT: whole[REPORT]}))
    assert "unexpected record, more" in refused(
        RecordDict(dict(whole) | {"more": MetricRecord({"a": 1})})
    )
    swapped = RecordDict({UPDATE: whole[REPORT], REPORT: whole[UPDATE]})
    assert "it has no" in refused(swapped)
    assert "it has no" in refused(RecordDict({}))


values = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.booleans(),
    st.lists(st.integers(-9, 9), max_size=3),
)
names = st.sampled_from([REPORT, UPDATE, MODEL, ORDER, STOPPED, "x"])
more = ["loss", "rms_loss", "label", "labels", "steps", "took"]
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
def test_whatever_comes_is_a_report_or_malformed(reply: RecordDict) -> None:
    try:
        report = messages.read_report(reply, 100)
    except MalformedError:
        assert refused(reply, 100)
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
def test_whatever_comes_is_a_score_or_none(reply: RecordDict) -> None:
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
