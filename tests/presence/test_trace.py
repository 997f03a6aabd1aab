from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafe.errors import FileError, InputError
from cafe.presence import Trace, read_trace

INF = float("inf")
ONE = np.array([0])
Row = tuple[float, bool, float, float]


def check(presence: Trace, rows: list[Row]) -> None:
    """Each time asked alone, and all times asked in turn."""
    in_turn = presence.begin(1, 0)
    for now, away, leaves, change in rows:
        for state in (presence.begin(1, 0), in_turn):
            assert state.away(now).tolist() == [away], now
            assert state.leaves(ONE, now).tolist() == [leaves], now
            assert state.next_change(now) == change, now


def test_two_windows_by_hand() -> None:
    rows = [
        # now, away, leaves, next change
        (0.0, True, 0.0, 1.0),
        (1.0, False, 3.0, 3.0),
        (2.0, False, 3.0, 3.0),
        (3.0, True, 3.0, 5.0),
        (5.5, False, 6.0, 6.0),
        (7.0, True, 7.0, INF),
    ]
    check(Trace([[0, 5, 6], [0, 1, 3]]), rows)


def test_two_windows_repeated_by_hand() -> None:
    rows = [
        (0.0, True, 0.0, 1.0),
        (1.0, False, 3.0, 3.0),
        (2.0, False, 3.0, 3.0),
        (3.0, True, 3.0, 5.0),
        (5.5, False, 6.0, 6.0),
        (7.0, True, 7.0, 11.0),
        (10.0, True, 10.0, 11.0),
        (11.0, False, 13.0, 13.0),
        (13.0, True, 13.0, 15.0),
        (95.0, False, 96.0, 96.0),
        (96.0, True, 96.0, 101.0),
    ]
    check(Trace([[0, 1, 3], [0, 5, 6]], repeat=10), rows)


def test_windows_that_touch_are_one() -> None:
    check(
        Trace([[0, 1, 3], [0, 3, 4], [0, 4, 6]]), [(2.0, False, 6.0, 6.0), (3.0, False, 6.0, 6.0)]
    )


def test_window_continues_in_the_next_period() -> None:
    rows = [
        (0.0, False, 2.0, 2.0),
        (2.0, True, 2.0, 8.0),
        (9.0, False, 12.0, 12.0),
        (10.0, False, 12.0, 12.0),
        (12.0, True, 12.0, 18.0),
    ]
    check(Trace([[0, 0, 2], [0, 8, 10]], repeat=10), rows)


def test_a_window_ends_with_the_period() -> None:
    rows = [
        (8.0, False, 10.0, 10.0),
        (10.0, True, 10.0, 18.0),
        (19.0, False, 20.0, 20.0),
    ]
    check(Trace([[0, 8, 10]], repeat=10), rows)


def test_a_window_of_the_whole_period_never_ends() -> None:
    for windows in ([[0, 0, 10]], [[0, 0, 4], [0, 4, 10]]):
        check(Trace(windows, repeat=10), [(0.0, False, INF, INF), (27.0, False, INF, INF)])


def test_clients_have_separate_windows() -> None:
    state = Trace([[1, 2, 4], [0, 1, 3], [2, 0, 9]]).begin(3, 0)
    assert state.away(2.0).tolist() == [False, False, False]
    assert state.leaves(np.array([1, 0, 2]), 2.0).tolist() == [4.0, 3.0, 9.0]
    assert state.next_change(2.0) == 3.0
    assert state.forecast(np.arange(3), 2.0, 3.5).tolist() == [0.0, 1.0, 1.0]
    assert state.away(3.0).tolist() == [True, False, False]
    assert state.next_change(4.0) == 9.0


# Periods and times that floating point does not hold exactly.
tenths = st.lists(st.integers(0, 70), min_size=2, max_size=8, unique=True).map(sorted)


@given(cuts=tenths, unit=st.sampled_from([0.1, 1 / 3, 0.7]), data=st.data())
def test_trace_agrees_with_a_plain_search(
    cuts: list[int], unit: float, data: st.DataObject
) -> None:
    cuts = cuts[: len(cuts) // 2 * 2]
    windows = [[0, a * unit, b * unit] for a, b in zip(cuts[::2], cuts[1::2], strict=True)]
    period = 70 * unit
    presence = Trace(windows, repeat=period)
    looks = data.draw(st.lists(st.integers(0, 350), min_size=1, max_size=20).map(sorted))
    state = presence.begin(1, 0)
    for look in looks:
        now = (look + 0.5) * unit  # between two cuts, where rounding decides nothing
        at = look % 70 + 0.5
        present = any(a < at < b for a, b in zip(cuts[::2], cuts[1::2], strict=True))
        assert state.away(now).tolist() == [not present]
        change = state.next_change(now)
        edges = [lap * 70 + c for lap in range(7) for c in cuts if c < 70 or 0 not in cuts]
        later = [e for e in edges if e > look + 0.5]
        if not (cuts[0] == 0 and cuts[-1] == 70):
            assert change == pytest.approx(min(later) * unit)


def test_long_run() -> None:
    windows = [[0, 1, 3], [0, 5, 6], [1, 0, 8]]
    np.testing.assert_allclose(Trace(windows).long_run(2), [3 / 8, 1.0])
    np.testing.assert_allclose(Trace(windows, repeat=12).long_run(2), [0.25, 2 / 3])


@pytest.mark.parametrize(
    ("windows", "repeat", "said"),
    [
        ([], None, "rows of three numbers"),
        ([[0, 1]], None, "rows of three numbers"),
        ([0, 1, 2], None, "rows of three numbers"),
        ("abc", None, "rows of three numbers"),
        ([[0, 1, 2], [0, 1]], None, "rows of three numbers"),
        ([[0, 1, float("inf")]], None, "Row 0 .* must be finite"),
        ([[0, 1, 2], [0.5, 1, 2]], None, "Row 1 .* client must be a whole number.* Got 0.5"),
        ([[-1, 1, 2]], None, "client must be a whole number from 0 up. Got -1"),
        ([[0, -1, 2]], None, "from must not be negative. Got -1"),
        ([[0, 2, 2]], None, "to must be later than from. Got 2 to 2"),
        ([[0, 1, 3], [1, 0, 9], [0, 2, 4]], None, "Row 2 .* overlap. Client 0 has 1 to 3 and 2"),
        ([[0, 1, 3]], 2.0, "to must be at most the period, 2. Got 3"),
        ([[0, 1, 3]], 0.0, "repeat must be a positive number. Got 0.0"),
    ],
)
def test_invalid_traces_are_refused(windows: Any, repeat: float | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Trace(windows, repeat)


def test_every_client_needs_a_window_and_no_other() -> None:
    presence = Trace([[0, 1, 2], [2, 1, 2]])
    for ask in (presence.long_run, lambda n: presence.begin(n, 0)):
        with pytest.raises(InputError, match=r"Client 1 has none and would never be present: add"):
            ask(3)
        with pytest.raises(InputError, match=r"numbers from 0 to 1, .* Got 2: remove its rows"):
            ask(2)


def test_text_identifies_the_trace() -> None:
    presence = Trace([[1, 1, 2], [0, 1, 2]], repeat=5)
    assert repr(presence) == "Trace([[0.0, 1.0, 2.0], [1.0, 1.0, 2.0]], repeat=5.0)"
    assert presence == Trace([[0, 1, 2], [1, 1, 2]], repeat=5)
    assert presence != Trace([[0, 1, 2], [1, 1, 2]])
    assert presence.describe() == "a trace of 2 windows that repeats every 5 s"
    assert Trace([[0, 1, 2]]).describe() == "a trace of 1 window"
    long = [[k, 0, 1] for k in range(500)]
    other = [*long[:-1], [499, 0, 2]]
    assert repr(Trace(long)) != repr(Trace(other))
    assert len(repr(Trace(long))) < 200


def test_trace_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("to,client,from\n3,0,1\n 6.5 ,0,5\n\n2,1,0\n\n")
    assert read_trace(file) == Trace([[0, 1, 3], [0, 5, 6.5], [1, 0, 2]])
    assert read_trace(f"{file}", repeat=8) == Trace([[0, 1, 3], [0, 5, 6.5], [1, 0, 2]], 8)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be client,from,to. Got an empty file"),
        ("client,from\n0,1\n", ", line 1: the column to is missing: add it"),
        ("client,form,to\n0,1,2\n", ", line 1: .* Got 'form'. Did you mean 'from'"),
        ("client,from,to,to\n0,1,2,2\n", ", line 1: the column to appears twice"),
        ("client,from,to\n", "at least one window below the first line"),
        ("client,from,to\n0,1,2\n0,3\n", ", line 3: a row must have 3 cells.* Got 2"),
        ("client,from,to\nphone,1,2\n", ", line 2: client must be a finite number. Got 'phone'"),
        ("client,from,to\n0,,2\n", ", line 2: from must be a finite number. Got ''"),
        ("client,from,to\n0,1,inf\n", ", line 2: to must be a finite number. Got 'inf'"),
        ("client,from,to\n0,1,1_0\n", ", line 2: to must be a finite number. Got '1_0'"),
        ("client,from,to\n0,1,2\n\n1.5,1,2\n", ", line 4: client must be a whole number from 0 up"),
        ("client,from,to\n0,1,2\n-1,1,2\n", ", line 3: client must be a whole number from 0 up"),
        ("client,from,to\n0,-1,2\n", ", line 2: from must not be negative. Got -1"),
        ("client,from,to\n0,1,2\n0,5,4\n", ", line 3: to must be later than from. Got 5 to 4"),
        (
            "client,from,to\n0,5,9\n1,1,2\n0,1,6\n",
            ", line 2: the windows of a client must not overlap. .* on line 4",
        ),
        ('client,from,to\n"0,1,2\n', "this is not valid CSV"),
    ],
)
def test_errors_in_files_name_the_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(text)
    with pytest.raises(FileError, match=f"^{file}(.|\n)*{said}"):
        read_trace(file)


def test_errors_of_a_period(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("client,from,to\n0,1,2\n0,3,12\n")
    with pytest.raises(FileError, match=r", line 3: to must be at most the period, 10. Got 12"):
        read_trace(file, repeat=10)
    with pytest.raises(InputError, match=r"repeat must be a positive number. Got -1"):
        read_trace(file, repeat=-1)
    with pytest.raises(FileError, match="no such file"):
        read_trace(tmp_path / "none.csv")
