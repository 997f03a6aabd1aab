"""Formats of logs: the same rows give the same observations from every format and table."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.errors import FileError, InputError
from cafe.fitting import Observations, read_log
from cafe.fitting.log_files import open_log

COLUMNS: dict[str, list[Any]] = {
    "device": [1, 2, 1],
    "latency_ms": [1500.0, None, 2000.0],
    "timeout": [5000, 5000, 5000],
    "note": ["a", None, "c"],
}
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
CSV = "device,latency_ms,timeout,note\n1,1500,5000,a\n2,,5000,\n1,2000,5000,c\n"


def check(seen: Observations) -> None:
    np.testing.assert_array_equal(seen.seconds, [1.5, np.nan, 2.0])
    assert seen.deadline.tolist() == [5.0, 5.0, 5.0]
    assert seen.client.tolist() == ["1", "2", "1"]


def parquet() -> bytes:
    import io

    import pyarrow
    from pyarrow.parquet import write_table

    file = io.BytesIO()
    write_table(pyarrow.table(COLUMNS), file)
    return file.getvalue()


FILES: dict[str, Callable[[], bytes]] = {
    "csv": lambda: CSV.encode(),
    "csv with a byte order mark": lambda: b"\xef\xbb\xbf" + CSV.encode(),
    "semicolons": lambda: CSV.replace(",", ";").encode(),
    "tabs": lambda: CSV.replace(",", "\t").encode(),
    "gzip": lambda: gzip.compress(CSV.encode()),
    "json lines": lambda: "\n".join(map(json.dumps, ROWS)).encode(),
    "json lines with blank lines": lambda: "\n\n".join(map(json.dumps, ROWS)).encode(),
    "json array": lambda: json.dumps(ROWS, indent=2).encode(),
    "json columns": lambda: json.dumps(COLUMNS).encode(),
    "json lines, gzip": lambda: gzip.compress("\n".join(map(json.dumps, ROWS)).encode()),
    "json without null": lambda: json.dumps(
        [{k: v for k, v in row.items() if v is not None} for row in ROWS]
    ).encode(),
    "parquet": parquet,
}


@pytest.mark.parametrize("kind", FILES)
def test_every_format_is_recognised_by_its_content(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log.of.any.name"
    path.write_bytes(FILES[kind]())
    check(read_log(path).observations)
    check(cafe.read_observations(str(path)))


def test_fit_takes_paths_and_tables(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(CSV)
    for source in (path, str(path), COLUMNS, ROWS):
        found = cafe.fit(source, families="exponential")
        check(found.observations)
        # Two reports in 1.5 + 5 + 2 seconds of waiting.
        assert found.best.parameters["rate"] == pytest.approx(2 / 8.5)
    named = cafe.fit({"a": ["x"], "b": [1500]}, client="a", seconds="b", unit="ms", deadline=2000)
    assert (named.observations.seconds.tolist(), named.observations.deadline.tolist()) == (
        [1.5],
        [2.0],
    )


def test_an_arrow_table_is_read() -> None:
    import pyarrow

    check(read_log(pyarrow.table(COLUMNS)).observations)


def test_parquet_without_pyarrow_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(parquet())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(FileError, match=r"log.parquet: .*pip install pyarrow"):
        read_log(path)


def frame(library: str) -> Any:
    module = pytest.importorskip(
        library, reason=f"{library} is not installed; it is in the extra dev"
    )
    return module.DataFrame(COLUMNS)


LIBRARIES = ["pandas", "polars"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_data_frame_is_read(library: str) -> None:
    check(read_log(frame(library)).observations)
    found = cafe.fit(frame(library), client="device", seconds="latency_ms", unit="ms")
    check(found.observations)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_wrong_row_of_a_data_frame_is_named(library: str) -> None:
    wrong = type(frame(library))(COLUMNS | {"latency_ms": [1.0, -5.0, 2.0]})
    with pytest.raises(InputError, match=r"^the data frame, row 1: .*above 0"):
        cafe.fit(wrong)
    with pytest.raises(InputError, match=r"^the data frame: there is no column 'x' .--client"):
        cafe.fit(wrong, client="x")
    with pytest.raises(InputError, match="deadline must be the name of a column"):
        cafe.fit(wrong, deadline=[1, 2, 3])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_date_times_and_durations_of_a_data_frame(library: str, zone: str | None) -> None:
    import datetime as dt
    from zoneinfo import ZoneInfo

    tz = None if zone is None else ZoneInfo(zone)
    start = dt.datetime(2026, 3, 1, 10, tzinfo=tz)
    second = dt.timedelta(seconds=1)
    module = sys.modules[type(frame(library)).__module__.partition(".")[0]]
    times = module.DataFrame(
        {"start": [start, start, start], "end": [start + 1.5 * second, None, start + 2 * second]}
    )
    log = read_log(times, deadline=5)
    np.testing.assert_array_equal(log.observations.seconds, [1.5, np.nan, 2.0])
    # 10:00 in Berlin in winter is 09:00 UTC.
    assert log.observations.sent is not None
    assert log.observations.sent[0] == 1772359200.0 - (0 if zone is None else 3600)
    assert ("taken as UTC" in log.reading) == (zone is None)
    lengths = module.DataFrame({"took": [1.5 * second, None, 2 * second]})
    log = read_log(lengths, deadline=5)
    np.testing.assert_array_equal(log.observations.seconds, [1.5, np.nan, 2.0])


def test_nullable_and_categorical_columns_of_pandas() -> None:
    made = frame("pandas")
    check(read_log(made.convert_dtypes()).observations)
    check(read_log(made.astype({"device": "category"})).observations)
    twice = made.rename(columns={"note": "timeout"})
    with pytest.raises(InputError, match="the column 'timeout' appears twice"):
        read_log(twice)


def test_a_lazy_frame_is_refused() -> None:
    with pytest.raises(InputError, match=r"pass frame.collect\(\)"):
        cafe.fit(frame("polars").lazy())


@pytest.mark.parametrize("given", [[1.0, 2.0], np.ones(3), 5, None, [], ["a"]])
def test_plain_arrays_are_not_logs(given: object) -> None:
    assert open_log(given) is None


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"took": "soon"}, "the column 'took' must be a list or an array. Got 'soon'"),
        ({"took": 5}, "the column 'took' must be a list or an array. Got 5"),
        ({"took": [1, 2], "cid": [1]}, "same length. Got 1 for 'cid' and 2 for 'took'"),
        ({"took": []}, "at least one observation"),
        ({}, "no column is known"),
        ({"took": [[1], [2]]}, "row 0: took must be a finite number"),
    ],
)
def test_a_wrong_dictionary_is_explained(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_log(columns)
