"""Many runs at a time are the same runs as one at a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cafe.errors import FileError, InputError
from cafe.results import execute, planned, sweep

if TYPE_CHECKING:
    from tests.results.conftest import Lab


@pytest.mark.parametrize("jobs", [1, 2])
def test_runs_side_by_side_are_the_same_runs(lab: Lab, tmp_path: Path, jobs: int) -> None:
    scenario = lab.scenario(learning=True).but(rounds=25)
    runs = planned(scenario, ["agu", "mcu"], tmp_path / "out")
    names = ["agu-seed-0", "agu-seed-1", "mcu-seed-0", "mcu-seed-1"]
    assert [run.folder.name for run in runs] == names
    done: list[int] = []
    # The file may change while runs are under way: they are told its text.
    scenario.path.write_text("")
    results = sweep(scenario, runs, jobs=jobs, progress=done.append)
    assert done == [1, 2, 3, 4]
    assert [result.folder.name for result in results] == names
    threads = results[0].provenance["threads"]
    for run in runs:
        alone = tmp_path / "alone" / run.folder.name
        execute(scenario, run.label, run.seed, alone, threads=threads)
        assert lab.contents(alone) == lab.contents(run.folder)


def test_a_run_that_fails_does_not_stop_the_others(lab: Lab, tmp_path: Path) -> None:
    scenario = lab.scenario(
        ("quorum = 9", "quorum = 20"), ("fraction = 0.5", "fraction = 0.1"), ("crash = 0.1", "")
    )
    scenario = scenario.but(rounds=2000, seeds=[3])
    runs = planned(scenario, ["agu", "fedavg"], tmp_path)
    with pytest.raises(InputError, match=r"^agu, seed 3: 1000 rounds.* Of 2 runs 1 failed"):
        sweep(scenario, runs, jobs=1)
    assert (tmp_path / "fedavg-seed-3" / "result.json").exists()
    assert not (tmp_path / "agu-seed-3" / "result.json").exists()


def test_all_is_refused_before_anything_is_run(lab: Lab, tmp_path: Path) -> None:
    scenario = lab.scenario()
    with pytest.raises(InputError, match=r"There is no policy 'mcuu'. Did you mean 'mcu'"):
        planned(scenario, ["agu", "mcuu"], tmp_path)
    with pytest.raises(InputError, match=r"Each policy can be compared once. Got agu, agu"):
        planned(scenario, ["agu", "agu"], tmp_path)
    execute(scenario, "mcu", 1, tmp_path / "mcu-seed-1")
    with pytest.raises(FileError, match="mcu-seed-1: there are results here already"):
        planned(scenario, ["agu", "mcu"], tmp_path)
    assert len(planned(scenario, ["agu", "mcu"], tmp_path, resume=True)) == 4
    with pytest.raises(InputError, match="At least 1 run"):
        sweep(scenario, planned(scenario, ["awu"], tmp_path), jobs=0)
