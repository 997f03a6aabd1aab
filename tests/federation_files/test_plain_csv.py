"""A file without faults is read quickly, with the same numbers as line by line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cafe.federation_files import clients_csv
from cafe.federation_files.plain_csv import plain_columns

FAMILIES = {"exponential": 0, "weibull": 1}
PLAIN = [
    "rate\n1.5\n2\n",
    "rate,availability\n 1.5 , 0.5\n2e-3,1\n",
    "client,rate\na,1\nb,2",
    'client,rate\r\n"a, b",1\r\nb,2\r\n',
    "family,rate,shape,scale\nexponential,1,,\nweibull,, 2,3\n",
]
FAULTY = [
    "rate\n",
    "rate\n1\n\n2\n",
    "rate\n1,2\n",
    "rate\n1_0\n",
    "rate\nnan\n",
    "rate\ninf\n",
    "rate\nfast\n",
    'rate\n"1\n',
    "client,rate\na,1\na,2\n",
    'client,rate\n"a\nb",1\n',
    "family,rate\nslow,1\n",
]


@pytest.mark.parametrize("text", PLAIN)
def test_both_ways_give_the_same_columns(text: str) -> None:
    path = Path("clients.csv")
    quick = clients_csv._quick_columns(path, text)
    slow = clients_csv._columns(path, clients_csv._lines(path, text))
    assert quick is not None
    assert quick.lines.tolist() == slow.lines.tolist()
    assert quick.families.tolist() == slow.families.tolist()
    assert list(quick.numbers) == list(slow.numbers)
    for name, values in slow.numbers.items():
        assert np.array_equal(quick.numbers[name], values, equal_nan=True)


@pytest.mark.parametrize("text", FAULTY)
def test_a_file_that_may_have_a_fault_is_left_to_the_slow_way(text: str) -> None:
    header = text.split("\n", 1)[0].split(",")
    assert plain_columns(text, header, FAMILIES, "exponential") is None


def test_many_rows_are_read_in_chunks() -> None:
    rates = np.random.default_rng(0).uniform(0.1, 3, 5001)
    text = "client,rate\n" + "".join(f"c{i},{x!r}\n" for i, x in enumerate(rates.tolist()))
    found = plain_columns(text, ["client", "rate"], FAMILIES, "exponential")
    assert found is not None
    assert np.array_equal(found.numbers["rate"], rates)
    again = text + "c4,1.0\n"
    assert plain_columns(again, ["client", "rate"], FAMILIES, "exponential") is None
