"""How policies print, and what identifies them."""

from __future__ import annotations

import copy
import pickle
import re
import threading
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from cafe.decisions import BySize, DeadlineQuorum, DropAll, Everyone, Mean, Sample
from cafe.engine import Run
from cafe.engine.snapshot import restore, save
from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.policies import agu, awu, fedavg, mcu
from cafe.rounds import COMMIT, RUN, Carried, Merge, Policy, Wait, Work
from tests.support.processes import outputs_by_hash_seed

SHIPPED = {
    "mcu(quorum=3, deadline=0.5)": mcu(quorum=3, deadline=0.5),
    "mcu(quorum=3, deadline=2, target=5, cohort=9, steps=2, late=keep)": mcu(
        quorum=3, deadline=2, target=5, cohort=9, steps=2, late="keep"
    ),
    "awu(deadline=1.0)": awu(deadline=1.0),
    "awu(deadline=1.0, weight=sqrt)": awu(deadline=1.0, weight=np.sqrt),
    "awu(deadline=1.0, weight=unbiased, late=keep)": awu(
        deadline=1.0, weight="unbiased", late="keep"
    ),
    "agu(quorum=6, deadline=0.4, pool=union)": agu(quorum=6, deadline=0.4, pool="union"),
    "agu(quorum=6, deadline=1.0, close_when_all=True)": agu(
        quorum=6, deadline=1.0, close_when_all=True
    ),
    "fedavg()": fedavg(),
    "fedavg(fraction=0.3, deadline=1.0)": fedavg(fraction=0.3, deadline=1.0),
}


def squared(age: Any) -> Any:
    return age**2


def mine(goal: Any, window: Any = 30.0) -> Policy:
    def close(ledger: Any, waiting: Any) -> Any:
        return COMMIT if waiting.reports >= goal else Wait(ledger.opened + window, goal)

    def merge(ledger: Any, reports: Any) -> Merge:
        return Merge(np.full(len(reports), 1.0 / goal))

    return Policy("mine", Everyone(), close, merge, lambda ledger, closed: Carried(RUN))


def from_pieces(**changes: Any) -> Policy:
    given: dict[str, Any] = {
        "invite": Sample(52, Work(epochs=1, scaled=False)),
        "close": DeadlineQuorum(quorum=32, deadline=30.0, target=40),
        "merge": BySize(),
        "carry": DropAll(),
    }
    return Policy("pieces", **(given | changes))


@pytest.mark.parametrize(("text", "policy"), SHIPPED.items())
def test_recipes_print_their_parameters(text: str, policy: Policy) -> None:
    assert str(policy) == text
    assert re.fullmatch(re.escape(text) + r" sha256:[0-9a-f]{64}", policy.identity)
    assert str(pickle.loads(pickle.dumps(policy))) == text


def test_a_policy_without_parameters_prints_what_it_closes_over() -> None:
    assert re.fullmatch(r"mine\(goal=3, window=30\.0, code=[0-9a-f]{6}\)", str(mine(3)))
    assert str(mine(3)) == str(mine(3))
    assert str(mine(3)) != str(mine(7))
    assert re.fullmatch(
        r"pieces\(cohort=52, epochs=1, scaled=False, quorum=32, deadline=30\.0, target=40, "
        r"code=[0-9a-f]{6}\)",
        str(from_pieces()),
    )


def test_copies_have_the_same_text() -> None:
    policy = from_pieces()
    for same in (copy.copy(policy), replace(policy), pickle.loads(pickle.dumps(policy))):
        assert str(same) == str(policy)
        assert same.identity == policy.identity


def test_a_policy_that_closes_over_nothing_prints_its_code() -> None:
    policy = Policy("bare", Everyone(), DeadlineQuorum(1, None), Mean(), lambda *_: Carried(RUN))
    assert re.fullmatch(r"bare\(quorum=1, code=[0-9a-f]{6}\)", str(policy))
    other = replace(policy, carry=lambda *_: Carried())
    assert str(policy) != str(other)


def test_values_with_the_same_name_get_different_keys() -> None:
    def made(goal: int, code: int) -> Any:
        return lambda ledger, closed: goal + code

    policy = from_pieces(merge=made(1, 5), carry=made(2, 5))
    assert ", merge_code=5, goal=1, carry_code=5, carry_goal=2, code=" in str(policy)


def test_partials_and_methods_show_their_values() -> None:
    policy = from_pieces(
        close=DeadlineQuorum(4, 2.0).__call__, carry=partial(Carried, jobs=RUN, kept=True)
    )
    assert ", quorum=4, deadline=2.0, jobs=1, kept=True, code=" in str(policy)


def test_long_texts_and_objects_appear_only_in_the_digest() -> None:
    one, other = (str(mine(3, window)) for window in ("x" * 41, "y" * 41))
    assert one.startswith("mine(goal=3, code=")
    assert one != other


def test_printing_never_fails() -> None:
    assert str(mine(threading.Lock())) == "mine(window=30.0, code=?)"
    weight: Any = mine(threading.Lock()).close
    assert str(awu(deadline=1.0, weight=weight)).endswith("close#?)")


def test_functions_as_parameters() -> None:
    assert str(awu(deadline=1.0, weight=squared)) == "awu(deadline=1.0, weight=squared)"
    weights: list[Any] = [lambda a: a, lambda a: a + 1, partial(np.power, 2), partial(np.power, 3)]
    texts = [str(awu(deadline=1.0, weight=weight)) for weight in weights]
    assert len({*texts}) == 4
    assert re.fullmatch(r"awu\(deadline=1\.0, weight=<lambda>#[0-9a-f]{6}\)", texts[0])
    assert re.fullmatch(r"awu\(deadline=1\.0, weight=partial#[0-9a-f]{6}\)", texts[2])


def test_parts_of_an_identity() -> None:
    needs = frozenset({"sizes"})
    policies = [
        mine(3),
        mine(7),
        mine(3, 60.0),
        from_pieces(),
        from_pieces(needs=needs),
        from_pieces(carry=lambda ledger, closed: Carried(RUN)),
        from_pieces(observe=lambda ledger, outcome, closed: 1),
        from_pieces(parameters={"goal": 1}),
        from_pieces(parameters={"goal": 2}),
        *SHIPPED.values(),
    ]
    assert len({policy.identity for policy in policies}) == len(policies)
    assert mine(3).identity == mine(3).identity


def test_saved_run_is_not_resumed_by_another_policy() -> None:
    federation = Federation(10, Exponential(1.0))
    saved = save(Run(federation, mine(3), seed=1))
    restore(Run(federation, mine(3), seed=1), saved)
    with pytest.raises(InputError, match=r"has the policy mine\(goal=3.* this one mine\(goal=7"):
        restore(Run(federation, mine(7), seed=1), saved)


def test_incomplete_identity_is_refused() -> None:
    with pytest.raises(InputError, match=r"'goal', used by mine.<locals>.close, is a _thread.lock"):
        _ = mine(threading.Lock()).identity
    with pytest.raises(InputError, match=r"Draw from ledger\.rng"):
        _ = mine(np.random.default_rng(0)).identity
    weight: Any = mine(threading.Lock()).close
    with pytest.raises(InputError, match="cannot be identified"):
        _ = awu(deadline=1.0, weight=weight).identity


def test_parameters_identify_what_has_no_identity() -> None:
    one, other, none = (
        replace(mine(threading.Lock()), parameters=parameters)
        for parameters in ({"model": 1}, {"model": 2}, {})
    )
    assert one.identity.startswith("mine(model=1) sha256:")
    assert one.identity != other.identity
    with pytest.raises(InputError, match="cannot be identified"):
        _ = none.identity
    random = replace(mine(np.random.default_rng(0)), parameters={"model": 1})
    with pytest.raises(InputError, match="depend on what was drawn before"):
        _ = random.identity


SCRIPT = """
import numpy as np
from cafe.decisions import Everyone, Mean
from cafe.policies import awu, mcu
from cafe.rounds import Carried, Policy
def mine(goal):
    return Policy("mine", Everyone(), lambda l, w: w.reports in {"a", "b", goal}, Mean(),
        lambda *_: Carried(), needs=frozenset({"sizes", "losses", "updates"}))
for policy in (mine(3), awu(deadline=1.0, weight=lambda a: a), mcu(quorum=1, deadline=1.0)):
    print(policy.identity)
"""


@pytest.mark.slow
def test_identity_is_the_same_in_two_processes() -> None:
    texts = outputs_by_hash_seed(SCRIPT)
    assert len(texts) == 1
    assert f"{mcu(quorum=1, deadline=1.0).identity}\n" in texts.pop()
