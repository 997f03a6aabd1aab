"""Families by mean and standard deviation: the moments come back, and only parameters are kept."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Exponential, Gamma, LogNormal
from cafe.latency.base import Family

WORD: Any = "2"


@pytest.mark.parametrize("family", [LogNormal, Gamma])
@pytest.mark.parametrize(("mean", "std"), [(8.0, 3.0), (1.0, 5.0), (100.0, 0.5)])
def test_moments_of_a_sample(family: type[Any], mean: float, std: float) -> None:
    latency = family(mean=mean, std=std)
    assert float(latency.mean()) == pytest.approx(mean, rel=1e-12)
    # The second moment by the quantile function, on a fine grid of probabilities.
    u = (np.arange(400_000) + 0.5) / 400_000
    times = latency.quantile(u)
    assert times.std() == pytest.approx(std, rel=0.05 if std > mean else 1e-3)


def test_only_parameters_are_stored() -> None:
    assert Exponential(mean=4.0) == Exponential(0.25)
    assert hash(Exponential(mean=4.0)) == hash(Exponential(rate=0.25))
    assert Exponential(mean=4.0).parameters == {"rate": 0.25}
    assert Gamma(mean=6.0, std=3.0) == Gamma(4.0, 1.5)
    shifted = LogNormal(mean=8.0, std=3.0, shift=2.0)
    assert shifted.parameters.keys() == {"mu", "sigma", "shift"}
    assert float(shifted.mean()) == pytest.approx(8.0)
    assert pickle.loads(pickle.dumps(shifted)) == shifted
    assert "mean" not in repr(shifted)


def test_one_mean_per_kind() -> None:
    latency = LogNormal(mean=np.array([4.0, 8.0, 16.0]), std=2.0)
    assert latency.mean() == pytest.approx([4.0, 8.0, 16.0])
    assert Federation(3, latency).kinds == 3
    assert Exponential(mean=np.array([1.0, 2.0])) == Exponential(np.array([1.0, 0.5]))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Exponential(), "rate must be a number.*or mean instead"),
        (lambda: Exponential(1.0, mean=2.0), "give one complete set"),
        (lambda: Exponential(mean=0.0), "mean must be positive"),
        (lambda: Exponential(mean=WORD), "mean must be a number"),
        (lambda: LogNormal(mean=3.0), "Got mean: give one complete set"),
        (lambda: LogNormal(0.0, mean=3.0, std=1.0), "Got mu and mean and std"),
        (lambda: LogNormal(mean=3.0, std=-1.0), "std must be positive"),
        (lambda: LogNormal(mean=3.0, std=1.0, shift=3.0), "above its shift"),
        (lambda: LogNormal(mean=np.ones(2), std=np.ones(3)), "one length"),
        (lambda: Gamma(mean=np.nan, std=1.0), "mean must be positive"),
        (lambda: Gamma(std=1.0), "Got std"),
        (lambda: Gamma(2.0), "scale must be a number.*or mean and std instead"),
    ],
)
def test_mistakes_are_sentences(call: Callable[[], Family], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
