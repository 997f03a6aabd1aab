"""Command lines, and what is checked before them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cafe import cli
from cafe.errors import InputError
from cafe.flower.lab import Lab, commands


def test_every_command_reports_that_flower_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for verb in ("init", "up", "run", "status", "down"):
        monkeypatch.setattr(sys, "argv", ["cafe", "federate", verb, str(tmp_path / "app")])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == 2
        assert "pip install 'flwr" in capsys.readouterr().err
    assert not (tmp_path / "app").exists()


def test_folder_without_an_app_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("flwr", reason="a real federation needs Flower")
    with pytest.raises(InputError, match="There is no federation"):
        Lab(tmp_path).start("node-1")
    assert Lab(tmp_path).down() == []


def test_what_flwr_reports_becomes_sentences() -> None:
    said = "Using SuperLink: lab (127.0.0.1:1)\n\nInvalid configuration in 'x':\n- one\n- two\n"
    assert commands._sentences(said) == "Invalid configuration in 'x': one two."
    assert "file LICENSE beside" in commands._sentences("requires [project].license.file")
