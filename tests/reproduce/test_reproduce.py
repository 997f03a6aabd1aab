"""The reproduction: what is committed follows from what was run, and all of it can be run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cafe
from cafe.analysis.statistics import Estimate
from cafe.cli import app
from cafe.errors import FileError, InputError
from cafe.reproduce import (
    Claim,
    ClaimVerdict,
    Experiment,
    Finding,
    experiment,
    names,
    reproduce,
    trials,
)
from cafe.reproduce import folder as folders
from cafe.reproduce.experiments import table_agu
from cafe.reproduce.findings import judge_differences, outlier_notes
from cafe.reproduce.parameter_search import CELLS, changes, chosen
from cafe.reproduce.trials import Row, Trial, column, load_scenario, play, points, scenario_text

PAPER = Path(__file__).parents[2] / "paper"
MNIST = Path(os.environ.get("CAFE_DATA", "-")) / "mnist"
needs_mnist = pytest.mark.skipif(not MNIST.is_dir(), reason="MNIST is not in CAFE_DATA")

TRAINED = ("fig-noniid-quorum", "fig-iid-rounds", "fig-iid-quorum", "fig-deadline", "table-awu",
           "table-agu", "awu-phase", "corrections", "bound", "search")  # fmt: skip


# ---------------------------------------------------------------- what is committed


@pytest.mark.parametrize("name", names())
def test_what_is_committed_follows_from_the_runs(name: str) -> None:
    """Claims, verdicts, effects and tables, to the letter."""
    one, folder = experiment(name), PAPER / name
    finding = one.conclude(folders.read(folder))
    kept = json.loads((folder / folders.RESULTS).read_text(encoding="utf-8"))
    assert json.loads(folders.results_json(one, finding)) == kept
    assert (folder / folders.README).read_text(encoding="utf-8") == folders.readme(one, finding)
    for table in finding.tables:
        assert len({*table.columns}) == len(table.columns), table.title
    for picture in finding.pictures:
        assert (folder / f"{picture}.svg").stat().st_size < 300_000
    if one.scenario:
        assert (folder / "scenario.toml").read_text(encoding="utf-8") == scenario_text(name)
    if one.printed:
        assert folders.rows_from_csv((folder / folders.PRINTED).read_text("utf-8")) == list(
            one.printed
        )


@pytest.mark.parametrize("name", [n for n in names() if n != "search"])
def test_there_is_a_verdict_with_a_figure_on_every_claim(name: str) -> None:
    claims = experiment(name).conclude(folders.read(PAPER / name)).claims
    assert claims
    for claim in claims:
        assert any(sign.isdigit() for sign in claim.effect), claim.text


@pytest.mark.parametrize("name", [n for n in names() if n in TRAINED and n != "search"])
def test_experiments_have_the_rounds_and_seeds_of_the_paper(name: str) -> None:
    rows = folders.read(PAPER / name)
    assert len({row["seed"] for row in rows if "seed" in row}) >= 5
    if experiment(name).scenario:
        assert load_scenario(name).run["rounds"] == 1000


def test_the_index_has_every_claim() -> None:
    page = (PAPER / folders.README).read_text(encoding="utf-8")
    assert page == folders.index(PAPER, names())
    for name in names():
        for claim in experiment(name).conclude(folders.read(PAPER / name)).claims:
            assert claim.text in page


@pytest.mark.parametrize("name", CELLS)
def test_settings_are_those_that_the_rule_chooses(name: str) -> None:
    best = chosen(folders.read(PAPER / "search"), name)
    scenario = load_scenario(name)
    for key, value in changes(name, best["mcu"]).items():
        table, *path = key.split(".")
        found = scenario.tables[table]
        for step in path:
            found = found.get(step, {} if step != "steps" else 1)
        assert found == value, key
    if "agu" in best:  # the one scheme with a rate of its own
        assert (best["agu"]["rate"], best["agu"]["decay"]) == (table_agu.AGU_RATE, 0)


# ---------------------------------------------------------------- what can be run


@pytest.mark.parametrize("name", names())
def test_everything_runs(name: str, tmp_path: Path) -> None:
    if name in TRAINED and not MNIST.is_dir():
        pytest.skip("MNIST is not in CAFE_DATA")
    (finding,) = reproduce([name], tmp_path, quick=True).values()
    folder = tmp_path / name
    assert {path.name for path in folder.iterdir()} >= {folders.RUNS, folders.README}
    assert len([*folder.glob("*.svg")]) == len(finding.pictures)
    assert (tmp_path / folders.README).is_file()


@needs_mnist
def test_a_trial_is_its_scenario_played_by_anybody() -> None:
    """A trial's run is what ``cafe.simulate`` gives for the varied scenario, on any threads."""
    trial = Trial("table-agu", {}, 3, "agu", {"policies.agu.quorum": 25}, rounds=12)
    scenario = load_scenario("table-agu").with_values(trial.changes).with_run(rounds=12)
    again = cafe.simulate(
        scenario.federation, scenario.policy("agu"), scenario.task(3, 1), seed=3, **scenario.run
    )
    played = play(trial)
    assert played.model is not None
    assert again.model is not None
    assert played.model.tobytes() == again.model.tobytes()
    assert played.updates == again.updates > 0


def test_the_command(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "fig-iid-rate", "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "holds" in done.output
    assert (tmp_path / "fig-iid-rate" / folders.README).is_file()
    listed = CliRunner().invoke(app, ["reproduce", "--list"])
    assert all(name in listed.output for name in names())


def test_an_unknown_name_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"table-awx.*table-awu"):
        reproduce(["fig-iid-rate", "table-awx"], tmp_path)
    assert not [*tmp_path.iterdir()]


# ---------------------------------------------------------------- parts


def test_rows_survive_their_file() -> None:
    rows: list[Row] = [
        {"policy": "mcu", "share": 0.05, "seed": 0, "accuracy": 1 / 3},
        {"policy": "awu", "share": 0.3, "seed": 1},
    ]
    again = folders.rows_from_csv(folders.rows_to_csv(rows))
    assert again == [rows[0] | {"accuracy": 0.3333333}, rows[1]]
    assert folders.rows_from_csv(folders.rows_to_csv(again)) == again


def test_columns_come_in_the_order_of_seeds() -> None:
    rows = [{"m": m, "seed": s, "a": 10 * m + s} for s in (2, 0, 1) for m in (1, 2)]
    assert [*column(rows, "a", m=2)] == [20, 21, 22]
    assert points(a=(1, 2), b="xy") == [
        {"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("leads", "verdict"),
    [
        ([(0.1, 0.01), (0.2, 0.01)], ClaimVerdict.HOLDS),
        ([(0.1, 0.01), (0.2, 0.01), (0.01, 0.1)], ClaimVerdict.HOLDS),
        ([(0.1, 0.01), (-0.01, 0.1)], ClaimVerdict.IN_PART),
        ([(0.1, 0.01), (0.01, 0.1)], ClaimVerdict.IN_PART),
        ([(0.01, 0.1), (0.01, 0.1)], ClaimVerdict.FAILS),
        ([(-0.1, 0.01)], ClaimVerdict.FAILS),
    ],
)
def test_leads_are_judged(leads: list[tuple[float, float]], verdict: ClaimVerdict) -> None:
    assert judge_differences([Estimate(mean, error, 5) for mean, error in leads]) is verdict


def test_a_folder_says_what_was_found(tmp_path: Path) -> None:
    claim = Claim("Two is more than one", ClaimVerdict.IN_PART, "By 1.000 ± 0.100.")
    one = Experiment(
        "some", "Fig. 0", "a test", lambda *_: [], lambda rows: Finding([claim]), scenario=False
    )
    folders.write(one, [{"seed": 0, "a": 1.0}], tmp_path / "some")
    page = (tmp_path / "some" / folders.README).read_text(encoding="utf-8")
    assert "| Two is more than one | **holds in part** | By 1.000 ± 0.100. |" in page
    assert folders.read(tmp_path / "some") == [{"seed": 0, "a": 1}]


def test_a_quick_run_says_so_and_stays_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["reproduce", "fig-iid-rate", "fig-iid-rate", "--quick"])
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.iterdir()] == ["paper-quick"]
    page = (tmp_path / "paper-quick" / "fig-iid-rate" / folders.README).read_text(encoding="utf-8")
    assert folders.QUICK in page


def test_what_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(FileError, match="a file where a folder should be"):
        reproduce(
            ["table-agu"], tmp_path / "file", progress=lambda name: pytest.fail("it was begun")
        )


def test_a_torn_result_is_refused_in_a_sentence(tmp_path: Path) -> None:
    torn = tmp_path / "table-agu" / folders.RESULTS
    torn.parent.mkdir()
    torn.write_text('{"name": "table-a', encoding="utf-8")
    with pytest.raises(FileError, match=r"damaged.*cafe reproduce table-agu"):
        reproduce(["fig-iid-rate"], tmp_path, quick=True)


def test_missing_data_are_missed_before_processes_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str, **more: object) -> None:
        raise InputError(f"There is no {name}.")

    load_scenario.cache_clear()
    monkeypatch.setattr("cafe.data.load", missing)
    monkeypatch.setattr(trials, "run_parallel", lambda *_: pytest.fail("processes were started"))
    with pytest.raises(InputError, match="There is no mnist"):
        reproduce(["table-agu"], tmp_path, quick=True)
    load_scenario.cache_clear()


def test_strays_are_owned_up_to() -> None:
    rows = [{"m": m, "accuracy": 0.95} for m in (1, 2) for _ in range(5)]
    assert outlier_notes(rows, "m") == []
    (note,) = outlier_notes([*rows, {"m": 2, "accuracy": 0.7}], "m")
    assert "Of 11 runs 1 ended" in note
    assert "0.700" in note


def test_scenarios_are_what_the_experiments_play() -> None:
    """Those that an experiment does not vary itself, but sets up anew in Python."""
    from cafe.reproduce.experiments import convergence_bound, corrections_bias, iid_rate, objective

    assert load_scenario("fig-objective").federation.clients == objective.CLIENTS
    assert load_scenario("fig-iid-rate").policy("mcu").parameters["deadline"] == iid_rate.DEADLINE
    unequal = load_scenario("corrections").federation
    theirs = corrections_bias.federation("mcu")
    for t in (0.1, 0.5, 2.0):
        ours = unequal.by_client(unequal.latency.cdf(t))
        assert ours.tolist() == theirs.by_client(theirs.latency.cdf(t)).tolist()
    (row,) = (
        r for r in folders.read(PAPER / "bound") if r.get("part") == "constants" and r["l2"] == 1
    )
    problem = cafe.Problem(**{name: float(row[name]) for name in convergence_bound.PROBLEM})
    federation = load_scenario("bound").federation
    expected = cafe.expect(federation, quorum=1, deadline=0.5).variance
    rate = cafe.theory.learning_rate(problem, expected)
    given = load_scenario("bound").tables["task"]["rate"]
    assert given == {
        "beta": pytest.approx(rate.beta, 1e-4),
        "gamma": pytest.approx(rate.gamma, 1e-4),
    }
