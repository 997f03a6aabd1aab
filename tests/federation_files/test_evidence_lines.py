"""Evidence travels with a federation through its CSV file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cafe
from cafe.evidence import Evidence
from cafe.federation_files.evidence_lines import split_evidence

NAMES = ["a", "b", "c"]


def fitted() -> cafe.Federation:
    scales = ([1.0, 2.0, 3.0], [1.1, 2.2, 3.123456789])
    alternatives = (
        cafe.Federation(3, cafe.Weibull(1.5, np.array(scales[0])), 0.75),
        cafe.Federation(3, cafe.LogNormal(np.array(scales[1]), 0.5), np.array([0.5, 0.6, 1.0])),
    )
    evidence = Evidence(20.0, 300, 40, alternatives, ('a "quoted" warning, with commas',))
    return cafe.Federation(
        3, cafe.LogNormal(np.array([1.0, 2.0, 3.0]), 0.4), np.array([0.8, 0.9, 1.0]),
        evidence=evidence,
    )  # fmt: skip


def written(tmp_path: Path) -> Path:
    path = tmp_path / "federation.csv"
    cafe.write_federation(fitted(), path, names=NAMES)
    return path


def test_evidence_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = written(tmp_path)
    again, kept = cafe.load_federation(path).evidence, fitted().evidence
    assert again is not None
    assert kept is not None
    assert (again.longest, again.reports, again.misses) == (20.0, 300, 40)
    assert again.warnings == kept.warnings
    for one, other in zip(again.alternatives, kept.alternatives, strict=True):
        assert type(one.latency) is type(other.latency)
        # Five digits are kept.
        np.testing.assert_allclose(one.latency.mean(), other.latency.mean(), rtol=2e-4)
        np.testing.assert_allclose(one.availability, other.availability, rtol=1e-4)


def test_clients_stand_before_the_evidence(tmp_path: Path) -> None:
    lines = written(tmp_path).read_text().splitlines()
    assert lines[0].startswith("client,family,")
    assert [line.split(",")[0] for line in lines[1:4]] == NAMES
    assert lines[4].startswith("# evidence: {")
    assert all(line.startswith("# alternative: {") for line in lines[5:])
    assert len(lines) == 7


def test_file_without_evidence_has_none(tmp_path: Path) -> None:
    path = tmp_path / "plain.csv"
    cafe.write_federation(replace(fitted(), evidence=None), path)
    assert "#" not in path.read_text()
    assert cafe.load_federation(path).evidence is None


def test_client_whose_name_begins_with_a_hash_is_a_client(tmp_path: Path) -> None:
    path = tmp_path / "named.csv"
    cafe.write_federation(fitted(), path, names=["# evidence of one", "#2", "c"])
    again = cafe.load_federation(path)
    assert again.clients == 3
    assert again.evidence is not None


def test_joined_evidence_can_be_written(tmp_path: Path) -> None:
    joined = cafe.Federation.join(fitted(), cafe.Federation.exponential([1.0, 2.0]))
    path = tmp_path / "joined.csv"
    cafe.write_federation(joined, path)
    again = cafe.load_federation(path)
    assert again.evidence is not None
    assert joined.evidence is not None
    for one, other in zip(again.evidence.alternatives, joined.evidence.alternatives, strict=True):
        np.testing.assert_allclose(
            one.by_client(one.report(2.0)), other.by_client(other.report(2.0)), rtol=1e-3
        )


@pytest.mark.parametrize(
    ("change", "line", "reason"),
    [
        (lambda text: text.replace("c,lognormal,3.0,0.4,0.0,1.0\n", ""), 5, "kinds|clients"),
        (lambda text: text.replace('"longest": 20.0', '"longest": -1'), 5, "longest must be"),
        (lambda text: text.replace('"longest": 20.0, ', ""), 5, "longest"),
        (lambda text: text.replace('"family":"weibull"', '"family":"wobble"'), 6, "wobble"),
        (lambda text: text.replace("# alternative: {", "# alternative: [", 1), 6, "JSON|Expecting"),
        (lambda text: text + "d,lognormal,1,1,0,1\n", 8, "must begin with"),
    ],
)
def test_damaged_evidence_is_explained(
    tmp_path: Path, change: object, line: int, reason: str
) -> None:
    path = written(tmp_path)
    assert callable(change)
    path.write_text(change(path.read_text()))
    with pytest.raises(cafe.FileError, match=reason) as error:
        cafe.load_federation(path)
    assert f":{line}" in str(error.value) or f"line {line}" in str(error.value)
    assert "delete all lines" in str(error.value)


def test_text_without_evidence_is_returned_whole() -> None:
    assert split_evidence("rate\n1.0\n") == ("rate\n1.0\n", "")
