"""Wrong calls of public functions: each is answered with a sentence that names the mistake."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.errors import InputError
from tests.support.public_calls.every_call import ENTRIES
from tests.support.wrong_calls import UNKNOWN, VALUES, Entry, find_fault, wrong_calls

# Public names that no user calls, or that are checked where they are used.
NOT_CALLED = {
    "protocols": {
        "Goal", "Latency", "Learner", "Partition", "Presence", "PresenceState", "Wire",
    },
    "types of arrays": {"Rows"},
    "errors": {
        "CafeError", "CheckFailed", "FileError", "InfeasibleError", "InputError", "TooLateError",
    },
    "enumerations": {"Carry", "Fate", "Verdict"},
    "results that CAFe makes": {
        "ClientFits", "CohortTurnout", "Curve", "Dataset", "Duration", "Expectation", "FamilyFit",
        "Fit", "Frontier",
        "History", "Levels", "LocalSteps", "Optimum", "Outcome", "Plan", "PlannedRun", "Registered",
        "ParsedLog", "PolicyChange", "Result", "Rival", "Robustness", "RunProgress", "Scenario",
        "Scheme", "Score",
        "Interval", "TimeOfDay", "TimeTest", "Turnout", "Variance",
    },
    "what decisions see": {"Closed", "Jobs", "Ledger", "Reports", "Waiting"},
    "answers of decisions, which rounds/answer_checks.py checks": {
        "Carried", "Invitation", "Merge", "Wait",
    },
    "messages, which live/validation.py checks": {
        "ClientContext", "Job", "LiveRun", "Order", "Reply", "Report", "Trained", "work",
    },
    "tools of tests": {"VirtualWire", "engine_trainer", "random_step", "split_in_two"},
    "without arguments": {
        "DropAll", "KeepRunning", "Mean", "Median", "Sum", "load_digits", "parquet_possible",
        "recipes", "registered",
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, so that no value names a file that exists."""
    monkeypatch.chdir(tmp_path)


def by_name(entry: Entry) -> str:
    return entry.name


@pytest.mark.parametrize("entry", ENTRIES, ids=by_name)
def test_every_wrong_value_gives_a_sentence(entry: Entry) -> None:
    assert entry.kinds.keys() == entry.parameters()
    faults = [
        f"{parameter}={value}: {fault}"
        for _, parameter, value in wrong_calls([entry])
        if (fault := find_fault(entry, parameter, value))
    ]
    assert not faults, "\n".join([entry.name, *faults])


VALID = [
    pytest.param(e, id=e.name, marks=[pytest.mark.slow] if e.slow else [])
    for e in ENTRIES
    if not e.costly
]


@pytest.mark.parametrize("entry", VALID)
def test_the_valid_call_and_accepted_values(entry: Entry) -> None:
    """Otherwise a call could be refused for another reason than the wrong value."""
    entry.run()
    for parameter, accepted in entry.kinds.items():
        for value in accepted:
            entry.run(**{parameter: VALUES[value]})


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.explains], ids=by_name)
def test_unknown_keywords_are_explained(entry: Entry) -> None:
    with pytest.raises(InputError, match=f"has no argument '{UNKNOWN}'. Known: "):
        entry.run(**{UNKNOWN: 1})
    known = max(entry.kinds, key=len)
    with pytest.raises(InputError, match=f"Did you mean '{known}'"):
        entry.run(**{f"{known}s": 1})
    with pytest.raises(TypeError, match="positional argument"):  # Python's message is clear
        entry.call(*[None] * 30)


def test_there_are_many_wrong_calls() -> None:
    assert sum(1 for _ in wrong_calls(ENTRIES)) > 5000


def public_names() -> Iterator[tuple[str, object]]:
    packages: list[ModuleType] = [cafe, import_module("cafe.live")]
    packages += [v for n in cafe.__all__ if isinstance(v := getattr(cafe, n), ModuleType)]
    for package in packages:
        for name in package.__all__:
            value = getattr(package, name)
            if callable(value) and not inspect.ismodule(value):
                yield name, value


def test_every_public_function_is_called() -> None:
    called = {entry.call for entry in ENTRIES}
    excluded = set().union(*NOT_CALLED.values())
    missing = {name for name, value in public_names() if value not in called} - excluded
    assert not missing
    assert not excluded - {name for name, _ in public_names()} - {"ClientContext"}


def test_mistakes_of_first_use() -> None:
    ill: Any = cafe  # the type checker knows that these calls are wrong
    x, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    data, learner = ill.data.Examples(x, y), ill.testing.check.small_task(2).learner
    shards = ill.data.Shards.of([[0, 1], [2, 3]])
    mistakes: list[tuple[Callable[[], Any], str]] = [
        (lambda: ill.Task(data, shards, learner, lr=0.1), "no argument 'lr'. Did you mean 'rate'"),
        (lambda: ill.Task(data, [[0, 1], [2, 3]], learner), r"Shards.of\(shards\) makes them"),
        (lambda: ill.data.Examples(x, ["a", "b", "a", "b"]), "Number the classes"),
        (lambda: ill.data.IID()(["a", "b"], 2, np.random.default_rng(0)), "Number the classes"),
        (lambda: ill.policies.mcu(quorum=2, timeout=3.0), "Did you mean 'deadline'"),
        (lambda: ill.live.GlobalModel([x, x]), "Give each array a name"),
    ]
    for call, words in mistakes:
        with pytest.raises(InputError, match=words):
            call()
