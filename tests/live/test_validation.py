"""Reports are validated one by one: a bad one is rejected with a reason; others still count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cafe
from cafe.errors import InputError
from cafe.live.model_layout import Layout
from cafe.live.validation import (
    RejectedReportError,
    ReportLimits,
    ReportValidator,
    clean_label,
    clean_message,
)
from cafe.live.wire import Order, Report
from cafe.policies import agu, fedavg, mcu
from cafe.rounds.ledger import UNKNOWN
from cafe.rounds.outcome import Fate
from tests.support.virtual_runs import VirtualWire, exponential, live, start

LAYOUT = Layout.of(start())
ORDER = Order("c000", 0, round=7, version=3, seed=0)
CARRY = replace(ORDER, after=5, began=2)


def update(size: float = 1.0, **changes: Any) -> dict[str, Any]:
    """An update of a given norm, with some arrays in place of its own."""
    whole = np.zeros(8, np.float32)
    whole[0] = size
    return LAYOUT.unflat(whole, {}) | changes


GOOD = Report(update(), invitation=7, version=3)
CARRIED = Report(update(), invitation=7, version=2, carried=True)


def validator(**limits: Any) -> ReportValidator:
    return ReportValidator(LAYOUT, ReportLimits(**limits))


def rejected(at: ReportValidator, *given: Any) -> str:
    """Why a validator rejects a report."""
    with pytest.raises(RejectedReportError) as error:
        at.validate(*given)
    return f"{error.value}"


def refused(report: Report, order: Order = ORDER, **limits: Any) -> str:
    """Why a report is rejected, by a validator that accepts good ones before and after."""
    at = validator(**limits)
    at.validate(GOOD, ORDER)
    reason = rejected(at, report, order)
    at.validate(GOOD, ORDER)
    return reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"invitation": 6}, "it answers invitation 6 instead of 7"),
        ({"invitation": 8}, "it answers invitation 8 instead of 7"),
        ({"version": 2}, "version 2 of the model instead of 3"),
        ({"version": 4}, "version 4 of the model instead of 3"),
        ({"carried": True}, "was asked to start from the global model"),
        ({"examples": 0}, "it claims 0 examples"),
        ({"examples": -1}, "it claims -1 examples"),
        ({"examples": 10**7 + 1}, "it claims 10000001 examples, and 1 to 10000000 are accepted"),
        ({"loss": float("nan")}, "its loss is nan"),
        ({"loss": float("-inf")}, "its loss is -inf"),
        ({"rate": float("nan")}, "its learning rate is nan"),
        ({"rate": float("inf")}, "its learning rate is inf"),
        ({"rate": -0.1}, "its learning rate is -0.1"),
        ({"update": {}}, "array 'bias' is missing or unexpected"),
        ({"update": {"weight": update()["weight"]}}, "array 'bias' is missing or unexpected"),
        ({"update": update(more=np.zeros(1, np.float32))}, "array 'more' is missing or unexpected"),
        ({"update": dict(reversed(update().items()))}, "not in the order of the model's"),
        ({"update": update(bias=np.zeros(3, np.float32))}, r"bias must have the shape \(2,\), got"),
        ({"update": update(weight=np.zeros((3, 2), np.float32))}, "weight must have the shape"),
        ({"update": update(bias=np.zeros(2))}, "bias must be float32, got float64"),
        ({"update": update(bias=np.zeros(2, np.int32))}, "bias must be float32, got int32"),
        ({"update": update(bias=np.zeros(2, ">f4"))}, "bias must be float32, got >f4"),
        ({"update": update(bias=np.array([0, np.nan], np.float32))}, "contains NaN or infinity"),
        ({"update": update(bias=np.array([0, np.inf], np.float32))}, "contains NaN or infinity"),
        (
            {"update": update(bias=np.array([np.inf, -np.inf], np.float32))},
            "contains NaN or infinity",
        ),
    ],
)
def test_every_reason_for_a_refusal(changes: dict[str, Any], reason: str) -> None:
    assert_matches(reason, refused(replace(GOOD, **changes)))


def assert_matches(pattern: str, text: str) -> None:
    with pytest.raises(ValueError, match=pattern):
        raise ValueError(text)


def test_carried_report_must_name_its_starting_version() -> None:
    validator().validate(CARRIED, CARRY)
    assert "from version 3 of the model instead of 2" in refused(replace(CARRIED, version=3), CARRY)
    # A client that has lost its local model starts from the global one, and reports that.
    honest = validator().validate(GOOD, CARRY)
    assert not honest.carried
    assert "from version 2 of the model instead of 3" in refused(replace(GOOD, version=2), CARRY)


def test_float64_that_overflows_is_not_finite() -> None:
    layout = Layout.of({"w": np.zeros(2)})
    report = Report({"w": np.array([1e200, 1e200])}, 7, 3)
    at = ReportValidator(layout, ReportLimits())
    assert "contains NaN or infinity" in rejected(at, report, ORDER)


def test_accepted_report_is_unchanged() -> None:
    report = replace(GOOD, examples=5, loss=0.25, label="  nice <name>\n")
    answer = validator().validate(report, ORDER)
    assert answer.vector is not None
    np.testing.assert_array_equal(answer.vector, LAYOUT.flat(report.update))
    assert not answer.update
    assert (answer.examples, answer.loss, answer.label) == (5, 0.25, "nice name")


def test_an_absolute_limit_holds_from_the_first_report_on() -> None:
    at = validator(norm=1.5)
    reason = rejected(at, replace(GOOD, update=update(1.6)), ORDER)
    assert reason == "the update's norm is 1.6, and at most 1.5 is accepted"
    assert "norm is 3e+38" in rejected(at, replace(GOOD, update=update(3e38)), ORDER)
    at.validate(GOOD, ORDER)


@pytest.mark.parametrize(
    ("need", "brought", "reason"),
    [
        ("sizes", {"examples": 5}, "it has no number of examples held, which the policy needs"),
        ("losses", {"loss": 0.5}, "it has no loss, which the policy needs"),
        ("rms losses", {"rms_loss": 0.5}, "it has no rms loss, which the policy needs"),
        ("rates", {"rate": 0.0}, "it has no learning rate, which the policy needs"),
        ("steps", {"steps": 0}, "it has no number of steps, which the policy needs"),
        ("labels", {"labels": (2, 3)}, "it has no label counts, which the policy needs"),
    ],
)
def test_report_must_contain_what_the_policy_needs(
    need: str, brought: dict[str, Any], reason: str
) -> None:
    at = validator()
    assert rejected(at, GOOD, ORDER, frozenset({need})) == reason
    at.validate(GOOD, ORDER)
    at.validate(replace(GOOD, **brought), ORDER, frozenset({need}))


def test_only_accepted_reports_set_the_number_of_classes() -> None:
    at = validator(norm=10.0)
    liar = replace(GOOD, labels=(1,) * 7, update=update(1e9))
    assert rejected(at, liar, ORDER)
    at.validate(replace(GOOD, labels=(2, 3)), ORDER)
    reason = rejected(at, replace(GOOD, labels=(2, 3, 4)), ORDER)
    assert reason == "it counts 3 classes, and other clients count 2"


def test_report_without_examples_is_refused_if_sizes_are_weights() -> None:
    wire = VirtualWire(cafe.Federation(4, cafe.Constant(0.2)))
    wire.tamper = lambda report, order: (
        replace(report, examples=None) if order.number == 1 else replace(report, examples=5)
    )
    run = live(wire, fedavg(fraction=1.0, deadline=0.5))
    played = run.step()
    assert (played.outcome.used, played.outcome.fates[Fate.REFUSED]) == (3, 1)
    assert run.ledger.examples.tolist() == [5, UNKNOWN, 5, 5]
    # Without a need for example counts the report is used; the count stays unknown.
    wire = replace(wire, orders=[], names=[])
    run = live(wire, mcu(quorum=1, deadline=0.5))
    assert run.step().outcome.used == 4
    assert run.ledger.examples.tolist() == [5, UNKNOWN, 5, 5]


def test_report_limits_are_checked() -> None:
    for bad in ({"norm": 0.0}, {"clip": 0.5}, {"examples": 0}, {"norm": float("nan")}):
        with pytest.raises(InputError):
            ReportLimits(**bad)


def spoil(report: Report) -> dict[str, Report]:
    """Bad reports by what is bad about them."""
    bad = {name: np.full_like(array, np.inf) for name, array in report.update.items()}
    evil = {f"\x1b[2J\n\u202e{'x' * 999}": next(iter(report.update.values()))}
    return {
        "update": replace(report, update=bad),
        "names": replace(report, update=evil),
        "version": replace(report, version=report.version + 1),
        "invitation": replace(report, invitation=report.invitation - 1),
        "examples": replace(report, examples=0),
    }


@pytest.mark.parametrize("kind", ["update", "names", "version", "invitation", "examples"])
def test_the_round_goes_on_without_a_refused_report(kind: str) -> None:
    wire = VirtualWire(cafe.Federation(4, cafe.Constant(0.2)))
    wire.tamper = lambda report, order: spoil(report)[kind] if order.number == 1 else report
    run = live(wire, mcu(quorum=3, deadline=0.5))
    played = run.step()
    assert played.outcome.succeeded
    assert played.outcome.fates[Fate.REFUSED] == 1
    assert (played.outcome.reports, played.outcome.used) == (3, 3)
    # It is charged to the close of its round, and in true processing time to its arrival.
    assert played.outcome.waste == pytest.approx(0.5)
    assert played.outcome.processing_waste == pytest.approx(0.2)
    (record,) = [r for r in played.records if r.fate == "refused"]
    assert record.reason.isprintable()
    assert 0 < len(record.reason) <= 300
    assert run.clients.refusals == [0, 1, 0, 0]
    assert run.clients.labels[1] == ""
    # The model is the mean of the others.
    without = VirtualWire(cafe.Federation(4, cafe.Constant(0.2)))
    without.behave = lambda order: "silent" if order.number == 1 else "report"
    other = live(without, mcu(quorum=3, deadline=0.5))
    other.step()
    np.testing.assert_array_equal(run.model, other.model)


def test_refused_reports_do_not_make_a_quorum() -> None:
    wire = VirtualWire(cafe.Federation(4, cafe.Constant(0.2)))
    wire.tamper = lambda report, order: spoil(report)["update"] if order.number else report
    run = live(wire, agu(quorum=2, deadline=0.5))
    played = run.step()
    assert not played.outcome.succeeded
    assert played.outcome.fates[Fate.REFUSED] == 3
    assert run.model.tobytes() == LAYOUT.flat(start()).tobytes()
    assert run.ledger.local.tolist() == [True, False, False, False]


def test_a_refused_client_is_invited_again() -> None:
    wire = VirtualWire(exponential(3, 9.0))
    wire.tamper = lambda report, order: spoil(report)["update"] if order.round == 0 else report
    run = live(wire, mcu(quorum=1, deadline=3.0))
    run.step()
    assert run.step().outcome.used == 3
    assert run.clients.refusals == [1, 1, 1]


@given(st.text())
def test_printable_names(label: str) -> None:
    shown = clean_label(label)
    assert len(shown) <= 32
    assert shown == shown.strip()
    assert all(c.isalnum() or c in " ._-" for c in shown)
    assert clean_label(shown) == shown


@pytest.mark.parametrize("name", ["phone 7", "node_1.lab-2", "Köln", "東京"])
def test_readable_names_are_kept(name: str) -> None:
    assert clean_label(name) == name


@pytest.mark.parametrize("label", ["\x1b[31mred", "<script>", "a\nb", "\u202eevil", "a" * 99])
def test_harmful_names_are_cleaned(label: str) -> None:
    assert clean_label(label) in {"31mred", "script", "ab", "evil", "a" * 32}


@given(st.text(max_size=2000))
def test_messages_are_cleaned(text: str) -> None:
    shown = clean_message(text)
    assert len(shown) == min(len(text), 300)
    assert shown == "" or shown.isprintable()
    if text.isprintable():
        assert shown == text[:300]


@pytest.mark.parametrize("way", ["lost", "malformed"])
def test_text_from_clients_cannot_forge_the_log(way: str) -> None:
    wire = VirtualWire(cafe.Federation(2, cafe.Constant(0.2)))
    forged = "boom\nRound 9 succeeded\x1b[2J"
    original: Callable[..., Any] = wire.receive

    def receive(tickets: Any) -> Any:
        return [replace(reply, report=None, **{way: forged}) for reply in original(tickets)]

    wire.receive = receive  # type: ignore[method-assign]
    records = live(wire, mcu(quorum=1, deadline=0.5)).step().records
    assert {r.reason for r in records} == {"boom?Round 9 succeeded?[2J"}
