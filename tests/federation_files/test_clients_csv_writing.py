"""Federations written to CSV are read again without loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cafe.errors import FileError, InputError
from cafe.federation import Federation
from cafe.federation_files import (
    load_federation,
    write_federation,
)
from cafe.latency import (
    Constant,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    ShiftedExponential,
    Uniform,
    Various,
    Weibull,
)
from cafe.phone_fleet import phones


def read_again(federation: Federation, folder: Path, **given: Any) -> Federation:
    write_federation(federation, folder / "written.csv", **given)
    return load_federation(folder / "written.csv")


def columns(federation: Federation) -> list[list[float]]:
    """All numbers that a federation holds: a list per quantity, an entry per client."""
    everyone = np.zeros(federation.kinds)
    reports = [federation.latency.cdf(t) + everyone for t in (0.3, 1.0, 20.0)]
    by_kind = [*reports, everyone + federation.availability, everyone + federation.per_step]
    examples = np.broadcast_to(federation.examples, federation.clients)
    return [*(federation.by_client(values).tolist() for values in by_kind), examples.tolist()]


WRITTEN = {
    "alike": lambda: Federation(3, Exponential(1 / 3)),
    "individuals": lambda: Federation.exponential([1 / 3, 2 / 3], [0.1, 0.7]),
    "shared latency": lambda: Federation(2, Gamma(2.0, 1 / 7), np.array([0.25, 0.5]), 10),
    "phones": lambda: phones(30, seed=2, availability=0.9),
    "phones that take steps": lambda: phones(30, seed=2, batch=10),
    "equal steps": lambda: Federation(3, Exponential(1.0), per_step=0.02),
    "unequal steps": lambda: Federation(
        4, Gamma(2.0, 1 / 7), kind=np.array([0, 1, 1, 0]), per_step=np.array([1 / 3, 0.0])
    ),
    "groups of which one takes steps": lambda: Federation.join(
        Federation(2, Weibull(0.7, 3.0), per_step=1e-3),
        Federation(2, Exponential(3.0)),
        Federation(1, Weibull(0.7, 2.0), per_step=np.array([1 / 7])),
    ),
    "groups": lambda: Federation.join(
        Federation.join(Federation(2, Weibull(0.7, 3.0)), Federation(1, Uniform(0.0, 1 / 3))),
        Federation(2, LogNormal(-0.1, 0.2, np.array([0.0, 1e-9])), examples=np.array([5, 6])),
        Federation(2, ShiftedExponential(0.1, 1e9), 0.3),
        Federation(1, Constant(1e-300)),
    ),
}


@pytest.mark.parametrize("make", WRITTEN.values(), ids=WRITTEN)
def test_written_file_is_read_back(tmp_path: Path, make: Any) -> None:
    assert columns(read_again(make(), tmp_path)) == columns(make())


def test_steps_that_take_no_time_are_not_written(tmp_path: Path) -> None:
    write_federation(Federation(2, Exponential(1.0)), tmp_path / "a.csv")
    assert "per_step" not in (tmp_path / "a.csv").read_text()
    write_federation(Federation(2, Exponential(1.0), per_step=0.25), tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text() == (
        "family,rate,per_step\nexponential,1.0,0.25\nexponential,1.0,0.25\n"
    )


@settings(derandomize=True, deadline=None, max_examples=30, database=None)
@given(rates=st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=20))
def test_every_float_is_written_exactly(
    tmp_path_factory: pytest.TempPathFactory, rates: list[float]
) -> None:
    federation = read_again(Federation.exponential(rates), tmp_path_factory.mktemp("exact"))
    assert federation.latency == Exponential(np.array(rates))


def test_names_are_written(tmp_path: Path) -> None:
    names = ["Smith, J.", 'say "x"', "é"]
    federation = Federation(3, Exponential(1.0))
    assert columns(read_again(federation, tmp_path, names=names)) == columns(federation)
    text = (tmp_path / "written.csv").read_text(encoding="utf-8")
    assert text.splitlines() == [
        "client,family,rate",
        '"Smith, J.",exponential,1.0',
        '"say ""x""",exponential,1.0',
        "é,exponential,1.0",
    ]


def test_unwritable_federations_are_refused(tmp_path: Path) -> None:
    federation = Federation(2, Exponential(1.0))
    with pytest.raises(InputError, match=r"one name for each of the 2 clients.* Got 1, of which 1"):
        write_federation(federation, tmp_path / "a.csv", names=["a"])
    with pytest.raises(InputError, match=r"all different. Got 2, of which 1"):
        write_federation(federation, tmp_path / "a.csv", names=["a", "a"])
    with pytest.raises(InputError, match="Got Empirical, whose parameters do not fit in a row"):
        write_federation(Federation(2, Empirical([1.0])), tmp_path / "a.csv")
    with pytest.raises(FileError, match=r"must end in .csv"):
        write_federation(federation, tmp_path / "a.toml")
    with pytest.raises(FileError, match=r"a.csv: the file cannot be written: there is no such"):
        write_federation(federation, tmp_path / "no" / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test_many_rows_are_read_as_arrays(tmp_path: Path) -> None:
    rng, clients = np.random.default_rng(0), 50_000
    half = Federation.exponential(rng.uniform(0.5, 2.0, clients // 2))
    rest = Federation(clients // 2, Weibull(rng.uniform(0.5, 2.0, clients // 2), 1.0))
    federation = Federation.join(half, rest)
    again = read_again(federation, tmp_path)
    assert columns(again) == columns(federation)
    assert isinstance(again.latency, Various)
    assert [part.kinds for part in again.latency.parts] == [clients // 2, clients // 2]
