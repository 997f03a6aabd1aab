"""The SuperLink does less per request, and answers the same."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

import flwr.supercore.sql_mixin
import flwr.superlink.main
from flwr.supercore.corestate.sql_corestate import SqlCoreState
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware

from cafe.flower import superlink_load
from cafe.flower.superlink_load import APPLIES, LOCKED, THREADS, Conditional, reduce_load

main: Any = flwr.superlink.main
sql_mixin: Any = flwr.supercore.sql_mixin
CONTROL, FLEET = "/v1/control/list-runs", "/v1/fleet/pull-messages"


@pytest.fixture
def reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The changes of a SuperLink's process, until the test ends."""
    monkeypatch.setattr(main, "_get_middleware", main._get_middleware)
    monkeypatch.setattr(sql_mixin, "create_engine", sql_mixin.create_engine)
    cleanup = SqlCoreState._cleanup_expired_task_tokens
    monkeypatch.setattr(SqlCoreState, "_cleanup_expired_task_tokens", cleanup)
    reduce_load()


def layers_of(path: str, plugin: object = None) -> list[str]:
    """The layers that do more than pass a request on, in their order."""
    state = SimpleNamespace(fleet_event_log_plugin=plugin)
    scope = {"type": "http", "path": path, "app": SimpleNamespace(state=state)}
    found = []
    for layer in main._get_middleware():
        if layer.cls is not Conditional:
            found.append(layer.cls.__name__)
        elif layer.kwargs["applies"](scope):
            found.append(layer.kwargs["layer"].cls.__name__)
    return found


def test_names_are_those_of_this_version_of_flower() -> None:
    """If Flower adds a layer, it is looked at here: a layer that is not named always runs."""
    names = [layer.cls.__name__ for layer in main._get_middleware()]
    kept = ["BaseHTTPMiddleware", "ProtobufTranslationMiddleware", "NodeAuthMiddleware"]
    assert sorted(names) == sorted([*APPLIES, *kept])


@pytest.mark.usefixtures("reduced")
def test_layers_that_authenticate_always_run() -> None:
    fleet = ["BaseHTTPMiddleware", "ProtobufTranslationMiddleware", "NodeAuthMiddleware"]
    assert layers_of(FLEET) == fleet
    assert layers_of(FLEET, plugin=object()) == [*fleet, "FleetEventLogMiddleware"]
    control = [
        "ControlSensitiveResponseMiddleware",
        "BaseHTTPMiddleware",
        "ControlAuthenticationMiddleware",
        "ControlLicenseMiddleware",
        "ProtobufTranslationMiddleware",
        "ControlEventLogMiddleware",
        "NodeAuthMiddleware",
    ]
    assert layers_of(CONTROL) == control


@pytest.mark.usefixtures("reduced")
def test_tracing_runs_if_it_is_switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLWR_TRACING_ENABLED", "1")
    assert "RuntimeTracingMiddleware" in layers_of(FLEET)


def test_conditional_layer() -> None:
    passed: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        passed.append("app")

    class Layer(BaseHTTPMiddleware):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            passed.append("layer")
            await self.app(scope, receive, send)

    made = Conditional(app, Middleware(Layer), APPLIES["ControlLicenseMiddleware"])
    for kind, path in (("http", CONTROL), ("http", FLEET), ("lifespan", FLEET)):
        asyncio.run(made({"type": kind, "path": path}, None, None))
    assert passed == ["layer", "app", "app", "layer", "app"]


def test_rare_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.4, 0.9, 1.0, 1.5, 2.1])
    monkeypatch.setattr(superlink_load, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    called: list[int] = []
    rarely = superlink_load.at_most_every(1.0, called.append)
    for k in range(6):
        rarely(k)
    assert called == [0, 3, 5]


@pytest.mark.usefixtures("reduced")
def test_every_thread_keeps_its_connection_and_waits_for_others(tmp_path: Any) -> None:
    engine = sql_mixin.create_engine(f"sqlite:///{tmp_path / 'some.db'}")
    assert engine.pool.size() == THREADS
    with engine.connect() as connection:
        waits = connection.exec_driver_sql("PRAGMA busy_timeout").scalar()
    assert waits == 1000 * LOCKED
    engine.dispose()
