"""Exceptions of clients as Flower sends and logs them, in Python's usual form."""

from __future__ import annotations

import re

_EXCEPTION = re.compile(r"<class '(?:builtins\.)?([\w.]+)'>:<'(.*)'>", re.DOTALL)


def plain_exceptions(text: str) -> str:
    """The text with an exception in Flower's form replaced: its type, a colon, its message.

    Example:
        >>> from cafe.flower.exception_text import plain_exceptions
        >>> plain_exceptions("<class 'ZeroDivisionError'>:<'division by zero'>")
        'ZeroDivisionError: division by zero'
    """
    return _EXCEPTION.sub(lambda found: f"{found[1]}: {found[2]}".removesuffix(": "), text)
