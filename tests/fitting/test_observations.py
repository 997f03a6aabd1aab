"""Observations: what is accepted, and which line an error names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafe.errors import FileError, InputError
from cafe.fitting.log_reading import read_observations
from cafe.fitting.observations import Observations

NAN = float("nan")
INF = float("inf")


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "times.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_reported_and_missed_observations() -> None:
    seen = Observations([1.0, NAN, 3.0], deadline=[2.0, 2.5, INF], client=["b", "a", "b"])
    assert seen.reported.tolist() == [True, False, True]
    assert seen.event_times.tolist() == [1.0, 3.0]
    assert seen.clients == ("b", "a")
    assert seen.code.tolist() == [0, 1, 0]
    assert seen.client.tolist() == ["b", "a", "b"]
    assert len(seen) == 3


def test_one_deadline_applies_to_all_and_no_deadline_is_infinite() -> None:
    entries = np.array([1.0, None], dtype=object)
    assert Observations(entries, deadline=2.0).deadline.tolist() == [2.0, 2.0]
    assert Observations([1.0, 2.0]).deadline.tolist() == [INF, INF]
    assert len(Observations([1.0, 2.0]).clients) == 1


def test_numbered_clients_are_named_by_their_number() -> None:
    assert Observations([1.0, 2.0, 3.0], client=np.array([7, 3, 7])).clients == ("7", "3")


def test_a_report_at_the_deadline_is_a_report() -> None:
    assert Observations([2.0], deadline=2.0).reported.all()


def test_entries_are_copied_and_cannot_be_changed() -> None:
    times = np.array([1.0, 2.0])
    seen = Observations(times)
    times[0] = 9.0
    assert seen.seconds[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        seen.seconds[0] = 9.0


@pytest.mark.parametrize(
    ("seconds", "deadline", "client", "message"),
    [
        ([], None, None, "at least one observation"),
        ([[1.0]], None, None, "2 dimensions"),
        (1.0, None, None, "0 dimensions"),
        (["soon"], None, None, "seconds must be an array of numbers"),
        ([1.0], "late", None, "deadline must be an array of numbers"),
        ([1.0, 0.0], None, None, "Observation 1: a response time must be above 0"),
        ([-1.0], None, None, "Got -1"),
        ([INF], None, None, "above 0 and finite"),
        ([1.0], 0.0, None, "a deadline must be above 0"),
        ([1.0], -1.0, None, "a deadline must be above 0"),
        ([NAN], 0.0, None, "a deadline must be above 0"),
        ([1.0], NAN, None, "a deadline must be above 0"),
        ([1.0, 2.0, 3.5], 3.0, None, "Observation 2: .*Got 3.5 with the deadline 3"),
        ([1.0, NAN], None, None, "Observation 1: there must be a response time or the deadline"),
        ([1.0], [1.0, 2.0], None, r"one per observation \(1\). Got 2"),
        ([1.0, 2.0], None, ["a"], r"one name per observation \(2\). Got 1"),
        ([1.0], None, "a", "a single value"),
    ],
)
def test_unusable_entries_are_refused(
    seconds: list[float], deadline: float | list[float] | None, client: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Observations(seconds, deadline, client)


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
    ("a,nan,2", "Got 'nan'"),
    ("a,inf,2", "Got 'inf'"),
    ("a,1e999,2", "Got '1e999'"),
    ("a,-inf,2", "Got '-inf'"),
    ("a,1,nan", "deadline must be a finite number. Got 'nan'"),
    ("a,1,inf", "deadline must be a finite number. Got 'inf'"),
    ("a,,-inf", "deadline must be a finite number. Got '-inf'"),
    ("a,1,-2", "a deadline must be above 0. Got -2"),
    ("a,,0", "a deadline must be above 0"),
    ("a,2.5,2", "Got 2.5 with the deadline 2"),
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
    rows[140_000] = "a,3,2"
    path = write(tmp_path, "client,seconds,deadline\n" + "\n".join(rows))
    with pytest.raises(FileError, match=r"line 140002: .*after its deadline"):
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
        ("client,seconds,deadline\n", "at least one observation below the header"),
        ("client,deadline\na,1\n", "line 1: the column 'seconds' is missing"),
        ("client,secnds\na,1\n", "line 1: .*Got 'secnds'. Did you mean 'seconds'?"),
        ("1.5\n2.5\n", "line 1: .*Got '1.5'. Known: client, deadline, seconds"),
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
    import csv

    path = tmp_path_factory.mktemp("csv") / "times.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["client", "seconds", "deadline"])
        writer.writerows((name, "" if s is None else repr(s), repr(d)) for name, s, d in rows)
    seen = read_observations(path)
    assert seen.client.tolist() == [name for name, _, _ in rows]
    np.testing.assert_array_equal(seen.seconds, [NAN if s is None else s for _, s, _ in rows])
    np.testing.assert_array_equal(seen.deadline, [d for _, _, d in rows])
