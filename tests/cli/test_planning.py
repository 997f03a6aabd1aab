"""The verbs of planning: plan, expect, frontier, fit."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cafe.cli.help_pages import EXAMPLES
from tests.cli.conftest import responses
from tests.support.command_line import PLAN, Run


def test_plan_json(run: Run) -> None:
    made = run.json(PLAN)
    assert made["quorum"] == 1
    assert made["deadline"] == pytest.approx(8.5209, rel=1e-4)
    assert made["cost"] == pytest.approx(114.481, rel=1e-5)
    assert [o["quorum"] for o in made["local_optima"]] == [1, 1]
    assert made["local_optima"][1]["deadline"] == pytest.approx(0.0433, rel=1e-3)
    assert any("0.99" in warning for warning in made["warnings"])
    assert made["expected"]["success_probability"] == pytest.approx(1.0)
    assert len(made["sensitivity"]) == 4


def test_expect_json(run: Run) -> None:
    expected = run.json("expect --clients 100 --rate 1 --quorum 33 --deadline 0.5")
    assert expected["waste"] == pytest.approx(34.24267, rel=1e-6)
    assert expected["broadcasts"] == pytest.approx(1.086082, rel=1e-6)
    assert expected["age"] == pytest.approx(1.603447, rel=1e-6)
    assert expected["merit"] == pytest.approx(30.98360, rel=1e-6)
    expected = run.json("expect --clients 10 --rate 1 --quorum 9 --deadline 1")
    assert expected["processing_waste"] == pytest.approx(87.17, abs=0.005)


def test_infinities_are_null_in_json(run: Run) -> None:
    expected = run.json("expect --clients 300 --rate 1 --quorum 300 --deadline 0.001")
    assert expected["success_probability"] == 0
    assert expected["waste"] is None


def test_readable_tables(run: Run) -> None:
    out = run(PLAN).out
    for words in ("8.52099", "Compared with usual guesses", "All local optima", "wait for all"):
        assert words in out
    out = run("expect --clients 100 --rate 1 --quorum 33 --deadline 0.5").out
    for words in ("34.24", "1.086", "E[n]", "30.98"):
        assert words in out
    assert "none is better" in run("frontier --clients 20 --rate 1").out
    assert (
        run("expect --clients 20 --mean 2 --quorum 5 --deadline 1").out
        == run("expect --clients 20 --rate 0.5 --quorum 5 --deadline 1").out
    )


def test_plan_needs_only_a_federation(run: Run, tmp_path: Path) -> None:
    clients = tmp_path / "clients.csv"
    clients.write_text("rate\n" + "1\n0.5\n" * 20)
    made = run.json(f"plan --federation {clients}")
    assert made["goal"] == "time per full update"
    assert "No goal is given" in made["goal_notes"][0]
    low, high = made["good_deadlines"]
    assert low < made["deadline"] < high
    limited = run.json(f"plan --federation {clients} --at-least success_probability=0.95")
    assert limited["deadline"] == pytest.approx(made["deadline"], rel=1e-5)
    longer = run.json("plan --clients 40 --mean 1 --goal client-seconds")
    assert longer["deadline"] > run.json("plan --clients 40 --mean 1")["deadline"]
    one = run("plan --clients 40 --mean 1 --broadcast-price 5")
    assert one.code == 0
    assert "No waste price is given" in one.out


@pytest.mark.parametrize(
    "command",
    [
        "plan --clients 5000 --mean 12345.6789",
        "plan --federation {fleet} --goal client-seconds",
        f"{PLAN} --at-most deadline=1 --at-least reports_per_update=10",
        "plan --clients 50 --mean 1 --waste-price 123.456 --broadcast-price 1e6",
        "expect --clients 100 --rate 1 --quorum 33 --deadline 0.5",
        "expect --federation {fleet} --quorum 20 --deadline 1000000",
        "frontier --clients 50 --mean 1",
        "frontier --federation {fleet}",
        "fit {log} --per-client",
    ],
)
@pytest.mark.slow
def test_output_fits_80_columns(
    run: Run, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    log, fleet = responses(tmp_path / "r.csv"), tmp_path / "f.csv"
    fleet.write_text("rate,availability\n" + "1,0.9\n0.001,0.5\n" * 20)
    monkeypatch.chdir(tmp_path)
    ran = run(command.format(log="r.csv", fleet="f.csv"))
    assert ran.code == 0, ran.err
    assert log.exists()
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "\u2026" not in ran.out, "nothing is cut"
    table = [line.split() for line in ran.out.splitlines()]
    assert ["broadcasts"] not in table, "no heading is folded"


@pytest.mark.parametrize("verb", ["plan", "expect", "frontier", "fit", "simulate", "federate up"])
def test_help_is_plain_text(run: Run, verb: str) -> None:
    ran = run(f"{verb} --help")
    assert ran.code == 0
    assert "\\" not in ran.out
    assert ("Examples:" in ran.out) == (verb in EXAMPLES)


@pytest.mark.parametrize("verb", ["plan", "expect", "frontier", "fit", "policies"])
def test_examples_of_the_help_run(
    run: Run, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    responses(tmp_path / "responses.csv")
    (tmp_path / "log.csv").write_text("who,took\n" + "a,900\nb,1200\na,700\nb,1100\n" * 5)
    (tmp_path / "federation.csv").write_text("rate\n" + "1\n" * 12)
    for _, options in EXAMPLES[verb]:
        assert run(f"{verb} {options}").code == 0, run.err


def test_completion(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_CAFE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "cafe pl")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run("").out.split() == ["plan"]


@pytest.mark.slow
def test_options_reach_the_planner(run: Run) -> None:
    made = run.json(PLAN + " --at-most deadline=2 --at-least success-probability=0.5")
    assert made["deadline"] <= 2
    assert run.json(PLAN + " --quorum 3")["quorum"] == 3
    assert run.json(PLAN + " --close-when-all")["expected"]["round_duration"] < 5
    gap = "plan --clients 800 --rate 1 --goal time --overhead 0.1"
    # With many reports per round the two goals agree: 1 / E[n] is close to E[1 / n].
    by_ratio = run.json(f"{gap} --noise-ratio 0.5")
    full = run.json(
        f"{gap} --gap 1e-9 --smoothness 1 --convexity 1 --noise 0.5 --heterogeneity 0.5"
    )
    assert by_ratio["deadline"] == pytest.approx(full["deadline"], rel=0.02)
    assert run.json(f"{gap} --noise-ratio 5")["deadline"] < by_ratio["deadline"]
    early = run.json("expect --clients 50 --rate 1 --quorum 3 --deadline 9 --target 10")
    assert early["round_duration"] < 1
    assert early["agu_waste"] is None


@pytest.mark.slow
def test_steps_reach_the_planner(run: Run, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text("[federation]\nclients = 10\nrate = 1\nper_step = 0.1\n")
    expected = run.json(f"expect --federation {fleet} --quorum 1 --deadline 1 --steps 5")
    assert expected["expected_reports"] == pytest.approx(10 * (1 - np.exp(-0.5)), rel=1e-12)
    prices = "--waste-price 1 --broadcast-price 10"
    made = run.json(f"plan --federation {fleet} {prices} --steps 50")
    assert made["deadline"] > 5
    front = run.json(f"frontier --federation {fleet} --steps 50")
    assert all(e["deadline"] > 5 for e in [*front["choices"], *front["points"], front["knee"]])
    page = tmp_path / "plan.html"
    assert run(f"plan --federation {fleet} {prices} --steps 5 --report {page}").code == 0
    for verb in (f"plan {prices}", "expect --quorum 1 --deadline 1", "frontier"):
        ran = run(f"{verb} --federation {fleet} --steps 0")
        assert ran.code == 2
        assert "steps must be a whole number from 1" in ran.err


@pytest.mark.parametrize("size", ["1e308", "1e-320"])
def test_extreme_model_size_is_refused(run: Run, tmp_path: Path, size: str) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(f'[federation]\npreset = "phones"\nmodel_kbytes = {size}\n')
    ran = run(f"plan --federation {fleet} --waste-price 1 --broadcast-price 10")
    assert ran.code == 2
    assert "model_kbytes must lie between 1e-50 and 1e+50" in ran.err


@pytest.mark.slow
def test_plots_and_pages_are_written(run: Run, tmp_path: Path) -> None:
    picture, page = tmp_path / "plan.svg", tmp_path / "plan.html"
    ran = run(f"{PLAN} --plot {picture} --report {page}")
    assert ran.code == 0
    assert picture.read_text().startswith("<?xml")
    assert "<svg" in page.read_text()
    assert str(picture) in ran.err
    front = tmp_path / "front.png"
    run(f"frontier --clients 20 --rate 1 --plot {front}")
    assert front.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_fit_then_plan(run: Run, tmp_path: Path) -> None:
    log, clients = responses(tmp_path / "responses.csv"), tmp_path / "federation.csv"
    ran = run(f"fit {log} --output {clients} --plot {tmp_path / 'fit.svg'} --per-client")
    assert ran.code == 0, ran.err
    assert "exponential" in ran.out
    assert (tmp_path / "fit.svg").exists()
    found = run.json(f"fit {log} --per-client")
    assert found["best"]["family"] == found["candidates"][0]["family"]
    assert len(found["by_client"]["clients"]) == 12
    made = run.json(f"plan --federation {clients} --waste-price 1 --broadcast-price 5")
    assert 0 < made["expected"]["expected_reports"] <= 12
    assert set(made["intervals"]) >= {"cost", "waste", "age", "worst_age", "success_probability"}
    low, high = made["intervals"]["waste"]
    assert low <= made["expected"]["waste"] <= high
    shown = run(f"plan --federation {clients} --waste-price 1 --broadcast-price 5").out
    assert "90 % interval" in shown


def test_plan_stays_within_the_observations_if_asked(run: Run, tmp_path: Path) -> None:
    log, clients = responses(tmp_path / "responses.csv"), tmp_path / "federation.csv"
    assert run(f"fit {log} --output {clients}").code == 0
    longest = run.json(f"fit {log} --per-client")["by_client"]["longest"]
    command = f"plan --federation {clients} --waste-price 50 --broadcast-price 5"
    free, kept = run.json(command), run.json(f"{command} --trust observed")
    assert free["extrapolates"]
    assert "The plan goes beyond the observations" in " ".join(free["warnings"])
    assert kept["deadline"] <= longest * (1 + 1e-9) < free["deadline"]
    assert not kept["extrapolates"]
    assert run("plan --clients 5 --rate 1 --trust observed").code == 2


def test_fit_says_what_it_read(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        "".join(f'{{"node": {i % 3}, "t": {100 + i}, "limit": 500}}\n' for i in range(9))
    )
    ran = run(f"fit {log} --seconds t --unit ms --deadline limit")
    assert ran.code == 0, ran.err
    assert "client from 'node', response times from 't' (milliseconds, --unit), " in ran.out
    assert "! No row is a missed deadline. Does the log leave them out?" in ran.out
    found = run.json(f"fit {log} --seconds t --unit ms --deadline 0.5s")
    assert found["reading"].endswith("the deadline 0.5 s for all rows.")
    assert found["warnings"][0].startswith("No row is a missed deadline.")
    assert found["time_of_day"] is None
    assert run(f"fit {log} --seconds t --unit ms --hour 3").code == 2
    ran = run(f"fit {log} --seconds t --unit ms --output {tmp_path / 'x.csv'} --hour 3")
    assert ran.code == 2
    assert "--sent" in ran.err


@pytest.mark.slow
def test_fit_for_an_hour_of_the_day(run: Run, tmp_path: Path) -> None:
    log = Path(__file__).parents[2] / "docs" / "examples" / "device-log.csv"
    clients, picture = tmp_path / "clients.csv", tmp_path / "hours.svg"
    fits, means = {}, {}
    for hour in (2, 14):
        fits[hour] = run.json(f"fit {log} --output {clients} --hour {hour}")
        expected = run.json(f"expect --federation {clients} --quorum 1 --deadline 10")
        means[hour] = expected["expected_reports"]
    assert means[2] > 1.3 * means[14], "at night clients are faster and more of them are there"
    hours = tmp_path / "hours.toml"
    ran = run(f"fit {log} --output {clients} --presence {hours} --plot-hours {picture}")
    assert ran.code == 0, ran.err
    assert "hour of the day" in ran.out
    assert picture.read_text().startswith("<?xml")
    assert "by-hour" in hours.read_text()
    by_day = run.json(f"expect --federation {hours} --quorum 1 --deadline 10")
    assert means[14] < by_day["expected_reports"] < means[2]
    assert fits[2]["time_of_day"] == fits[14]["time_of_day"]
    times = fits[2]["time_of_day"]
    assert times["hours"]["slower"][3] is None, "the log has no odd hours"
    assert run(f"fit {log} --output {clients} --hour 3").code == 2
    assert run(f"fit {log} --output {clients} --hour 2 --presence {hours}").code == 2


MISTAKES = {
    "quorum above the clients": (
        "expect --clients 10 --rate 1 --quorum 12 --deadline 1",
        "at most the number of clients (10). Got 12",
    ),
    "quorum above, planning": (f"{PLAN} --quorum 51", "at most the number of clients (50). Got 51"),
    "quorum of nothing": ("expect --clients 10 --rate 1 --quorum 0 --deadline 1", "at least 1"),
    "zero rate": ("expect --clients 10 --rate 0 --quorum 1 --deadline 1", "rate must be positive"),
    "infinite rate": ("expect --clients 10 --rate inf --quorum 1 --deadline 1", "Got inf"),
    "rate that is no number": ("expect --clients 10 --rate nan --quorum 1 --deadline 1", "Got nan"),
    "no deadline": ("expect --clients 10 --rate 1 --quorum 1 --deadline 0", "Got 0"),
    "endless deadline": ("expect --clients 10 --rate 1 --quorum 1 --deadline inf", "Got inf"),
    "no clients": ("expect --clients 0 --rate 1 --quorum 1 --deadline 1", "at least 1 client"),
    "nobody": ("expect --quorum 1 --deadline 1", "A federation is required"),
    "both": (f"{PLAN} --federation x.toml", "not both"),
    "goal j without prices": ("plan --clients 5 --rate 1 --goal j", "needs a waste price"),
    "goal and prices": (f"{PLAN} --goal time", "belong to --goal j"),
    "mean and rate": ("plan --clients 5 --rate 1 --mean 1", "not both: the rate is 1 / mean"),
    "negative mean": ("plan --clients 5 --mean -1", "mean must be positive"),
    "noise ratio of 0": ("plan --clients 5 --mean 1 --noise-ratio 0", "must be a positive number"),
    "constants without a gap": ("plan --clients 5 --mean 1 --smoothness 1", "require --gap"),
    "negative price": (f"{PLAN} --waste-price -1", "waste price must be a number, 0 or more"),
    "unknown limit": (f"{PLAN} --at-most wast=3", "Did you mean 'waste'"),
    "limit without a number": (f"{PLAN} --at-most waste", "must look like waste=30"),
    "impossible limit": (f"{PLAN} --at-most waste=0.001 --at-most deadline=2", "cannot be kept"),
    "unknown goal": ("plan --clients 5 --rate 1 --goal tim --noise-ratio 1", "Did you mean 'time'"),
    "old name of the goal": ("plan --clients 5 --rate 1 --goal cost", "time, client-seconds or j"),
    "limit twice": (f"{PLAN} --at-most waste=1 --at-most waste=2", "twice for waste"),
    "constants without goal": (f"{PLAN} --gap 0.1", "--goal time"),
    "missing file": (
        "plan --federation none.toml --waste-price 1 --broadcast-price 1", "none.toml",
    ),
    "odd target": (
        "expect --clients 9 --rate 1 --quorum 5 --deadline 1 --target 3", "from the quorum (5)",
    ),
    "unknown option": ("plan --clents 5", "No such option"),
    "unknown verb": ("plann", "No such command"),
    "picture of no kind": (f"{PLAN} --plot plan.doc", "must end in one of"),
    "picture in a format that cannot be written": (f"{PLAN} --plot plan.webp", "Got 'plan.webp'"),
    "picture nowhere": (f"{PLAN} --plot no/such/folder/plan.svg", "cannot be written"),
}  # fmt: skip


@pytest.mark.parametrize(("command", "words"), MISTAKES.values(), ids=MISTAKES.keys())
def test_wrong_commands_are_refused(
    run: Run, command: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(command)
    assert ran.code == 2
    assert words in ran.err
    assert "Traceback" not in ran.err


FILES = {
    "empty log": ("fit", "r.csv", "", "empty"),
    "log without rows": ("fit", "r.csv", "client,seconds,deadline\n", "r.csv"),
    "unreadable seconds": ("fit", "r.csv", "client,seconds,deadline\na,1,3\nb,x,3\n", "line 3"),
    "negative seconds": ("fit", "r.csv", "client,seconds,deadline\na,-1,3\n", "line 2"),
    "unclear column": ("fit", "r.csv", "client,time\na,1\n", "--seconds time"),
    "miss without a deadline": ("fit", "r.csv", "cid,took\na,1\nb,\n", "line 3"),
    "past its deadline": ("fit", "r.csv", "client,seconds,deadline\na,1,3\na,4,3\n", "line 3"),
    "empty federation": ("plan", "f.csv", "", "f.csv"),
    "misspelt key": ("plan", "f.toml", "[federation]\nclents = 3\nrate = 1.0\n", "Did you mean"),
    "zero rate in a row": ("plan", "f.csv", "rate\n1\n0\n", "line 3"),
}


@pytest.mark.parametrize(("verb", "name", "text", "words"), FILES.values(), ids=FILES.keys())
def test_bad_files_are_refused(
    run: Run, verb: str, name: str, text: str, words: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text(text)
    federation = f"plan --federation {file} --waste-price 1 --broadcast-price 1"
    ran = run(f"fit {file} --output {tmp_path / 'out.csv'}" if verb == "fit" else federation)
    assert ran.code == 2
    assert words in ran.err
    assert "Traceback" not in ran.err
    assert not (tmp_path / "out.csv").exists(), "nothing is half done"


def test_expect_with_a_cohort(run: Run) -> None:
    """Equal clients: a cohort of 20 is a federation of 20, but a client is invited 1 time in 5."""
    given = "--rate 1 --quorum 8 --deadline 0.7"
    found = run.json(f"expect --clients 100 {given} --cohort 20 --target 12")
    alone = run.json(f"expect --clients 20 {given} --target 12")
    assert (found["cohort"], found["target"]) == (20, 12)
    for name in ("success_probability", "waste", "processing_waste", "round_duration", "messages"):
        assert found[name] == pytest.approx(alone[name], rel=1e-7), name
    assert found["age"] > 4 * alone["age"]
    closing = run.json(f"expect --clients 100 {given} --cohort 20 --close-when-all")
    assert closing["target"] == 20
    out = run(f"expect --clients 100 {given} --cohort 20 --target 12").out
    assert "quorum 8, deadline 0.7, cohort 20, target 12 for 100 clients" in out


@pytest.mark.slow
def test_plan_with_a_target_invites_spare_clients(run: Run) -> None:
    priced = "plan --clients 60 --rate 1 --waste-price 1.5 --broadcast-price 5"
    out = " ".join(run(f"{priced} --target 10").out.split())
    invited = re.search(r"Invite (\d+) of 60 clients, close at 10 reports", out)
    assert invited is not None, out
    assert 10 < int(invited[1]) < 60
    assert f"cohort={invited[1]}, target=10)" in out
    made = run.json(f"{priced} --cohort 15 --target all")
    assert (made["cohort"], made["target"]) == (15, 15)
    assert run.json(f"{priced} --cohort auto --at-most cohort=20")["cohort"] <= 20
    points = run.json("frontier --clients 60 --rate 1 --cohort 12 --target 8")["choices"]
    assert all(point["age"] > 0 for point in points)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (PLAN + " --cohort some", "--cohort must be a whole number, auto or all. Got 'some'"),
        (PLAN + " --cohort 90", "from 1 to the number of clients (50)"),
        (
            "expect --clients 9 --rate 1 --quorum 3 --deadline 1 --cohort 2",
            "The cohort must be a whole number from the quorum (3)",
        ),
    ],
)
def test_wrong_cohorts_are_explained(run: Run, command: str, message: str) -> None:
    refused = run(command)
    assert refused.code == 2
    assert message in " ".join(refused.err.split())
