"""An HTTP proxy on loopback that injects faults between two parties of a federation.

It forwards requests to one port, without TLS or with the certificates of the federation. A fault is
drawn for each request, at random under a seed, or is planned for the next request to a path.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

LOOPBACK = "127.0.0.1"
# The last two happen after the request has reached the other party, which has acted on it.
KINDS = ("404", "500", "503", "reset", "delay", "truncate", "lost")
CLOSING = 0.5  # seconds in which a connection is closed
REASONS = {"404": "Not Found", "500": "Internal Server Error", "503": "Service Unavailable"}
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with which a closed connection is reset


@dataclass(frozen=True)
class _Message:
    """A request or a response: its first line, its headers in lower case, and all its bytes."""

    first: str
    headers: dict[str, str]
    head: bytes
    body: bytes


@dataclass
class FaultProxy:
    """Forwards requests to a port of this machine, and injects faults.

    Use it as a context manager: it listens on ``port`` while the context is open. ``rates``,
    ``paths`` and ``on`` may be changed at any time.

    Attributes:
        target: the port to forward to.
        rates: the share of requests that get each kind of fault.
        seed: of the random faults.
        paths: random faults are injected only into requests whose path begins with one of these.
        delay: seconds of a ``delay``.
        on: whether random faults are injected.
        keys: the folder of the federation's certificates; None: without TLS.
        injected: how many faults of each kind were injected.
        forwarded: how many requests were answered by the other party, by path.
    """

    target: int
    rates: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    paths: tuple[str, ...] = ("/",)
    delay: float = 0.5
    on: bool = True
    port: int = 0
    keys: Path | None = None
    injected: Counter[str] = field(default_factory=Counter)
    forwarded: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        unknown = {*self.rates} - {*KINDS}
        assert not unknown, f"There is no fault {unknown}: {KINDS}"
        assert sum(self.rates.values()) <= 1.0
        self._random = random.Random(self.seed)
        self._planned: dict[str, list[str]] = {}
        self._tls: tuple[ssl.SSLContext, ssl.SSLContext] | tuple[None, None] = (None, None)
        if self.keys is not None:
            self._tls = _tls(self.keys)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self._stop = asyncio.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60.0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60.0)

    @property
    def address(self) -> str:
        """What the other party is told instead of the true address."""
        return f"{LOOPBACK}:{self.port}"

    def plan(self, path: str, *kinds: str) -> None:
        """Inject these faults into the next requests to a path, one into each."""
        self._planned.setdefault(path, []).extend(kinds)

    def planned(self, path: str) -> int:
        """How many planned faults of a path have not happened yet."""
        return len(self._planned.get(path, ()))

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connection, LOOPBACK, self.port, ssl=self._tls[0])
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await server.wait_closed()
        left: Any = getattr(self._loop, "_transports", {})  # a cancelled task leaves some open
        for transport in [*left.values()]:
            transport.abort()
        await asyncio.sleep(0.05)  # until the loop has closed them

    async def _connection(
        self, client: asyncio.StreamReader, answers: asyncio.StreamWriter
    ) -> None:
        """Serve the requests of one connection, one after the other."""
        upstream: asyncio.StreamWriter | None = None
        try:
            source, upstream = await asyncio.open_connection(
                LOOPBACK, self.target, ssl=self._tls[1]
            )
            while (request := await _read(client)) is not None:
                path = request.first.split(" ")[1]
                if not await self._answer(request, path, source, upstream, answers):
                    break
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # one of the two parties has closed its connection, or the proxy ends
        finally:
            for writer in (answers, upstream):
                if writer is not None:
                    await _close(writer)

    async def _answer(
        self,
        request: _Message,
        path: str,
        source: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
        answers: asyncio.StreamWriter,
    ) -> bool:
        """Forward a request or inject a fault; return whether the connection stays open."""
        fault = self._draw(path)
        if fault:
            self.injected[fault] += 1
        if fault in REASONS:
            text = f"HTTP/1.1 {fault} {REASONS[fault]}\r\ncontent-length: 5\r\n\r\nfault"
            answers.write(text.encode())
            await answers.drain()
            return True
        if fault == "reset":
            _reset(answers)
            return False
        if fault == "delay":
            await asyncio.sleep(self.delay)
        upstream.write(request.head + request.body)
        await upstream.drain()
        response = await _read(source)
        if response is None:
            return False
        self.forwarded[path] += 1
        if fault == "lost":
            _reset(answers)
            return False
        if fault == "truncate":
            # At least one byte is missing, also of an empty body.
            answers.write((response.head + response.body)[: -1 - len(response.body) // 2])
            await answers.drain()
            return False
        answers.write(response.head + response.body)
        await answers.drain()
        return response.headers.get("connection") != "close"

    def _draw(self, path: str) -> str:
        """The fault of the next request to a path; empty if it has none."""
        if self.planned(path):
            return self._planned[path].pop(0)
        if not self.on or not path.startswith(self.paths):
            return ""
        left = self._random.random()
        for kind, rate in self.rates.items():
            left -= rate
            if left < 0.0:
                return kind
        return ""


async def _read(source: asyncio.StreamReader) -> _Message | None:
    """The next message; None if the connection was closed before it began."""
    try:
        head = await source.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    if "chunked" in headers.get("transfer-encoding", ""):
        return _Message(first, headers, head, await _read_chunks(source))
    return _Message(
        first, headers, head, await source.readexactly(int(headers.get("content-length", 0)))
    )


async def _read_chunks(source: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        line = await source.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        body += line + await source.readexactly(size + 2)
        if size == 0:
            return body


def _tls(keys: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What the proxy needs as the server of one party, and as a client of the other."""
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(keys / "server.pem", keys / "server.key")
    return own, ssl.create_default_context(cafile=keys / "ca.pem")


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close a connection; with TLS the other party need not confirm it."""
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(CLOSING):
            await writer.wait_closed()
            return
    writer.transport.abort()
    await asyncio.sleep(0.01)  # until the loop has noticed


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection with a reset instead of an orderly end."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
