"""Processes of this machine: the cells of killed workers run again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import pytest

from cafe.errors import InputError
from cafe.sweep import load_sweep, run_sweep
from cafe.workers import LocalProcesses
from tests.support.sweep_policies import write_sweep


def test_wrong_numbers_of_processes() -> None:
    with pytest.raises(InputError, match=r"jobs must be a whole number from 1 up. Got 0"):
        LocalProcesses(jobs=0)


@pytest.mark.slow
def test_cells_of_a_killed_worker_run_again(tmp_path: Path) -> None:
    sweep, said = load_sweep(write_sweep(tmp_path, "kills_once")), list[str]()
    result = run_sweep(sweep, tmp_path / "out", backend=LocalProcesses(2, said.append, "cells"))
    assert (tmp_path / "killed").exists()
    assert said == ["A worker was killed. Its cells are started again."]
    alone = run_sweep(sweep, tmp_path / "alone", backend=LocalProcesses(1))
    assert result.table.read_bytes() == alone.table.read_bytes()
    assert not result.failed


@pytest.mark.slow
def test_a_cell_that_always_kills_its_worker_ends_the_sweep(tmp_path: Path) -> None:
    sweep = load_sweep(write_sweep(tmp_path, "kills_always"))
    with pytest.raises(InputError, match=r"killed 4 times in a row.* 2 calls are not .* --resume"):
        run_sweep(sweep, tmp_path / "out", backend=LocalProcesses(2))
    assert len([*(tmp_path / "out" / "cells").iterdir()]) == 6, "all others are done"


def test_cells_beside_one_that_kills_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose_all(
        work: Callable[[int], int], given: Sequence[int], workers: int
    ) -> Iterator[tuple[int, int]]:
        """Make calls; if one of them kills, all are lost: the worst case of a race."""
        if any(number < 0 for number in given):
            raise BrokenExecutor
        yield from ((index, work(number)) for index, number in enumerate(given))

    monkeypatch.setattr("cafe.workers.backends.run_in_processes", lose_all)
    run: Any
    with LocalProcesses(2).open() as run:
        done, cells = list[tuple[int, int]](), run(abs, [1, 2, -1, -2, 3, 4, 5, 6])
        with pytest.raises(InputError, match=r"killed 4 times in a row.* 2 calls are not done"):
            done.extend(cells)
    assert sorted(done) == [(0, 1), (1, 2), (4, 3), (5, 4), (6, 5), (7, 6)]
