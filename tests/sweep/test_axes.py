"""Axes: values in lists and ranges."""

from __future__ import annotations

import math
import tomllib
from collections import Counter

import numpy as np
import pytest

from cafe.errors import FileError
from cafe.sweep.axes import ListAxis, RangeAxis, axes_from_table
from cafe.toml_tables.reading import TableLocation

HERE = TableLocation("sweep.toml", "sweep.values")


def read(text: str) -> list[ListAxis | RangeAxis]:
    return axes_from_table(tomllib.loads(text), HERE)


def test_keys_may_be_written_with_and_without_quotes() -> None:
    both = [ListAxis("policy.quorum", (1, 2)), RangeAxis("task.rate", 0.1, 1.0, log=True)]
    assert read('"policy.quorum" = [1, 2]\n"task.rate" = {low = 0.1, high = 1, log = true}') == both
    assert read("policy.quorum = [1, 2]\ntask.rate = {low = 0.1, high = 1, log = true}") == both


def test_values_may_be_tables_and_lists() -> None:
    [axis] = read('task.partition = ["iid", {name = "classes", each = 3}]')
    assert axis == ListAxis("task.partition", ("iid", {"name": "classes", "each": 3}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("policy.quorum = 3", "policy.quorum must be a list of values.* Got 3: write it"),
        ("policy.quorum = []", r"one or more different values. Got \[\]"),
        ("policy.quorum = [1, 1]", r"one or more different values. Got \[1, 1\]"),
        ("task.rate = {lo = 1, high = 2}", "task.rate.lo is not known. Did you mean 'low'"),
        ("task.rate = {low = 1}", "task.rate.high is missing"),
        ("task.rate = {}", "task.rate.low is missing"),
        ("task.rate = {low = 2, high = 1}", "low must be less than high"),
        ("task.rate = {low = 1, high = inf}", "low must be less than high, and both finite"),
        ("task.rate = {low = 0, high = 1, log = true}", "0 has no logarithm"),
        ("task.rate = {low = 0.5, high = 1, integer = true}", "must be whole numbers"),
        ("'a.b' = [1]\na.b = [2]", "a.b is given twice"),
        ("policy.deadline = [0.5, nan]", r"must have finite numbers.* Got \[0.5, NaN\]"),
        ("policy.deadline = [1979-05-27]", "must have finite numbers"),
    ],
)
def test_mistakes_are_explained(text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        read(text)


def test_draws_do_not_depend_on_other_draws() -> None:
    axis = RangeAxis("policy.deadline", 0.1, 10.0)
    assert axis.draw(0, 5) == axis.draw(0, 5)
    assert len({axis.draw(seed, sample) for seed in (0, 1) for sample in (0, 1)}) == 4
    assert axis.draw(0, 5) != RangeAxis("task.rate", 0.1, 10.0).draw(0, 5)


def test_whole_numbers_are_equally_likely() -> None:
    axis = RangeAxis("policy.quorum", 1, 4, integer=True)
    counts = Counter(axis.draw(0, sample) for sample in range(2000))
    assert {*counts} == {1, 2, 3, 4}
    error = math.sqrt(2000 * 0.25 * 0.75)
    assert all(abs(count - 500) < 5 * error for count in counts.values())


def test_logarithms_are_uniform() -> None:
    axis = RangeAxis("task.rate", 0.01, 100.0, log=True)
    logs = np.log10([axis.draw(0, sample) for sample in range(1000)])
    assert logs.min() >= -2
    assert logs.max() <= 2
    assert abs(logs.mean()) < 5 * logs.std() / math.sqrt(1000)
    whole = RangeAxis("policy.quorum", 1, 100, log=True, integer=True)
    assert {type(whole.draw(0, sample)) for sample in range(9)} == {int}


def test_values_of_a_list_are_drawn() -> None:
    axis = ListAxis("learner.name", ("mlp", "softmax"))
    assert {axis.draw(0, sample) for sample in range(50)} == {"mlp", "softmax"}
