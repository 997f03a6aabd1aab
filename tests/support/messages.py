"""The messages that an operator can see, read from the source, and the lines about them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cafe

SOURCE = Path(cafe.__file__).parent
PLACES = (
    "live", "flower", "cli/federating.py", "results/storage.py", "results/checkpoint.py",
    "results/events.py", "results/provenance.py",
)  # fmt: skip
GAP = "…"  # stands for a value in a message
ERRORS = {
    "InputError", "InfeasibleError", "FlowerMissingError", "MalformedError", "RejectedReportError",
}  # fmt: skip
LOGS = {"say", "_say", "info"}
REASONS = {"lost", "malformed", "reason"}  # arguments that contain why a job is lost or rejected
KEPT = {"trouble", "why", "REASONS", "_REASONS", "UNREACHABLE", "RESTARTED", "NO_SUPERLINK"}
ENOUGH = 14  # characters of a message, apart from its values, that identify it


@dataclass(frozen=True)
class Message:
    """A message, with a gap for each value in it."""

    file: str
    line: int
    text: str


def find_messages() -> list[Message]:
    """Every log line, error, reason and state in the packages that operators use."""
    found: dict[tuple[str, str], Message] = {}
    for place in PLACES:
        path = SOURCE / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            if "template" in f"{file.relative_to(SOURCE)}":
                continue
            name = f"{file.relative_to(SOURCE)}"
            for line, text in _messages_of(ast.parse(file.read_text())):
                if len(text.replace(GAP, "").strip()) > 3:
                    found.setdefault((name, text), Message(name, line, text))
    return [*found.values()]


def _messages_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        for given in _texts(node):
            for text in _templates(given):
                yield given.lineno, text


def _texts(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions in a node that are messages."""
    if isinstance(node, ast.Call):
        name = _name(node.func)
        if name in LOGS or name in ERRORS:
            yield from node.args[:1]
        elif name in ("FileError", "_incomplete"):
            yield from node.args[1:2]
        elif name == "show":
            yield from node.args[:2]
        elif name in ("_fail",):
            yield from node.args[2:3]
        elif name in ("_reject", "end"):
            yield from node.args[3:4]
        yield from (word.value for word in node.keywords if word.arg in REASONS)
    elif isinstance(node, ast.Assign) and any(_name(each) in KEPT for each in node.targets):
        yield node.value
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        first, *rest = node.value.elts  # no result, and the reason
        yield from rest if isinstance(first, ast.Constant) and first.value is None else ()
    elif isinstance(node, ast.FunctionDef) and _returns_sentence(node):
        for each in ast.walk(node):
            if isinstance(each, ast.Return) and each.value is not None:
                yield each.value


def _returns_sentence(node: ast.FunctionDef) -> bool:
    """Whether a function returns why something is wrong."""
    shown = "" if node.returns is None else ast.unparse(node.returns)
    names = ("describe_", "explain_")
    return shown == "str | None" or (shown == "str" and node.name.startswith(names))


def _templates(given: ast.expr) -> Iterator[str]:
    """The texts that an expression can be, with a gap for each value."""
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        yield re.sub(r"%[.\d]*[sdf]", GAP, given.value).replace("%%", "%")
    elif isinstance(given, ast.JoinedStr):
        parts = (
            str(part.value) if isinstance(part, ast.Constant) else GAP for part in given.values
        )
        yield re.sub(f"{GAP}+", GAP, "".join(parts))
    elif isinstance(given, ast.IfExp):
        yield from _templates(given.body)
        yield from _templates(given.orelse)
    elif isinstance(given, ast.BoolOp | ast.Dict):
        for value in given.values:
            yield from _templates(value)
    elif isinstance(given, ast.Tuple):
        for value in given.elts:
            yield from _templates(value)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def lines_about_messages(page: str) -> list[str]:
    """The messages in the first column of the tables of a page; a part stands for the whole."""
    found = []
    for row in page.splitlines():
        if row.startswith("| ") and not row.startswith("| ---"):
            cell = row[2:].split(" | ")[0]
            spans = [span for _, span in re.findall(r"(`+)(.+?)\1(?!`)", cell)]
            found += [span.strip() for span in spans] or [cell.strip()]
    return found


def describes(line: str, message: str) -> bool:
    """Whether a line of the page shows the beginning of a message, or the whole.

    A gap in the message fits any text in the line, such as an example. A gap in the line fits any
    part of the message. Enough of the message must be there word by word.
    """
    # How much of the message was found word by word, for each position up to which the line fits.
    fits = {0: 0}
    for letter in line:
        after: dict[int, int] = {}
        for at, count in _skip_gaps(fits, message).items():
            if letter == GAP:
                for later in range(at, len(message) + 1):
                    after[later] = max(after.get(later, 0), count)
            elif at < len(message) and message[at] == GAP:
                after[at] = max(after.get(at, 0), count)
            if at < len(message) and message[at] == letter != GAP:
                after[at + 1] = max(after.get(at + 1, 0), count + 1)
        fits = after
    needed = min(ENOUGH, len(message.replace(GAP, "")) - 1)
    return max(_skip_gaps(fits, message).values(), default=-1) >= needed


def _skip_gaps(fits: dict[int, int], message: str) -> dict[int, int]:
    """The positions, and those after gaps that are empty."""
    found = dict(fits)
    for at in sorted(fits):
        if at < len(message) and message[at] == GAP:
            found[at + 1] = max(found.get(at + 1, 0), fits[at])
    return found
