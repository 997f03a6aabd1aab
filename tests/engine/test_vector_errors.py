"""Vectors for clients that a policy must not answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe import reference
from cafe.engine import Run
from cafe.errors import InputError
from cafe.policies import agu
from cafe.reference import Reference
from cafe.rounds import (
    Ledger,
    Merge,
    Reports,
)
from tests.support.policies import federation, task
from tests.support.vectors import (
    bad,
    once,
    points,
    steady,
)


@pytest.mark.parametrize(
    ("vectors", "sentence"),
    [
        ({"common": np.ones(2)}, r"numbers of shape \(1,\) as common in merge. Got an array of sh"),
        ({"common": 1.0}, r"Got an array of shape \(\) and type float64"),
        ({"common": np.array([np.nan])}, "finite numbers as common in merge. Got NaN or infinity"),
        ({"common": np.array([1e39])}, "finite numbers as common"),
        ({"common": np.array([True])}, "numbers of shape .* and type bool"),
        ({"common": ["x"]}, "numbers of shape"),
        ({"common": [[1.0], [1.0, 2.0]]}, "Got rows of different lengths"),
        ({"offset": np.ones(1)}, r"numbers of shape \(2, 1\) as offset"),
        ({"offset": np.ones((1, 1))}, r"numbers of shape \(2, 1\) as offset"),
        ({"offset": np.full((2, 1), np.inf)}, "finite numbers as offset"),
        ({"frozen": np.array([0])}, "True or False for each of the model's 1 parameters as frozen"),
        ({"frozen": np.array([True, False])}, "True or False for each of the model's 1 parameters"),
    ],
)
def test_wrong_vectors_are_refused(vectors: Any, sentence: str) -> None:
    for kind in (Run, Reference):
        with pytest.raises(InputError, match=f"The policy once must return.*{sentence}"):
            kind(steady(2), bad(**vectors), points(0.0, 4.0)).step()


@pytest.mark.parametrize("name", ["offset", "common", "frozen"])
def test_vectors_need_a_task(name: str) -> None:
    policy = replace(bad(**{name: np.zeros(1)}), needs=frozenset())
    for kind in (Run, Reference):
        with pytest.raises(InputError, match="without a task there is none"):
            kind(steady(2), policy).step()


def test_vectors_of_single_clients_require_updates() -> None:
    policy = replace(bad(offset=np.ones((2, 1))), needs=frozenset())
    for kind in (Run, Reference):
        with pytest.raises(InputError, match=r'needs=frozenset.*"updates"'):
            kind(steady(2), policy, points(0.0, 4.0)).step()


def test_offsets_require_single_reports_and_a_task() -> None:
    policy = replace(once(), needs=frozenset({"offsets"}))
    with pytest.raises(InputError, match="needs offsets of single clients, but secure aggregation"):
        Run(steady(2), policy, points(0.0, 4.0), secure_aggregation=True)
    with pytest.raises(InputError, match="needs offsets, which exist only with a task"):
        Run(steady(2), policy)
    common = replace(bad(common=np.ones(1)), needs=frozenset())
    assert Run(steady(2), common, points(0.0, 4.0), secure_aggregation=True).step().succeeded


@pytest.mark.parametrize("name", ["offset", "common", "frozen"])
def test_vectors_exclude_local_models(name: str) -> None:
    base = agu(quorum=9, deadline=0.4, pool="union")

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        vectors: Any = {
            "offset": np.zeros((len(reports), 15)),
            "common": np.zeros(15),
            "frozen": np.zeros(15, dtype=bool),
        }
        answer = base.merge(ledger, reports)
        return replace(answer, **{name: vectors[name]})

    policy = replace(base, name="union", merge=merge, needs=base.needs | {"updates"}, parameters={})
    for engine in (cafe.simulate, reference.simulate):
        with pytest.raises(InputError, match="union must not combine local models"):
            engine(federation(), policy, task(), rounds=50, seed=1)
