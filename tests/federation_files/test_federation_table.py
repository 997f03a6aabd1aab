"""The table [federation]: what is read, and what is an error."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cafe.latency
from cafe.errors import FileError
from cafe.federation import Federation
from cafe.federation_files import (
    family_name,
    federation_from_table,
    latency_from_table,
)
from cafe.latency import (
    Constant,
    Empirical,
    Exponential,
    Gamma,
    Latency,
    LogNormal,
    Mixture,
    ShiftedExponential,
    Uniform,
    Weibull,
)
from cafe.phone_fleet import phones
from tests.support.federation_files import loaded, refused

EVERY_FAMILY: list[tuple[dict[str, Any], Latency]] = [
    ({"family": "exponential", "rate": 2}, Exponential(2.0)),
    ({"family": "shifted-exponential", "shift": 1.0, "rate": 2.0}, ShiftedExponential(1.0, 2.0)),
    ({"family": "weibull", "shape": 0.8, "scale": 2.0}, Weibull(0.8, 2.0)),
    ({"family": "lognormal", "mu": -1.0, "sigma": 0.5}, LogNormal(-1.0, 0.5)),
    ({"family": "lognormal", "mu": 0.0, "sigma": 0.5, "shift": 3.0}, LogNormal(0.0, 0.5, 3.0)),
    ({"family": "gamma", "shape": 3.0, "scale": 1.0}, Gamma(3.0, 1.0)),
    ({"family": "uniform", "low": 0.0, "high": 1.0}, Uniform(0.0, 1.0)),
    ({"family": "constant", "value": 4.0}, Constant(4.0)),
    ({"family": "empirical", "times": [1.0, 2.0]}, Empirical([1.0, 2.0])),
    ({"family": "empirical", "times": [1, 2], "weights": [1, 3]}, Empirical([1, 2], [1, 3])),
    (
        {
            "family": "mixture",
            "weights": [1, 3],
            "components": [
                {"family": "constant", "value": 1.0},
                {"family": "exponential", "rate": 1.0},
            ],
        },
        Mixture([Constant(1.0), Exponential(1.0)], [1.0, 3.0]),
    ),
]


@pytest.mark.parametrize(("table", "latency"), EVERY_FAMILY)
def test_every_family_is_read(table: dict[str, Any], latency: Latency) -> None:
    assert latency_from_table(table) == latency


def test_every_family_has_an_example() -> None:
    exported = [getattr(cafe.latency, name) for name in cafe.latency.__all__]
    concrete = [c for c in exported if inspect.isclass(c) and issubclass(c, Latency)]
    named = {family_name(c) for c in concrete if not inspect.isabstract(c)}
    assert named - {"various"} == {table["family"] for table, _ in EVERY_FAMILY}


def test_reading_does_not_change_the_table() -> None:
    table = {"clients": 3, "latency": {"family": "exponential", "rate": 1.0}}
    federation_from_table(table)
    assert table == {"clients": 3, "latency": {"family": "exponential", "rate": 1.0}}


def test_table_of_equal_clients(tmp_path: Path) -> None:
    text = """
        [federation]
        clients = 100
        latency = { family = "exponential", rate = 1.5 }
        availability = 0.9
        examples = 600
    """
    federation = loaded(tmp_path, text, "fleet.toml")
    assert federation.clients == 100
    assert federation.latency == Exponential(1.5)
    assert federation.availability == 0.9
    assert federation.examples == 600


def test_a_rate_is_short_for_an_exponential_latency(tmp_path: Path) -> None:
    federation = loaded(tmp_path, "[federation]\nclients = 3\nrate = 2", "fleet.TOML")
    assert federation.latency == Exponential(2.0)
    assert federation.availability == 1.0
    assert federation.examples == 1


def test_groups_are_joined_in_their_order(tmp_path: Path) -> None:
    text = """
        [[federation.group]]
        clients = 2
        latency = { family = "weibull", shape = 0.8, scale = 2.0 }
        availability = 0.7
        [[federation.group]]
        clients = 3
        rate = 1.0
        examples = 10
        [[federation.group]]
        preset = "phones"
        clients = 4
        seed = 1
    """
    federation = loaded(tmp_path, text, "fleet.toml")
    expected = Federation.join(
        Federation(2, Weibull(0.8, 2.0), 0.7),
        Federation(3, Exponential(1.0), examples=10),
        phones(4, seed=1),
    )
    assert federation.latency == expected.latency
    assert np.array_equal(federation.kind_of_client, expected.kind_of_client)
    assert np.array_equal(federation.availability, expected.availability)
    assert np.array_equal(federation.examples, expected.examples)


def test_steps_take_time_in_a_table_and_in_groups(tmp_path: Path) -> None:
    alike = loaded(tmp_path, "[federation]\nclients = 3\nrate = 1\nper_step = 0.02", "fleet.toml")
    assert alike.per_step == 0.02
    text = """
        [[federation.group]]
        clients = 2
        rate = 1.0
        per_step = 1
        [[federation.group]]
        clients = 1
        latency = { family = "constant", value = 2.0 }
        [[federation.group]]
        preset = "phones"
        clients = 2
        batch = 10
    """
    groups = loaded(tmp_path, text, "fleet.toml")
    fleet = phones(2, batch=10).step_time(np.arange(2)).tolist()
    assert groups.step_time(np.arange(5)).tolist() == [1.0, 1.0, 0.0, *fleet]


def test_a_preset_takes_the_arguments_of_its_function(tmp_path: Path) -> None:
    text = """
        [federation]
        preset = "phones"
        clients = 20
        seed = 1
        examples = 40
        seconds_per_example = 1
        model_kbytes = 100.0
        availability = 0.5
    """
    federation = loaded(tmp_path, text, "fleet.toml")
    expected = phones(20, 1, 40, 1.0, 100.0, 0.5)
    assert federation.latency == expected.latency
    assert federation.availability == 0.5


BAD_TOML = {
    "clients = ": "line 2: this is not valid TOML",
    "clients 3": "line 2: this is not valid TOML. Expected '='",
    'clients = "100"\nrate = 1': "federation.clients must be a whole number. Got the text '100'",
    "clients = 2.5\nrate = 1": "federation.clients must be a whole number. Got 2.5",
    "clients = true\nrate = 1": "federation.clients must be a whole number. Got true",
    "clients = 0\nrate = 1": "federation: A federation needs at least 1 client. Got 0",
    "clients = 3\nrate = []": "federation.rate must be a number. Got a list",
    "clients = 3\nrate = 0": "federation: Exponential's rate must be positive and finite. Got 0",
    "clients = 3\nrate = -1": "rate must be positive and finite. Got -1",
    "clients = 3\nrate = inf": "rate must be positive and finite. Got inf",
    "clients = 3\nrate = nan": "rate must be positive and finite. Got nan",
    "cliens = 3\nrate = 1": "the key federation.cliens is not known. Did you mean 'clients'?",
    "rate = 1": "federation.clients is missing: add a whole number, such as clients = 100.",
    "clients = 3": "federation needs either a rate or a latency. Got neither",
    "clients = 3\nrate = 1\nlatency = {}": "either a rate or a latency. Got both",
    'clients = 3\nlatency = "exponential"': "federation.latency must be a table. Got the text",
    "clients = 3\nlatency = {}": "federation.latency.family is missing. Known: constant,",
    "clients = 3\nlatency = { family = 1 }": "federation.latency.family must be text in quotes",
    'clients = 3\nlatency = { family = "weibul" }': "Got 'weibul'. Did you mean 'weibull'?",
    'clients = 3\nlatency = { family = "various" }': "Got 'various'. Known:",
    'clients = 3\nlatency = { famly = "gamma", shape = 1 }': (
        "the key federation.latency.famly is not known. Did you mean 'family'?"
    ),
    'clients = 3\nlatency = { name = "gamma", shape = 1 }': (
        "the key federation.latency.name is not known. Did you mean 'family'?"
    ),
    'clients = 3\nlatency = { family = "gamma", shape = 1 }': "federation.latency.scale is missing",
    'clients = 3\nlatency = { family = "constant", valeu = 1 }': "Did you mean 'value'?",
    'clients = 3\nlatency = { family = "empirical", times = [1, "2"] }': (
        "federation.latency.times, entry 2, must be a number. Got the text '2'"
    ),
    'clients = 3\nlatency = { family = "empirical", times = [] }': (
        "federation.latency: Empirical's times must be"
    ),
    'clients = 3\nlatency = { family = "empirical", times = [1], kinds = 3 }': (
        "the key federation.latency.kinds is not known"
    ),
    'clients = 3\nlatency = { family = "mixture", weights = [1], components = [2] }': (
        "federation.latency.components, entry 1, must be a table. Got 2"
    ),
    'clients = 3\nlatency = { family = "mixture", weights = [1], components = [{ rate = 1 }] }': (
        "federation.latency.components 1.family is missing"
    ),
    "clients = 3\nrate = 1\navailability = 1.5": "federation: Availability.* Got 1.5",
    "clients = 3\nrate = 1\nper_step = -1": "federation: per_step, the time .* Got -1",
    "clients = 3\nrate = 1\nper_step = inf": "federation: per_step, the time .* Got inf",
    "clients = 3\nrate = 1\nper_step = true": "federation.per_step must be a number. Got true",
    "per_step = 1\n[[federation.group]]\nclients = 3": "federation.per_step cannot stand beside",
    'preset = "phones"\nmodel_kbytes = 1e308': "federation: phones: model_kbytes must lie between",
    'preset = "phones"\nmodel_kbytes = 1e-320': "federation: phones: model_kbytes must lie between",
    'preset = "phones"\nbatch = 0': "federation: phones: batch must be a whole number, 1 or more",
    "clients = 3\nrate = 1\nexamples = -1": "federation: A client's examples.* Got -1",
    "clients = 3\nrate = 1\nexamples = 1979-05-27": "must be a whole number. Got 1979-05-27",
    "preset = 3": 'federation.preset must be text in quotes. Got 3: write preset = "phones"',
    'preset = "phons"': "federation.preset must be a known name. Got 'phons'. Did you",
    'preset = "phones"\nsede = 1': "the key federation.sede is not known. Did you mean 'seed'?",
    'preset = "phones"\nseed = 1.5': "federation.seed must be a whole number. Got 1.5",
    'preset = "phones"\nseed = -1': "federation: phones: seed must be .* Got -1",
    "group = []": "federation.group must have at least one group",
    "group = [1]": "federation.group, entry 1, must be a table",
    "[federation.group]\nclients = 3": "federation.group must be a list.* with two brackets",
    "clients = 3\n[[federation.group]]\nclients = 3": "federation.clients cannot stand beside",
    "[[federation.group]]\nclients = 3\nrate = 1\n[[federation.group]]\nrate = 1": (
        "federation.group 2.clients is missing"
    ),
    "groups = []": "the key federation.groups is not known|Did you mean 'group'",
    "clients = 3\nrate = 1\n[polcy]": "the key polcy is not known. Did you mean 'policy'?",
}


@pytest.mark.parametrize(("lines", "said"), BAD_TOML.items())
def test_bad_toml_is_refused(tmp_path: Path, lines: str, said: str) -> None:
    assert re.search(said, refused(tmp_path, f"[federation]\n{lines}", "fleet.toml"))


def test_messages_about_tables_name_their_source() -> None:
    with pytest.raises(FileError, match=r"^page: the key federation.x is not known"):
        federation_from_table({"x": 1}, where="page")
    with pytest.raises(FileError, match=r"^latency: rate is missing"):
        latency_from_table({"family": "exponential"})
    with pytest.raises(FileError, match=r"^--latency: Exponential's rate must be positive"):
        latency_from_table({"family": "exponential", "rate": 0.0}, where="--latency")
