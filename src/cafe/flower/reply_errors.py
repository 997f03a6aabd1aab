"""Error replies of Flower, in plain words."""

from __future__ import annotations

import re

from flwr.app import Error
from flwr.common.constant import ErrorCode

from cafe.flower.exception_text import plain_exceptions

_REASONS = {
    ErrorCode.LOAD_CLIENT_APP_EXCEPTION: "its app could not be loaded",
    ErrorCode.CLIENT_APP_RAISED_EXCEPTION: "its training function failed",
    ErrorCode.MESSAGE_UNAVAILABLE: "its message expired, or was lost by the SuperLink",
    ErrorCode.REPLY_MESSAGE_UNAVAILABLE: "its reply expired",
    ErrorCode.NODE_UNAVAILABLE: "it is no longer connected",
    ErrorCode.INVALID_FAB: "it does not trust the app",
    ErrorCode.CLIENT_APP_CRASHED: "its app's process died",
}
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_BEGIN, _END = 60, 140  # characters that are kept of a client's long error message


def explain_error(error: Error) -> str:
    """Why a client sent no report, with its own message if its training function failed."""
    reason = _REASONS.get(error.code, f"Flower's error {error.code}")
    details = error.reason if error.code == ErrorCode.CLIENT_APP_RAISED_EXCEPTION else ""
    return f"{reason}: {_shorten(details)}" if details else reason


def _shorten(text: str) -> str:
    """The beginning and the end of a text: a traceback ends with the error."""
    text = plain_exceptions(_COLOUR.sub("", text))
    return text if len(text) <= _BEGIN + _END else f"{text[:_BEGIN]} ... {text[-_END:]}"


def is_offline(error: Error) -> bool:
    """Whether the SuperLink has lost the connection to the client."""
    return error.code == ErrorCode.NODE_UNAVAILABLE
