"""What a recipe says about its scheme: the kind of its rounds, and where it was published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from cafe.errors import check_callable, check_choice, check_flag, check_type
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

    def __post_init__(self) -> None:
        check_choice("The kind of a scheme", self.kind, KINDS)
        check_type(
            "The source of a scheme", self.source, str, "a text, such as 'Xie et al. (2019)'"
        )
        check_flag("stand_in", self.stand_in)


def recipe(kind: Kind, source: str, *, stand_in: bool = False) -> Callable[[Called], Called]:
    """Decorate a function that makes policies with its :class:`Scheme`.

    ``cafe policies`` shows it. Unknown keywords of the function raise an error with the right name.

    Args:
        kind: the kind of its rounds, a key of ``KINDS``.
        source: authors and year of the publication.
        stand_in: whether it only stands in for the published scheme.

    Example:
        >>> import cafe
        >>> @cafe.policies.recipe("synchronous", "Me (2026)")
        ... def patient(*, quorum: int) -> cafe.rounds.Policy:
        ...     return cafe.policies.mcu(quorum=quorum, deadline=3600.0)
        >>> cafe.policies.scheme_of(patient).source
        'Me (2026)'
    """
    scheme = Scheme(kind, source, stand_in)

    def decorate(called: Called) -> Called:
        explained = explain_keywords(called)
        explained.scheme = scheme  # type: ignore[attr-defined]
        return explained

    return decorate


def scheme_of(called: Callable[..., Any]) -> Scheme | None:
    """The scheme of a recipe; None for a function that is not decorated with :func:`recipe`.

    Example:
        >>> import cafe
        >>> cafe.policies.scheme_of(cafe.policies.fedavg)
        Scheme(kind='synchronous', source='McMahan et al. (2017)', stand_in=False)
    """
    check_callable("called", called, "a function that returns a Policy")
    found = getattr(called, "scheme", None)
    return found if isinstance(found, Scheme) else None
