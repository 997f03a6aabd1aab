"""Warnings about logs that are probably not complete."""

from __future__ import annotations

from pathlib import Path

import cafe
from cafe.fitting.log_warnings import warn_without_misses

NAN = float("nan")


def test_a_log_without_misses_is_pointed_out() -> None:
    times = [1.0, 2.0, 3.0, 2.5, 1.5]
    (said,) = cafe.fit(times, deadline=5.0).log_warnings
    assert said.startswith("No row is a missed deadline. Does the log leave them out? Then")
    assert cafe.fit(times).warnings[0] == said
    assert cafe.fit([*times, NAN], deadline=5.0).log_warnings == ()
    assert cafe.fit([3.0]).log_warnings == ()


def test_times_at_the_deadline_are_pointed_out() -> None:
    seen = cafe.Observations([1.0, 5.0, 5.0, 2.0, 3.0], deadline=5.0)
    assert "2 rows took as long as their deadline" in warn_without_misses(seen)[0]


def test_a_fit_repeats_the_warnings_of_its_log(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("seconds,deadline,status\n" + "1,5,ok\n2,5,ok\n" * 9 + "6,5,ok\n,5,error\n")
    found = cafe.fit(path, families="exponential")
    assert [text.split()[:2] for text in found.warnings[:2]] == [["1", "row"], ["1", "report"]]
    assert found.to_dict()["warnings"] == list(found.warnings)
