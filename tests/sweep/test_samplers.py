"""Samplers: the points of a grid worked out by hand, random points, and Optuna's."""

from __future__ import annotations

import math
import sys

import pytest

from cafe.errors import InputError
from cafe.sweep import Sweep, load_sweep
from cafe.sweep.samplers import Sampler, grid_points, make_sampler, random_points
from tests.sweep.conftest import SweepFolder

RANGES = (
    ("policy.quorum = [3, 5]", "policy.quorum = {low = 1, high = 9, integer = true}"),
    ("policy.deadline = [0.5, 1]", "policy.deadline = {low = 0.1, high = 2, log = true}"),
    ("seeds = [0, 7]", "seeds = [0, 7]\nsamples = 20"),
)


def test_cells_of_a_grid(workspace: SweepFolder) -> None:
    sweep = workspace.sweep()
    cells = [cell for point in grid_points(sweep) for cell in point.cells(sweep.seeds)]
    ways = [("mcu", 0), ("mcu", 7), ("slow", 0), ("slow", 7)]
    assert [(c.point, *c.values.values(), c.label, c.seed) for c in cells] == [
        *((0, 3, 0.5, *way) for way in ways),
        *((1, 3, 1, *way) for way in ways),
        *((2, 5, 0.5, *way) for way in ways),
        *((3, 5, 1, *way) for way in ways),
    ]
    assert {tuple(cell.values) for cell in cells} == {("policy.quorum", "policy.deadline")}
    assert cells[3].name == "000000-slow-seed-7"
    assert len({cell.name for cell in cells}) == sweep.size == 16


def test_fixed_points_are_one_batch(workspace: SweepFolder) -> None:
    sampler = make_sampler(workspace.sweep())
    assert len(sampler.ask()) == 4
    sampler.tell([1.0] * 4)
    assert sampler.ask() == []


def test_random_points_are_a_function_of_the_seed(workspace: SweepFolder) -> None:
    sweep = workspace.sweep(*RANGES)
    points = random_points(sweep, 20)
    assert points == make_sampler(sweep).ask()
    assert random_points(sweep, 5) == points[:5], "more samples do not change the first ones"
    assert all(1 <= point.values["policy.quorum"] <= 9 for point in points)
    other = workspace.sweep(*RANGES, ("minimise", "seed = 1\nminimise"))
    assert random_points(other, 20) != points


def ask_all(sampler: Sampler) -> list[tuple[object, ...]]:
    """All points of a sampler that prefers deadlines near 1; some fail, some are infinite."""
    found = []
    while points := sampler.ask():
        values = [abs(math.log(point.values["policy.deadline"])) for point in points]
        kept = [math.nan if value > 2 else math.inf if value > 1.5 else value for value in values]
        sampler.tell(kept)
        found += [(p.number, *p.values.values(), p.labels) for p in points]
    return found


def optuna_sweep(workspace: SweepFolder, *changes: tuple[str, str]) -> Sweep:
    return load_sweep(workspace.write(*RANGES, *changes), sampler="optuna")


def test_optuna_asks_the_same_points_again(workspace: SweepFolder) -> None:
    pytest.importorskip("optuna")
    sweep = optuna_sweep(workspace)
    first = ask_all(make_sampler(sweep))
    assert [number for number, *_ in first] == list(range(20))
    assert {len(labels) for *_, labels in first} == {1}  # type: ignore[arg-type]
    assert ask_all(make_sampler(sweep)) == first
    assert (
        ask_all(make_sampler(optuna_sweep(workspace, ("minimise", "seed = 1\nminimise")))) != first
    )


def test_optuna_chooses_from_lists_and_tables(workspace: SweepFolder) -> None:
    pytest.importorskip("optuna")
    wide = 'run.rounds = [5, 9]\ntask.partition = ["iid", {name = "classes", each = 3}]'
    sweep = optuna_sweep(workspace, ("policy.quorum = {low = 1, high = 9, integer = true}", wide))
    points = make_sampler(sweep).ask()
    assert len(points) == sweep.batch == 8
    assert {point.values["run.rounds"] for point in points} == {5, 9}
    names = [point.values["task.partition"] for point in points]
    assert "iid" in names
    assert {"name": "classes", "each": 3} in names


def test_missing_optuna_is_one_sentence(
    workspace: SweepFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match="pip install optuna, or use the sampler random"):
        make_sampler(optuna_sweep(workspace))
