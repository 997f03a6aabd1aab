"""Running a sweep: the same bytes wherever cells run, and only what is missing after a stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import cafe
from cafe.errors import FileError, InputError
from cafe.results import parquet
from cafe.sweep import Sweep, load_sweep, run_sweep
from cafe.sweep.sweep_cell import SweepCell
from cafe.workers import LocalDask, LocalProcesses, LostCall
from cafe.workers.backends import RunCalls
from tests.sweep.conftest import SweepFolder

ONE = LocalProcesses(jobs=1)
RANDOM = (
    ("policy.quorum = [3, 5]", "policy.quorum = {low = 1, high = 9, integer = true}"),
    ("seeds = [0, 7]", "seeds = [0, 7]\nsamples = 12"),
)


class Counting:
    """Runs cells here, and counts them; stops like Ctrl-C after some."""

    def __init__(self, stop: int = 10**9) -> None:
        self.ran, self._stop = list[str](), stop

    def open(self) -> AbstractContextManager[RunCalls]:
        return nullcontext(self._run)

    def threads(self) -> int:
        return 1

    def _run(
        self, work: Callable[[SweepCell], Any], cells: Sequence[SweepCell]
    ) -> Iterator[tuple[int, Any]]:
        for number, cell in enumerate(cells):
            if len(self.ran) == self._stop:
                raise KeyboardInterrupt
            self.ran.append(cell.name)
            yield number, work(cell)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of all cells, and the table."""
    paths = [*folder.glob("cells/*.json"), *folder.glob("results.*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(paths)}


def test_cells_are_simulations(workspace: SweepFolder) -> None:
    result = run_sweep(workspace.sweep(), "out", backend=ONE)
    assert len(result.cells) == 16
    assert not result.failed
    phones = cafe.Federation(20, cafe.Exponential(1.0))
    for ended in result.cells:
        given, label = ended.cell.values, ended.cell.label
        deadline = given["policy.deadline"] if label == "mcu" else 2.0
        quorum = given["policy.quorum"] if label == "mcu" else 3
        policy = cafe.policies.mcu(quorum=quorum, deadline=deadline)
        history = cafe.simulate(phones, policy, rounds=20, seed=ended.cell.seed)
        assert ended.figures["mean_age"] == history.mean_age
    assert result.ranking[0].estimate.mean == min(one.estimate.mean for one in result.ranking)


def test_parameters_of_a_hierarchy_are_swept(workspace: SweepFolder) -> None:
    """Clusters of 10 and 4 of the 20 clients; a goal of 5 is too high for clusters of 4."""
    scenario = workspace.folder / "small.toml"
    levels = '[policy]\nname = "hierarchical"\nclusters = 2\ngoal = 1\nlink = 0.5\n[run]\n'
    head, _, _ = scenario.read_text().partition("[policy]")
    scenario.write_text(f"{head}{levels}rounds = 20\n")
    sweep = workspace.sweep(
        ("policy.quorum = [3, 5]", "policy.clusters = [2, 5]"),
        ("policy.deadline = [0.5, 1]", "policy.goal = [2, 5]"),
    )
    result = run_sweep(sweep, "out", backend=ONE)
    assert {tuple(ended.cell.values.values()) for ended in result.failed} == {(5, 5)}
    assert "goal must be at most the number of clients in the smallest cluster (4)" in (
        result.failed[0].reason or ""
    )
    phones = cafe.Federation(20, cafe.Exponential(1.0))
    right = [ended for ended in result.cells if ended not in result.failed]
    assert len(right) == 6
    for ended in right:
        clusters, goal = ended.cell.values.values()
        policy = cafe.policies.hierarchical(clusters=clusters, goal=goal, link=0.5)
        history = cafe.simulate(phones, policy, rounds=20, seed=ended.cell.seed)
        assert ended.figures["mean_age"] == history.mean_age


def test_models_are_trained(workspace: SweepFolder) -> None:
    text = (workspace.folder / "small.toml").read_text()
    learning = '[task]\ndataset = "digits"\npartition = "iid"\n[learner]\nname = "softmax"\n'
    (workspace.folder / "small.toml").write_text(
        text.replace("rounds = 20", "rounds = 5") + learning
    )
    change = ("policy.quorum = [3, 5]", "task.rate = [0.01, 0.1]")
    goal = ("minimise", "accuracy = 0.01\nmaximise")
    sweep = workspace.sweep(("mean_age", "accuracy"), goal, change)
    ended = run_sweep(sweep, "out", backend=ONE).cells[0]
    scenario = sweep.scenario.with_values(ended.cell.values)
    task, policy = scenario.task(0, threads=1), scenario.policy("mcu")
    history = cafe.simulate(scenario.federation, policy, task, rounds=5)
    assert history.curve is not None
    assert ended.figures["accuracy"] == history.accuracy
    assert ended.figures["time_to_accuracy"] in history.curve.time


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["grid", "random", "optuna"])
def test_results_do_not_depend_on_the_workers(workspace: SweepFolder, sampler: str) -> None:
    if sampler == "optuna":
        pytest.importorskip("optuna")
    pytest.importorskip("distributed")
    sweep = load_sweep(workspace.write(*(() if sampler == "grid" else RANDOM)), sampler=sampler)
    run_sweep(sweep, "one", backend=ONE)
    run_sweep(sweep, "two", backend=LocalProcesses(jobs=2))
    run_sweep(sweep, "dask", backend=LocalDask(2))
    assert len(contents(Path("one"))) == sweep.size + 1
    assert contents(Path("one")) == contents(Path("two")) == contents(Path("dask"))


@pytest.mark.parametrize("sampler", ["grid", "random", "optuna"])
def test_only_missing_cells_run_after_a_stop(workspace: SweepFolder, sampler: str) -> None:
    if sampler == "optuna":
        pytest.importorskip("optuna")
    sweep = load_sweep(workspace.write(*(() if sampler == "grid" else RANDOM)), sampler=sampler)
    whole, first, second, third = Counting(), Counting(11), Counting(), Counting(0)
    expected = run_sweep(sweep, "whole", backend=whole)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, "out", backend=first)
    assert len(contents(Path("out"))) == 11
    with pytest.raises(FileError, match="already has a sweep"):
        run_sweep(sweep, "out", backend=second)
    run_sweep(sweep, "out", backend=second, resume=True)
    assert first.ran + second.ran == whole.ran
    assert contents(Path("out")) == contents(Path("whole"))
    again = run_sweep(sweep, "out", backend=third, resume=True)
    assert [one.point for one in again.ranking] == [one.point for one in expected.ranking]
    overwriting = Counting()
    run_sweep(sweep, "out", backend=overwriting, overwrite=True)
    assert overwriting.ran == whole.ran


def test_progress_counts_cells_that_were_there(workspace: SweepFolder) -> None:
    sweep = workspace.sweep()
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, "out", backend=Counting(14))
    seen: list[int] = []
    run_sweep(sweep, "out", backend=Counting(), resume=True, progress=seen.append)
    assert seen == [14, 15, 16]


def failing(workspace: SweepFolder) -> Sweep:
    """A sweep in which no cell with 30 of 20 clients can run, and none of 19 clients succeeds."""
    change = ("policy.quorum = [3, 5]", "policy.quorum = [3, 19, 30]")
    scenario = (
        (workspace.folder / "small.toml").read_text().replace("rounds = 20\n", "rounds = 2000\n")
    )
    (workspace.folder / "small.toml").write_text(scenario)
    return workspace.sweep(change, ("[0.5, 1]", "[0.1]"), ("seeds", 'policies = ["mcu"]\nseeds'))


def test_failed_cells_do_not_stop_a_sweep(workspace: SweepFolder) -> None:
    result = run_sweep(failing(workspace), "out", backend=ONE)
    assert [ended.cell.point for ended in result.failed] == [1, 1, 2, 2]
    never, invalid = result.failed[0].reason, result.failed[2].reason
    assert never.startswith("1000 rounds")
    assert invalid.startswith("small.toml: policy: The quorum must be at most"), "without a folder"
    assert [one.failed for one in result.ranking] == [0, 2, 2]
    counting = Counting()
    run_sweep(failing(workspace), "out", backend=counting, resume=True)
    assert not counting.ran, "failed cells would fail again"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("policy.quorum", "policy.quorm"), "policy.quorm is not known. Did you mean 'quorum'"),
        (("policy.quorum", "policies.slo.quorum"), "Got 'slo'"),
        (("[3, 5]", "[30, 50]"), "The first one: .*small.toml: policy: The quorum must be at most"),
        (("[3, 5]", '["3", "5"]'), "must be a whole number. Got the text '3'"),
    ],
)
def test_a_sweep_without_a_valid_cell_is_refused(
    workspace: SweepFolder, change: tuple[str, str], message: str
) -> None:
    sweep = workspace.sweep(change, ("seeds", 'policies = ["mcu"]\nseeds'))
    with pytest.raises(InputError, match=f"No cell of the sweep is valid. .*{message}"):
        run_sweep(sweep, "out")
    assert not Path("out").exists()


def test_csv_without_pyarrow(workspace: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = workspace.sweep()
    assert run_sweep(sweep, "out", backend=ONE).table == Path("out/results.parquet")
    monkeypatch.setattr(parquet, "find_spec", lambda _: None)
    assert run_sweep(sweep, "out", backend=ONE, resume=True).table == Path("out/results.csv")
    assert not Path("out/results.parquet").exists()


class Losing(Counting):
    """Cells for which memory ran out, except the first."""

    def _run(
        self, work: Callable[[SweepCell], Any], cells: Sequence[SweepCell]
    ) -> Iterator[tuple[int, Any]]:
        yield 0, work(cells[0])
        lost = LostCall("There is not enough memory.")
        yield from ((number, lost) for number in range(1, len(cells)))


def test_lost_cells_are_an_error_at_the_end(workspace: SweepFolder) -> None:
    with pytest.raises(InputError, match=r"^15 of 16 cells are not done. There is not enough memo"):
        run_sweep(workspace.sweep(), "out", backend=Losing())
    assert len(contents(Path("out"))) == 1


def test_two_sweeps_cannot_share_a_folder(workspace: SweepFolder) -> None:
    class Nested(Counting):
        def _run(
            self, work: Callable[[SweepCell], Any], cells: Sequence[SweepCell]
        ) -> Iterator[tuple[int, Any]]:
            with pytest.raises(FileError, match="another process is using this folder"):
                run_sweep(workspace.sweep(), "out", resume=True)
            return super()._run(work, cells)

    assert len(run_sweep(workspace.sweep(), "out", backend=Nested()).cells) == 16
