"""Repeat requests of Flower's HTTP clients after temporary errors.

Flower's own retries do not cover every error: HTTP 500 is never repeated, and ends the thread that
sends heartbeats, a node's loop, or a task runner. All programs of Flower send their requests
through one class, ``ProtobufClient``, and pass each of them through interceptors.
``RetryInterceptor`` is the outermost one: it repeats a request before Flower sees the error.

This module uses parts of Flower that are not public: ``ProtobufClient._interceptors``, its context
for interceptors, and ``HttpGrid._runtime_client``. It was tried with flwr 1.41.0 only.
tests/flower/test_retry_interceptor.py fails if a release of Flower changes them.
"""

from __future__ import annotations

import functools
import importlib
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import httpx

from cafe.flower.retry import MAX_OUTAGE, PAUSE, SuperLinkError, explain_outage, temporary

BEAT = 5.0  # seconds between two heartbeats of a run's server; Flower sends one every 20 s
LEASE = 30.0  # a run that was rejected this many seconds after its last success has expired
QUIET = 10.0  # seconds between two sentences about outages
HEARTBEATS = ("SendTaskHeartbeat", "SendNodeHeartbeat")
# A second request would start a second run, so these are repeated only if none can have arrived.
NOT_REPEATABLE = ("StartRun", "StartAutomation")
STORE_ATTEMPTS = 4  # to push an object that the SuperLink says it has not stored
# An error of one reply must not delay the others: cafe.flower.inbox tries again later.
OF_ONE_REPLY = ("PullObject", "ConfirmMessageReceived")


@dataclass
class RetryInterceptor:
    """An interceptor for Flower's HTTP clients that repeats requests after temporary errors.

    Attributes:
        limit: seconds of errors after which a request fails.
        say: called with a sentence when an outage begins.
        on_attempt: called with the name of each request before it is sent.
        run: whether this is the process of a run's server. Then a failed request raises
            SuperLinkError; otherwise Flower gets the last error.
        errors: how many errors were tolerated so far.
    """

    limit: float = MAX_OUTAGE
    say: Callable[[str], None] = lambda _: None
    on_attempt: Callable[[str], None] = lambda _: None
    run: bool = False
    errors: int = 0
    _success: float = field(default_factory=time.monotonic)  # when a request last succeeded
    _said: float = -QUIET  # when an outage was last reported

    def intercept(self, context: Any, call_next: Callable[[Any], httpx.Response]) -> httpx.Response:
        """Send a request, and repeat it after temporary errors until the limit."""
        name = context.rpc_method.rpartition("/")[2]
        headers, since, pause = httpx.Headers(context.request.headers), None, 0.1
        attempts = 0
        while True:
            attempts += 1
            self.on_attempt(name)
            try:
                response = self._check(call_next(_renew(context, headers)))
                if name != "PushObject" or _is_stored(response):
                    return response
                if since is not None:  # an attempt whose answer was lost has stored the object
                    return _stored(response)
                if attempts == STORE_ATTEMPTS:
                    return response
            except (httpx.HTTPStatusError, httpx.TransportError) as error:
                why = temporary(error)
                if not why or not self._may_repeat(name, error):
                    raise
                now = time.monotonic()
                if since is None:
                    since = now
                    self._report(why, now)
                elif now - since > self.limit:
                    self._give_up(name, error, now - since)
                self.errors += 1
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(2.0 * pause, PAUSE)

    def _check(self, response: httpx.Response) -> httpx.Response:
        """The response; raise an error if it is a temporary one, or says that the run is over."""
        now = time.monotonic()
        if response.status_code < 400:
            self._success = now
        elif response.status_code >= 500 and not _is_deliberate(response):
            response.raise_for_status()
        elif response.status_code == 401 and self.run and now - self._success > LEASE:
            raise SuperLinkError(
                "The SuperLink has ended this run, because no heartbeat reached it for a minute: "
                f"the last request succeeded {now - self._success:.0f} s ago. Submit the app again "
                "with the same folder: the run is resumed."
            )
        return response

    def _report(self, why: str, now: float) -> None:
        if now - self._said >= QUIET:
            self._said = now
            self.say(f"The SuperLink {why}. Retrying.")

    def _may_repeat(self, name: str, error: Exception) -> bool:
        status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else 0
        if name in NOT_REPEATABLE:
            return status == 503 or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        return not (self.run and name in OF_ONE_REPLY and status == 500)

    def _give_up(self, name: str, error: Exception, seconds: float) -> NoReturn:
        if name in HEARTBEATS:  # another error would end the thread that sends them
            raise httpx.ConnectTimeout(f"{error}") from None
        if self.run:
            raise SuperLinkError(explain_outage(seconds, temporary(error))) from None
        raise error


def install(interceptor: RetryInterceptor) -> None:
    """Have every HTTP client of Flower that this process will create use an interceptor."""
    client: Any = importlib.import_module("flwr.supercore.protobuf.client").ProtobufClient
    create = client.__init__

    @functools.wraps(create)
    def create_with_interceptor(self: Any, *args: Any, **kwargs: Any) -> None:
        create(self, *args, **kwargs)
        self._interceptors = (interceptor, *self._interceptors)

    client.__init__ = create_with_interceptor


def protect(grid: Any, say: Callable[[str], None]) -> bool:
    """Have all requests of a run's server repeated, and send heartbeats beside Flower's own.

    Args:
        grid: the Grid of the ServerApp.
        say: called with a sentence when an outage begins.

    Returns:
        Whether it is protected. A Grid without connections, as in a simulation, cannot be.

    Example:
        >>> from cafe.flower.retry_interceptor import protect
        >>> protect(object(), print)  # not a Grid with a connection
        False
    """
    client = getattr(grid, "_runtime_client", None)
    before = getattr(client, "_interceptors", None)
    if client is None or before is None or not hasattr(client, "SendTaskHeartbeat"):
        return False
    if any(isinstance(each, RetryInterceptor) and each.run for each in before):
        return True
    others = (each for each in before if not isinstance(each, RetryInterceptor))
    client._interceptors = (RetryInterceptor(say=say, run=True), *others)
    threading.Thread(target=_send_heartbeats, args=(client,), daemon=True).start()
    return True


def tolerated_errors(grid: Any) -> int:
    """How many errors of a protected Grid's requests were tolerated so far."""
    interceptors = getattr(getattr(grid, "_runtime_client", None), "_interceptors", ())
    return sum(each.errors for each in interceptors if isinstance(each, RetryInterceptor))


def _send_heartbeats(client: Any) -> None:
    """Send heartbeats until the run ends: Flower's own thread may have ended already."""
    from flwr.proto.runtime_pb2 import SendTaskHeartbeatRequest

    while True:
        try:
            client.SendTaskHeartbeat(SendTaskHeartbeatRequest())
        except RuntimeError:  # the client is closed: the run has ended
            return
        except Exception:
            pass  # the main thread gets the same error, and ends the run with a sentence
        time.sleep(BEAT)


def _renew(context: Any, headers: httpx.Headers) -> Any:
    """The context with a new request: Flower's interceptors refuse to add a header twice."""
    old = context.request
    request = httpx.Request(
        old.method, old.url, headers=headers, content=old.content, extensions={**old.extensions}
    )
    return replace(context, request=request)


def _is_stored(response: httpx.Response) -> bool:
    """Whether a pushed object was stored.

    The SuperLink says that it was not if its database is locked, and if it has the object already.
    """
    from flwr.proto.message_pb2 import PushObjectResponse

    return response.is_error or PushObjectResponse.FromString(response.content).stored


def _stored(response: httpx.Response) -> httpx.Response:
    """The response that says that the object was stored."""
    from flwr.proto.message_pb2 import PushObjectResponse

    content = PushObjectResponse(stored=True).SerializeToString()
    kind = {"content-type": response.headers["content-type"]}
    return httpx.Response(200, headers=kind, content=content, request=response.request)


def _is_deliberate(response: httpx.Response) -> bool:
    """Whether the SuperLink has answered with one of its own errors, which another attempt repeats.

    An exception in the SuperLink, such as that of a locked database, has no error code.
    """
    from flwr.supercore.error import FlowerError

    if response.status_code != 500:
        return False
    response.read()
    return FlowerError.from_json(response.text) is not None
