"""Less work for the SuperLink per request, with the same answers.

A client's job takes about 17 requests, and the SuperLink answers all of them in one process. Each
request passes through nine layers of middleware, most of which only look at its path; and every
look at a run's status writes to the database, to remove the tokens of tasks that have expired. Here
a request skips the layers that do nothing for it, and expired tokens are looked for once a second.
There are fewer threads, because only one of them can write to the database at a time. Every thread
keeps its connection to the database, instead of opening one for most requests, and waits longer for
another one that writes.
"""

from __future__ import annotations

import functools
import importlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import anyio.to_thread

APART = 1.0  # seconds between two searches for expired tokens
THREADS = 10  # that answer requests; with more of them, they mostly wait for the database
LOCKED = 20.0  # seconds for which a thread waits while another writes; then the request fails
Applies = Callable[[dict[str, Any]], bool]


def _on_control_path(scope: dict[str, Any]) -> bool:
    return str(scope.get("path", "")).startswith("/v1/control/")


def _logs_events(scope: dict[str, Any]) -> bool:
    return getattr(scope["app"].state, "fleet_event_log_plugin", None) is not None


def _traces(scope: dict[str, Any]) -> bool:
    return os.environ.get("FLWR_TRACING_ENABLED") == "1"


# When a layer does more than pass a request on. Layers that are not named here always run.
APPLIES: dict[str, Applies] = {
    "ControlSensitiveResponseMiddleware": _on_control_path,
    "ControlAuthenticationMiddleware": _on_control_path,
    "ControlLicenseMiddleware": _on_control_path,
    "ControlEventLogMiddleware": _on_control_path,
    "FleetEventLogMiddleware": _logs_events,
    "RuntimeTracingMiddleware": _traces,
}


class Conditional:
    """A layer of middleware that runs only for some requests."""

    def __init__(self, app: Any, layer: Any, applies: Applies) -> None:
        self._app, self._applies = app, applies
        self._layer = layer.cls(app, *layer.args, **layer.kwargs)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":  # the server starts, in its event loop
            anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        skip = scope["type"] == "http" and not self._applies(scope)
        await (self._app if skip else self._layer)(scope, receive, send)


def reduce_load() -> None:
    """Change the SuperLink of this process, before it starts.

    If this version of Flower has other names than those that are changed here, nothing changes.
    """
    from starlette.middleware import Middleware

    main = _import("flwr.superlink.main")
    if hasattr(main, "_get_middleware"):
        layers = main._get_middleware

        def get_middleware() -> list[Any]:
            return [
                Middleware(Conditional, layer=layer, applies=APPLIES[layer.cls.__name__])
                if layer.cls.__name__ in APPLIES
                else layer
                for layer in layers()
            ]

        main._get_middleware = get_middleware
    sql = _import("flwr.supercore.sql_mixin")
    if hasattr(sql, "create_engine"):
        sql.create_engine = keep_connections(sql.create_engine)
    state = getattr(_import("flwr.supercore.corestate.sql_corestate"), "SqlCoreState", None)
    if state is not None and hasattr(state, "_cleanup_expired_task_tokens"):
        search = state._cleanup_expired_task_tokens
        state._cleanup_expired_task_tokens = at_most_every(APART, search)


def _import(name: str) -> Any:
    """A module of Flower; None if this version has no such module."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def keep_connections(create_engine: Callable[..., Any]) -> Callable[..., Any]:
    """A function that creates engines that keep the connections of all threads open."""

    @functools.wraps(create_engine)
    def create(url: Any, **settings: Any) -> Any:
        if "poolclass" not in settings:
            settings.setdefault("pool_size", THREADS)
        if str(url).startswith("sqlite"):
            settings["connect_args"] = {"timeout": LOCKED} | settings.get("connect_args", {})
        return create_engine(url, **settings)

    return create


def at_most_every(seconds: float, function: Callable[..., None]) -> Callable[..., None]:
    """A function that does nothing if it was called less than ``seconds`` ago."""
    lock, last = threading.Lock(), -seconds

    @functools.wraps(function)
    def rarely(*args: Any, **more: Any) -> None:
        nonlocal last
        with lock:
            now = time.monotonic()
            if now - last < seconds:
                return
            last = now
        function(*args, **more)

    return rarely
