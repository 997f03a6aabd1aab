"""An HTTP server for monitoring: the metrics and the status of a running server.

It answers ``GET /metrics`` in Prometheus's format, and ``GET /status`` as JSON. There is no
password. Node ids are not shown.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from cafe.errors import InputError
from cafe.live.prometheus import CONTENT_TYPE, prometheus_text

ADDRESS = "127.0.0.1:9464"
_REQUEST_TIMEOUT = 5.0  # seconds that a request may take to arrive


def parse_address(address: object) -> tuple[str, int]:
    """The host and the port of an address such as ``127.0.0.1:9464``."""
    host, colon, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not (host and colon and port.isdecimal() and int(port) < 65536):
        raise InputError(
            f"metrics must be a host and a port, such as '{ADDRESS}', or None. Got {address!r}."
        )
    return host.strip("[]"), int(port)


class StatusServer:
    """Serves a run's status over HTTP, in threads that end with the process.

    Args:
        address: the host and the port. Port 0 chooses a free one.
        latest: returns the present content of ``live.json``.
    """

    def __init__(self, address: str, latest: Callable[[], Mapping[str, Any]]) -> None:
        host, port = parse_address(address)
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(latest))
        except OSError as error:
            raise InputError(
                f"The metrics cannot be served at {address}: {error.strerror or error}. Choose "
                "another port, or leave metrics out."
            ) from None
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="cafe-metrics", daemon=True
        )

    @property
    def url(self) -> str:
        """The address of the metrics."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/metrics"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def public_status(status: Mapping[str, Any]) -> dict[str, Any]:
    """The status without node ids, which clients could misuse."""
    clients = [{k: v for k, v in c.items() if k != "name"} for c in status["clients"]]
    return {**status, "clients": clients}


def _handler(latest: Callable[[], Mapping[str, Any]]) -> type[BaseHTTPRequestHandler]:
    pages: dict[str, Callable[[], tuple[str, str]]] = {
        "/metrics": lambda: (CONTENT_TYPE, prometheus_text(latest())),
        "/status": lambda: ("application/json", json.dumps(public_status(latest())) + "\n"),
    }

    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_TIMEOUT

        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            status = 404 if page is None else 200
            kind, text = (
                ("text/plain; charset=utf-8", f"There is only {' and '.join(pages)}.\n")
                if page is None
                else page()
            )
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", f"{len(body)}")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given: Any) -> None:
            """Requests are not logged."""

    return Handler
