"""The metrics of a run in Prometheus's text format."""

from __future__ import annotations

from typing import Any

import pytest

from cafe.live.prometheus import prometheus_text
from tests.support.flower.live_files import LIVE

parser = pytest.importorskip("prometheus_client.parser", reason="needs prometheus-client")


def parse(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """The samples by name and label values, as Prometheus's own client reads them."""
    families = parser.text_string_to_metric_families(text)
    return {(s.name, (*s.labels.values(),)): s.value for f in families for s in f.samples}


def test_values_of_a_status() -> None:
    found = parse(prometheus_text(LIVE))
    assert found["cafe_state", ("open",)] == 1
    assert found["cafe_state", ("stopped",)] == 0
    assert found["cafe_rounds_total", ("succeeded",)] == 2
    assert found["cafe_rounds_total", ("failed",)] == 1
    assert found["cafe_jobs_total", ("late",)] == 3
    assert found["cafe_clients", ("yes",)] == 1
    assert found["cafe_clients", ("no",)] == 1
    assert found["cafe_client_age_seconds", ("0.9",)] == 4.9
    assert found["cafe_deadline_seconds", ()] == 8.0
    assert found["cafe_quorum", ()] == 2
    assert found["cafe_policy_changes_total", ()] == 1
    assert found["cafe_superlink_errors_total", ()] == 5
    assert found["cafe_restarts_total", ()] == 1


def test_unknown_values_are_left_out() -> None:
    unknown: dict[str, Any] = {"deadline": None, "accuracy": None, "overhead": None}
    text = prometheus_text(LIVE | unknown)
    assert "None" not in text
    for name in ("cafe_deadline_seconds", "cafe_accuracy", "cafe_overhead_seconds"):
        assert name not in text


def test_counters_end_in_total_and_gauges_do_not() -> None:
    for family in parser.text_string_to_metric_families(prometheus_text(LIVE)):
        total = all(sample.name.endswith("_total") for sample in family.samples)
        assert total == (family.type == "counter"), family.name
        assert family.documentation.endswith(".")
