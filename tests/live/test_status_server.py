"""The HTTP server for monitoring."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cafe.errors import InputError
from cafe.live.server import serve
from cafe.live.status_server import StatusServer, parse_address
from tests.support.flower.live_files import LIVE
from tests.support.serving import config, read_status, stopped_after, wire


@pytest.fixture
def served() -> Iterator[StatusServer]:
    with StatusServer("127.0.0.1:0", lambda: LIVE) as server:
        yield server


def get(url: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def test_metrics_and_status(served: StatusServer) -> None:
    status, kind, text = get(served.url)
    assert status == 200
    assert kind.startswith("text/plain; version=0.0.4")
    assert "cafe_round 3" in text
    status, kind, text = get(served.url.replace("metrics", "status"))
    assert (status, kind) == (200, "application/json")
    assert json.loads(text)["round"] == 3


def test_node_ids_are_not_shown(served: StatusServer) -> None:
    _, _, text = get(served.url.replace("metrics", "status"))
    shown = json.loads(text)["clients"]
    assert [client["label"] for client in shown] == ["node-10", "node-2"]
    assert not any("name" in client for client in shown)


def test_other_pages_and_methods_are_refused(served: StatusServer) -> None:
    assert get(served.url.replace("metrics", ""))[0] == 404
    request = urllib.request.Request(served.url, b"x", method="POST")
    with pytest.raises(urllib.error.HTTPError, match="501"):
        urllib.request.urlopen(request, timeout=60)


def test_a_client_that_sends_nothing_does_not_block_others(served: StatusServer) -> None:
    host, port = parse_address(served.url.split("/")[2])
    with socket.create_connection((host, port)) as silent:
        silent.send(b"GET /met")
        assert get(served.url)[0] == 200


@pytest.mark.parametrize("given", ["", "9464", ":9464", "127.0.0.1", "host:x", "h:70000", 9464])
def test_wrong_addresses(given: Any) -> None:
    with pytest.raises(InputError, match=r"metrics must be a host and a port, such as"):
        config(metrics=given)


def test_port_in_use_stops_the_run_with_a_sentence(served: StatusServer, tmp_path: Path) -> None:
    address = served.url.split("/")[2]
    said: list[str] = []
    with pytest.raises(
        InputError, match=r"cannot be served at .*: Address already in use\. Choose"
    ):
        serve(wire(), config(metrics=address), tmp_path, say=said.append)
    assert said[-1].startswith("Stopped: The metrics cannot be served")
    assert read_status(tmp_path)["state"] == "stopped"


def test_metrics_of_a_run(tmp_path: Path) -> None:
    """The totals at the end are those of the history, also after a restart."""
    given = config(rounds=6, metrics="127.0.0.1:0", evaluate=lambda arrays: (0.5, 0.75))
    stopped_after(3, tmp_path, wire(), given)
    pages: list[dict[str, Any]] = []
    url: list[str] = []

    def say(sentence: str) -> None:
        if sentence.startswith("Serving metrics at "):
            url.append(sentence.removeprefix("Serving metrics at ").removesuffix("."))
        if sentence.startswith("Round "):
            pages.append(json.loads(get(url[0].replace("metrics", "status"))[2]))

    history = serve(wire(), given, tmp_path, say=say)
    last = read_status(tmp_path)
    assert [page["closed_rounds"] for page in pages] == [3, 4, 5]
    assert last["closed_rounds"] == history.rounds == 6
    assert last["fates"] == history.fates
    assert last["waste"] == pytest.approx(history.by_round["waste"].sum())
    assert last["work"] == pytest.approx(history.by_round["work"].sum())
    assert (last["restarts"], last["errors"], last["quorum"]) == (1, 0, 2)
    assert last["ages"]["1"] == pytest.approx(max(client["age"] for client in last["clients"]))
    assert (last["loss"], last["accuracy"]) == (0.5, 0.75)
    assert last["free_bytes"] > 0
    closed = history.by_round["closed"][history.by_round["succeeded"]]
    assert last["since_update"] == pytest.approx(last["now"] - closed[-1])
    with pytest.raises(urllib.error.URLError):  # the server has ended with the run
        urllib.request.urlopen(url[0], timeout=60)
