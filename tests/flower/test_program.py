"""Flower's programs, started so that they survive faults."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.cli import install
from flwr.supercore.constant import TASK_TYPE_TO_COMMAND, TaskType
from flwr.supercore.protobuf.client import ProtobufClient

from cafe.flower import program
from cafe.flower.node_heartbeat import heartbeat_file, read_heartbeat
from cafe.flower.retry_interceptor import RetryInterceptor

START = [sys.executable, "-m", "cafe.flower.program"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLWR_HOME", str(tmp_path))
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "0")
    monkeypatch.setenv("FLWR_DISABLE_UPDATE_CHECK", "1")
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setattr(ProtobufClient, "__init__", ProtobufClient.__init__)
    monkeypatch.setattr(install, "validate_and_install", install.validate_and_install)
    monkeypatch.setattr(sys, "argv", sys.argv)
    return tmp_path


def test_other_programs_are_refused() -> None:
    for words in ([], ["cafe"], ["pytest"]):
        done = subprocess.run([*START, *words], capture_output=True, text=True)
        assert done.returncode == 1
        assert "Give one of Flower's programs, such as flower-supernode" in done.stderr
        assert "Traceback" not in done.stderr


def test_programs_that_flower_starts_repeat_requests_too(home: Path) -> None:
    program._put_first_in_path(home / "programs")
    program._put_first_in_path(home / "programs")
    assert os.environ["PATH"].count(str(home / "programs")) == 1
    names = [TASK_TYPE_TO_COMMAND[each] for each in (TaskType.SERVER_APP, TaskType.CLIENT_APP)]
    for name in (*names, "flower-superexec"):
        found = shutil.which(name)
        assert found == str(home / "programs" / name)
        assert f"cafe.flower.program {name}" in Path(found).read_text()
    done = subprocess.run(["flwr-serverapp", "--help"], capture_output=True, text=True)
    assert "usage: flwr-serverapp" in done.stdout


def test_clients_of_a_program_repeat_requests(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["", "flwr-serverapp", "--help"])
    with pytest.raises(SystemExit):
        program.main()
    client = ProtobufClient("http://localhost")
    assert isinstance(client._interceptors[0], RetryInterceptor)
    assert client._interceptors[0].limit == program.LIMITS["flwr-serverapp"]
    client.close()


def test_node_whose_connection_is_refused_ends_with_a_reason(home: Path) -> None:
    done = subprocess.run(
        [*START, "flower-supernode", "--superlink", "not an address", "--insecure", "--port", "0"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "The node ends: it could not connect. It must be started again." in done.stdout
    last = read_heartbeat(heartbeat_file(home))
    assert last is not None
    assert last.ended == "it could not connect"
