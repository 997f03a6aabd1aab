"""CAFe on Flower: run a policy on a real federation, or watch the rounds of your own strategy.

Flower is an optional dependency. It is imported only when one of the functions is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cafe.errors import CafeError

if TYPE_CHECKING:
    from cafe.flower.client_app import client
    from cafe.flower.server_app import server
    from cafe.flower.watched_grid import watch

__all__ = ["client", "server", "watch"]


class FlowerMissingError(CafeError, ImportError):
    """Flower is not installed, or the installed version is not supported."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        if name == "server":
            from cafe.flower.server_app import server

            return server
        if name == "watch":
            from cafe.flower.watched_grid import watch

            return watch
        from cafe.flower.client_app import client

        return client
    except ImportError as error:
        raise FlowerMissingError(
            f"A real federation needs Flower ({error}). Install it: pip install 'flwr>=1.41,<1.43'."
        ) from error
