"""Logs in files: what is accepted, how it is read, and which row an error names."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafe.errors import FileError, InputError
from cafe.fitting.log_reading import read_log, read_observations

NAN = float("nan")
INF = float("inf")


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "times.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_reads_columns_in_any_order(tmp_path: Path) -> None:
    path = write(tmp_path, "deadline, seconds,client\n5,1.5,a\n5,,b\n,2.5, a\n")
    seen = read_observations(path)
    np.testing.assert_array_equal(seen.seconds, [1.5, NAN, 2.5])
    np.testing.assert_array_equal(seen.deadline, [5.0, 5.0, INF])
    assert seen.client.tolist() == ["a", "b", "a"]


def test_only_seconds_are_required(tmp_path: Path) -> None:
    seen = read_observations(str(write(tmp_path, "seconds\n1.5\n2e-1")))
    assert seen.seconds.tolist() == [1.5, 0.2]
    assert np.isinf(seen.deadline).all()
    assert len(seen.clients) == 1


@pytest.mark.parametrize(
    "text",
    [
        "client,seconds,deadline\r\na,1,2\r\nb,,2\r\n",
        "client,seconds,deadline\ra,1,2\rb,,2",
        "\ufeffclient,seconds,deadline\na,1,2\nb,,2\n",
        'client,"seconds",deadline\n"a",1, 2 \nb,  ,2\n\n\n',
    ],
    ids=["crlf", "cr", "bom", "quotes, spaces and blank lines at the end"],
)
def test_csv_dialects(tmp_path: Path, text: str) -> None:
    seen = read_observations(write(tmp_path, text))
    np.testing.assert_array_equal(seen.seconds, [1.0, NAN])
    np.testing.assert_array_equal(seen.deadline, [2.0, 2.0])
    assert seen.clients == ("a", "b")


BAD_LINES = [
    ("a,soon,2", "seconds must be a finite number. Got 'soon'"),
    ("a,1,late", "deadline must be a finite number. Got 'late'"),
    ("a,-1,2", "above 0 and finite. Got -1"),
    ("a,0,2", "response time must be above 0 and finite. Got 0"),
    ("a,inf,2", "Got 'inf'"),
    ("a,1e999,2", "Got '1e999'"),
    ("a,-inf,2", "Got '-inf'"),
    ("a,1,inf", "deadline must be a finite number. Got 'inf'"),
    ("a,,-inf", "deadline must be a finite number. Got '-inf'"),
    ("a,1,-2", "a deadline must be above 0. Got -2"),
    ("a,,0", "a deadline must be above 0"),
    ("a,1", r"3 fields \(client,seconds,deadline\). Got 2"),
    ("a,1,2,3", "Got 4"),
    ("", "Got 0"),
    ("a,,", "there must be a response time or the deadline"),
    (" ,1,2", "client must be a name. Got an empty field"),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str, before: int) -> None:
    text = "client,seconds,deadline\n" + "a,1,2\n" * before + line + "\nb,1,2\nb,oops,2\n"
    path = write(tmp_path, text)
    with pytest.raises(FileError, match=rf"times.csv, line {before + 2}: .*{message}"):
        read_observations(path)


def test_bad_line_in_a_long_file_is_named(tmp_path: Path) -> None:
    rows = ["a,1,2"] * 150_000
    rows[140_000] = "a,-3,2"
    path = write(tmp_path, "client,seconds,deadline\n" + "\n".join(rows))
    with pytest.raises(FileError, match=r"line 140002: .*above 0 and finite"):
        read_observations(path)


def test_name_with_a_line_break_does_not_shift_line_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, 'client,seconds\n"two\nlines",1\na,2\na,-2\n')
    with pytest.raises(FileError, match="line 5: "):
        read_observations(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Got an empty file"),
        ("\n \n", "Got an empty file"),
        ("client,seconds,deadline\n", "at least one observation"),
        ("client,deadline\na,1\n", "no column is known to have the response times. Pass --seconds"),
        ("client,secnds\na,1\n", "Perhaps --seconds secnds. The columns are 'client', 'secnds'"),
        ("1.5\n2.5\n", "line 1: the first line must name the columns.*Got '1.5'"),
        ("seconds,seconds\n1,1\n", "line 1: the column 'seconds' appears twice"),
        ('seconds\n1\n"2\n3\n', "line 3: this is not CSV"),
        ('"seconds\n1\n', "line 1: this is not CSV"),
        (b"seconds\n1\n\xff\n", "line 3: the file must be text in UTF-8"),
    ],
)
def test_bad_file_is_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(FileError, match=f"times.csv.*{message}"):
        read_observations(write(tmp_path, text))


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        FileError, match=r"none\.csv: the file cannot be read: there is no such file"
    ):
        read_observations(tmp_path / "none.csv")
    with pytest.raises(FileError, match="it is a folder"):
        read_observations(tmp_path)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", 'quo"te', "com,ma"]),
            st.one_of(st.none(), st.floats(1e-6, 1e6)),
            st.floats(1e6, 1e9),
        ),
        min_size=1,
    )
)
def test_written_file_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, float | None, float]]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "times.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["client", "seconds", "deadline"])
        writer.writerows((name, "" if s is None else repr(s), repr(d)) for name, s, d in rows)
    seen = read_observations(path)
    assert seen.client.tolist() == [name for name, _, _ in rows]
    np.testing.assert_array_equal(seen.seconds, [NAN if s is None else s for _, s, _ in rows])
    np.testing.assert_array_equal(seen.deadline, [d for _, _, d in rows])


# ------------------------------------------------------------- names, units and what was read

READINGS = [
    ("cid,latency_ms,timeout_s\na,1500,20\nb,,20\n", [1.5, NAN], [20, 20]),
    ("device,milliseconds,timeout\na,1500,20000\nb,null,20000\n", [1.5, NAN], [20, 20]),
    ("node_id,duration (min),limit_s\na,0.5,60\nb,NaN,60\n", [30, NAN], [60, 60]),
    ("x,seconds,y\n1,2.5,z\n", [2.5], [INF]),
    ("responseTime_us,deadline_ms\n2500000,3000\n", [2.5], [3]),
    ("Elapsed,Deadline\n1.5,2\nNone,2\ntimeout,2\nTimed Out,2\n", [1.5, NAN, NAN, NAN], [2] * 4),
    ("took_h,max_wait_h\n0.5,1\n", [1800], [3600]),
    ("rtt\tdevice\n1.5\ta\n", [1.5], [INF]),
    ("client;duration_s;deadline\na;1,5;2,5\nb;;2,5\n", [1.5, NAN], [2.5, 2.5]),
    ("client|duration_s|deadline\na|1.5|2.5\n", [1.5], [2.5]),
    ("sent,received,timeout\n1700000000,1700000001.5,5\n1700000000,,5\n", [1.5, NAN], [5, 5]),
    ("sent_ms,received_ms,timeout\n100,1600,5\n", [1.5], [5]),
    ("start,end\n1700000000000,1700000001500\n", [1.5], [INF]),
    ("start,end\n10.5,12\n", [1.5], [INF]),
    ("started_at,finished_at\n2026-03-01T10:00:00Z,2026-03-01T12:00:02+02:00\n", [2], [INF]),
    ("start,end\n2026-03-01 10:00:00,2026-03-01 10:00:00.250\n", [0.25], [INF]),
    # CAFe's own names win over other candidates.
    ("client,device,seconds,latency_ms,deadline\na,b,2,3,4\n", [2], [4]),
    # A minimum is not a time in minutes.
    ("latency_ms,latency_min,latency_max\n1500,1,2\n", [1.5], [INF]),
]


@pytest.mark.parametrize(("text", "seconds", "deadline"), READINGS)
def test_names_and_units(
    tmp_path: Path, text: str, seconds: list[float], deadline: list[float]
) -> None:
    seen = read_observations(write(tmp_path, text))
    np.testing.assert_allclose(seen.seconds, seconds, rtol=1e-6)
    np.testing.assert_allclose(seen.deadline, deadline, rtol=1e-12)


def test_the_reading_names_columns_and_units(tmp_path: Path) -> None:
    log = read_log(write(tmp_path, "device,latency_ms,timeout\na,1500,20000\nb,,20000\n"))
    assert log.reading == (
        "Read 2 rows: client from 'device', response times from 'latency_ms' (milliseconds), "
        "deadlines from 'timeout' (milliseconds, like the response times)."
    )
    assert log.warnings == ()
    log = read_log(write(tmp_path, "took,timestamp\n1.5,2026-03-01T10:00\n"))
    assert log.reading == (
        "Read 1 row: response times from 'took' (seconds, no unit in the name), no deadlines. "
        "Not used: 'timestamp'. If it is when requests were sent, pass --sent timestamp."
    )
    assert log.observations.sent is None


@pytest.mark.parametrize(
    ("text", "options", "seconds", "deadline"),
    [
        ("a,b,c\nx,1500,20000\n", {"client": "a", "seconds": "b", "unit": "ms"}, 1.5, INF),
        ("b,c\n1500,20000\n", {"seconds": "b", "deadline": "c", "unit": "ms"}, 1.5, 20),
        ("latency_ms,timeout\n1500,20\n", {"unit": "s"}, 1.5, 20),
        ("time\n1.5\n", {"seconds": "time"}, 1.5, INF),
        ("latency\n1500\n", {"deadline": 20000, "unit": "ms"}, 1.5, 20),
        ("latency_ms\n1500\n", {"deadline": 20}, 1.5, 20),
        ("latency_ms\n1500\n", {"deadline": "20"}, 1.5, 20),
        ("latency\n1500\n", {"deadline": "20s", "unit": "ms"}, 1.5, 20),
        ("latency_ms,timeout\n1500,3\n", {"deadline": "0.5 min"}, 1.5, 30),
        ("latency,duration\n1,2\n", {"seconds": "duration"}, 2, INF),
        ("t0,t1\n100,101.5\n", {"sent": "t0", "received": "t1"}, 1.5, INF),
        ("t0,t1\n100,1600\n", {"sent": "t0", "received": "t1", "unit": "ms"}, 1.5, INF),
    ],
)
def test_options_name_columns_and_units(
    tmp_path: Path, text: str, options: dict[str, str], seconds: float, deadline: float
) -> None:
    seen = read_log(write(tmp_path, text), **options).observations
    assert seen.seconds == pytest.approx([seconds])
    assert seen.deadline == pytest.approx([deadline])


def test_sent_is_in_seconds_since_the_epoch(tmp_path: Path) -> None:
    # 2026-03-01 10:00 UTC is 1772359200 seconds after the epoch.
    for text in (
        "sent,seconds\n2026-03-01T10:00:00,1\n",
        "sent,seconds\n2026-03-01T11:00:00+01:00,1\n",
        "sent,seconds\n1772359200,1\n",
        "sent,seconds\n1772359200000,1\n",
        "sent_at_ms,seconds\n1772359200000,1\n",
    ):
        sent = read_observations(write(tmp_path, text)).sent
        assert sent is not None
        assert sent.tolist() == [1772359200.0], text
    assert "taken as UTC" in read_log(write(tmp_path, "sent,seconds\n2026-03-01,1\n")).reading


# ------------------------------------------------------------- late reports and failures


def late_log(folder: Path, late: list[str]) -> Path:
    rows = ["a,1,2"] * 100
    rows[7 : 7 + len(late)] = late
    return write(folder, "client,seconds,deadline\n" + "\n".join(rows))


def test_a_report_within_the_tolerance_is_a_report_at_the_deadline(tmp_path: Path) -> None:
    log = read_log(late_log(tmp_path, ["a,2.004,2", "a,2.019,2"]))
    assert log.observations.seconds[7:9].tolist() == [2.0, 2.0]
    assert log.warnings == (
        "2 reports came up to 0.019 s after the deadline and count as reports at the deadline.",
    )


def test_a_late_report_is_a_missed_deadline(tmp_path: Path) -> None:
    log = read_log(late_log(tmp_path, ["a,2.5,2"]))
    assert np.isnan(log.observations.seconds[7])
    assert int(log.observations.reported.sum()) == 99
    assert log.warnings == (
        "1 report came after the deadline and counts as a missed deadline. The first is in line 9.",
    )


def test_failures_are_left_out_and_timeouts_are_misses(tmp_path: Path) -> None:
    text = (
        "client,seconds,status,deadline\na,1,ok,5\nb,,failed,5\nc,0.1,Error,5\nd,5.0,timeout,5\n"
        "e,7,timed out,\nf,2,strange,5\ng,,,5\n"
    )
    log = read_log(write(tmp_path, text))
    assert log.observations.clients == ("a", "d", "e", "f", "g")
    np.testing.assert_array_equal(log.observations.seconds, [1, NAN, NAN, 2, NAN])
    np.testing.assert_array_equal(log.observations.deadline, [5, 5, 7, 5, 5])
    assert log.warnings[0].startswith("2 rows with a failure in 'status' (28.6%) are left out")


# ------------------------------------------------------------- wrong logs

MIXED_ZONES = "start,end\n2026-03-01T10:00Z,2026-03-01T10:01\n"
BAD_LOGS: dict[str, tuple[str, dict[str, object], str]] = {
    "no time column": ("client,x\na,1\n", {}, "Pass --seconds COLUMN.*columns are 'client', 'x'"),
    "bare time": ("client,time\na,1\n", {}, "not clear what 'time' means.*--seconds time"),
    "time with a unit": ("time_ms\n5\n", {}, "not clear what 'time_ms' means"),
    "two times": ("latency,duration\n1,2\n", {}, "'latency', 'duration'. Pass --seconds latency"),
    "two units": ("took_s,took_ms\n1,2\n", {}, "response times. Candidates: 'took_s', 'took_ms'"),
    "two clients": ("node,cid,took\n1,2,3\n", {}, "'node', 'cid'. Pass --client node"),
    "two deadlines": ("took,timeout,limit\n1,2,3\n", {}, "deadlines.*--deadline timeout"),
    "two sent": ("took,start,sent_at\n1,2,3\n", {}, "sent. Candidates: .*--sent start"),
    "two status": ("took,status,state\n1,2,3\n", {}, "'status', 'state'. Rename"),
    "only sent": ("client,sent\na,5\n", {}, "--sent COLUMN and --received COLUMN"),
    "misspelt option": ("took\n1\n", {"seconds": "tok"}, "no column 'tok' .--seconds.*mean 'took'"),
    "client not there": ("took\n1\n", {"client": "who"}, "no column 'who' .--client"),
    "deadline not there": ("took\n1\n", {"deadline": "x"}, "no column 'x' .--deadline"),
    "sent not there": ("took\n1\n", {"sent": "x"}, "no column 'x' .--sent"),
    "received not there": ("took\n1\n", {"received": "x"}, "no column 'x' .--received"),
    "option is a number": ("took\n1\n", {"client": 3}, "no column 3 .--client"),
    "unknown unit": ("took\n1\n", {"unit": "days"}, "unit must be ms, s or min .--unit"),
    "unit and name": ("took_ms\n1\n", {"unit": "s"}, "'took_ms' is in milliseconds.*--unit says s"),
    "unit of deadline only": ("took,limit_ms\n1,2\n", {}, "'limit_ms' names its unit.*Pass --unit"),
    "zero deadline": ("took\n1\n", {"deadline": 0}, "above 0 .--deadline.*Got 0"),
    "negative deadline": ("took\n1\n", {"deadline": "-5s"}, "above 0 .--deadline.*Got -5s"),
    "deadline is true": ("took\n1\n", {"deadline": True}, "no column True"),
    "miss without deadline": ('took\n1\n""\n', {}, "line 3: .*Pass --deadline"),
    "miss with empty deadline": ("took,limit\n1,2\n,\n", {}, "line 3: .*--deadline 20s"),
    "deadlines in seconds": (
        "took_ms,limit\n1500,20\n2500,20\n",
        {},
        "line 2: .*2 of 2 reports.*1000 times as long, 100%.*Pass --unit s",
    ),
    "deadlines in minutes": (
        "took_s,limit\n15,0.5\n25,0.5\n",
        {},
        "line 2: .*60 times as long.*Pass --unit min",
    ),
    "no unit at all": (
        "took,limit\n1500,20\n2500,20\n",
        {},
        "line 2: .*1000 times as long.*latency_ms and timeout_s",
    ),
    "deadline for all": ("took\n1500\n", {"deadline": 20}, "line 2: .*such as --deadline 20s"),
    "many late": (
        "took,limit\n1,2\n3,2\n3,2\n",
        {},
        "line 3: .*2 of 3 reports are after theirs.*Leave these times empty.*--deadline",
    ),
    "text as time": (
        "took\n1\nsoon\n",
        {},
        "line 3: took must be a finite number. Got 'soon'.*--sec",
    ),
    "time of day as time": ("took\n10:00:05\n", {}, "line 2: .*--sent and --received"),
    "underscore": ("took\n1_0\n", {}, "line 2: .*Got '1_0'"),
    "comma": ('client,took\na,"1,5"\n', {}, "line 2: took must be a finite number. Got '1,5'"),
    "infinite": ("took\ninf\n", {}, "line 2: .*Got 'inf'"),
    "negative": ("took_ms\n5\n-5\n", {}, "line 3: .*above 0 and finite. Got -0.005"),
    "zero": ("took\n0\n", {}, "line 2: .*above 0 and finite. Got 0"),
    "text as deadline": ("took,limit\n1,late\n", {}, "line 2: limit must be.*'late'.*--deadline"),
    "negative limit": ("took,limit\n1,-5\n", {}, "line 2: a deadline must be above 0. Got -5"),
    "no name": ("device,took\na,1\n,2\n", {}, "line 3: device must be a name.*--client"),
    "bad start": ("start,end\nsoon,2\n", {}, "line 2: start must be a time in ISO 8601.*--sent"),
    "bad end": ("start,end\n1,2\n1,x\n", {}, "line 3: end must be a time.*Got 'x'.*--received"),
    "reversed": (
        "start,end\n5,9\n5,4\n",
        {},
        "line 3: end must be after start.*-1 s.*--sent, --rec",
    ),
    "too coarse": ("start,end\n5,5\n", {}, "line 2: end must be after start.*too coarse"),
    "no start": ("start,end\n5,6\n,6\n", {}, "line 3: start is empty"),
    "mixed zones": (MIXED_ZONES, {}, "must both have a zone, or neither"),
    "all failed": ("took,status\n1,failed\n", {}, "every row has a status of 'status'"),
    "twice": ("took,x,x\n1,2,3\n", {}, "line 1: the column 'x' appears twice"),
    "short line": (
        "took,x\n1,2\n3\n",
        {},
        r"line 3: every line must have 2 fields .took,x.. Got 1",
    ),
    "first mistake first": ("took,x\n-1,2\n3\n", {}, "line 2: .*above 0"),
    "no header": ("a,1.5\nb,2.5\n", {}, "line 1: .*Got '1.5': add a line of names"),
    "excel": ("PK\x03\x04", {}, "Excel sheet. Save the sheet as CSV"),
    "empty array": ("[]", {}, "one object per row.*Got none"),
    "array of numbers": ("[1, 2]", {}, "one object per row.*Got 1 as entry 0"),
    "broken array": ('[{"took": 1},', {}, "this is not JSON"),
    "broken line": ('{"took": 1}\n{"took": \n', {}, "line 2: this is not a JSON object"),
    "line of numbers": ('{"took": 1}\n[1]\n', {}, "line 2: every line must be a JSON object"),
    "json text": ('{"took": 1}\n{"took": "x"}\n', {}, "line 2: took must be.*Got 'x'"),
    "json array text": ('[{"took": 1}, {"took": "x"}]', {}, "entry 1: took must be.*Got 'x'"),
    "json true": ('[{"took": true}]', {}, "entry 0: took must be a finite number. Got True"),
    "json lengths": ('{"took": [1, 2], "cid": ["a"]}', {}, "same length. Got 1 for 'cid'"),
    "gzip cut": ("\x1f\x8b", {}, "not complete gzip"),
    "parquet cut": ("PAR1", {}, "Parquet file cannot be read"),
}


@pytest.mark.parametrize(("text", "options", "message"), BAD_LOGS.values(), ids=BAD_LOGS.keys())
def test_a_wrong_log_is_explained(
    tmp_path: Path, text: str, options: dict[str, object], message: str
) -> None:
    path = write(tmp_path, text.encode("latin-1"))
    with pytest.raises(InputError, match=message) as caught:
        read_log(path, **options)  # type: ignore[arg-type]
    if "unit must" not in message and "above 0 .--" not in message:
        assert f"{caught.value}".startswith(f"{path}"), "the file is named"
    assert f"{caught.value}".rstrip()[-1] in ".?", "it is a sentence"


@pytest.mark.parametrize("source", [3, None, object(), [1, 2], {1.5}])
def test_what_is_not_a_log_is_explained(source: object) -> None:
    with pytest.raises(InputError, match="A log must be the path of a file, a data frame"):
        read_log(source)
