"""The proxy that injects faults: what a client behind it sees."""

from __future__ import annotations

import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

import httpx

from cafe.flower.lab.keys import make_certificates
from tests.support.flower.fault_proxy import FaultProxy

BODY = b"0123456789" * 1000


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was sent."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        if self.path == "/chunked":
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        else:
            self.send_header("content-length", f"{len(body)}")
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def target() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def outcome(proxy: FaultProxy) -> str:
    """What a request through the proxy ends with: a status, or the name of an exception."""
    try:
        if proxy.keys is None:
            response = httpx.post(f"http://{proxy.address}/", content=BODY, timeout=60.0)
        else:
            trust = ssl.create_default_context(cafile=proxy.keys / "ca.pem")
            address = f"https://{proxy.address}/"
            response = httpx.post(address, content=BODY, timeout=60.0, verify=trust)
    except httpx.TransportError as error:
        return type(error).__name__
    assert response.content == (BODY if response.status_code == 200 else b"fault")
    return f"{response.status_code}"


@pytest.mark.parametrize("path", ["/", "/chunked"])
def test_requests_are_forwarded_unchanged(target: int, path: str) -> None:
    with FaultProxy(target) as proxy, httpx.Client() as client:
        for _ in range(3):  # over one connection
            answer = client.post(f"http://{proxy.address}{path}", content=BODY, timeout=60.0)
            assert answer.content == BODY
        assert not proxy.injected
        assert proxy.forwarded == {path: 3}


@pytest.mark.parametrize(
    ("kind", "seen", "acted"),
    [
        ("500", {"500"}, 0),
        ("503", {"503"}, 0),
        ("reset", {"ReadError", "WriteError"}, 0),
        ("lost", {"ReadError"}, 1),
        ("truncate", {"RemoteProtocolError"}, 1),
        ("delay", {"200"}, 1),
    ],
)
def test_each_kind_of_fault(target: int, kind: str, seen: set[str], acted: int) -> None:
    with FaultProxy(target, delay=0.01) as proxy:
        proxy.plan("/", kind)
        assert outcome(proxy) in seen
        assert proxy.injected == {kind: 1}
        assert proxy.forwarded["/"] == acted
        assert outcome(proxy) == "200"


def test_faults_with_tls(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with FaultProxy(server.server_address[1], keys=tmp_path) as proxy:
            assert outcome(proxy) == "200"
            broken = {"ReadError", "WriteError", "RemoteProtocolError"}
            for kind, seen, acted in (
                ("500", {"500"}, 1),
                ("reset", broken, 1),
                ("lost", broken, 2),
                ("truncate", broken, 3),
            ):
                proxy.plan("/", kind)
                assert outcome(proxy) in seen
                assert proxy.forwarded["/"] == acted
            assert outcome(proxy) == "200"
        server.shutdown()


def test_random_faults_follow_the_seed_and_the_rates(target: int) -> None:
    rates = {"500": 0.3, "503": 0.2}
    found = []
    for seed in (1, 1, 2):
        with FaultProxy(target, rates, seed) as proxy:
            found.append([outcome(proxy) for _ in range(60)])
            counted = Counter(each for each in found[-1] if each != "200")
            assert proxy.injected == counted
    assert found[0] == found[1] != found[2]
    assert 8 <= found[0].count("500") <= 30
    assert 2 <= found[0].count("503") <= 24


def test_faults_can_be_switched_off_and_limited_to_paths(target: int) -> None:
    with FaultProxy(target, {"500": 1.0}, paths=("/a",)) as proxy:
        assert outcome(proxy) == "200"
        proxy.paths = ("/",)
        assert outcome(proxy) == "500"
        proxy.on = False
        assert outcome(proxy) == "200"
        proxy.plan("/", "503")  # a plan is followed in any case
        assert outcome(proxy) == "503"
        assert proxy.planned("/") == 0


def test_unreachable_target_closes_the_connection() -> None:
    with FaultProxy(1) as proxy:
        assert outcome(proxy) in {"ReadError", "RemoteProtocolError"}
