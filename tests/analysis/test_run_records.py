"""Which runs are the same, their order, and the federation of a run."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cafe.analysis.run_groups import group_runs
from cafe.analysis.run_records import federation_of, sort_runs
from cafe.policies import mcu
from cafe.report import (
    run_page,
)
from tests.support.runs import (
    AWU,
    MCU,
    Kept,
    Run,
    kept,
    made_up,
    played,
)


def test_runs_of_real_clients_are_duplicates_only_with_the_same_start() -> None:
    def real(started: str) -> Run:
        settings = {"files": {}, "seed": 0, "policy": MCU}
        return Run(made_up(MCU, 0, 9, 4), {"settings": settings, "started": started})

    (group,) = group_runs([real("monday"), real("tuesday"), real("monday")])
    assert len(group.runs) == 2


def test_runs_without_provenance_are_all_kept() -> None:
    (group,) = group_runs([Run(made_up(MCU, 0, 9, 4)), Run(made_up(MCU, 0, 9, 4))])
    assert len(group.runs) == 2


def test_policies_are_in_the_order_of_their_scenario() -> None:
    agu, other = "agu(quorum=1, deadline=2)", "fedavg(deadline=2)"
    found = [kept(policy=policy) for policy in (agu, AWU, other, MCU)]
    found += [kept("b", policy, task={}) for policy in (AWU, MCU)]
    policies = [run.history.policy for run in sort_runs(found)]
    assert policies == [MCU, AWU, agu, other, MCU, AWU]
    blank = [Run(made_up(policy, 0, 9, 4), {"text": "= no scenario"}) for policy in (agu, AWU, MCU)]
    assert sort_runs(blank) == blank


@pytest.mark.slow
def test_clients_file_is_used_while_its_checksum_matches(
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
        (group,) = group_runs([run])
        run_page.write("page.html", [run])
        page = Path("page.html").read_text()
        assert ("no theory. clients.csv" in page) is bool(group.why_not_expected)
        assert bool(group.expected) is not bool(group.why_not_expected)
        return bool(group.why_not_expected)

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
