"""The evidence of a fitted federation, as lines at the end of its CSV file.

The lines begin with ``# evidence:`` and ``# alternative:``, each followed by JSON. Tools that skip
comments, such as ``pandas.read_csv(path, comment="#")``, read the clients alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cafe.errors import FileError, InputError
from cafe.evidence import Evidence
from cafe.federation import Federation
from cafe.federation_files.family_names import csv_families, family_name
from cafe.latency import Latency, Various
from cafe.latency.base import Family

FIRST, OTHER = "# evidence: ", "# alternative: "
_DIGITS = 5  # enough for an interval, and it keeps the file small


def evidence_lines(evidence: Evidence) -> Iterator[str]:
    """The evidence as lines of text, without line ends."""
    head = {
        "longest": evidence.longest,
        "reports": evidence.reports,
        "misses": evidence.misses,
        "warnings": list(evidence.warnings),
    }
    yield FIRST + json.dumps(head)
    for other in evidence.alternatives:
        row: dict[str, Any] = {
            "latency": [
                {"family": family_name(type(part))}
                | {name: _short(value) for name, value in part.parameters.items()}
                for part in parametric_parts(other.latency)
            ],
            "availability": _short(other.availability),
        }
        if other.kind is not None:
            row["kind"] = other.kind.tolist()
        yield OTHER + json.dumps(row, separators=(",", ":"))


def split_evidence(text: str) -> tuple[str, str]:
    """The text of a CSV file before its evidence, and the evidence; empty if there is none."""
    at = 0 if text.startswith(FIRST) else text.find("\n" + FIRST) + 1
    return (text[:at], text[at:]) if text.startswith(FIRST, at) else (text, "")


def read_evidence(path: Path, text: str, line: int, clients: int) -> Evidence:
    """The evidence in the lines of ``text``, the first of which is line ``line`` of the file."""
    head: dict[str, Any] = {}
    others: list[Federation] = []
    for number, row in enumerate(text.splitlines(), line):
        begin = OTHER if others or head else FIRST
        if not row.strip():
            continue
        try:
            if not row.startswith(begin):
                raise ValueError(f"it must begin with '{begin.strip()}'")
            given = json.loads(row[len(begin) :])
            if not isinstance(given, dict):
                raise TypeError("the JSON must be an object")
            if begin == FIRST:
                head = given
                evidence = Evidence(
                    float(head["longest"]),
                    int(head["reports"]),
                    int(head["misses"]),
                    warnings=tuple(str(each) for each in head.get("warnings", ())),
                )
            else:
                others.append(_alternative(given, clients))
        except (InputError, KeyError, TypeError, ValueError) as error:
            reason = f"{error.args[0] if error.args else error}".rstrip(".")
            raise FileError(
                path,
                f"this line of the fit's evidence cannot be read ({reason}). If you changed the "
                f"clients after the fit, delete all lines that begin with '{FIRST.strip()}' or "
                f"'{OTHER.strip()}': plans then have no intervals.",
                number,
            ) from None
    return Evidence(
        evidence.longest, evidence.reports, evidence.misses, tuple(others), evidence.warnings
    )


def parametric_parts(latency: Latency) -> Iterator[Family]:
    """The families of the kinds, in order."""
    if isinstance(latency, Various):
        for part in latency.parts:
            yield from parametric_parts(part)
    elif isinstance(latency, Family):
        yield latency
    else:
        raise InputError(
            f"Only parametric families can be written to CSV. Got {type(latency).__name__}, "
            "whose parameters do not fit in a row: fit a family to it first."
        )


def _alternative(given: dict[str, Any], clients: int) -> Federation:
    parts = []
    for part in given["latency"]:
        rest = {name: value for name, value in part.items() if name != "family"}
        parts.append(csv_families()[part["family"]](**{k: _number(v) for k, v in rest.items()}))
    kind = given.get("kind")
    return Federation(
        clients,
        parts[0] if len(parts) == 1 else Various(parts),
        _number(given["availability"]),
        kind=None if kind is None else np.array(kind, dtype=np.intp),
    )


def _number(value: Any) -> Any:
    return np.array(value, dtype=float) if isinstance(value, list) else value


def _short(value: Any) -> Any:
    """A number, or a list of numbers, with few digits."""
    if np.ndim(value):
        return [_short(each) for each in np.asarray(value).tolist()]
    return float(f"{value:.{_DIGITS}g}")
