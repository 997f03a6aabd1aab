"""CAFe on Flower: run a policy on a real federation, or watch the rounds of your own strategy.

Flower is an optional dependency. It is imported only when a name of this package is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cafe.errors import CafeError

if TYPE_CHECKING:
    from cafe.flower.client_app import client
    from cafe.flower.server_app import server
    from cafe.flower.strategy import Strategy
    from cafe.flower.watched_grid import watch

__all__ = ["Strategy", "client", "server", "watch"]

# The module of each name.
_MODULES = {
    "Strategy": "cafe.flower.strategy",
    "client": "cafe.flower.client_app",
    "server": "cafe.flower.server_app",
    "watch": "cafe.flower.watched_grid",
}


class FlowerMissingError(CafeError, ImportError):
    """Flower is not installed, or the installed version is not supported."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ImportError as error:
        raise FlowerMissingError(
            f"A real federation needs Flower ({error}). Install it: pip install 'flwr>=1.41,<1.43'."
        ) from error
