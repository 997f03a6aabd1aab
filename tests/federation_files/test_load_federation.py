"""load_federation: formats, encodings and files that cannot be read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cafe.errors import FileError
from cafe.federation_files import (
    load_federation,
)
from cafe.latency import (
    Exponential,
)
from tests.support.federation_files import loaded, refused


def test_byte_order_mark_and_crlf_are_read(tmp_path: Path) -> None:
    toml = b"\xef\xbb\xbf[federation]\r\nclients = 3\r\nrate = 2.0\r\n"
    assert loaded(tmp_path, toml, "fleet.toml").clients == 3
    table = b"\xef\xbb\xbfrate\r\n1.0\r\n2.0\r\n"
    assert loaded(tmp_path, table, "fleet.csv").latency == Exponential(np.array([1.0, 2.0]))


@pytest.mark.parametrize("name", ["fleet.toml", "fleet.csv"])
def test_unreadable_files_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(FileError, match=f"{name}: the file cannot be read: there is no such"):
        load_federation(path)
    assert "must be text in UTF-8. Got the byte 0xff" in refused(tmp_path, b"rate\n\xff", name)
    path.unlink()
    path.mkdir()
    with pytest.raises(FileError, match=f"{name}: the file cannot be read: it is a folder"):
        load_federation(str(path))


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"must end in .toml or .csv.* Got 'fleet.json'"):
        load_federation(tmp_path / "fleet.json")


def test_reading_csv_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("rate\n1\n")
    code = (
        "import sys, cafe.scenario; cafe.federation_files.load_federation('a.csv');"
        "print(*sorted({'scipy.stats', 'matplotlib'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
