"""What a merge keeps on the server, adds to the model, and sees of models; by hand.

Client k of ``points(...)`` holds one point, and one step of rate 1 moves the model to that point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.engine.snapshot import restore, save
from cafe.errors import InputError
from cafe.learn.server_optimisers import Adam, Momentum
from cafe.policies import mcu
from cafe.presence import Trace
from cafe.reference import Reference
from cafe.rounds import FAIL, Ledger, Merge, Policy, Reports
from tests.support.vectors import points, steady

UPDATES, MODELS = frozenset({"updates"}), frozenset({"models"})


def merging(merge: Callable[[Ledger, Reports], Merge], needs: frozenset[str] = UPDATES) -> Policy:
    base = mcu(quorum=1, deadline=1.5)
    return replace(base, name="merging", merge=merge, needs=needs, parameters={})


def both(policy: Policy, *held: float, rounds: int, **task: Any) -> list[float]:
    """The model after some rounds, which must be the same in the engine and in the reference."""
    what = replace(points(*held), rate=1.0, **task)
    found = []
    for kind in (Run, Reference):
        run: Any = kind(steady(len(held)), policy, what)
        for _ in range(rounds):
            run.step()
        found.append(run.history().model.tolist())
    assert found[0] == pytest.approx(found[1], abs=1e-6)
    return list(found[0])


def test_memory_is_seen_by_the_next_merge() -> None:
    seen: list[Any] = []

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        seen.append(None if ledger.memory is None else ledger.memory.tolist())
        return Merge(np.zeros(len(reports)), memory=np.array([float(ledger.round)]))

    for kind in (Run, Reference):
        seen.clear()
        run = kind(steady(2), merging(merge), points(0.0, 4.0))
        for _ in range(3):
            run.step()
        assert seen == [None, [0.0], [1.0]]


def rows_of(ledger: Ledger) -> Any:
    return None if ledger.memory is None else ledger.memory.tolist()


def growing(
    rows: Any = (2, 0), values: Any = ((7.0, 8.0), (1.0, 2.0)), first: Any = None
) -> Policy:
    """Returns a whole memory of zeros first, and then some of its rows."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        none = np.zeros(len(reports))
        if ledger.memory is None and first is None:
            return Merge(none, memory=np.zeros((3, 2)))
        chosen = None if rows is None else np.array(rows)
        return Merge(none, memory=np.array(values), memory_rows=chosen)

    return merging(merge)


def test_rows_of_the_memory_replace_the_old_ones_and_others_stay() -> None:
    seen = []
    for kind in (Run, Reference):
        run: Any = kind(steady(2), growing(), points(0.0, 4.0))
        run.step()
        before = run.memory if kind is Reference else run.ledger.memory
        run.step()
        after = run.memory if kind is Reference else run.ledger.memory
        seen.append(after.tolist())
        assert before is not after or kind is Run  # the engine changes its array in place
    assert seen == [[[1.0, 2.0], [0.0, 0.0], [7.0, 8.0]]] * 2


def test_rows_of_the_memory_are_read_only_and_saved_with_the_run() -> None:
    run, again = (Run(steady(2), growing(), points(0.0, 4.0)) for _ in range(2))
    run.step()
    restore(again, save(run))
    for each in (run, again):
        each.step()
        assert rows_of(each.ledger) == [[1.0, 2.0], [0.0, 0.0], [7.0, 8.0]]
        assert each.ledger.memory is not None
        with pytest.raises(ValueError, match="read-only"):
            each.ledger.memory[0] = 7.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": (0, 3)}, r"memory_rows are whole numbers from 0 to 2, each once"),
        ({"rows": (-1, 0)}, r"memory_rows are whole numbers from 0 to 2, each once"),
        ({"rows": (1, 1)}, r"memory_rows are whole numbers from 0 to 2, each once"),
        ({"rows": (0.0, 1.0)}, r"memory_rows are whole numbers from 0 to 2, each once"),
        ({"rows": ((0, 1),)}, r"memory_rows are whole numbers from 0 to 2, each once"),
        ({"rows": (0,)}, r"has the shape \(1, 2\).* Got \(2, 2\)"),
        ({"values": "x"}, r"memory is an array of floats, a row for each of"),
        ({"first": "rows"}, r"without memory_rows in merge.*return the whole memory first"),
    ],
)
def test_rows_of_the_memory_must_fit_it(change: dict[str, Any], message: str) -> None:
    for kind in (Run, Reference):
        run: Any = kind(steady(2), growing(**change), points(0.0, 4.0))
        with pytest.raises(InputError, match=message):
            run.step(), run.step()


def test_memory_stays_if_a_merge_returns_none() -> None:
    seen: list[Any] = []

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        seen.append(ledger.memory is not None)
        return Merge(np.zeros(len(reports)), memory=None if seen[-1] else np.ones(3))

    run = Run(steady(2), merging(merge, frozenset()), None)
    for _ in range(3):
        run.step()
    assert seen == [False, True, True]
    assert run.ledger.memory is not None


def test_memory_is_read_only_and_saved_with_the_run() -> None:
    def merge(ledger: Ledger, reports: Reports) -> Merge:
        before = np.zeros(1) if ledger.memory is None else ledger.memory
        return Merge(np.zeros(len(reports)), memory=before + 1.5)

    policy = merging(merge)
    run = Run(steady(2), policy, points(0.0, 4.0))
    run.step()
    memory = run.ledger.memory
    assert memory is not None
    with pytest.raises(ValueError, match="read-only"):
        memory[0] = 7.0
    resumed = Run(steady(2), policy, points(0.0, 4.0))
    restore(resumed, save(run))
    resumed.step()
    assert resumed.ledger.memory is not None
    assert resumed.ledger.memory.tolist() == [3.0]


def test_added_vector_is_part_of_the_next_model() -> None:
    """The mean update of points 0 and 4 from 0 is 2; then 10 is added: 12. Next: 2 - 12 + 10."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.full(2, 0.5), add=np.array([10.0]))

    assert both(merging(merge), 0.0, 4.0, rounds=1) == [12.0]
    assert both(merging(merge), 0.0, 4.0, rounds=2) == [12.0]


def test_server_optimiser_is_given_the_added_vector_too() -> None:
    """Momentum with a rate of 0.5 halves the step of 12."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.full(2, 0.5), add=np.array([10.0]))

    slower = replace(merging(merge), server=Momentum(rate=0.5, momentum=0.0))
    assert both(slower, 0.0, 4.0, rounds=1) == [6.0]


def test_models_of_clients_and_the_global_model_are_seen() -> None:
    """The clients' models are their points; in the second round the global model is 8."""
    seen: list[Any] = []

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.models is not None
        assert reports.model is not None
        assert reports.updates is not None
        seen.append([reports.models.ravel().tolist(), reports.model.tolist()])
        seen[-1].append(reports.updates.ravel().tolist())
        return Merge(np.array([2.0, 2.0]))

    assert both(merging(merge, MODELS), 0.0, 4.0, rounds=2) == [-16.0]
    one = [[[0.0, 4.0], [0.0], [0.0, 4.0]], [[0.0, 4.0], [8.0], [-8.0, -4.0]]]
    assert seen == one + one


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("what", ["memory", "add"])
def test_round_fails_if_memory_or_model_would_not_be_finite(what: str, bad: float) -> None:
    def merge(ledger: Ledger, reports: Reports) -> Merge:
        given: dict[str, Any] = {what: np.array([bad])}
        return Merge(np.full(2, 0.5), **given)

    for kind in (Run, Reference):
        run: Any = kind(steady(2), merging(merge), points(0.0, 4.0))
        assert not run.step().succeeded
        assert run.history().model.tolist() == [0.0]
    assert run.memory is None


@pytest.mark.parametrize("memory", [np.array([1, 2]), np.array(["a"]), [[1.0], [2.0, 3.0]], "x"])
def test_memory_must_be_an_array_of_floats(memory: Any) -> None:
    policy = merging(lambda ledger, reports: Merge(np.zeros(len(reports)), memory=memory))
    for kind in (Run, Reference):
        with pytest.raises(InputError, match="a Merge whose memory is an array of floats, or None"):
            kind(steady(2), policy, points(0.0, 4.0)).step()


def test_added_vector_requires_updates_or_models() -> None:
    policy = merging(lambda ledger, reports: Merge(np.zeros(2), add=np.ones(1)), frozenset())
    with pytest.raises(InputError, match=r"add to the model in merge.*declares neither"):
        Run(steady(2), policy, points(0.0, 4.0)).step()


def test_policy_and_task_must_not_both_have_a_server_optimiser() -> None:
    policy = replace(mcu(quorum=1, deadline=2.0), server=Adam())
    with pytest.raises(InputError, match=r"has its own server optimiser, Adam.*Got another one"):
        Run(steady(2), policy, replace(points(0.0, 4.0), server=Momentum()))
    with pytest.raises(InputError, match="must have a server optimiser as server"):
        replace(policy, server=Adam)  # type: ignore[arg-type]


def test_server_optimiser_of_a_policy_is_that_of_a_task() -> None:
    policy = mcu(quorum=1, deadline=1.5)
    mine = both(replace(policy, server=Adam(rate=0.5)), 0.0, 4.0, rounds=5)
    assert mine == both(policy, 0.0, 4.0, rounds=5, server=Adam(rate=0.5))
    assert mine != both(policy, 0.0, 4.0, rounds=5)


def test_controller_cannot_change_the_server_optimiser() -> None:
    first = mcu(quorum=1, deadline=1.5)
    second = replace(first, server=Adam())

    def controller(ledger: Ledger, seen: Any) -> Policy:
        return first if ledger.round == 0 else second

    run = Run(steady(2), controller, points(0.0, 4.0))
    run.step()
    with pytest.raises(InputError, match="A run has one server optimiser"):
        run.step()


def test_round_opens_when_enough_clients_are_present() -> None:
    """Clients come at 1, 2 and 3. One report suffices, but the round opens with two clients."""
    presence = Trace([[0, 1.0, 9.0], [1, 2.0, 9.0], [2, 3.0, 9.0]])
    federation = replace(steady(3), presence=presence)
    policy = mcu(quorum=1, deadline=1.5)
    for kind in (Run, Reference):
        assert kind(federation, policy).step().opened == 1.0
        assert kind(federation, replace(policy, present=2)).step().opened == 2.0
    with pytest.raises(InputError, match=r"opens when 4 clients are present, but.*has 3"):
        Run(federation, replace(policy, present=4))


def test_failed_rounds_keep_the_memory() -> None:
    base = merging(lambda ledger, reports: Merge(np.zeros(2), memory=np.ones(1)), frozenset())

    def close(ledger: Ledger, waiting: Any) -> Any:
        return base.close(ledger, waiting) if ledger.round != 1 else FAIL

    run = Run(cafe.Federation(2, cafe.Constant(1.0)), replace(base, close=close), None)
    assert [run.step().succeeded for _ in range(3)] == [True, False, True]
    assert run.ledger.memory is not None
