"""The command line called in this process: what it prints and how it ends."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from cafe import cli

PLAN = "plan --clients 50 --rate 1 --waste-price 20 --broadcast-price 100"


class Run:
    """One call of the command line: what it printed and how it ended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.code, self.out, self.err = 0, "", ""

    def __call__(self, command: str) -> Run:
        self.code = 0
        self._monkeypatch.setattr(sys, "argv", ["cafe", *command.split()])
        try:
            cli.main()
        except SystemExit as stop:
            self.code = int(stop.code or 0)
        captured = self._capsys.readouterr()
        self.out, self.err = captured.out, captured.err
        return self

    def json(self, command: str) -> Any:
        ran = self(command + " --json")
        assert ran.code == 0, ran.err
        return json.loads(ran.out)
