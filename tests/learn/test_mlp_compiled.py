from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cafe.errors import InputError
from cafe.learn.local_steps import LocalSteps
from cafe.learn.mlp import MLP
from tests.support.slow_mlp import a_model, examples, near, nets, slow_sum


@pytest.fixture
def compiled() -> Any:
    pytest.importorskip("numba")
    from cafe.learn import mlp_compiled

    return mlp_compiled


@nets
def test_compiled_gradient(net: MLP, compiled: Any) -> None:
    net = dataclasses.replace(net, compiled=True)
    data, model = examples(net), a_model(net)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(data), 150)
    weight = rng.standard_normal(150).astype(np.float32)
    weight[::7] = 0.0
    wanted = slow_sum(net, model.astype(float), data, rows, weight)
    near(net.gradient(model, data, rows, weight), wanted)


def test_compiled_and_numpy_agree_up_to_rounding(compiled: Any) -> None:
    plain = MLP(30, 7, hidden=(40, 20), threads=2)
    fast = dataclasses.replace(plain, compiled=True)
    data, model = examples(plain, 500), a_model(plain)
    rows = np.arange(500)
    weight = np.full(500, 0.01, np.float32)
    expected = plain.gradient(model, data, rows, weight)
    found = fast.gradient(model, data, rows, weight)
    np.testing.assert_allclose(found, expected, atol=2e-6 * np.abs(expected).max())
    assert np.array_equal(found, fast.gradient(model, data, rows, weight)), "the same bytes"
    one = LocalSteps(rows.reshape(5, 1, 100), np.full((5, 1, 100), 0.01), np.full((5, 1), 0.1))
    share = np.full(5, 0.2)
    moved = fast.update(model, data, one, share)
    np.testing.assert_allclose(moved, plain.update(model, data, one, share), rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 30 * 40 - 1, -1])
def test_diverged_models_stay_visible(compiled: Any, wrong: float, where: int) -> None:
    net = MLP(30, 7, hidden=(40,), compiled=True)
    data, model = examples(net, 200), a_model(net)
    model[where] = wrong
    found = net.gradient(model, data, np.arange(200), np.ones(200, np.float32))
    plain = dataclasses.replace(net, compiled=False)
    expected = plain.gradient(model, data, np.arange(200), np.ones(200, np.float32))
    assert np.isfinite(found).all() == np.isfinite(expected).all()


def test_exponentials(compiled: Any) -> None:
    values = np.concatenate([np.linspace(-86.9, 0.0, 200_000), [-0.0, -1e-30]]).astype(np.float32)
    found = values.copy()
    compiled.exponentials(found)
    np.testing.assert_allclose(found, np.exp(values.astype(float)), rtol=3e-7)
    small: NDArray[np.float32] = np.array([-88.0, -1e4, -np.inf, np.nan], np.float32)
    compiled.exponentials(small)
    assert (small[:3] < 2e-38).all()
    assert (small[:3] >= 0.0).all()
    assert np.isnan(small[3])


def test_blas_that_is_loaded_late_is_limited_too() -> None:
    """Within a limit that began before SciPy's BLAS was loaded; in a process that has neither."""
    pytest.importorskip("numba")
    script = """
import numpy as np
from threadpoolctl import threadpool_info
from cafe.data.examples import Examples
from cafe.learn.mlp import MLP
from cafe.learn.threads import one_blas_thread

def numbers():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

before = numbers()
with one_blas_thread():
    few = len(numbers())
    MLP(4, 2, hidden=(3,), compiled=True)
    assert len(numbers()) > few, "SciPy's BLAS is new"
    assert set(numbers()) == {1}, numbers()
assert set(numbers()) == set(before), (before, numbers())
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_compiled_learner_can_be_sent_to_another_process(compiled: Any) -> None:
    net = MLP(5, 2, hidden=(3,), compiled=True)
    assert pickle.loads(pickle.dumps(net)) == net


def test_numba_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "cafe.learn.mlp_compiled", raising=False)
    with pytest.raises(
        InputError, match=r"needs Numba, which cannot be .*pip install 'cafe-fl\[fast"
    ):
        MLP(5, 2, compiled=True)


def test_wrong_value() -> None:
    with pytest.raises(InputError, match=r"compiled must be true or false\. Got 'yes'"):
        MLP(5, 2, compiled="yes")  # type: ignore[arg-type]
