from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cafe.latency
from cafe.errors import FileError, InputError
from cafe.federation import Federation
from cafe.federation_files import (
    family_name,
    federation_from_table,
    latency_from_table,
    load_federation,
    write_federation,
)
from cafe.fleet import phones
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
    Various,
    Weibull,
)

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


def loaded(folder: Path, text: str | bytes, name: str) -> Federation:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_federation(path)


def refused(folder: Path, text: str | bytes, name: str) -> str:
    """The message about a file, which must begin with the file and read as sentences."""
    with pytest.raises(FileError) as caught:
        loaded(folder, text, name)
    message = str(caught.value)
    assert message.startswith(str(folder / name))
    assert message.endswith((".", "?"))
    assert not re.search(r"pydantic|validation|\bloc\b|Traceback|None", message)
    return message.removeprefix(str(folder / name))


# ---------------------------------------------------------------- TOML that is read


@pytest.mark.parametrize(("table", "latency"), EVERY_FAMILY)
def test_every_family_is_read(table: dict[str, Any], latency: Latency) -> None:
    assert latency_from_table(table) == latency


def test_no_family_is_forgotten() -> None:
    exported = [getattr(cafe.latency, name) for name in cafe.latency.__all__]
    concrete = [c for c in exported if inspect.isclass(c) and issubclass(c, Latency)]
    named = {family_name(c) for c in concrete if not inspect.isabstract(c)}
    assert named - {"various"} == {table["family"] for table, _ in EVERY_FAMILY}


def test_tables_are_left_as_they_were() -> None:
    table = {"clients": 3, "latency": {"family": "exponential", "rate": 1.0}}
    federation_from_table(table)
    assert table == {"clients": 3, "latency": {"family": "exponential", "rate": 1.0}}


def test_clients_that_are_alike(tmp_path: Path) -> None:
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


def test_byte_order_mark_and_crlf_are_read(tmp_path: Path) -> None:
    toml = b"\xef\xbb\xbf[federation]\r\nclients = 3\r\nrate = 2.0\r\n"
    assert loaded(tmp_path, toml, "fleet.toml").clients == 3
    table = b"\xef\xbb\xbfrate\r\n1.0\r\n2.0\r\n"
    assert loaded(tmp_path, table, "fleet.csv").latency == Exponential(np.array([1.0, 2.0]))


# ---------------------------------------------------------------- TOML that is refused

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
def test_bad_toml_is_refused_in_a_sentence(tmp_path: Path, lines: str, said: str) -> None:
    assert re.search(said, refused(tmp_path, f"[federation]\n{lines}", "fleet.toml"))


def test_toml_without_a_federation_is_refused(tmp_path: Path) -> None:
    assert "federation is missing: add a table" in refused(tmp_path, "", "fleet.toml")
    assert "federation must be a table. Got 1" in refused(tmp_path, "federation = 1", "fleet.toml")
    message = refused(tmp_path, "[federatoin]\nclients = 3", "fleet.toml")
    assert "the key federatoin is not known. Did you mean 'federation'?" in message


def test_an_unfinished_toml_file_is_refused_at_its_end(tmp_path: Path) -> None:
    message = refused(tmp_path, '[federation]\nclients = 3\nrate = """\n\n', "fleet.toml")
    assert message.startswith(", line 4: this is not valid TOML")


def test_messages_about_tables_say_where_they_are_from() -> None:
    with pytest.raises(FileError, match=r"^page: the key federation.x is not known"):
        federation_from_table({"x": 1}, where="page")
    with pytest.raises(FileError, match=r"^latency: rate is missing"):
        latency_from_table({"family": "exponential"})
    with pytest.raises(FileError, match=r"^--latency: Exponential's rate must be positive"):
        latency_from_table({"family": "exponential", "rate": 0.0}, where="--latency")


# ---------------------------------------------------------------- CSV that is read


def test_a_column_of_rates(tmp_path: Path) -> None:
    federation = loaded(tmp_path, "rate\n0.5\n 2 \n1e-3\n\n", "fleet.csv")
    assert federation.latency == Exponential(np.array([0.5, 2.0, 1e-3]))
    assert federation.kind is None
    assert federation.availability == 1.0
    assert federation.examples == 1


def test_names_availability_and_examples(tmp_path: Path) -> None:
    text = 'examples,client, rate ,availability\n10,"Smith, J.",1,0.5\n20,b,2,1\n'
    federation = loaded(tmp_path, text, "fleet.csv")
    assert federation.latency == Exponential(np.array([1.0, 2.0]))
    assert np.array_equal(federation.availability, [0.5, 1.0])
    assert np.array_equal(federation.examples, [10, 20])


def test_rows_of_one_family_are_one_latency(tmp_path: Path) -> None:
    text = "family,mu,sigma,shift,rate\nlognormal,1,2,,\nlognormal,3,4,5,\n"
    federation = loaded(tmp_path, text, "fleet.csv")
    both = LogNormal(np.array([1.0, 3.0]), np.array([2.0, 4.0]), np.array([0.0, 5.0]))
    assert federation.latency == both
    assert federation.kind is None


def test_a_parameter_that_is_left_out_has_its_default(tmp_path: Path) -> None:
    federation = loaded(tmp_path, "family,mu,sigma\nlognormal,1,2\n", "fleet.csv")
    assert federation.latency == LogNormal(np.array([1.0]), np.array([2.0]))


def test_rows_of_several_families_keep_their_order(tmp_path: Path) -> None:
    text = (
        "client,family,rate,shape,scale,value,availability\n"
        "a,weibull,,0.8,2.0,,0.5\n"
        "b,exponential,1.5,,,,0.6\n"
        "c,constant,,,,3.0,0.7\n"
        "d,weibull,,1.2,1.0,,0.8\n"
        "e,exponential,0.5,,,,0.9\n"
    )
    federation = loaded(tmp_path, text, "fleet.csv")
    alone = [Weibull(0.8, 2.0), Exponential(1.5), Constant(3.0), Weibull(1.2, 1.0)]
    rows: list[Latency] = [*alone, Exponential(0.5)]
    assert isinstance(federation.latency, Various)
    assert len(federation.latency.parts) == 3
    assert np.array_equal(federation.by_client(federation.availability), [0.5, 0.6, 0.7, 0.8, 0.9])
    for t in (0.5, 1.0, 4.0):
        expected = [row.cdf(t) for row in rows]
        np.testing.assert_array_equal(federation.by_client(federation.latency.cdf(t)), expected)


def test_steps_of_several_families_keep_their_order(tmp_path: Path) -> None:
    text = (
        "family,rate,shape,scale,per_step\n"
        "weibull,,0.8,2.0,0.5\n"
        "exponential,1.5,,,0\n"
        "weibull,,1.2,1.0,0.25\n"
        "exponential,0.5,,,1e-3\n"
    )
    federation = loaded(tmp_path, text, "fleet.csv")
    assert federation.step_time(np.arange(4)).tolist() == [0.5, 0.0, 0.25, 1e-3]
    after = federation.at_steps(2)
    expected = [Weibull(0.8, 2.0).cdf(1.0), Exponential(1.5).cdf(2.0), Weibull(1.2, 1.0).cdf(1.5)]
    np.testing.assert_allclose(after.by_client(after.report(2.0))[:3], expected, rtol=1e-14)


# ---------------------------------------------------------------- CSV that is refused

BAD_CSV = {
    "": ": the first line must name the columns",
    "\n\n": ": the first line must name the columns",
    "rate\n": ": there must be at least one client",
    "1.0\n2.0\n": "line 1: the first line must name the columns.* Got '1.0'",
    "client;rate\na;1\n": "line 1: .*separated by commas. Got 'client;rate'",
    "raet\n1\n": "line 1: .* Got 'raet', which is not known. Did you mean 'rate'?",
    "rate,\n1,\n": "line 1: .* Got ''",
    "rate,rate\n1,1\n": "line 1: the column rate appears twice",
    "client\na\n": "line 1: there must be a column rate or a column family",
    "shape,scale\n1,1\n": "line 1: a file with the column shape must have a column family",
    "rate\n1\nfast\n": "line 3: rate must be a finite number. Got 'fast'",
    "rate\n1\n0\n2\n": "line 3: Exponential's rate must be positive and finite. Got 0",
    "rate\n1\n-2\n0\n": "line 3: Exponential's rate must be positive and finite. Got -2",
    "rate\ninf\n": "line 2: rate must be a finite number. Got 'inf'",
    "rate\n1\n1\nNaN\n": "line 4: rate must be a finite number. Got 'NaN'",
    "rate,client\n,a\n": "line 2: exponential needs the parameter rate",
    "rate,client\n1,a\n2\n": "line 3: a row must have 2 cells.* Got 1",
    "rate\n1\n2,3\n": "line 3: a row must have 1 cell,.* Got 2",
    "rate\n1\n\n2\n": "line 3: blank lines are allowed only at the end",
    "rate,client\n1,a\n2,b\n3,a\n": "line 4: every client must have one row. Got 'a' .* line 2",
    "family,rate\nexponential,1\nexponentail,1\n": (
        "line 3: there is no family 'exponentail' in CSV. Did you mean 'exponential'?"
    ),
    "family,rate\nmixture,1\n": "line 2: there is no family 'mixture' in CSV.* TOML",
    "family,rate\n,1\n": "line 2: there is no family ''",
    "family,rate\nexponential,1\nweibull,\n": "line 3: weibull needs the parameter shape",
    "family,shape,scale\nweibull,1,1\nweibull,2,\n": "line 3: weibull needs the parameter scale",
    "family,rate,value\nexponential,1,\nconstant,1,2\n": "line 3: constant has no parameter rate",
    "family,low,high\nuniform,1,2\nuniform,3,2\n": "line 3: Uniform's high must be above its low",
    "rate,availability\n1,1\n1,0\n": "line 3: Availability must be a probability.* Got 0",
    "rate,availability\n1,1.5\n1,1\n": "line 2: Availability must be a probability.* Got 1.5",
    "rate,availability\n1,1\n1,\n": "line 3: availability must be given for all clients",
    "rate,examples\n1,1\n1,2.5\n": "line 3: examples must be a whole number. Got 2.5",
    "rate,examples\n1,1e30\n": "line 2: examples must be a whole number. Got 1e",
    "rate,examples\n1,1\n1,-3\n": "line 3: A client's examples must be .* Got -3",
    "rate,examples\n1,\n": "line 2: examples must be given for all clients or for none",
    "rate,per_step\n1,0\n1,-1\n": "line 3: per_step, the time .* Got -1",
    "rate,per_step\n1,0\n1,\n": "line 3: per_step must be given for all clients or for none",
    "rate,per_step\n1,inf\n": "line 2: per_step must be a finite number. Got 'inf'",
    "rate,per_stp\n1,0\n": "line 1: .* Got 'per_stp', which is not known. Did you mean 'per_step'?",
    'rate,client\n1,"a\nb"\nx,c\n': "line 4: rate must be a finite number. Got 'x'",
    'rate\n1\n"2': "line 3: this is not valid CSV",
}


@pytest.mark.parametrize(("text", "said"), BAD_CSV.items())
def test_bad_csv_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    assert re.match(f"(, )?{said}", refused(tmp_path, text, "fleet.csv"))


def test_the_line_is_right_far_down_a_file(tmp_path: Path) -> None:
    rates = ["1.0"] * 9000
    rates[7654] = "-1.0"
    message = refused(tmp_path, "\n".join(["rate", *rates]), "fleet.csv")
    assert message.startswith(", line 7656: Exponential's rate must")


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("name", ["fleet.toml", "fleet.csv"])
def test_unreadable_files_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(FileError, match=f"{name}: the file cannot be read: there is no such"):
        load_federation(path)
    assert "must be text in UTF-8. Got the byte 0xff" in refused(tmp_path, b"rate\n\xff", name)
    path.unlink()
    path.mkdir()
    with pytest.raises(FileError, match=f"{name}: the file cannot be read: it is a folder"):
        load_federation(str(path))


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"must end in .toml or .csv.* Got 'fleet.json'"):
        load_federation(tmp_path / "fleet.json")


# ---------------------------------------------------------------- writing


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
def test_what_is_written_is_read_again(tmp_path: Path, make: Any) -> None:
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


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
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


def test_many_rows_become_arrays(tmp_path: Path) -> None:
    rng, clients = np.random.default_rng(0), 50_000
    half = Federation.exponential(rng.uniform(0.5, 2.0, clients // 2))
    rest = Federation(clients // 2, Weibull(rng.uniform(0.5, 2.0, clients // 2), 1.0))
    federation = Federation.join(half, rest)
    again = read_again(federation, tmp_path)
    assert columns(again) == columns(federation)
    assert isinstance(again.latency, Various)
    assert [part.kinds for part in again.latency.parts] == [clients // 2, clients // 2]


def test_reading_csv_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("rate\n1\n")
    code = (
        "import sys, cafe.scenario; cafe.federation_files.load_federation('a.csv');"
        "print(*sorted({'scipy.stats', 'matplotlib'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
