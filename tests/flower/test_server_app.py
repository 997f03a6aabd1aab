"""The ServerApp takes the options of ``ServerConfig`` and the values of the app's configuration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

import cafe
from cafe.errors import InputError
from cafe.flower import server
from cafe.flower.server_app import _read_config


def test_wrong_arguments_are_refused_in_the_app() -> None:
    policy, model = cafe.policies.mcu(quorum=1, deadline=1.0), {"w": np.zeros(2)}
    with pytest.raises(InputError, match="rounds, updates and time"):
        server(policy, model)
    with pytest.raises(InputError, match="'clients'"):
        server(policy, model, rounds=1, evaluate="nodes")
    with pytest.raises(InputError, match=r"'round'. Did you mean 'rounds'"):
        server(policy, model, round=1)


def test_limit_in_the_configuration_replaces_all_limits_in_the_app() -> None:
    assert _read_config({"rounds": 5, "folder": "x"}) == {
        "rounds": 5,
        "updates": None,
        "time": None,
    }
    assert _read_config({"rounds": 0, "seed": 3}) == {"seed": 3}


def test_secure_aggregation_in_the_app_and_in_its_configuration() -> None:
    policy, model = cafe.policies.mcu(quorum=1, deadline=1.0), {"w": np.zeros(2)}
    server(policy, model, rounds=1, secure_aggregation=True)
    with pytest.raises(InputError, match="must be true or false"):
        server(policy, model, rounds=1, secure_aggregation="yes")
    assert _read_config({"secure_aggregation": True}) == {"secure_aggregation": True}
    assert _read_config({"secure_aggregation": False}) == {"secure_aggregation": False}


def test_a_policy_may_be_named_in_the_app_and_in_its_configuration() -> None:
    told = {"policy.name": "mcu", "policy.quorum": 3, "policy.deadline": 2.0, "seed": 1}
    assert str(_read_config(told)["policy"]) == "mcu(quorum=3, deadline=2.0)"
    own = {"policy.name": "tests.flower.test_server_app:patient", "policy.seconds": 4.0}
    assert _read_config(own)["policy"].deadline == 4.0
    server("tests.flower.test_server_app:patient", {"w": np.zeros(2)}, rounds=1)
    with pytest.raises(InputError, match=r"configuration: .*policy\.quorum.*missing"):
        _read_config({"policy.name": "mcu", "policy.deadline": 2.0})
    with pytest.raises(InputError, match="nowhere"):
        server("nowhere:patient", {"w": np.zeros(2)}, rounds=1)


def test_two_levels_are_refused() -> None:
    policy: Any = cafe.policies.mcu(quorum=1, deadline=1.0)
    cluster: Any = cafe.Cluster(cafe.Federation(3, cafe.Exponential(1.0)), policy)
    several: Any = [cluster]
    hierarchy: Any = cafe.policies.hierarchical(clusters=2, goal=1)
    for given in (cluster, several, hierarchy):
        with pytest.raises(InputError, match="in simulation only"):
            server(given, {"w": np.zeros(2)}, rounds=1)


def patient(seconds: float = 9.0) -> cafe.Policy:
    """A custom policy of an app."""
    return cafe.policies.mcu(quorum=1, deadline=seconds)
