"""cafe plan --policy: what it prints, and mistakes."""

from __future__ import annotations

import pytest

from cafe.cli.policy_planning import read_keep
from cafe.errors import InputError
from cafe.tuning import halving
from tests.support.command_line import PLAN, Run

FLEET = "plan --clients 12 --rate 1"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halving, "CHOICE_SEEDS", (4,))
    monkeypatch.setattr(halving, "REPORT_SEEDS", (4,))
    monkeypatch.setattr(halving, "MORE_SEEDS", 4)
    monkeypatch.setattr(halving, "FACTORS", ())


def test_a_plan_is_printed(run: Run) -> None:
    ran = run(f"{FLEET} --policy salvage --tries 4")
    assert ran.code == 0, ran.err
    for words in (
        "salvage   deadline",
        "90 % interval",
        "[policy]",
        "What was measured",
        "Finalists",
    ):
        assert words in ran.out
    assert ran.err == ""


def test_json_and_kept_numbers(run: Run) -> None:
    made = run.json(f"{FLEET} --policy fedbuff --tries 3 --keep concurrency=6 --waste-price 1")
    assert made["policy"] == "fedbuff"
    assert made["parameters"]["concurrency"] == 6
    assert made["goal"].startswith("J = 1 x waste")
    assert made["interval"][0] < made["cost"] < made["interval"][1]
    kept = run.json(f"{FLEET} --policy mcu --quorum 3 --keep deadline=0.9")
    assert kept["parameters"] == {"quorum": 3, "deadline": 0.9}
    assert kept["tried"] == 1


def test_values_of_kept_numbers() -> None:
    assert read_keep(["a=1", "b-c=0.5", "d=II", "e=true"], None, "7") == {
        "a": 1, "b_c": 0.5, "d": "II", "e": True, "cohort": 7,
    }  # fmt: skip
    for wrong in ("quorum", "=3"):
        with pytest.raises(InputError, match="must look like concurrency=20"):
            read_keep([wrong], None, None)
    with pytest.raises(InputError, match="quorum is given twice"):
        read_keep(["quorum=3"], 4, None)


MISTAKES = {
    "keep without a policy": (f"{PLAN} --keep goal=3", "--keep requires --policy"),
    "tries without a policy": (f"{PLAN} --tries 3", "--tries requires --policy"),
    "target": (f"{FLEET} --policy mcu --target 5", "--target cannot be used with --policy mcu"),
    "picture": (f"{FLEET} --policy mcu --plot a.svg", "--plot cannot be used with --policy"),
    "unknown policy": (f"{FLEET} --policy fedbuf", "Did you mean 'fedbuff'"),
    "unknown number": (f"{FLEET} --policy mcu --keep qorum=1", "Did you mean 'quorum'"),
    "two levels": (f"{FLEET} --policy hierarchical", "has two levels"),
    "quorum above": (f"{FLEET} --policy mcu --quorum 13", "must be at most the number"),
    "a number that the policy does not have": (
        f"{FLEET} --policy fedbuff --cohort 3",
        "has no argument 'cohort'",
    ),
    "limit": (f"{FLEET} --policy mcu --at-most worst_age=1", "no limit on worst_age"),
    "no processes": (f"{FLEET} --policy mcu --jobs 0", "jobs must be a whole number from 1 up"),
    "needed number": (f"{FLEET} --policy flanp", "--keep threshold=VALUE"),
}


@pytest.mark.parametrize(("command", "words"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes(run: Run, command: str, words: str) -> None:
    ran = run(command)
    assert ran.code == 2
    assert words in ran.err
    assert "Traceback" not in ran.err
