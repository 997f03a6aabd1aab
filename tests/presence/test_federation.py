"""A federation with a presence: its checks, its long-run share, and the warnings about it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.errors import InfeasibleError, InputError
from cafe.federation import Federation
from cafe.federation_files import load_federation, write_federation
from cafe.latency import Exponential, Gamma, Weibull
from cafe.presence import DayNight, OnOff, Presence, Trace

WARNING = (
    r"Clients come and go \(each client is present for 0\.4 of every 86400 s\): the plan uses the "
    r"long-run share of time that they are present, 0\.4 on average\. Simulate it to see the "
    r"effect of the pattern\."
)


def by_day(share: float = 0.4) -> Federation:
    return Federation(20, Exponential(1.0), availability=0.5, presence=DayNight(share=share))


def test_a_presence_is_checked() -> None:
    wrong: Any = "day-night"
    with pytest.raises(InputError, match=r"presence must be one of cafe.presence, such as"):
        Federation(3, Exponential(1.0), presence=wrong)
    kind: Any = DayNight
    with pytest.raises(InputError, match=r"presence must be one of cafe.presence, such as"):
        Federation(3, Exponential(1.0), presence=kind)
    with pytest.raises(InputError, match=r"OnOff's on must be one number or one per client \(3\)"):
        Federation(3, Exponential(1.0), presence=OnOff(on=[1.0, 2.0]))
    with pytest.raises(InputError, match="Client 1 has none and would never be present"):
        Federation(3, Exponential(1.0), presence=Trace([[0, 0, 1], [2, 0, 1]]))


def test_user_defined_presence() -> None:
    class Never:
        def begin(self, clients: int, seed: int) -> Any: ...

        def long_run(self, clients: int) -> float:
            return 0.0

        def describe(self) -> str:
            return "nobody is there"

    presence: Presence = Never()
    with pytest.raises(
        InputError, match=r"long_run must return .* above 0 and at most 1, .* Got array\(0\.\)"
    ):
        Federation(3, Exponential(1.0), presence=presence)


def test_federation_without_a_presence_is_steady() -> None:
    federation = Federation(3, Exponential(1.0))
    assert federation.presence is None
    assert federation.steady is federation
    assert "presence" not in repr(federation)
    assert "presence=DayNight(" in repr(by_day())


def test_join_refuses_a_presence() -> None:
    with pytest.raises(InputError, match="belongs to the whole federation"):
        Federation.join(by_day(), Federation(2, Exponential(1.0)))


def test_steady_with_one_share() -> None:
    steady = by_day().steady
    assert steady.presence is None
    assert steady.kinds == 1
    assert steady.availability == pytest.approx(0.2)
    groups = Federation(
        5, Gamma(np.array([1.0, 3.0]), 0.5), np.array([0.5, 1.0]), kind=np.array([1, 0, 1, 1, 0]),
        presence=OnOff(1.0, 3.0),
    ).steady  # fmt: skip
    np.testing.assert_allclose(groups.availability, [0.125, 0.25])
    assert groups.kind_of_client.tolist() == [1, 0, 1, 1, 0]


def test_steady_with_a_share_for_each_client() -> None:
    """Only clients that differ become kinds of their own."""
    presence = OnOff(on=[1.0, 1.0, 3.0, 1.0, 3.0], off=1.0)
    steady = Federation(5, Weibull(2.0, 1.0), 0.5, np.arange(5), presence=presence).steady
    assert steady.kinds == 2
    np.testing.assert_allclose(
        steady.by_client(steady.availability), [0.25, 0.25, 0.375, 0.25, 0.375]
    )
    assert np.asarray(steady.examples).tolist() == [0, 1, 2, 3, 4]
    rates = np.array([1.0, 2.0])
    groups = Federation(
        5, Exponential(rates), np.array([0.5, 1.0]), kind=np.array([0, 0, 1, 1, 1]),
        presence=presence,
    ).steady  # fmt: skip
    assert groups.kinds == 3
    np.testing.assert_allclose(groups.by_client(groups.availability), [0.25, 0.25, 0.75, 0.5, 0.75])
    np.testing.assert_allclose(groups.by_client(1 / groups.latency.mean()), [1, 1, 2, 2, 2])


def test_expect_uses_the_long_run_share() -> None:
    found = cafe.expect(by_day(), quorum=2, deadline=1.5)
    wanted = cafe.expect(Federation(20, Exponential(1.0), 0.2), quorum=2, deadline=1.5)
    assert found.to_dict() == pytest.approx(wanted.to_dict())
    assert [re.fullmatch(WARNING, said) is not None for said in found.warnings] == [True]
    assert wanted.warnings == ()


def test_plan_uses_the_long_run_share() -> None:
    prices: Any = {"waste_price": 0.1, "broadcast_price": 3.0}
    found = cafe.plan(by_day(), **prices)
    wanted = cafe.plan(Federation(20, Exponential(1.0), 0.2), **prices)
    assert (found.quorum, found.deadline, found.cost) == pytest.approx(
        (wanted.quorum, wanted.deadline, wanted.cost)
    )
    assert found.explanation == wanted.explanation
    assert re.fullmatch(WARNING, found.warnings[0])
    assert found.warnings[1:] == wanted.warnings
    assert found.to_dict()["warnings"] == [*found.warnings]


def test_frontier_uses_the_long_run_share() -> None:
    found, wanted = cafe.frontier(by_day()), cafe.frontier(Federation(20, Exponential(1.0), 0.2))
    assert found.column("waste") == pytest.approx(wanted.column("waste"))
    assert [re.fullmatch(WARNING, said) is not None for said in found.warnings] == [True]
    assert wanted.warnings == ()


def test_unequal_shares_are_averaged_in_the_warning() -> None:
    presence = Trace([[0, 0, 1], [1, 0, 3]], repeat=4)
    federation = Federation(2, Exponential(1.0), presence=presence)
    found = cafe.expect(federation, quorum=1, deadline=1.0)
    assert "(a trace of 2 windows that repeats every 4 s)" in found.warnings[0]
    assert "they are present, 0.5 on average" in found.warnings[0]
    p = -np.expm1(-1.0)
    assert found.expected_reports == pytest.approx(p * (0.25 + 0.75))


BY_DAY = """[federation]
clients = 20
rate = 1.0
availability = 0.5
[federation.presence]
kind = "day-night"
share = 0.4
"""


def test_presence_cannot_be_written_to_csv(tmp_path: Path) -> None:
    file = tmp_path / "fleet.csv"
    with pytest.raises(InputError, match=r"cannot be written to CSV.*presence=None.*TOML"):
        write_federation(by_day(), file)
    assert not file.exists()
    write_federation(replace(by_day(), presence=None), file)
    assert load_federation(file).clients == 20


COMMANDS = (
    "expect --quorum 2 --deadline 1.5",
    "frontier",
    "plan --waste-price 0.1 --broadcast-price 3",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("as_json", [False, True])
def test_command_line_reports_the_presence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    as_json: bool,
) -> None:
    from cafe import cli

    file = tmp_path / "fleet.toml"
    file.write_text(BY_DAY)
    argv = ["cafe", *command.split(), "--federation", f"{file}", *["--json"] * as_json]
    monkeypatch.setattr("sys.argv", argv)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    out, _ = capsys.readouterr()
    if not as_json:
        assert len(re.findall(WARNING, " ".join(out.split()))) == 1
    else:
        assert re.fullmatch(WARNING, json.loads(out)["warnings"][0])


@pytest.mark.slow
def test_a_quorum_that_is_never_present_at_once_ends_the_run() -> None:
    """Windows of 3 in 10 that are spread over the day: never 8 of 10 at once."""
    who = Federation(10, Exponential(1.0), presence=DayNight(day=10.0, share=0.3, spread=1.0))
    text = r"Round 0 needs 8 clients at once, but from time 0 to .* Lower the quorum\."
    with pytest.raises(InfeasibleError, match=text):
        cafe.simulate(who, cafe.policies.mcu(quorum=8, deadline=0.5), rounds=1)
