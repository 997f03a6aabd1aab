"""Registering many keys in one process. On a real SuperLink: tests/flower/lab/test_lab.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("flwr", reason="a real federation needs Flower: pip install 'cafe-fl[flower]'")

import httpx
from flwr.cli import flower_config, utils
from flwr.supercore.protobuf.client import ProtobufClient

from cafe.errors import InputError
from cafe.flower.lab import commands, keys, registration
from cafe.flower.lab.paths import LabPaths, LabState, free_ports
from tests.support.flower.waiting import LIMIT


def test_key_that_is_refused_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b", "c"):
        keys.make_node_key(tmp_path / f"{name}.key")
    files = [str(tmp_path / f"{name}.pub") for name in ("a", "b", "c")]
    asked: list[bytes] = []

    def register(request: Any) -> Any:
        asked.append(request.public_key)
        if len(asked) == 2:
            answer = httpx.Response(409, text="in use", request=httpx.Request("POST", "http://a"))
            answer.raise_for_status()
        if len(asked) == 3:
            raise httpx.ConnectError("no answer")
        return SimpleNamespace(node_id=7)

    client = SimpleNamespace(RegisterNode=register, close=lambda: None)
    monkeypatch.setattr(flower_config, "read_superlink_connection", lambda name: name)
    monkeypatch.setattr(utils, "init_http_client_from_connection", lambda _: client)
    monkeypatch.setattr(ProtobufClient, "__init__", ProtobufClient.__init__)
    monkeypatch.setattr(sys, "argv", ["", *files])
    registration.main()
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["key"] for each in said] == files
    assert said[0]["node-id"] == "7"
    assert "in use" in said[1]["error"]
    assert said[2]["error"] == "ConnectError: no answer"
    assert len({*asked}) == 3


def test_superlink_that_does_not_answer_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cafe.flower.lab.commands.ANSWER_LIMIT", 1.0)
    paths = LabPaths(tmp_path)
    paths.create()
    keys.make_node_key(paths.key("node-1"))
    commands.configure_flwr(paths, LabState(True, False, free_ports(1)[0]))
    with pytest.raises(InputError, match="did not register the nodes' keys in 2 seconds"):
        commands.register_keys(paths, [paths.key("node-1").with_suffix(".pub")])
    monkeypatch.setattr("cafe.flower.lab.commands.ANSWER_LIMIT", LIMIT)
    with pytest.raises(InputError, match="The SuperLink registered no key: "):
        commands.register_keys(paths, [tmp_path / "no-such-file.pub"])
