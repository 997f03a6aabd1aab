"""What a recipe says about its scheme: the kind of its rounds, and where it was published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from cafe.keywords import explain_keywords

Kind = Literal["synchronous", "semi-asynchronous", "asynchronous", "hierarchical"]

# What each kind means, in the order in which kinds are listed.
KINDS: dict[str, str] = {
    "synchronous": "every report is used in the round in which its job started, or not at all",
    "semi-asynchronous": "rounds, and reports or local models that later rounds may use",
    "asynchronous": "an update after one or a few reports, while other clients work on",
    "hierarchical": "clients report to edge servers, and edge servers to a cloud",
}

Called = TypeVar("Called", bound=Callable[..., Any])


@dataclass(frozen=True)
class Scheme:
    """What a recipe implements.

    Attributes:
        kind: a key of ``KINDS``.
        source: authors and year, such as "McMahan et al. (2017)"; "CAFe" for own schemes. The
            docstring has the title.
        stand_in: whether it only stands in for a published scheme whose text was not available, or
            that cannot be expressed completely.
    """

    kind: Kind
    source: str
    stand_in: bool = False


def recipe(kind: Kind, source: str, *, stand_in: bool = False) -> Callable[[Called], Called]:
    """Decorate a function that makes policies with its :class:`Scheme`.

    Unknown keywords of the function raise an error with the right name.

    Example:
        >>> from cafe.policies import mcu
        >>> from cafe.policies._recipe import scheme_of
        >>> scheme_of(mcu).kind
        'synchronous'
    """

    def decorate(called: Called) -> Called:
        explained = explain_keywords(called)
        explained.scheme = Scheme(kind, source, stand_in)  # type: ignore[attr-defined]
        return explained

    return decorate


def scheme_of(called: Callable[..., Any]) -> Scheme | None:
    """The scheme of a shipped recipe; None for a function without one."""
    found = getattr(called, "scheme", None)
    return found if isinstance(found, Scheme) else None
