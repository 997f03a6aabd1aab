"""Response times and deadlines whose units seem to differ."""

from __future__ import annotations

import pytest

import cafe
from cafe.fitting import read_log

NAN = float("nan")
TIMES = [3.0, 8.0, 5.0, NAN]


def warnings(**columns: object) -> tuple[str, ...]:
    return read_log({"node": list("abcd"), **columns}).warnings


@pytest.mark.parametrize("times", ["duration", "latency"])
def test_deadlines_far_beyond_all_times_are_pointed_out(times: str) -> None:
    (said,) = warnings(**{times: TIMES, "timeout": [20_000] * 4})
    assert said.startswith("The shortest deadline, 20000 s, is 2,500 times the longest")
    assert "'timeout' has no unit" in said
    assert "timeout_ms" in said


def test_timestamps_with_a_deadline_without_a_unit() -> None:
    begin = 1_772_400_000
    sent, received = [begin] * 4, [begin + t for t in TIMES]
    (said,) = warnings(sent=sent, received=received, timeout=[20_000] * 4)
    assert "2,500 times" in said
    assert not warnings(sent=sent, received=received, timeout=[20] * 4)


def test_deadlines_that_are_long_by_their_name_or_plausible_are_not() -> None:
    assert not warnings(duration_s=TIMES, timeout_s=[20_000] * 4)
    assert not warnings(duration=TIMES, timeout=[600] * 4)
    assert not warnings(duration=[*TIMES[:3], 1.0])
    assert not read_log({"t": [1.0, NAN]}, seconds="t", unit="s", deadline="5h").warnings


def test_a_deadline_with_its_unit_is_the_remedy() -> None:
    log = {"node": list("abcd"), "duration": TIMES, "timeout": [20_000] * 4}
    found = read_log(log, deadline="20s")
    assert not found.warnings
    assert cafe.fit(log, deadline="20s").observations.deadline.max() == 20.0
