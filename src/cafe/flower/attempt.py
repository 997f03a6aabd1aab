"""One attempt of a watched round: who reported, who did not, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flwr.app import Message

from cafe.flower.exchange import Answer
from cafe.flower.response_log import LogRow
from cafe.flower.round_terms import Terms

_SHOWN = 5  # clients that an error message names
_SHORTEST = 0.001  # seconds: the log has milliseconds, and a response time of 0 cannot be fitted


@dataclass(frozen=True, eq=False)
class Attempt:
    """An attempt that has ended.

    Attributes:
        nodes: the clients that were invited.
        answers: what they answered in time.
        terms: what the round needs to succeed.
        lasted: seconds that the attempt lasted, at most the deadline.
        closed_early: whether the other clients were no longer awaited, before the deadline.
    """

    nodes: Sequence[int]
    answers: Sequence[Answer]
    terms: Terms
    lasted: float
    closed_early: bool = False

    @property
    def reported(self) -> list[int]:
        """The clients that reported in time."""
        return [self.nodes[answer.position] for answer in self.answers if answer.is_report]

    @property
    def succeeded(self) -> bool:
        """Whether there are enough reports."""
        return len(self.reported) >= self.terms.quorum

    @property
    def all_failed(self) -> bool:
        """Whether every client answered with an error: none was late, offline, or reported."""
        return all(status == "failed" for _, status, _ in self._fates())

    def replies(self) -> list[Message]:
        """The reports and the errors, in the order of the messages that were sent."""
        return [answer.message for answer in self.answers if answer.message is not None]

    def responses(self) -> Iterator[tuple[int, float | None, float]]:
        """Each client, its response time or None, and how long the server waited for it.

        An offline client counts as waited for until the close, since it could not report. A client
        that failed is waited for until its error arrived: it missed no deadline.
        """
        for node, status, answer in self._fates():
            if answer is None or status == "offline":
                yield node, None, self._waited
            elif status == "reported":
                yield node, min(max(answer.seconds, _SHORTEST), self._waited), self._waited
            else:
                yield node, None, max(answer.seconds, _SHORTEST)

    def rows(self, sent: str, round_: int, attempt: int) -> Iterator[LogRow]:
        """The rows of the log, one for each client."""
        for (node, status, answer), (_, seconds, waited) in zip(
            self._fates(), self.responses(), strict=True
        ):
            reason = answer.reason if answer is not None else ""
            yield LogRow(f"{node}", seconds, waited, sent, round_, attempt, status, reason)

    def describe(self) -> str:
        """A line for the log of the server."""
        counts = self._counts()
        rest = [f"{counts[name]} {name}" for name in counts if name != "reported" and counts[name]]
        text = f"{len(self.reported)} of {len(self.nodes)} clients reported within {self._limit}"
        text += f" ({', '.join(rest)})" if rest else ""
        if self.succeeded:
            return f"{text}. Succeeded."
        return f"{text}, {self.terms.quorum} are required. Failed: the model stays as it is."

    def describe_last(self) -> str:
        """Sentences about this attempt as the last one of a round, and what to do."""
        lost = [
            f"client {node} was {status}"
            if answer is None or answer.offline
            # A client's text may have several lines.
            else f"client {node} failed ({' '.join(answer.reason.split())})"
            for node, status, answer in self._fates()
            if status != "reported"
        ]
        more = [f"{len(lost) - _SHOWN} more did not report"] if len(lost) > _SHOWN else []
        advice = (
            "See these errors, and correct the app."
            if self.all_failed
            else "Lengthen the deadline, lower the quorum, or see why the clients are slow."
        )
        return (
            f"In the last attempt {len(self.reported)} of {len(self.nodes)} clients reported "
            f"within {self._limit}, and {self.terms.quorum} are required: "
            f"{', '.join([*lost[:_SHOWN], *more])}. {advice}"
        )

    @property
    def _waited(self) -> float:
        """How long the server waited: until the deadline, unless the attempt was closed early."""
        return max(self.lasted, _SHORTEST) if self.closed_early else self.terms.deadline

    @property
    def _limit(self) -> str:
        return f"{round(self._waited, 3):g} s"

    def _counts(self) -> dict[str, int]:
        counts = dict.fromkeys(("reported", "late", "failed", "offline", "cancelled"), 0)
        for _, status, _ in self._fates():
            counts[status] += 1
        return counts

    def _fates(self) -> Iterator[tuple[int, str, Answer | None]]:
        """Each client, what became of it, and its answer if there is one."""
        by_position = {answer.position: answer for answer in self.answers}
        unanswered = "cancelled" if self.closed_early else "late"
        for k, node in enumerate(self.nodes):
            answer = by_position.get(k)
            if answer is None:
                yield node, unanswered, None
            elif answer.is_report:
                yield node, "reported", answer
            else:
                yield node, "offline" if answer.offline else "failed", answer
