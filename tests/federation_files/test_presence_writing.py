"""A federation with a presence by hour, written and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cafe
from cafe.errors import FileError, InputError
from cafe.federation_files import load_federation, write_federation_by_hour
from cafe.presence import ByHour, DayNight


def test_written_and_read_back(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    made = cafe.Federation(
        3, cafe.Exponential(np.array([0.1, 0.2, 0.7])), 0.8, presence=ByHour([0.25, 1.0, 0.1], 7.0)
    )
    for clients in (tmp_path / "clients.csv", tmp_path / "deep" / "more.csv"):
        write_federation_by_hour(made, tmp_path / "hours.toml", clients, ["a", "b", "c"])
        read = load_federation(tmp_path / "hours.toml")
        assert read.presence == made.presence
        np.testing.assert_array_equal(read.latency.mean(), made.latency.mean())
        np.testing.assert_array_equal(read.availability, [0.8] * 3)


def test_wrong_names_and_presences_are_refused(tmp_path: Path) -> None:
    made = cafe.Federation(3, cafe.Exponential(1.0), presence=ByHour([0.5]))
    with pytest.raises(FileError, match=r"must end in .toml. Got 'hours.csv'"):
        write_federation_by_hour(made, tmp_path / "hours.csv", tmp_path / "c.csv")
    other = cafe.Federation(3, cafe.Exponential(1.0), presence=DayNight())
    with pytest.raises(InputError, match=r"presence by hour. Got DayNight"):
        write_federation_by_hour(other, tmp_path / "hours.toml", tmp_path / "c.csv")
