"""Unknown keywords get a sentence; everything else about a call stays as it is."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import dataclass, replace

import pytest

import cafe
from cafe.errors import InputError
from cafe.keywords import SYNONYMS, explain_keywords


@explain_keywords
def wait(deadline: float, *, quorum: int = 1) -> float:
    """How long a round lasts."""
    return deadline * quorum


@explain_keywords
@dataclass(frozen=True)
class Pair:
    """Two numbers."""

    batch: int
    rate: float = 0.5


def test_unknown_keywords() -> None:
    with pytest.raises(InputError, match=r"wait has no .*'timeout'. Did you mean 'deadline'"):
        wait(timeout=3)  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"no argument 'quorun'. Did you mean 'quorum'"):
        wait(1.0, quorun=3)  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"no argument 'xyz'. Known: batch, rate"):
        Pair(1, xyz=3)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="Did you mean 'rate'"):
        replace(Pair(1), lr=3)  # type: ignore[call-arg]


def test_other_errors_are_those_of_python() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'deadline'"):
        wait()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unsupported operand"):
        wait(None, quorum=None)  # type: ignore[arg-type]


def test_signature_and_pickling_stay() -> None:
    assert str(inspect.signature(wait)) == "(deadline: 'float', *, quorum: 'int' = 1) -> 'float'"
    assert wait.__doc__ == "How long a round lasts."
    assert [*inspect.signature(Pair).parameters] == ["batch", "rate"]
    assert pickle.loads(pickle.dumps(Pair(3))) == Pair(3)
    assert wait(2.0, quorum=3) == 6.0


def test_synonyms_name_real_arguments() -> None:
    calls = (cafe.Task, cafe.Federation, cafe.simulate, cafe.policies.mcu, cafe.policies.fedavg)
    known = {name for call in calls for name in inspect.signature(call).parameters}
    assert set(SYNONYMS.values()) <= known
    assert not SYNONYMS.keys() & known
