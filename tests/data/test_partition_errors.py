"""Partitions raise errors for impossible options and numbers of clients."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from cafe.data import (
    IID,
    Biased,
    Classes,
    Dirichlet,
    Partition,
    Quantity,
    Random,
    Single,
)
from cafe.errors import InputError
from tests.support.labels import TEN, labels_of, spread


@pytest.mark.parametrize("partition", [Dirichlet(least=4), Quantity(least=4)])
def test_too_few_examples_for_the_minimum_are_refused(partition: Partition) -> None:
    labels = labels_of(10, 10)
    assert spread(partition, labels, 5).counts.tolist() == [4] * 5
    with pytest.raises(
        InputError, match=r"at least 4 of the 20 labelled examples\. 6 clients need 24"
    ):
        spread(partition, labels, 6)


@pytest.mark.parametrize(
    ("partition", "clients", "option"),
    [
        (IID(), 31, "per_client"),
        (Classes(each=5), 200, "per_client"),
        (Single(), 311, "most"),
        (Single(least=16), 20, "most"),
        (Biased(), 400, "per_client"),
        (Biased(points=16), 40, "per_client"),
        (Random(), 100, "most"),
        (Random(least=20), 12, "most"),
    ],
    ids=repr,
)
def test_rows_are_shared_only_with_the_option(
    partition: Partition, clients: int, option: str
) -> None:
    with pytest.raises(
        InputError, match=f"too few examples .* or set {option}; clients then share"
    ):
        spread(partition, TEN, clients)


@pytest.mark.parametrize(
    "partition", [IID(310), Classes(1, 36), Single(36, 36), Biased(0.1, 31, 31), Random(36, 36)]
)
def test_more_examples_per_client_than_exist_are_refused(partition: Partition) -> None:
    with pytest.raises(InputError, match="ask for fewer per client"):
        spread(partition, TEN, 10)


@pytest.mark.parametrize("partition", [Classes(), Single(), Biased(), Random(), Dirichlet()])
def test_values_without_classes_are_refused(partition: Partition) -> None:
    with pytest.raises(InputError, match="use IID or Quantity"):
        spread(partition, np.linspace(0, 1, 50), 3)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: IID(per_client=0), "IID's per_client must be a whole number from 1 up. Got 0"),
        (lambda: IID(per_client=True), "Got True"),
        (lambda: IID(per_client=10.0), r"Got 10\.0"),  # type: ignore[arg-type]
        (lambda: Classes(each=0), "Classes's each"),
        (lambda: Classes(each=3, per_client=2), "per_client must be a whole number from 3 up"),
        (lambda: Single(least=0), "Single's least"),
        (lambda: Single(least=5, most=4), "most must be a whole number from 5 up. Got 4"),
        (lambda: Random(least=5, most=4), "most must be a whole number from 5 up. Got 4"),
        (lambda: Biased(share=1.0), "share must be below 1. Got 1.0"),
        (lambda: Biased(share=-0.1), "Got -0.1"),
        (lambda: Biased(share=math.nan), "Got nan"),
        (lambda: Biased(points=0), "Biased's points"),
        (lambda: Biased(points=5, per_client=4), "per_client must be a whole number from 5 up"),
        (lambda: Dirichlet(alpha=0), "Dirichlet's alpha must be a positive number"),
        (lambda: Dirichlet(alpha=math.inf), "Got inf"),
        (lambda: Dirichlet(least=0), "Dirichlet's least"),
        (lambda: Quantity(alpha=2e9), "Quantity's alpha"),
        (lambda: Quantity(least=1.5), "Quantity's least"),  # type: ignore[arg-type]
    ],
)
def test_invalid_options_are_refused(make: Callable[[], Partition], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()
