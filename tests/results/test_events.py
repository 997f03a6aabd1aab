"""The log: it is read as written, an incomplete last line is dropped, other damage is an error."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cafe.errors import FileError
from cafe.learn.base import Score
from cafe.results.events import Log, read
from cafe.rounds import Fate, Outcome

times = st.floats(0, 1e300)
counts = st.integers(0, 2**62)


@st.composite
def outcomes(draw: st.DrawFn) -> list[Outcome]:
    """Consecutive rounds with arbitrary numbers."""
    return [
        Outcome(
            n,
            opened=draw(times),
            closed=draw(times),
            succeeded=draw(st.booleans()),
            invited=draw(counts),
            fates=np.array([draw(counts) for _ in Fate]),
            waste=draw(times),
            age=draw(times),
            reused=draw(counts),
            downloads=draw(counts),
            bytes_down=draw(times),
            bytes_up=draw(times),
            work_by_fate=np.array([draw(times) for _ in Fate]),
        )
        for n in range(draw(st.integers(0, 5)))
    ]


@settings(derandomize=True, deadline=None, max_examples=50, database=None)
@given(rounds=outcomes(), loss=st.floats(), accuracy=st.none() | st.floats(0, 1))
def test_written_log_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    rounds: list[Outcome],
    loss: float,
    accuracy: float | None,
) -> None:
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    with Log(path) as log:
        for outcome in rounds:
            log.outcome(outcome)
        log.score(len(rounds), Score(loss, accuracy))
        assert log.sync() == path.stat().st_size
    found = read(path)
    for line, outcome in zip(found.rounds, rounds, strict=True):
        for field in fields(Outcome):
            assert np.array_equal(line[field.name], getattr(outcome, field.name))
    [(after, score)] = found.scores
    assert after == len(rounds)
    assert score.accuracy == accuracy
    assert score.loss == loss or (math.isnan(score.loss) and math.isnan(loss))
    for text in path.read_text().splitlines():
        json.loads(text, parse_constant=pytest.fail)


def written(path: Path, rounds: int) -> bytes:
    with Log(path) as log:
        for n in range(rounds):
            log.outcome(Outcome(n, n, n + 1, True))
        log.sync()
    return path.read_bytes()


def test_logs_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """They lack some fields, which are 0 or unknown; any other field that is missing is damage."""
    path = tmp_path / "events.jsonl"
    written(path, 2)
    added = ("reused", "downloads", "bytes_down", "bytes_up")
    unknown = "work_by_fate"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    before = read(path)
    new = (*added, unknown)
    old = [{name: value for name, value in line.items() if name not in new} for line in lines]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in old))
    for line, full in zip(read(path).rounds, before.rounds, strict=True):
        assert np.isnan(line.pop(unknown)).tolist() == [True] * len(Fate)
        assert line == {k: v for k, v in full.items() if k != unknown} | dict.fromkeys(added, 0)
    for name in old[0]:
        some = [{k: v for k, v in line.items() if k != name} for line in old]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in some))
        with pytest.raises(FileError, match="written by another version"):
            read(path)


def test_incomplete_last_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    data = written(path, 3)
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    for length in range(len(data)):
        path.write_bytes(data[:length])
        assert len(read(path).rounds) == sum(end <= length for end in ends)


def test_log_is_truncated_at_the_given_length(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    data = written(path, 3)
    keep = data.index(b"\n") + 1
    with Log(path, keep) as log:
        log.outcome(Outcome(1, 1, 2, False))
        log.sync()
    found = read(path)
    assert [line["succeeded"] for line in found.rounds] == [True, False]
    assert path.read_bytes()[:keep] == data[:keep]


BAD = {
    "not JSON": (b"{]\n", "line 2: the line must be a JSON object"),
    "no object": (b"3\n", "line 2: the line must be a JSON object"),
    "no bytes": (b"\xff\xfe\n", "line 2: the line must be a JSON object"),
    "a round twice": (b"first\n", "line 2: the line must be the next round"),
    "other keys": (b'{"round": 1}\n', "line 2: the line must be the next round"),
    "a score too early": (b'{"after": 2, "loss": 1, "accuracy": 1}\n', "line 2: the line must be"),
    "a score of nothing": (b'{"after": 1, "loss": null, "accuracy": 1}\n', "line 2: the line must"),
}


@pytest.mark.parametrize(("line", "said"), BAD.values(), ids=BAD)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes, said: str) -> None:
    path = tmp_path / "events.jsonl"
    data = written(path, 1)
    path.write_bytes(data + line.replace(b"first\n", data))
    with pytest.raises(FileError, match=said):
        read(path)


def test_truncated_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    data = written(path, 3)
    with pytest.raises(FileError, match=rf"at least {len(data) + 1} bytes.* Got {len(data)}"):
        read(path, len(data) + 1)
    with pytest.raises(FileError, match="the file cannot be read"):
        read(tmp_path / "none.jsonl")
