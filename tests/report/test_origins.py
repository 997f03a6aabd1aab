"""Which runs belong together: repeats differ in nothing but their seed, and count once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cafe.analysis import repeated_runs
from cafe.analysis.repeated_runs import repeats
from cafe.analysis.run_groups import federation_of, ordered
from cafe.federation import Federation
from cafe.latency import Constant, Exponential
from cafe.policies import mcu
from cafe.report import run_cells, runs
from tests.report.conftest import Run, federation, made_up, played

MCU, AWU = "mcu(quorum=1, deadline=2)", "awu(quorum=1, deadline=2)"


@dataclass(frozen=True, eq=False)
class Kept(Run):
    """A run in a folder."""

    folder: Path = Path()


def kept(
    where: str = "a", policy: str = MCU, seed: int = 0, *, rounds: int = 9, **settings: Any
) -> Kept:
    label = policy[:3]
    told = {"federation": {"clients": 4}, "files": {}, "policy": policy, "run": {}} | settings
    text = '[policy]\nname = "mcu"\n[policies.awu]\n[policies.agu]\n'
    begun = {"label": label, "settings": told, "text": text}
    folder = Path("results") / where / f"{label}-seed-{seed}"
    return Kept(made_up(policy, seed, rounds, 4), begun, federation(4), folder=folder)


def test_the_same_run_counts_once(tmp_path: Path) -> None:
    both = [kept(policy=policy, seed=seed) for policy in (MCU, AWU) for seed in (0, 1)]
    again = [kept("again", seed=1), *both]
    groups = repeats(again)
    assert [group.seeds for group in groups] == [[0, 1], [0, 1]]
    for group, alone in zip(groups, repeats(both), strict=True):
        assert group.label == alone.label
        assert group.estimate("waste") == alone.estimate("waste")
    assert run_cells.differences(groups) is not None
    runs.write(tmp_path / "page.html", again)
    assert "1 run left out: another has the same" in (tmp_path / "page.html").read_text()
    runs.write(tmp_path / "page.html", both)
    assert "left out" not in (tmp_path / "page.html").read_text()


def test_of_the_same_run_the_one_that_came_furthest_counts() -> None:
    for results in ([kept(rounds=3), kept("b", rounds=9)], [kept(rounds=9), kept("b", rounds=3)]):
        (group,) = repeats(results)
        assert [history.rounds for history in group.histories] == [9]


def test_real_clients_do_the_same_never_again() -> None:
    def real(started: str) -> Run:
        settings = {"files": {}, "seed": 0, "policy": MCU}
        return Run(made_up(MCU, 0, 9, 4), {"settings": settings, "started": started})

    (group,) = repeats([real("monday"), real("tuesday"), real("monday")])
    assert len(group.runs) == 2


def test_runs_that_do_not_say_what_they_are_are_all_kept() -> None:
    (group,) = repeats([Run(made_up(MCU, 0, 9, 4)), Run(made_up(MCU, 0, 9, 4))])
    assert len(group.runs) == 2


@pytest.mark.parametrize(
    "other",
    [{"learner": {"name": "mlp"}}, {"run": {"rounds": 3}}, {"files": {"clients.csv": "1"}}],
    ids=str,
)
def test_runs_of_other_scenarios_are_no_repeats(other: Any) -> None:
    results = [kept(), kept("b", seed=1, **other), kept("b", AWU, seed=1, **other)]
    groups = repeats(results)
    assert [group.label for group in groups] == [
        "a: mcu, quorum 1, deadline 2",
        "b: mcu, quorum 1, deadline 2",
        "b: awu, quorum 1, deadline 2",
    ]
    assert [len(each) for each in repeated_runs.by_scenario(groups)] == [1, 2]
    assert repeated_runs.summary(groups).startswith("2 scenarios, up to 2 policies each, 3 runs")
    (same,) = repeats([kept(), kept("b", seed=1)])
    assert same.label == "mcu, quorum 1, deadline 2"


def test_each_scenario_has_its_own_theory() -> None:
    history = played(mcu(quorum=5, deadline=0.7), rounds=20).history
    faster = Federation(20, Exponential(3.0))
    results = [
        Kept(history, made.provenance, who, folder=made.folder)
        for made, who in ((kept("a"), federation()), (kept("b", learner={}), faster))
    ]
    one, other = repeats(results)
    assert one.expected["waste"] != other.expected["waste"]
    assert repeats(results[1:])[0].expected == other.expected


def test_scenarios_are_told_apart_by_their_folders() -> None:
    def called(*results: Kept) -> list[str]:
        return [group.scenario for group in repeats(results)]

    assert called(kept("x/a"), kept("x/b", task={})) == ["a", "b"]
    ways = called(kept("x/a"), kept("y/a", task={}))
    assert ways == ["results/x/a/mcu-seed-0", "results/y/a/mcu-seed-0"]
    assert called(kept("a"), replace(kept("a", task={}), folder=Path("live"))) == ["a", "live"]


def test_policies_are_in_the_order_of_their_scenario() -> None:
    agu, other = "agu(quorum=1, deadline=2)", "fedavg(deadline=2)"
    found = [kept(policy=policy) for policy in (agu, AWU, other, MCU)]
    found += [kept("b", policy, task={}) for policy in (AWU, MCU)]
    policies = [run.history.policy for run in ordered(found)]
    assert policies == [MCU, AWU, agu, other, MCU, AWU]
    blank = [Run(made_up(policy, 0, 9, 4), {"text": "= no scenario"}) for policy in (agu, AWU, MCU)]
    assert ordered(blank) == blank


def test_a_file_that_says_who_takes_part_is_used_as_long_as_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "rate\n" + "1.0\n" * 19 + "4.0\n"
    sums = {"clients.csv": hashlib.sha256(text.encode()).hexdigest()}
    made = kept(federation={"file": "clients.csv"}, files=sums)
    history = played(mcu(quorum=5, deadline=0.7), rounds=20).history
    run = Kept(history, made.provenance, folder=tmp_path / "home" / made.folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    def refused() -> bool:
        (group,) = repeats([run])
        runs.write("page.html", [run])
        page = Path("page.html").read_text()
        assert ("no theory. clients.csv" in page) is bool(group.unexpected)
        assert bool(group.expected) is not bool(group.unexpected)
        return bool(group.unexpected)

    assert refused()
    for folder in (tmp_path / "home", elsewhere):
        folder.mkdir(exist_ok=True)
        file = folder / "clients.csv"
        file.write_text(text)
        who, why = federation_of(run)
        assert who is not None
        assert (who.clients, why) == (20, "")
        assert not refused()
        file.write_text(text.replace("4.0", "5.0"))
        assert refused()


def test_where_theory_cannot_calculate_the_page_says_why(tmp_path: Path) -> None:
    who = Federation.join(Federation(3, Constant(1e-6)), Federation(17, Exponential(1.0)))
    made = played(mcu(quorum=5, deadline=0.7, target=9), rounds=20)
    runs.write(tmp_path / "page.html", [replace(made, federation=who)])
    assert "no theory. A target below" in (tmp_path / "page.html").read_text()
