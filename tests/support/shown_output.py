"""Output shown on pages, compared with what is really printed."""

from __future__ import annotations

import doctest
import math
import re

NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


def check_session(code: str, names: dict[str, object]) -> None:
    """A Python session, compared by doctest."""
    session = doctest.DocTestParser().get_doctest(code, names, "session", None, None)
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    failed = runner.run(session, out=report.append, clear_globs=False).failed
    assert not failed, "".join(report)
    names.update(session.globs)


PROGRESS = re.compile(r"^.*(, about [\d,]+ s left|\.\.\. [\d,]+ s elapsed)$", re.MULTILINE)


def appears(shown: str, printed: str) -> bool:
    """Whether the words and figures shown are printed, in this order; line breaks do not count.

    Lines about progress do not count: a slow machine prints more of them.
    """
    printed = PROGRESS.sub("", printed)
    pieces = [piece.split() for piece in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)]
    words, at = printed.split(), 0
    for i, piece in enumerate(pieces):
        last = len(words) - len(piece)
        first = at if i else 0
        starts = range(first, last + 1) if i else range(min(1, last + 1))
        if i and i == len(pieces) - 1 and piece:
            starts = range(max(first, last), last + 1)
        found = next((s for s in starts if all(map(alike, piece, words[s : s + len(piece)]))), None)
        if found is None:
            return False
        at = found + len(piece)
    return len(pieces) > 1 or at == len(words)


def alike(shown: str, printed: str) -> bool:
    """Whether two words are equal, up to the last digits of numbers in them."""
    if shown == printed:
        return True
    ours, theirs = (
        [float(n.replace(",", "")) for n in NUMBER.findall(word)] for word in (shown, printed)
    )
    return NUMBER.split(shown) == NUMBER.split(printed) and all(
        math.isclose(a, b, rel_tol=1e-3) for a, b in zip(ours, theirs, strict=True)
    )
