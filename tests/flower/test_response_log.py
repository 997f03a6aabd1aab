"""Rows of response times are appended to a CSV file, also by a later run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cafe.errors import FileError
from cafe.flower.response_log import LogRow, ResponseLog

FIRST = LogRow("7", 1.23456, 8.0, "2026-01-02T03:04:05.678+00:00", 1, 1, "reported")
HEADER = "client,seconds,deadline,sent,round,attempt,status,error\n"
LINE = "7,1.235,8.000,2026-01-02T03:04:05.678+00:00,1,1,reported,\n"


def refuse(text: str) -> None:
    raise AssertionError(text)


def test_rows_are_written_at_once_and_appended_by_a_later_run(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    log = ResponseLog(path, refuse)
    assert path.read_text() == HEADER
    log.add([FIRST, replace(FIRST, seconds=None, status="late")])
    late = LINE.replace("1.235", "").replace("reported", "late")
    assert path.read_text() == HEADER + LINE + late
    ResponseLog(path, refuse).add([FIRST])
    assert path.read_text() == HEADER + LINE + late + LINE


def test_an_error_text_is_one_quoted_cell(tmp_path: Path) -> None:
    log = ResponseLog(tmp_path / "log.csv", refuse)
    log.add([replace(FIRST, seconds=None, status="failed", error='no "x",\n in y')])
    assert log.path.read_text().endswith(',failed,"no ""x"", in y"\n')
    assert len(log.path.read_text().splitlines()) == 2


def test_an_incomplete_last_line_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(HEADER + LINE + "7,1.2")
    ResponseLog(path, refuse).add([FIRST])
    assert path.read_text() == HEADER + LINE + LINE


def test_a_file_with_other_columns_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("client,seconds\na,1\n")
    with pytest.raises(FileError, match=r"line 1: the first line must be client,.*another path"):
        ResponseLog(path, refuse)
    assert path.read_text() == "client,seconds\na,1\n"


def test_an_existing_empty_file_gets_a_header(tmp_path: Path) -> None:
    (tmp_path / "log.csv").touch()
    assert ResponseLog(tmp_path / "log.csv", refuse).path.read_text() == HEADER


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="it is a folder"):
        ResponseLog(tmp_path, refuse)


def test_lost_rows_are_reported_and_do_not_end_the_run(tmp_path: Path) -> None:
    said: list[str] = []
    log = ResponseLog(tmp_path / "new.csv", said.append)
    log.path.unlink()
    log.path.mkdir()
    log.add([FIRST])
    assert said == [f"{log.path}: rows are lost: it is a folder; name a file in it."]
