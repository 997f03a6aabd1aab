from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import (
    Constant,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Mixture,
    Various,
    Weibull,
)
from cafe.presence import Battery, OnOff

MILLION = 1_000_000


def alike() -> Federation:
    return Federation(5, Exponential(0.8), availability=0.7)


def individuals() -> Federation:
    return Federation.exponential([0.2, 1.0, 3.0], availability=[0.5, 0.9, 1.0])


def groups() -> Federation:
    return Federation(
        6,
        Gamma(np.array([1.0, 3.0]), 0.5),
        availability=np.array([0.6, 1.0]),
        kind=np.array([1, 0, 1, 1, 0, 1]),
    )


def shared_latency() -> Federation:
    return Federation(3, Weibull(0.7, 1.0), availability=np.array([0.3, 0.6, 0.9]))


def joined() -> Federation:
    mixed = Mixture([Exponential(1.0), Constant(2.0)], [0.5, 0.5])
    observed = Federation(2, Empirical([0.5, 1.5]), availability=np.array([0.4, 0.8]))
    return Federation.join(groups(), observed, Federation(2, mixed), individuals())


def computing() -> Federation:
    """Steps that take time: as one number, one per kind and one per client."""
    latency = Weibull(0.7, 1.0)
    return Federation.join(
        Federation(
            3, Exponential(np.array([0.5, 2.0])), 0.8, kind=np.array([1, 0, 0]), per_step=0.1
        ),
        Federation(4, Gamma(2.0, 0.5), kind=np.array([0, 1, 1, 0]), per_step=np.array([0.3, 0.0])),
        Federation(2, latency, np.array([0.5, 1.0]), per_step=np.array([0.2, 0.4])),
        Federation(2, Empirical([0.5, 1.5]), per_step=np.array([0.05, 0.25])),
        alike(),
    )


FEDERATIONS = [alike, individuals, groups, shared_latency, joined, computing]
STEP_TIMES = [0.1] * 3 + [0.3, 0.0, 0.0, 0.3] + [0.2, 0.4] + [0.05, 0.25] + [0.0] * 5
every_federation = pytest.mark.parametrize("make", FEDERATIONS)


def array_bytes(federation: Federation) -> int:
    """The memory of all arrays that a federation holds."""
    held = [federation.availability, federation.examples, federation.kind]
    parts = getattr(federation.latency, "parts", [federation.latency])
    held += [value for part in parts for value in vars(part).values()]
    return sum(value.nbytes for value in held if isinstance(value, np.ndarray))


@every_federation
@pytest.mark.parametrize("t", [0.4, 1.2, 3.0])
def test_report_and_miss_agree_with_samples(make: Callable[[], Federation], t: float) -> None:
    federation, rounds = make(), 20_000
    times = federation.sample(np.random.default_rng(3), rounds)
    assert times.shape == (rounds, federation.clients)
    expected = federation.by_client(federation.report(t))
    error = np.sqrt(expected * (1 - expected) / rounds)
    assert np.all(np.abs((times <= t).mean(axis=0) - expected) < 4.5 * error + 1e-12)
    np.testing.assert_allclose(federation.report(t) + federation.miss(t), 1.0, atol=1e-15)


@every_federation
def test_absent_clients_never_report(make: Callable[[], Federation]) -> None:
    federation, rounds = make(), 20_000
    absent = np.isinf(federation.sample(np.random.default_rng(4), rounds)).mean(axis=0)
    expected = 1 - federation.by_client(federation.availability)
    error = np.sqrt(expected * (1 - expected) / rounds)
    assert np.all(np.abs(absent - expected) <= 4.5 * error)


@every_federation
def test_kinds_and_clients_agree(make: Callable[[], Federation]) -> None:
    federation = make()
    kinds = federation.kind_of_client
    assert kinds.shape == (federation.clients,)
    np.testing.assert_array_equal(federation.number, np.bincount(kinds))
    assert federation.number.size == federation.kinds
    assert federation.report(1.0).shape == federation.miss(1.0).shape == (federation.kinds,)
    np.testing.assert_array_equal(federation.by_client(np.arange(federation.kinds)), kinds)
    np.testing.assert_array_equal(federation.by_client(2.0), np.full(federation.clients, 2.0))


@every_federation
def test_scaled_federation_reports_proportionally_later(make: Callable[[], Federation]) -> None:
    slower = make().scaled(3.0)
    np.testing.assert_allclose(slower.report(2.7), make().report(0.9), rtol=1e-12)


def test_samples_depend_only_on_the_seed() -> None:
    one, two = (joined().sample(np.random.default_rng(5), 4) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_miss_is_precise_when_reports_are_almost_certain() -> None:
    federation = Federation(10, Exponential(1.0))
    assert federation.report(100.0) == 1.0
    np.testing.assert_allclose(federation.miss(100.0), np.exp(-100.0))


def test_equal_clients_are_one_kind() -> None:
    assert alike().kinds == 1
    assert alike().number.tolist() == [5]
    assert repr(alike()) == "Federation(5 clients of 1 kind, Exponential)"


def test_different_clients_have_one_kind_each() -> None:
    assert individuals().kinds == 3
    assert individuals().number.tolist() == [1, 1, 1]
    assert repr(individuals()) == "Federation(3 clients of 3 kinds, Exponential)"


def test_exponential_takes_one_rate_or_one_availability() -> None:
    assert Federation.exponential(2.0).clients == 1
    assert Federation.exponential([1.0, 2.0], 0.5).availability == 0.5


def test_join_keeps_the_order_of_clients() -> None:
    parts = [groups(), alike(), individuals()]
    federation = Federation.join(*parts)
    assert federation.clients == sum(part.clients for part in parts)
    assert federation.kinds == 2 + 1 + 3
    by_client = federation.by_client(federation.report(0.9))
    one_by_one = np.concatenate([part.by_client(part.report(0.9)) for part in parts])
    np.testing.assert_allclose(by_client, one_by_one, rtol=1e-15)


def test_join_of_joined_federations() -> None:
    twice = Federation.join(joined(), alike())
    once = joined().by_client(joined().report(1.0))
    np.testing.assert_allclose(twice.by_client(twice.report(1.0))[: once.size], once, rtol=1e-15)


def test_join_keeps_examples_per_client() -> None:
    one = Federation(2, Exponential(1.0), examples=np.array([10, 20]))
    two = Federation(3, Exponential(2.0), examples=7)
    assert np.array_equal(Federation.join(one, two).examples, [10, 20, 7, 7, 7])


def test_a_federation_cannot_be_changed() -> None:
    federation = Federation(2, Exponential(1.0), np.array([0.5, 1.0]), np.array([3, 4]), None)
    with pytest.raises(FrozenInstanceError):
        federation.__setattr__("clients", 3)
    for held in (federation.availability, federation.examples, groups().kind):
        assert isinstance(held, np.ndarray)
        with pytest.raises(ValueError, match="read-only"):
            held[0] = 1


def test_federation_copies_its_arguments() -> None:
    share, kind = np.array([0.5, 1.0]), np.array([0, 1, 1])
    federation = Federation(3, Exponential(np.ones(2)), share, kind=kind)
    share[0], kind[0] = 0.1, 1
    assert federation.by_client(federation.availability).tolist() == [0.5, 1.0, 1.0]


# ---------------------------------------------------------------- the time of gradient steps


def test_step_times_by_client() -> None:
    federation = computing()
    assert federation.has_step_time
    assert federation.kinds == 2 + 2 + 2 + 2 + 1
    assert federation.step_time(np.arange(16)).tolist() == STEP_TIMES
    some = np.array([15, 3, 3, 8, 0])
    assert federation.step_time(some).tolist() == [0.0, 0.3, 0.3, 0.4, 0.1]
    assert federation.step_time(some[:0]).shape == (0,)


def test_at_steps_is_the_whole_response_time() -> None:
    """Exponential with rate 1 after 5 steps of 0.1: Pr(report by 1) = 1 - exp(-(1 - 0.5))."""
    after = Federation(4, Exponential(1.0), per_step=0.1).at_steps(5)
    np.testing.assert_allclose(after.report(1.0), 1 - np.exp(-0.5), rtol=1e-15)
    np.testing.assert_allclose(after.miss(1.0), np.exp(-0.5), rtol=1e-15)
    assert after.report(0.5) == 0.0
    assert after.per_step == 0.0
    assert after.kinds == 1
    assert after.at_steps(9) is after


@pytest.mark.parametrize("steps", [1, 7])
@pytest.mark.parametrize("t", [0.6, 1.7, 3.0])
def test_at_steps_agrees_with_samples_and_step_times(steps: int, t: float) -> None:
    federation, rounds = computing(), 20_000
    times = federation.sample(np.random.default_rng(3), rounds)
    times += steps * federation.step_time(np.arange(federation.clients))
    after = federation.at_steps(steps)
    expected = after.by_client(after.report(t))
    error = np.sqrt(expected * (1 - expected) / rounds)
    assert np.all(np.abs((times <= t).mean(axis=0) - expected) < 4.5 * error + 1e-12)
    # ... and so do draws of the federation whose latency has it all.
    drawn = (after.sample(np.random.default_rng(4), rounds) <= t).mean(axis=0)
    assert np.all(np.abs(drawn - expected) < 4.5 * error + 1e-12)


@every_federation
def test_at_steps_changes_only_the_latency(make: Callable[[], Federation]) -> None:
    federation = make()
    after = federation.at_steps(3)
    assert (after is federation) == (not federation.has_step_time)
    assert after.clients == federation.clients
    np.testing.assert_array_equal(after.kind_of_client, federation.kind_of_client)
    np.testing.assert_array_equal(
        after.by_client(after.availability), federation.by_client(federation.availability)
    )


def test_draws_do_not_depend_on_step_times() -> None:
    rates = Exponential(np.array([0.5, 1.0, 2.0]))
    with_steps = Federation(3, rates, 0.7, per_step=np.array([0.1, 0.2, 5.0]))
    without = Federation(3, rates, 0.7)
    for some in (np.arange(3), np.array([2, 0])):
        one, two = (f.draw(np.random.default_rng(6), some) for f in (with_steps, without))
        assert one.tobytes() == two.tobytes()
    one, two = (f.sample(np.random.default_rng(6), 50) for f in (with_steps, without))
    assert one.tobytes() == two.tobytes()


def test_slower_clients_take_slower_steps() -> None:
    slower = computing().scaled(3.0)
    np.testing.assert_allclose(slower.step_time(np.arange(16)), 3 * np.array(STEP_TIMES))
    np.testing.assert_allclose(
        slower.at_steps(4).report(6.6), computing().at_steps(4).report(2.2), rtol=1e-12
    )


def test_join_of_equal_step_times_is_one_number() -> None:
    one = Federation(2, Exponential(1.0), per_step=0.5)
    two = Federation(3, Constant(1.0), per_step=np.full(3, 0.5))
    assert Federation.join(one, two).per_step == 0.5
    assert Federation.join(alike(), groups()).per_step == 0.0
    assert np.array_equal(Federation.join(one, alike()).per_step, [0.5, 0.0])


def test_steps_of_a_million_clients_are_one_number() -> None:
    same = Federation(MILLION, Exponential(1.0), per_step=0.1)
    assert same.step_time(np.arange(MILLION)).strides == (0,)
    assert same.at_steps(5).report(1.0).nbytes == 8
    different = Federation(MILLION, Weibull(0.7, np.linspace(0.5, 2.0, MILLION)), per_step=0.1)
    after = different.at_steps(5)
    assert array_bytes(after) <= 8
    assert after.report(1.0).nbytes == 8 * MILLION


def test_step_times_are_read_only_copies() -> None:
    given = np.array([0.1, 0.2, 0.3])
    federation = make(per_step=given)
    given[0] = 9.0
    assert federation.step_time(np.array([0])).tolist() == [0.1]
    assert isinstance(federation.per_step, np.ndarray)
    with pytest.raises(ValueError, match="read-only"):
        federation.per_step[0] = 1.0


def test_infinite_step_times_are_refused() -> None:
    with pytest.raises(InputError, match=r"time of 100 steps must be finite. Got 1e.307 for each"):
        make(per_step=1e307).at_steps(100)
    with pytest.raises(InputError, match=r"per_step, the time.* Got inf"):
        make(per_step=1e307).scaled(100.0)


def make(**given: Any) -> Federation:
    return Federation(**{"clients": 3, "latency": Exponential(1.0), **given})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"clients": 0}, "at least 1 client. Got 0"),
        ({"clients": 2.0}, "whole number. Got 2.0"),
        ({"clients": True}, "whole number. Got True"),
        ({"latency": 1.0}, "one of cafe's latencies.* Got 1.0"),
        ({"latency": Exponential(np.ones(2))}, "one kind of client or one per client .3.* Got 2"),
        ({"availability": 0.0}, "Availability.* Got 0"),
        ({"availability": 1.5}, "Availability.* Got 1.5"),
        ({"availability": float("nan")}, "Availability.* Got nan"),
        ({"availability": [0.5, 0.5, 2.0]}, "Availability.* Got 2"),
        ({"availability": "0.5"}, "Availability.* Got '0.5'"),
        ({"availability": []}, r"Availability.* Got \[\]"),
        ({"availability": np.ones((3, 1))}, "Availability must be one number"),
        ({"availability": np.ones(2)}, "one per client"),
        ({"per_step": -0.1}, "per_step, the time.* Got -0.1"),
        ({"per_step": float("nan")}, "per_step, the time.* Got nan"),
        ({"per_step": [0.1, float("inf"), 0.2]}, "per_step, the time.* Got inf"),
        ({"per_step": "0.1"}, "per_step must be one number.* Got '0.1'"),
        ({"per_step": None}, "per_step must be one number.* Got None"),
        ({"per_step": []}, r"per_step must be one number.* Got \[\]"),
        ({"per_step": np.ones((3, 1))}, "per_step must be one number"),
        ({"per_step": np.ones(2)}, "one per client .3.* Got 1, 1 and 2"),
        ({"per_step": np.ones(2), "availability": np.ones(3)}, "one per kind of client .3.* Got 2"),
        ({"per_step": np.ones(3), "latency": Exponential(np.ones(2)), "kind": [0, 1, 1]}, "Got 3"),
        ({"examples": -1}, "examples must be a whole number.* Got -1"),
        ({"examples": 1.5}, "examples must be a whole number.* Got 1.5"),
        ({"examples": np.ones(2, dtype=int)}, "one per client .3.* Got 2"),
        ({"kind": [0, 0]}, "for each of the 3 clients. Got .0, 0."),
        ({"kind": [0, 0, 1]}, "from 0 to 0"),
        ({"kind": [0, 0, -1]}, "from 0 to 0"),
        ({"kind": [0.0, 0.0, 0.0]}, "for each of the 3 clients"),
        ({"kind": [0, 0, 0], "latency": Exponential(np.ones(2))}, "at least one client"),
    ],
)
def test_bad_arguments_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make(**given)


def test_join_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="at least one federation"):
        Federation.join()


@pytest.mark.parametrize("rates", [[0.0], ["fast"], [[1.0], [2.0]]])
def test_exponential_refuses_bad_rates(rates: Any) -> None:
    with pytest.raises(InputError, match="rate must"):
        Federation.exponential(rates)


def test_a_million_clients_need_little_memory() -> None:
    same = Federation(MILLION, LogNormal(0.0, 1.0))
    assert array_bytes(same) == 0
    assert same.report(1.0).nbytes == 8
    assert same.by_client(same.report(1.0)).strides == (0,)

    different = Federation.exponential(np.linspace(0.5, 2.0, MILLION))
    assert array_bytes(different) == 8 * MILLION
    assert different.report(1.0).nbytes == 8 * MILLION

    two = Federation.join(same, Federation(MILLION, Exponential(1.0)))
    assert two.kinds == 2
    assert two.number.tolist() == [MILLION, MILLION]
    assert array_bytes(two) <= 2 * 8 * 2 * MILLION + 100
    assert isinstance(two.latency, Various)


def test_import_loads_no_heavy_module() -> None:
    heavy = "{'scipy.stats', 'scipy.optimize', 'matplotlib', 'typer'}"
    code = f"import sys, cafe.federation; print(*sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("make", [alike, individuals, groups])
def test_some_clients_of_a_federation(make: Callable[[], Federation]) -> None:
    whole = replace(make(), per_step=0.25)
    for index in ([0], [2, 0], list(range(whole.clients))[::-1]):
        part = whole.take(np.array(index))
        assert part.clients == len(index)
        for values in ("availability", "per_step"):
            theirs = whole.by_client(getattr(whole, values))[index]
            np.testing.assert_array_equal(part.by_client(getattr(part, values)), theirs)
        theirs = whole.by_client(whole.latency.mean())[index]
        np.testing.assert_allclose(part.by_client(part.latency.mean()), theirs)
        held = np.broadcast_to(whole.examples, whole.clients)[index]
        np.testing.assert_array_equal(part.examples, held)
        assert part.number.sum() == len(index)


def test_some_clients_come_and_go_like_in_the_whole_federation() -> None:
    index = np.array([4, 1])
    whole = Federation(5, Exponential(1.0), presence=OnOff(on=np.arange(1.0, 6.0), off=2.0))
    part = whole.take(index)
    assert part.presence is not None
    assert whole.presence is not None
    theirs, mine = whole.presence.begin(5, seed=3), part.presence.begin(2, seed=3)
    for now in np.linspace(0.0, 30.0, 100).tolist():
        np.testing.assert_array_equal(mine.away(now), theirs.away(now)[index])
        both = mine.leaves(np.array([0, 1]), now), theirs.leaves(index, now)
        np.testing.assert_array_equal(*both)
        both = mine.forecast(np.array([1]), now, now + 1), theirs.forecast(index[1:], now, now + 1)
        np.testing.assert_array_equal(*both)
    np.testing.assert_array_equal(
        part.presence.long_run(2), np.asarray(whole.presence.long_run(5))[index]
    )
    assert part.steady.clients == 2


def test_some_clients_spend_their_own_batteries() -> None:
    presence = Battery(capacity=1.0, cost=1.0, harvest=0.1, slot=1.0, start=1.0)
    part = Federation(5, Exponential(1.0), presence=presence).take(np.array([4, 1])).presence
    assert part is not None
    state, again = part.begin(2, seed=3), part.begin(2, seed=3)
    assert not state.away(0.0).any()
    state.spend(np.array([1]), 0.0)
    assert state.away(0.0).tolist() == [False, True]
    again.restore(state.save())
    assert again.away(0.0).tolist() == [False, True]
    assert state.next_change(0.0) > 0
    assert part.describe() == presence.describe()
    assert f"{part!r}" == f"PartOfPresence({presence!r}, 5, [4.0, 1.0])"
