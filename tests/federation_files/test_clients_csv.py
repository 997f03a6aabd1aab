"""CSV files with a federation: what is read, and errors with their line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cafe.latency import (
    Constant,
    Exponential,
    Latency,
    LogNormal,
    Various,
    Weibull,
)
from tests.support.federation_files import loaded, refused


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


def test_omitted_parameter_has_its_default(tmp_path: Path) -> None:
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


def test_line_number_is_right_in_a_long_file(tmp_path: Path) -> None:
    rates = ["1.0"] * 9000
    rates[7654] = "-1.0"
    message = refused(tmp_path, "\n".join(["rate", *rates]), "fleet.csv")
    assert message.startswith(", line 7656: Exponential's rate must")
