"""Trials are varied scenarios, and run in any process."""

from __future__ import annotations

from pathlib import Path

import pytest

import cafe
from cafe.errors import InputError
from cafe.reproduce import reproduce, trials
from cafe.reproduce.experiments import (
    book_counts,
    bound_formulas,
    iid_rate,
    objective_curve,
    unequal_speeds,
)
from cafe.reproduce.folder import read_rows
from cafe.reproduce.trials import (
    Effort,
    Trial,
    grid,
    load_scenario,
    repeat_trials,
    run_in_turn,
    run_trial,
)
from tests.support.reproductions import PAPER, needs_mnist


@needs_mnist
@pytest.mark.slow
def test_trial_equals_a_simulation_of_its_scenario() -> None:
    """A trial's run is what ``cafe.simulate`` gives for the varied scenario, on any threads."""
    trial = Trial("table-agu", {}, 3, "agu", {"policies.agu.quorum": 25}, rounds=12)
    scenario = load_scenario("table-agu").with_values(trial.changes).with_run(rounds=12)
    again = cafe.simulate(
        scenario.federation, scenario.policy("agu"), scenario.task(3, 1), seed=3, **scenario.run
    )
    played = run_trial(trial)
    assert played.model is not None
    assert again.model is not None
    assert played.model.tobytes() == again.model.tobytes()
    assert played.updates == again.updates > 0


def test_missing_data_are_reported_before_processes_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str, **more: object) -> None:
        raise InputError(f"There is no {name}.")

    load_scenario.cache_clear()
    monkeypatch.setattr(trials, "_LOADED", [])
    monkeypatch.setattr("cafe.data.load", missing)
    monkeypatch.setattr(trials, "run_parallel", lambda *_: pytest.fail("processes were started"))
    with pytest.raises(InputError, match="There is no mnist"):
        reproduce(["table-agu"], tmp_path, quick=True)
    load_scenario.cache_clear()


def test_scenarios_with_the_same_data_load_them_once(mnist: Path) -> None:
    first, second = load_scenario("table-agu").learning, load_scenario("table-awu").learning
    assert first is not None
    assert second is not None
    assert first is not second
    assert first.data is second.data


def test_scenarios_agree_with_the_experiments() -> None:
    """Scenarios that an experiment does not vary, but builds again in Python."""
    assert load_scenario("fig-objective").federation.clients == objective_curve.CLIENTS
    assert load_scenario("fig-iid-rate").policy("mcu").parameters["deadline"] == iid_rate.DEADLINE
    unequal = load_scenario("corrections").federation
    theirs = unequal_speeds.federation("mcu")
    for t in (0.1, 0.5, 2.0):
        ours = unequal.by_client(unequal.latency.cdf(t))
        assert ours.tolist() == theirs.by_client(theirs.latency.cdf(t)).tolist()
    (row,) = (
        r for r in read_rows(PAPER / "bound") if r.get("part") == "constants" and r["l2"] == 1
    )
    problem = bound_formulas.problem(row)
    federation = load_scenario("bound").federation
    assert federation.clients == book_counts.CLIENTS
    expected = cafe.expect(federation, quorum=1, deadline=0.5).variance
    rate = cafe.theory.learning_rate(problem, expected)
    given = load_scenario("bound").tables["task"]["rate"]
    assert given == {
        "beta": pytest.approx(rate.beta, 1e-4),
        "gamma": pytest.approx(rate.gamma, 1e-4),
    }


def test_the_last_axis_of_a_grid_varies_fastest() -> None:
    assert grid(a=(1, 2), b="xy") == [
        {"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"},
    ]  # fmt: skip


def test_quick_effort_is_smaller_in_every_size() -> None:
    full, quick = Effort(), Effort(quick=True)
    assert (full.rounds, quick.rounds) == (None, 10)
    assert (len(full.seeds(5)), len(quick.seeds(5))) == (5, 2)
    assert quick.thin(range(7)) == [0, 3, 6]
    assert full.thin(range(7)) == range(7)


def test_trials_are_repeated_on_the_same_seeds() -> None:
    points = grid(quorum=(1, 2), policy=("mcu",))
    made = repeat_trials(
        "theory", points, 5, lambda at: {"policy.quorum": at["quorum"]}, Effort(True)
    )
    assert [(one.point["quorum"], one.seed) for one in made] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert made[-1] == Trial("theory", points[1], 1, "mcu", {"policy.quorum": 2}, 10)


def test_functions_in_turn_report_their_progress() -> None:
    calls: list[tuple[int, int]] = []
    rows = run_in_turn([lambda: [{"a": 1}], lambda: [{"a": 2}]], lambda *at: calls.append(at))
    assert rows == [{"a": 1}, {"a": 2}]
    assert calls == [(0, 2), (1, 2), (2, 2)]
