"""The ServerApp takes what a brief has, and what the app's configuration says."""

from __future__ import annotations

from dataclasses import fields
from inspect import Parameter, signature

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

import cafe
from cafe.errors import InputError
from cafe.flower import server
from cafe.flower.server_app import _configured
from cafe.live.brief import Brief


def test_the_server_takes_what_a_plan_takes() -> None:
    taken = dict(signature(server).parameters)
    assert taken.pop("folder").default == "results/live"
    brief = {field.name: field for field in fields(Brief)}
    assert [*taken] == [*brief]
    for name, parameter in list(taken.items())[2:]:
        assert parameter.kind is Parameter.KEYWORD_ONLY
        assert parameter.default == brief[name].default


def test_mistakes_are_refused_where_the_app_is_written() -> None:
    policy, model = cafe.policies.mcu(quorum=1, deadline=1.0), {"w": np.zeros(2)}
    with pytest.raises(InputError, match="when to stop"):
        server(policy, model)
    with pytest.raises(InputError, match="'clients'"):
        server(policy, model, rounds=1, evaluate="nodes")


def test_a_limit_in_the_configuration_takes_the_place_of_all_in_the_app() -> None:
    assert _configured({"rounds": 5, "folder": "x"}) == {
        "rounds": 5,
        "updates": None,
        "time": None,
    }
    assert _configured({"rounds": 0, "seed": 3}) == {"seed": 3}
