from __future__ import annotations

import itertools
import tracemalloc
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy.special import bdtr, bdtrc

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Exponential, Uniform
from cafe.latency.base import Floats
from cafe.theory import Turnout

if TYPE_CHECKING:
    from tests.support.theory_oracles import Counter, Game

steady = settings(derandomize=True, deadline=None, max_examples=150, database=None)

FIGURES = (
    "success",
    "failure",
    "reports_when_failed",
    "missing_when_failed",
    "inverse_reports",
    "others_suffice",
    "others_fall_short",
    "participation",
    "share",
)
ZERO = 1e-290  # below this, products of doubles lose digits to underflow


def turnout(report: ArrayLike, miss: ArrayLike, number: ArrayLike, quorum: int) -> Turnout:
    p, q, many = (np.array(value, dtype=float) for value in (report, miss, number))
    return Turnout(p, q, many, quorum)


def of_chances(report: ArrayLike, quorum: int) -> Turnout:
    chances = np.array(report, dtype=float)
    return turnout(chances, 1.0 - chances, np.ones_like(chances), quorum)


def assert_same(found: ArrayLike, true: ArrayLike, name: str, rtol: float = 1e-9) -> None:
    """Relatively equal, and exactly 0 (not -0) where the truth is 0."""
    got, want = np.asarray(found, dtype=float), np.asarray(true, dtype=float)
    impossible = want == 0
    assert np.all(got[impossible] == 0), f"{name}: {got} is not 0 where {want} is"
    assert not np.any(np.signbit(got)), f"{name}: {got} has a minus sign"
    np.testing.assert_allclose(got, want, rtol=rtol, atol=ZERO, err_msg=name)


def check(
    counted: Counter, report: ArrayLike, miss: ArrayLike, number: ArrayLike, quorum: int
) -> None:
    """Every figure of a turnout against the oracle, relatively."""
    fast, slow = turnout(report, miss, number, quorum), counted(report, miss, number, quorum)
    for name in FIGURES:
        assert_same(getattr(fast, name), getattr(slow, name), name)
    values, masses = fast.distribution
    whole = np.zeros(max(slow.masses.size, int(values[-1]) + 1))
    whole[values.astype(int)] = masses
    np.testing.assert_allclose(whole[: slow.masses.size], slow.masses, rtol=1e-9, atol=2e-14)
    assert whole[slow.masses.size :].sum() <= 2e-14


# ------------------------------------------------------------------------- tests of the oracle


@pytest.mark.parametrize("quorum", [1, 2, 4, 6])
def test_the_oracle_is_exact_in_fractions(counted: Counter, quorum: int) -> None:
    report = [2.0**-70, 0.125, 0.75, 0.75, 1.0, 0.5]
    chances = [(Fraction(p), 1 - Fraction(p)) for p in report]
    clients = range(len(report))
    outcomes: dict[tuple[bool, ...], Fraction] = {}
    for came in itertools.product([False, True], repeat=len(report)):
        mass = Fraction(1)
        for here, (p, q) in zip(came, chances, strict=True):
            mass *= p if here else q
        outcomes[came] = mass

    def mean(value: dict[tuple[bool, ...], Fraction]) -> float:
        return float(sum((mass * value[came] for came, mass in outcomes.items()), Fraction(0)))

    enough = {came: Fraction(sum(came) >= quorum) for came in outcomes}
    found = counted(report, [float(q) for _, q in chances], np.ones(6), quorum)
    exact: dict[str, ArrayLike] = {
        "success": mean(enough),
        "failure": mean({c: 1 - e for c, e in enough.items()}),
        "reports_when_failed": mean({c: sum(c) * (1 - e) for c, e in enough.items()}),
        "missing_when_failed": mean({c: (6 - sum(c)) * (1 - e) for c, e in enough.items()}),
        "inverse_reports": mean({c: e / max(sum(c), 1) for c, e in enough.items()}),
        "participation": [mean({c: c[k] * e for c, e in enough.items()}) for k in clients],
        "share": [mean({c: c[k] * e / max(sum(c), 1) for c, e in enough.items()}) for k in clients],
        "others_suffice": [
            mean({c: Fraction(sum(c) - c[k] >= quorum - 1) for c in outcomes}) for k in clients
        ],
        "others_fall_short": [
            mean({c: Fraction(sum(c) - c[k] < quorum - 1) for c in outcomes}) for k in clients
        ],
    }
    for name, want in exact.items():
        np.testing.assert_allclose(getattr(found, name), np.array(want), rtol=1e-14, err_msg=name)


# ------------------------------------------------------------------------- against the slow oracle

# (report, miss): if one rounds to 1, only the other tells how far it is from 1.
CHANCES = [
    (0.5, 0.5),
    (0.3, 0.7),
    (0.93, 0.07),
    (1e-4, 1 - 1e-4),
    (1 - 1e-4, 1e-4),
    (1e-10, 1.0),
    (1.0, 1e-10),
    (1e-30, 1.0),
    (1.0, 1e-30),
    (1e-60, 1.0),
    (1.0, 1e-60),
    (1.0, 0.0),
    (0.0, 1.0),
]
kinds = st.lists(st.tuples(st.sampled_from(CHANCES), st.integers(1, 5)), min_size=1, max_size=6)


@steady
@given(kinds=kinds, data=st.data())
def test_small_federations(
    counted: Counter, kinds: list[tuple[tuple[float, float], int]], data: st.DataObject
) -> None:
    number = [n for _, n in kinds]
    quorum = data.draw(st.integers(1, sum(number)))
    check(counted, [p for (p, _), _ in kinds], [q for (_, q), _ in kinds], number, quorum)


@steady
@given(st.lists(st.floats(1e-12, 1 - 1e-12), min_size=1, max_size=12), st.data())
def test_any_probabilities(counted: Counter, report: list[float], data: st.DataObject) -> None:
    quorum = data.draw(st.integers(1, len(report)))
    check(counted, report, 1.0 - np.array(report), np.ones(len(report)), quorum)


def rows(name: str, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Chances of many kinds, of one sort."""
    u = rng.random(size)
    small = 10.0 ** rng.uniform(-25, -1, size)
    return {
        "any": (u, 1 - u),
        "rare": (u / 1000, 1 - u / 1000),
        "likely": (1 - u / 1000, u / 1000),
        "tiny": (small, 1 - small),
        "nearly certain": (1 - small, small),
        "extreme": (np.where(u < 0.5, small, 1 - small), np.where(u < 0.5, 1 - small, small)),
        "moderate": (0.2 + 0.2 * u, 0.8 - 0.2 * u),
    }[name]


@pytest.mark.parametrize("spread", [0, -1, 1, -4, 4, -15, 15])
@pytest.mark.parametrize(
    ("sorts", "size"),
    [
        (("any",), 1500),
        (("moderate",), 1200),
        (("rare",), 1500),
        (("likely",), 1500),
        (("tiny", "nearly certain"), 400),
        (("rare", "likely", "moderate"), 300),
        (("rare", "likely", "any"), 270),
        (("tiny", "any", "nearly certain"), 300),
        (("extreme", "any"), 350),
    ],
)
def test_many_kinds(counted: Counter, sorts: tuple[str, ...], size: int, spread: int) -> None:
    """With many kinds a table is used instead of direct evaluation, in one zone or in three."""
    rng = np.random.default_rng(7)
    parts = [rows(sort, size, rng) for sort in sorts]
    report = np.concatenate([p for p, _ in parts])
    miss = np.concatenate([q for _, q in parts])
    quorum = round(float(report.sum() + spread * (report @ miss) ** 0.5)) + np.sign(spread)
    check(counted, report, miss, np.ones(report.size), int(np.clip(quorum, 1, report.size)))


@pytest.mark.parametrize("quorum", [1, 2, 3, 700, 1399, 1400])
def test_many_kinds_at_the_ends(counted: Counter, quorum: int) -> None:
    rng = np.random.default_rng(11)
    report = np.concatenate([rng.random(400), rng.random(500) / 3000, 1 - rng.random(500) / 3000])
    check(counted, report, 1.0 - report, np.ones(1400), quorum)


@pytest.mark.parametrize("quorum", [1, 5, 60, 130, 199, 230, 260])
def test_groups_of_equal_clients(counted: Counter, quorum: int) -> None:
    report = [0.9, 1e-3, 0.4, 1.0, 0.0, 1.0, 0.999]
    miss = [0.1, 1 - 1e-3, 0.6, 0.0, 1.0, 1e-40, 0.001]
    check(counted, report, miss, [40, 90, 60, 20, 10, 30, 10], quorum)


@pytest.mark.parametrize(("small", "quorum"), [(1e-5, 40), (1e-2, 60), (0.3, 59), (1e-30, 9)])
def test_far_tails(counted: Counter, small: float, quorum: int) -> None:
    """With one kind, with equal and unequal clients, and with misses instead of reports."""
    shaken = small * np.random.default_rng(3).uniform(0.5, 1.5, 60)
    for rare in (np.array([small]), np.full(60, small), shaken):
        number = np.full(rare.size, 60 // rare.size)
        check(counted, rare, 1 - rare, number, quorum)
        check(counted, 1 - rare, rare, number, 61 - quorum)
    assert turnout([small], [1 - small], [60], quorum).success < 1e-27


def test_a_tail_of_1e_200_has_all_its_digits(counted: Counter) -> None:
    rng = np.random.default_rng(5)
    report = 10.0 ** rng.uniform(-7, -4, 400)
    slow = counted(report, 1 - report, np.ones(400), 55)
    assert 1e-215 < slow.success < 1e-195
    check(counted, report, 1 - report, np.ones(400), 55)


def test_very_different_probabilities(counted: Counter) -> None:
    """Very different chances: the tilted sum varies little, and one client fewer matters."""
    number = [5, 3, 2, 2]
    for depths in [(1e-10, 1e-34, 1e-57), (1e-4, 1e-17, 1e-60), (1e-12, 1e-12, 1e-80)]:
        report, miss = [1.0, *depths], [1e-10, *(1.0 - d for d in depths)]
        for quorum in range(1, 13):
            check(counted, report, miss, number, quorum)
            check(counted, miss, report, number, quorum)


def test_impossible_events_have_probability_zero(counted: Counter) -> None:
    """Rounding noise instead of 0 would give a finite age to a client that is never used."""
    for quorum in range(1, 6):
        check(counted, [0.0, 0.54], [1.0, 0.46], [3, 2], quorum)
        check(counted, [1.0, 0.54], [0.0, 0.46], [3, 2], quorum)
        check(counted, [0.0], [1.0], [5], quorum)
        check(counted, [1.0], [0.0], [5], quorum)
        check(counted, [0.0, 1.0], [1.0, 0.0], [2, 3], quorum)


def test_probability_that_all_clients_report() -> None:
    chances = np.array([0.9, 0.25, 0.5])
    found = turnout(chances, 1 - chances, [2, 1, 3], 1)
    assert found.all_report == pytest.approx(0.9**2 * 0.25 * 0.5**3, rel=1e-14)
    assert turnout([1.0, 0.0], [0.0, 1.0], [3, 2], 1).all_report == 0.0
    assert turnout([1.0], [0.0], [3], 1).all_report == 1.0


# ------------------------------------------------------------------- large federations: invariants


@pytest.mark.parametrize(
    ("clients", "spread"),
    [(100_000, -20.0), (100_000, -1.0), (100_000, 0.5), (100_000, 20.0), (1_000_000, 0.5)],
)
def test_sums_over_a_large_federation(clients: int, spread: float) -> None:
    large = np.random.default_rng(clients).beta(0.8, 1.7, clients)
    miss = 1.0 - large
    quorum = round(float(large.sum() + spread * (large @ miss) ** 0.5))
    found = turnout(large, miss, np.ones(clients), quorum)
    used = found.mean - found.reports_when_failed
    if spread < 10:  # otherwise cancellation leaves no digits of the difference
        assert found.participation.sum() == pytest.approx(used, rel=1e-11)
    else:  # far out, n is hardly above M
        assert 1 < found.used / (found.success * quorum) < 1.01
    assert found.share.sum() == pytest.approx(found.success, rel=1e-10)
    assert found.success + found.failure == pytest.approx(1.0, rel=1e-14)
    np.testing.assert_allclose(found.others_suffice + found.others_fall_short, 1.0, rtol=1e-11)
    order = np.argsort(large)
    assert np.all(np.diff(found.others_suffice[order]) <= 1e-9 * found.others_suffice[order][1:])


@pytest.mark.parametrize("clients", [60, 5_000, 1_000_000])
@pytest.mark.parametrize("chance", [1e-5, 0.02, 0.37, 0.999])
@pytest.mark.parametrize("spread", [-6.0, -1.0, 0.0, 1.0, 6.0])
def test_equal_clients_are_binomial(clients: int, chance: float, spread: float) -> None:
    mean, sd = clients * chance, (clients * chance * (1 - chance)) ** 0.5
    quorum = int(np.clip(round(mean + spread * sd), 1, clients))
    kind = turnout([chance], [1 - chance], [clients], quorum)
    # A float quorum avoids scipy's 32-bit integers; scipy is less accurate than the code tested.
    np.testing.assert_allclose(kind.success, bdtrc(quorum - 1.0, clients, chance), rtol=1e-8)
    np.testing.assert_allclose(kind.failure, bdtr(quorum - 1.0, clients, chance), rtol=1e-8)
    if clients > 1:
        suffice = bdtrc(quorum - 2.0, clients - 1, chance) if quorum > 1 else 1.0
        np.testing.assert_allclose(kind.others_suffice, suffice, rtol=1e-8)
    assert kind.share[0] == pytest.approx(kind.success / clients, rel=1e-10)
    assert kind.participation[0] * clients == pytest.approx(kind.used, rel=1e-12)


@pytest.mark.parametrize("clients", [40, 2_000, 200_000])
@pytest.mark.parametrize("chance", [0.003, 0.6])
def test_kind_equals_that_many_equal_clients(clients: int, chance: float) -> None:
    quorum = max(1, round(clients * chance * 1.1))
    kind = turnout([chance], [1 - chance], [clients], quorum)
    each = of_chances(np.full(clients, chance), quorum)
    for name in FIGURES:
        wanted = np.broadcast_to(getattr(kind, name), np.shape(getattr(each, name)))
        np.testing.assert_allclose(getattr(each, name), wanted, rtol=1e-9, err_msg=name)


def test_memory_is_a_few_arrays_of_client_length() -> None:
    clients = 1_000_000
    report = np.random.default_rng(0).random(clients)
    found = turnout(report, 1 - report, np.ones(clients), clients // 2 + 300)
    tracemalloc.start()
    try:
        for name in (*FIGURES, "distribution"):
            getattr(found, name)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * 8 * clients


# ----------------------------------------------------------------------------------- of federations


def test_turnout_of_a_federation_agrees_with_simulation(game: Game) -> None:
    played, found = game.played, game.expected.setting.turnout
    failed = ~played.success
    came = played.came.sum(axis=1)
    game.agree(found.success, played.success)
    game.agree(found.failure, failed)
    game.agree(found.all_report, came == game.invited)
    game.agree(found.mean, came)
    game.agree(found.mean_missing, game.invited - came)
    game.agree(found.reports_when_failed, came * failed)
    game.agree(found.missing_when_failed, (game.invited - came) * failed)
    game.agree(found.inverse_reports, played.success / np.maximum(came, 1))
    others = came[:, None] - played.came
    by_client = game.federation.by_client
    if game.cohort is None:  # with a cohort they are those of an invited client
        game.agree(by_client(found.others_suffice), others >= game.quorum - 1)
        game.agree(by_client(found.others_fall_short), others < game.quorum - 1)
    counts = played.came * played.success[:, None]
    game.agree(by_client(found.participation), counts)
    game.agree(by_client(found.share), counts / np.maximum(came, 1)[:, None])
    values, masses = found.distribution
    game.agree(masses @ (values == game.quorum), came == game.quorum)


def test_miss_is_precise_when_the_report_is_certain() -> None:
    """At 60 mean latencies a report rounds to 1, and a miss is 1e-26."""
    found = Turnout.of(Federation(5, Exponential(1.0)), 5, 60.0)
    assert float(found.report[0]) == 1.0
    assert found.failure == pytest.approx(5 * np.exp(-60), rel=1e-12)


def test_success_is_not_negative_zero() -> None:
    found = Turnout.of(Federation(3, Uniform(2.0, 3.0)), 1, 1.0)
    assert found.success == 0.0
    assert not np.signbit(found.success)


@pytest.mark.parametrize("quorum", [0, -3, 6, 2.0, "2", True, None])
def test_a_bad_quorum_is_named(quorum: object) -> None:
    with pytest.raises(InputError, match=r"(?i)quorum.*" + str(quorum)):
        Turnout.of(Federation(5, Exponential(1.0)), quorum, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("deadline", [0.0, -1.5, float("nan"), float("inf"), "soon", None])
def test_a_bad_deadline_is_named(deadline: object) -> None:
    with pytest.raises(InputError, match=r"(?i)deadline.*" + str(deadline)):
        Turnout.of(Federation(5, Exponential(1.0)), 2, deadline)  # type: ignore[arg-type]
