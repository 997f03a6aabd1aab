"""The command line: the contract's names and figures, and one clear sentence for every mistake."""

from __future__ import annotations

import inspect
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cafe
from cafe import cli, console
from cafe.policies import recipes
from cafe.results import find, parquet, parquet_possible

PLAN = "plan --clients 50 --rate 1 --waste-price 20 --broadcast-price 100"


class Run:
    """One call of the command line: what it printed and how it ended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.code, self.out, self.err = 0, "", ""

    def __call__(self, command: str) -> Run:
        self.code = 0
        self._monkeypatch.setattr(sys, "argv", ["cafe", *command.split()])
        try:
            cli.main()
        except SystemExit as stop:
            self.code = int(stop.code or 0)
        captured = self._capsys.readouterr()
        self.out, self.err = captured.out, captured.err
        return self

    def json(self, command: str) -> Any:
        ran = self(command + " --json")
        assert ran.code == 0, ran.err
        return json.loads(ran.out)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(monkeypatch, capsys)


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


def test_tables_for_people(run: Run) -> None:
    out = run(PLAN).out
    for words in ("8.52099", "Compared with usual guesses", "All local optima", "wait for all"):
        assert words in out
    out = run("expect --clients 100 --rate 1 --quorum 33 --deadline 0.5").out
    for words in ("34.24", "1.086", "E[n]", "30.98"):
        assert words in out
    assert "none is better" in run("frontier --clients 20 --rate 1").out


def test_options_reach_the_planner(run: Run) -> None:
    made = run.json(PLAN + " --at-most deadline=2 --at-least success-probability=0.5")
    assert made["deadline"] <= 2
    assert run.json(PLAN + " --quorum 3")["quorum"] == 3
    assert run.json(PLAN + " --close-when-all")["expected"]["round_duration"] < 5
    gap = "plan --clients 50 --rate 1 --goal time --overhead 0.1"
    by_ratio = run.json(f"{gap} --noise-ratio 0.5")
    full = run.json(
        f"{gap} --gap 1e-9 --smoothness 1 --convexity 1 --noise 0.5 --heterogeneity 0.5"
    )
    assert by_ratio["deadline"] == pytest.approx(full["deadline"], rel=1e-3)
    early = run.json("expect --clients 50 --rate 1 --quorum 3 --deadline 9 --target 10")
    assert early["round_duration"] < 1
    assert early["agu_waste"] is None


def test_steps_reach_the_planner(run: Run, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text("[federation]\nclients = 10\nrate = 1\nper_step = 0.1\n")
    expected = run.json(f"expect --federation {fleet} --quorum 1 --deadline 1 --steps 5")
    assert expected["expected_reports"] == pytest.approx(10 * (1 - np.exp(-0.5)), rel=1e-12)
    prices = "--waste-price 1 --broadcast-price 10"
    made = run.json(f"plan --federation {fleet} {prices} --steps 50")
    assert made["deadline"] > 5
    assert all(
        point["deadline"] > 5 for point in run.json(f"frontier --federation {fleet} --steps 50")
    )
    page = tmp_path / "plan.html"
    assert run(f"plan --federation {fleet} {prices} --steps 5 --report {page}").code == 0
    for verb in (f"plan {prices}", "expect --quorum 1 --deadline 1", "frontier"):
        ran = run(f"{verb} --federation {fleet} --steps 0")
        assert ran.code == 2
        assert "steps must be a whole number from 1" in ran.err


@pytest.mark.parametrize("size", ["1e308", "1e-320"])
def test_a_model_beyond_all_sizes_is_refused(run: Run, tmp_path: Path, size: str) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(f'[federation]\npreset = "phones"\nmodel_kbytes = {size}\n')
    ran = run(f"plan --federation {fleet} --waste-price 1 --broadcast-price 10")
    assert ran.code == 2
    assert "model_kbytes must lie between 1e-50 and 1e+50" in ran.err


def test_pictures_and_reports(run: Run, tmp_path: Path) -> None:
    picture, page = tmp_path / "plan.svg", tmp_path / "plan.html"
    ran = run(f"{PLAN} --plot {picture} --report {page}")
    assert ran.code == 0
    assert picture.read_text().startswith("<?xml")
    assert "<svg" in page.read_text()
    assert str(picture) in ran.err
    front = tmp_path / "front.png"
    run(f"frontier --clients 20 --rate 1 --plot {front}")
    assert front.read_bytes().startswith(b"\x89PNG")


def responses(path: Path, clients: int = 12, rounds: int = 30) -> Path:
    rng = np.random.default_rng(0)
    lines = ["client,seconds,deadline"]
    for client in range(clients):
        for t in rng.exponential(1.0 + client / 6, rounds):
            lines.append(f"c{client},{t:.4f},3" if t <= 3 else f"c{client},,3")
    path.write_text("\n".join(lines) + "\n")
    return path


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
    "no prices": ("plan --clients 5 --rate 1", "needs a waste price"),
    "negative price": (f"{PLAN} --waste-price -1", "waste price must be a finite number"),
    "unknown limit": (f"{PLAN} --at-most wast=3", "Did you mean 'waste'"),
    "limit without a number": (f"{PLAN} --at-most waste", "must look like waste=30"),
    "impossible limit": (f"{PLAN} --at-most waste=0.001 --at-most deadline=2", "cannot be kept"),
    "unknown goal": ("plan --clients 5 --rate 1 --goal tim --noise-ratio 1", "Did you mean 'time'"),
    "goal without constants": ("plan --clients 5 --rate 1 --goal time", "--noise-ratio"),
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
    "picture nowhere": (f"{PLAN} --plot no/such/folder/plan.svg", "cannot be written"),
}  # fmt: skip


@pytest.mark.parametrize(("command", "words"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes(
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
    "not a number": ("fit", "r.csv", "client,seconds,deadline\na,1,3\na,nan,3\n", "line 3"),
    "past its deadline": ("fit", "r.csv", "client,seconds,deadline\na,1,3\na,4,3\n", "line 3"),
    "empty federation": ("plan", "f.csv", "", "f.csv"),
    "misspelt key": ("plan", "f.toml", "[federation]\nclents = 3\nrate = 1.0\n", "Did you mean"),
    "zero rate in a row": ("plan", "f.csv", "rate\n1\n0\n", "line 3"),
}


@pytest.mark.parametrize(("verb", "name", "text", "words"), FILES.values(), ids=FILES.keys())
def test_bad_files(run: Run, verb: str, name: str, text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(text)
    federation = f"plan --federation {file} --waste-price 1 --broadcast-price 1"
    ran = run(f"fit {file} --output {tmp_path / 'out.csv'}" if verb == "fit" else federation)
    assert ran.code == 2
    assert words in ran.err
    assert "Traceback" not in ran.err
    assert not (tmp_path / "out.csv").exists(), "nothing is half done"


def test_the_installed_command() -> None:
    command = [sys.executable, "-m", "cafe", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith(
        "cafe "
    )


# ---------------------------------------------------------------- runs

SCENARIO = """
[federation]
clients = 20
rate = 1.0
[policy]
name = "mcu"
quorum = 3
deadline = 0.5
[policies.slow]
name = "mcu"
quorum = 3
deadline = 1.0
[task]
dataset = "digits"
partition = "iid"
[learner]
name = "softmax"
[run]
rounds = 20
seeds = [0, 1]
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario in the present folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path


def test_simulate_is_what_python_simulates(run: Run, scenario: Path) -> None:
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
def test_results_are_kept_unless_told_otherwise(run: Run) -> None:
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
def test_report_is_one_page(run: Run) -> None:
    run("compare small.toml --jobs 1 --rounds 10")
    ran = run("report results results/small-compared --output page.html --title Two")
    assert ran.code == 0, ran.err
    page = Path("page.html").read_text()
    assert "<svg" in page
    assert "Two" in page
    assert "4 runs" in page, "a folder that is named twice counts once"


def test_policies_are_listed_with_all_that_they_take(run: Run) -> None:
    listed = {policy["name"]: policy for policy in run.json("policies")}
    assert listed.keys() == recipes().keys()
    for name, recipe in recipes().items():
        parameters = listed[name]["parameters"]
        assert [p["name"] for p in parameters] == [*inspect.signature(recipe).parameters]
        assert all(p["meaning"] for p in parameters)
    assert listed["agu"]["needs"] == ["local models"]
    assert listed["mcu"]["parameters"][0]["needed"]
    out = run("policies").out
    assert "age-weighted" in out.lower() or "weighed by their client's age" in out


@pytest.mark.usefixtures("scenario")
def test_progress_in_a_pipe_leaves_the_output_alone(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "LINES_APART", 0.0)
    made = run.json("simulate small.toml --seed 0")
    assert made["runs"][0]["rounds"] == 20
    lines = run.err.splitlines()
    assert lines[-1] == "Wrote results/small"
    assert all(line.startswith("mcu-seed-0: ") and "s left" in line for line in lines[:-1])
    assert "accuracy" in lines[-2]


@pytest.mark.usefixtures("scenario")
def test_one_line_says_how_to_get_tables(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "find_spec", lambda _: None)
    assert not parquet_possible()
    ran = run("simulate small.toml --rounds 2")
    assert ran.code == 0
    assert ran.err.count("cafe-fl[parquet]") == 1


@pytest.mark.parametrize("verb", ["simulate", "compare"])
def test_an_interrupt_says_how_to_go_on(scenario: Path, verb: str) -> None:
    scenario.write_text(SCENARIO.partition("[task]")[0] + "[run]\nrounds = 10_000_000\n")
    options = {"simulate": ["--seed", "0"], "compare": ["--jobs", "2"]}[verb]
    code = (
        "from cafe.results import execution; execution.CHECKPOINT_SECONDS = 0.0\n"
        "from cafe.cli import main; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, verb, "small.toml", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        began = time.monotonic()
        while not list(Path("results").rglob("checkpoint.npz")):
            assert time.monotonic() - began < 60
            time.sleep(0.05)
        # A terminal tells every process of the group.
        subprocess.run(["kill", "-INT", "--", f"-{process.pid}"], check=True)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert out == ""
    words = " ".join(options)
    assert err.splitlines()[-1] == f"Stopped. Resume with: cafe {verb} small.toml {words} --resume"
    assert "Traceback" not in err
    assert not find("results")[0].finished


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("options", ["", " --json"])
def test_output_that_cannot_be_written_is_a_sentence(options: str) -> None:
    command = f"{sys.executable} -m cafe policies{options} > /dev/full"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr == "Error: The output: No space left on device.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_nobody_has_to_listen(closed: str) -> None:
    command = f"{sys.executable} -m cafe policies {closed}"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


RUN_MISTAKES = {
    "no such file": ("simulate none.toml", "none.toml: the file cannot be read"),
    "no such policy": ("compare small.toml --policies mcu,awuu", "Did you mean 'awu'"),
    "a policy twice": ("compare small.toml --policies mcu,mcu", "given only once"),
    "no seeds": ("compare small.toml --seeds 0", "--seeds must be at least 1. Got 0"),
    "no jobs": ("compare small.toml --jobs 0", "--jobs must be at least 1"),
    "a bad seed": ("simulate small.toml --seed -1", "A seed must be a whole number from 0 up"),
    "no rounds": ("simulate small.toml --rounds 0", "rounds must be a whole number from 1 up"),
    "a file in the way": ("simulate small.toml --output small.toml/x", "where a folder should be"),
    "a name too long": (f"simulate small.toml --output {'x' * 300}", "File name too long"),
    "no runs": ("report .", "there are no runs in this folder"),
    "no folder for the page": ("report . --output no/page.html", "there is no folder no"),
}


@pytest.mark.usefixtures("scenario")
@pytest.mark.parametrize(("command", "words"), RUN_MISTAKES.values(), ids=RUN_MISTAKES)
def test_mistakes_about_runs(run: Run, command: str, words: str) -> None:
    ran = run(command)
    assert ran.code == 2
    assert words in ran.err
    assert "Traceback" not in ran.err
    assert not Path("results").exists()
