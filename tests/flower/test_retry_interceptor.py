"""Flower's own HTTP clients repeat requests after faults that a proxy injects."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

import httpx
from flwr.proto.control_pb2 import StartRunRequest
from flwr.proto.fleet_pb2 import PullMessagesRequest
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest, SendNodeHeartbeatResponse
from flwr.proto.message_pb2 import PullObjectRequest, PushObjectRequest
from flwr.proto.runtime_pb2 import SendTaskHeartbeatResponse
from flwr.supercore.control.control_http_client import ControlHttpClient
from flwr.supercore.error import ApiErrorCode, FlowerError
from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
from flwr.supercore.primitives.asymmetric import generate_key_pairs
from flwr.supercore.protobuf.client import ProtobufClient
from flwr.supercore.run import RunNotRunningException
from flwr.superlink.grid import HttpGrid
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from cafe.flower import retry_interceptor
from cafe.flower.grid_connection import GridConnection
from cafe.flower.retry import MAX_OUTAGE, SuperLinkError
from cafe.flower.retry_interceptor import RetryInterceptor
from tests.support.flower.fault_proxy import FaultProxy
from tests.support.flower.waiting import wait_until

NODES = "/v1/runtime/get-nodes"
BEAT = "/v1/runtime/send-task-heartbeat"
OBJECT = "/v1/runtime/pull-object"
NODE_BEAT = "/v1/fleet/send-node-heartbeat"
PULL = "/v1/fleet/pull-messages"
PUSH = "/v1/fleet/push-object"
START = "/v1/control/start-run"
FAULTS = ["500", "503", "reset", "truncate", "lost", "delay"]


class Answers(BaseHTTPRequestHandler):
    """Answers as a SuperLink would that has nothing to say, and keeps the headers."""

    protocol_version = "HTTP/1.1"
    status: int
    seen: list[tuple[str, dict[str, str]]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
        body = {
            BEAT: SendTaskHeartbeatResponse(success=True).SerializeToString(),
            NODE_BEAT: SendNodeHeartbeatResponse(success=True).SerializeToString(),
        }.get(self.path, b"")
        self.send_response(type(self).status)
        self.send_header("content-length", f"{len(body)}")
        self.send_header("content-type", "application/protobuf")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def superlink() -> Iterator[type[Answers]]:
    class Own(Answers):
        status, seen, port = 200, [], 0

    with ThreadingHTTPServer(("127.0.0.1", 0), Own) as server:
        Own.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Own
        server.shutdown()


@pytest.fixture
def proxy(superlink: Any) -> Iterator[FaultProxy]:
    with FaultProxy(superlink.port, delay=0.01) as made:
        yield made


@pytest.fixture
def grid(proxy: FaultProxy) -> Iterator[HttpGrid]:
    made = HttpGrid(proxy.address, insecure=True, token="secret")
    yield made
    made.close()


@pytest.fixture
def slow_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Own heartbeats are sent once, and then not during the test."""
    monkeypatch.setattr(retry_interceptor, "BEAT", 1e6)


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``install`` changes is undone after the test."""
    monkeypatch.setattr(ProtobufClient, "__init__", ProtobufClient.__init__)


# ---------------------------------------------------------------- a run's server


@pytest.mark.usefixtures("slow_beats")
def test_every_fault_is_survived_by_the_calls_of_a_server(
    grid: HttpGrid, proxy: FaultProxy
) -> None:
    said: list[str] = []
    connection = GridConnection(grid, 1 << 20, 1, said.append)
    proxy.plan(NODES, *FAULTS, *FAULTS)
    assert connection.present() == []
    assert connection.present() == []
    assert connection.present() == []
    assert proxy.planned(NODES) == 0
    assert len(said) == 1  # not one sentence for each
    assert said[0].endswith("Retrying.")


@pytest.mark.usefixtures("slow_beats")
def test_protection_of_a_real_grid_is_applied_once(grid: HttpGrid, proxy: FaultProxy) -> None:
    assert retry_interceptor.protect(grid, print)
    assert retry_interceptor.protect(grid, print)
    applied = [
        each for each in grid._runtime_client._interceptors if isinstance(each, RetryInterceptor)
    ]
    assert len(applied) == 1
    assert grid._runtime_client._interceptors[0] is applied[0]
    wait_until(lambda: proxy.forwarded[BEAT] == 1)  # one thread that sends heartbeats


def test_without_protection_one_error_ends_flowers_heartbeats(
    grid: HttpGrid, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise this module would not be needed."""
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    proxy.plan(BEAT, "500")
    sender = HeartbeatSender(make_task_heartbeat_fn_http(grid._runtime_client))
    sender.start()
    wait_until(lambda: not sender.is_running)


@pytest.mark.usefixtures("slow_beats")
def test_flowers_heartbeats_survive_every_fault(grid: HttpGrid, proxy: FaultProxy) -> None:
    assert retry_interceptor.protect(grid, lambda _: None)
    wait_until(lambda: proxy.forwarded[BEAT] == 1)  # the own one
    proxy.plan(BEAT, *FAULTS)
    sender = HeartbeatSender(make_task_heartbeat_fn_http(grid._runtime_client))
    sender.start()
    wait_until(lambda: proxy.planned(BEAT) == 0 and proxy.forwarded[BEAT] >= 4)
    assert sender.is_running
    sender.stop()


def test_heartbeats_are_sent_after_flowers_own_have_ended(
    grid: HttpGrid, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry_interceptor, "BEAT", 0.01)
    retry_interceptor.protect(grid, lambda _: None)
    proxy.plan(BEAT, "500", "reset")
    wait_until(lambda: proxy.forwarded[BEAT] > 5)
    assert proxy.planned(BEAT) == 0


@pytest.mark.usefixtures("slow_beats")
@pytest.mark.parametrize(
    ("kind", "reason"),
    [("500", "it answered with an error (500)"), ("reset", "it cannot be reached (")],
)
def test_run_is_stopped_with_a_sentence(
    grid: HttpGrid, proxy: FaultProxy, kind: str, reason: str
) -> None:
    connection = GridConnection(grid, 1 << 20, 1)
    (applied,) = (x for x in grid._runtime_client._interceptors if isinstance(x, RetryInterceptor))
    assert applied.limit == MAX_OUTAGE
    applied.limit = 0.2
    proxy.rates = {kind: 1.0}
    with pytest.raises(SuperLinkError) as stopped:
        connection.present()
    sentence = f"{stopped.value}"
    # It says how long it waited, in seconds: more than the limit on a busy machine.
    assert re.match(
        rf"No request to the SuperLink succeeded for \d+ s: {re.escape(reason)}", sentence
    )
    assert sentence.endswith("submit the app again with the same folder: the run is resumed.")
    assert stopped.value.__suppress_context__  # no traceback of the HTTP library


@pytest.mark.usefixtures("slow_beats")
def test_error_of_one_reply_is_not_repeated_at_once(grid: HttpGrid, proxy: FaultProxy) -> None:
    retry_interceptor.protect(grid, lambda _: None)
    proxy.plan(OBJECT, "500")
    with pytest.raises(httpx.HTTPStatusError):
        grid._runtime_client.PullObject(PullObjectRequest())
    proxy.plan(OBJECT, "503", "reset")
    grid._runtime_client.PullObject(PullObjectRequest())
    assert proxy.planned(OBJECT) == 0


@pytest.mark.usefixtures("slow_beats")
def test_rejected_request_is_left_to_flower(grid: HttpGrid, superlink: type[Answers]) -> None:
    retry_interceptor.protect(grid, lambda _: None)
    wait_until(lambda: superlink.seen)  # the heartbeat
    superlink.status = 403
    with pytest.raises(RunNotRunningException):  # Flower's name for a run that was stopped
        grid.get_node_ids()


def test_expired_run_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("cafe.flower.retry_interceptor.time.monotonic", lambda: clock[0])
    guard = RetryInterceptor(run=True, _success=100.0)
    denied = httpx.Response(401)
    assert guard._check(denied) is denied  # it was stopped: Flower ends the process
    clock[0] += retry_interceptor.LEASE + 30.0
    with pytest.raises(SuperLinkError, match=r"no heartbeat reached it .* 60 s ago\. Submit"):
        guard._check(denied)


# ---------------------------------------------------------------- other programs


def fleet(proxy: FaultProxy) -> FleetHttpClient:
    """The client of a SuperNode, which signs its requests."""
    keys = generate_key_pairs()
    return FleetHttpClient.from_server_address(
        proxy.address, True, None, interceptors=[NodeAuthHttpInterceptor(*keys)]
    )


@pytest.mark.usefixtures("restored")
def test_every_client_of_a_process_repeats_its_requests(
    proxy: FaultProxy, superlink: type[Answers]
) -> None:
    attempts: list[str] = []
    retry_interceptor.install(RetryInterceptor(on_attempt=attempts.append))
    with fleet(proxy) as client:
        proxy.plan(PULL, *FAULTS)
        client.PullMessages(PullMessagesRequest())
        proxy.plan(NODE_BEAT, *FAULTS)
        assert client.SendNodeHeartbeat(SendNodeHeartbeatRequest()).success
    assert attempts.count("PullMessages") == attempts.count("SendNodeHeartbeat") == len(FAULTS)
    signed = [headers for path, headers in superlink.seen if path == PULL]
    assert len(signed) == 3  # truncated, lost, delayed
    assert all("flwr-signature" in headers for headers in signed), signed


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("fault", ["lost", "truncate"])
def test_object_whose_answer_was_lost_counts_as_stored(proxy: FaultProxy, fault: str) -> None:
    """The SuperLink rejects an object that it has already, as this one rejects every object."""
    retry_interceptor.install(RetryInterceptor())
    with fleet(proxy) as client:
        proxy.plan(PUSH, fault)
        assert client.PushObject(PushObjectRequest()).stored
        assert proxy.forwarded[PUSH] == 2
        assert not client.PushObject(PushObjectRequest()).stored
        assert proxy.forwarded[PUSH] == 2 + retry_interceptor.STORE_ATTEMPTS


@pytest.mark.usefixtures("restored")
def test_run_is_never_started_twice(proxy: FaultProxy) -> None:
    retry_interceptor.install(RetryInterceptor())
    with ControlHttpClient.from_server_address(proxy.address, True, None, []) as client:
        proxy.plan(START, "lost")
        with pytest.raises(httpx.TransportError):
            client.StartRun(StartRunRequest())
        assert proxy.forwarded[START] == 1
        proxy.plan(START, "503")
        client.StartRun(StartRunRequest())
        assert proxy.forwarded[START] == 2


def test_other_programs_get_the_last_error() -> None:
    guard = RetryInterceptor(limit=-1.0)
    answer = httpx.Response(500, request=httpx.Request("POST", "http://localhost"))
    with pytest.raises(httpx.HTTPStatusError):
        guard._give_up("PullMessages", _status(answer), 1.0)
    with pytest.raises(httpx.TransportError):  # Flower repeats it
        guard._give_up("SendNodeHeartbeat", _status(answer), 1.0)


def _status(answer: httpx.Response) -> httpx.HTTPStatusError:
    return httpx.HTTPStatusError("500", request=answer.request, response=answer)


def test_errors_with_a_code_of_flower_are_not_repeated() -> None:
    error = FlowerError(ApiErrorCode.FAILED_TO_CREATE_RUN, "why")
    answer = httpx.Response(500, json=error.to_json("It failed."))
    assert RetryInterceptor()._check(answer) is answer
    busy = httpx.Response(
        500, json={"detail": "Internal error"}, request=httpx.Request("POST", "http://localhost")
    )
    with pytest.raises(httpx.HTTPStatusError):
        RetryInterceptor()._check(busy)
