"""The verbs of running: simulate, compare, report, policies."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import cafe
from cafe.policies import KINDS, recipes
from cafe.results import find, parquet, parquet_possible
from tests.support.command_line import Run

pytestmark = pytest.mark.slow


def test_simulate_command_equals_the_python_function(run: Run, scenario: Path) -> None:
    made = run.json("simulate small.toml")
    assert run.err == "Wrote results/small\n"
    read = cafe.scenario.load_scenario(scenario)
    for seed, found in enumerate(made["runs"]):
        task = read.task(seed)
        history = cafe.simulate(read.federation, read.policy("mcu"), task, rounds=20, seed=seed)
        assert found["seed"] == seed
        assert found["waste_per_update"] == history.waste_per_update
        assert found["accuracy"] == history.accuracy
        assert found["mean_age"] == history.mean_age
    accuracies = [found["accuracy"] for found in made["runs"]]
    assert made["figures"]["accuracy"]["mean"] == pytest.approx(np.mean(accuracies))
    error = np.std(accuracies, ddof=1) / np.sqrt(2)
    assert made["figures"]["accuracy"]["error"] == pytest.approx(error)
    assert [r.folder.name for r in find("results/small")] == ["mcu-seed-0", "mcu-seed-1"]


@pytest.mark.usefixtures("scenario")
def test_simulate_prints_a_table(run: Run) -> None:
    ran = run("simulate small.toml --seed 7 --rounds 5 --output here")
    assert ran.code == 0
    assert "mcu, quorum 3, deadline 0.5" in ran.out
    assert "per used report" in ran.out
    [result] = find("here")
    assert (result.history.seed, result.history.rounds) == (7, 5)


@pytest.mark.usefixtures("scenario")
def test_results_are_overwritten_only_with_the_option(run: Run) -> None:
    first = run.json("simulate small.toml --seed 0")
    ran = run("simulate small.toml")
    assert ran.code == 2
    assert "mcu-seed-0: the folder already has results" in ran.err
    assert run("simulate small.toml --resume --overwrite").code == 2
    assert run("simulate small.toml --resume --rounds 30").code == 2
    assert "run.rounds was 20 and is 30" in run.err
    both = run.json("simulate small.toml --resume")
    assert both["runs"][0] == first["runs"][0]
    assert "mcu-seed-0 is already finished." in run.err
    assert run.json("simulate small.toml --overwrite --seed 0") == first


@pytest.mark.usefixtures("scenario")
def test_compare_pairs_the_seeds(run: Run) -> None:
    made = run.json("compare small.toml --policies mcu,slow,agu --seeds 3 --jobs 1 --rounds 10")
    assert [policy["label"] for policy in made] == ["mcu", "slow", "agu"]
    assert [found["seed"] for found in made[2]["runs"]] == [0, 1, 2]
    first, slow, _ = made
    assert first["differences"] is None
    [_, alone] = run.json("compare small.toml --seeds 1 --rounds 9 --jobs 1 --output one")
    assert alone["differences"] is None, "one seed tells nothing"
    own = np.array([[r["accuracy"] for r in policy["runs"]] for policy in (slow, first)])
    apart = own[0] - own[1]
    assert slow["differences"]["accuracy"]["mean"] == pytest.approx(apart.mean())
    error = apart.std(ddof=1) / np.sqrt(3)
    assert slow["differences"]["accuracy"]["error"] == pytest.approx(error)
    assert slow["figures"]["virtual_time"]["mean"] == 10.0
    out = run("compare small.toml --seeds 3 --rounds 10 --jobs 1 --resume").out
    assert "Difference to mcu" in out
    assert "agu" not in out, "only those of the scenario, unless named"


@pytest.mark.usefixtures("scenario")
def test_compare_shows_the_cost_of_an_accuracy(run: Run) -> None:
    command = "compare small.toml --seeds 2 --rounds 10 --jobs 1 --accuracy"
    first, slow = run.json(f"{command} 0.1")
    own = first["to_accuracy"]
    assert (own["accuracy"], own["runs"], own["differences"]) == (0.1, 2, None)
    assert own["reached"] == 2
    time = own["figures"]["time_to_accuracy"]
    assert time["bound"] is None
    assert 0 < time["mean"] < first["figures"]["virtual_time"]["mean"]
    assert slow["to_accuracy"]["differences"].keys() == own["figures"].keys()
    shares = [v["mean"] for k, v in first["figures"].items() if k.startswith("work_share_")]
    assert sum(shares) == pytest.approx(1)
    assert slow["differences"]["worst_tenth_accuracy"]["mean"] is not None
    never, _ = run.json(f"{command} 1 --resume")
    assert never["to_accuracy"]["reached"] == 0
    assert never["to_accuracy"]["figures"]["time_to_accuracy"]["bound"] == "lower"
    out = run(f"{command} 1 --resume").out
    assert "0 of 2" in out
    assert "Where client time went" in out
    assert "Fairness: " in out
    ran = run("report results --accuracy 0.1")
    assert ran.code == 0, ran.err
    assert "Ranked by the time until an accuracy of 10%" in Path("report.html").read_text()


@pytest.mark.usefixtures("scenario")
def test_report_writes_one_page(run: Run) -> None:
    run("compare small.toml --jobs 1 --rounds 10")
    ran = run("report results results/small-compared --output page.html --title Two")
    assert ran.code == 0, ran.err
    page = Path("page.html").read_text()
    assert "<svg" in page
    assert "Two" in page
    assert "4 runs" in page, "a folder that is named twice counts once"


def test_policies_are_listed_with_all_parameters(run: Run) -> None:
    listed = {policy["name"]: policy for policy in run.json("policies")}
    assert listed.keys() == recipes().keys()
    for name, recipe in recipes().items():
        parameters = listed[name]["parameters"]
        assert [p["name"] for p in parameters] == [*inspect.signature(recipe).parameters]
        assert all(p["meaning"] for p in parameters)
        assert listed[name]["kind"] in KINDS
    assert listed["agu"]["needs"] == ["local models"]
    assert listed["fedavg"]["source"] == "McMahan et al. (2017)"
    assert run.json("policies agu") == [listed["agu"]]
    assert listed["mcu"]["parameters"][0]["needed"]
    out = run("policies").out
    assert "Synchronous: every report" in out
    assert "Age-weighted update (AWU)" in out
    assert "close_when_all" not in out, "parameters are shown only for a policy that is named"


def test_policies_that_are_named_are_shown_with_their_parameters(run: Run) -> None:
    out = " ".join(run("policies agu mcu").out.split())
    assert "Rounds: semi-asynchronous. Needs: local models." in out
    assert "Parameters of mcu" in out
    assert "close_when_all" in out
    wrong = run("policies agx")
    assert (wrong.code, wrong.out) == (2, "")
    assert "Did you mean 'agu'?" in wrong.err


@pytest.mark.usefixtures("scenario")
def test_missing_parquet_extra_is_mentioned_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "find_spec", lambda _: None)
    assert not parquet_possible()
    ran = run("simulate small.toml --rounds 2")
    assert ran.code == 0
    assert ran.err.count("pip install pyarrow") == 1


RUN_MISTAKES = {
    "no such file": ("simulate none.toml", "none.toml: the file cannot be read"),
    "no such policy": ("compare small.toml --policies mcu,awuu", "Did you mean 'awu'"),
    "a policy twice": ("compare small.toml --policies mcu,mcu", "given only once"),
    "two places": ("compare small.toml --dask-local 2 --dask x", "Give --dask or --dask-local"),
    "no seeds": ("compare small.toml --seeds 0", "--seeds must be at least 1. Got 0"),
    "no accuracy": ("compare small.toml --accuracy 85", "--accuracy must be more than 0"),
    "no such accuracy": ("report . --accuracy 0", "--accuracy must be more than 0"),
    "no jobs": ("compare small.toml --jobs 0", "--jobs must be at least 1"),
    "a bad seed": ("simulate small.toml --seed -1", "A seed must be a whole number from 0 up"),
    "no rounds": ("simulate small.toml --rounds 0", "rounds must be a whole number from 1 up"),
    "a file in the way": ("simulate small.toml --output small.toml/x", "where a folder should be"),
    "a name too long": (f"simulate small.toml --output {'x' * 300}", "File name too long"),
    "no runs": ("report .", "there are no runs in this folder"),
    "no folder for the page": ("report . --output no/page.html", "there is no folder no"),
}


def test_accuracy_of_runs_without_a_model_is_refused(run: Run, scenario: Path) -> None:
    """Otherwise the option would have no effect, and nothing would say so."""
    head, _, rest = scenario.read_text().partition("[task]")
    scenario.write_text(head + "[run]" + rest.partition("[run]")[2])
    for command in ("compare small.toml --accuracy 0.5", "report results --accuracy 0.5"):
        ran = run(command)
        assert ran.code == 2
        assert "--accuracy needs models" in ran.err
        run("compare small.toml --jobs 1 --rounds 4 --overwrite")


@pytest.mark.usefixtures("scenario")
@pytest.mark.parametrize(("command", "words"), RUN_MISTAKES.values(), ids=RUN_MISTAKES)
def test_wrong_run_commands_are_refused(run: Run, command: str, words: str) -> None:
    ran = run(command)
    assert ran.code == 2
    assert words in ran.err
    assert "Traceback" not in ran.err
    assert not Path("results").exists()
