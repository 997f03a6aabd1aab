"""A peer's side of the pipe: a question per line on stdin, an answer per line on stdout."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from time import perf_counter

from benchmarks.workloads import Workload

Play = Callable[[int], float]  # runs this many rounds and returns the seconds they took


def serve(
    prepare: Callable[[Workload], Play], questions: Iterable[str] = sys.stdin, silent: bool = False
) -> None:
    """Answer every question: ``{"workload": ..., "rounds": 3}`` with ``{"seconds": 1.2}``.

    Args:
        prepare: prepares a workload, once, and returns the function that runs its rounds.
        questions: requests, one per line.
        silent: do the work, but print no answer, because another process does.
    """
    with os.fdopen(os.dup(1), "w", buffering=1) as answers:
        os.dup2(2, 1)  # output of a framework goes to stderr, not among the answers
        prepared = cache(prepare)
        for question in questions:
            asked = json.loads(question)
            try:
                play = prepared(Workload(**asked["workload"]))
                answer: dict[str, object] = {"seconds": play(asked["rounds"])}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            if not silent:
                print(json.dumps(answer), file=answers)


class Laps:
    """Times at the ends of rounds, for frameworks that run the loop themselves.

    Run one more round than is timed: the first round includes the start of the framework.
    """

    def __init__(self) -> None:
        self._ends: list[float] = []

    def end(self) -> None:
        """Record the end of a round."""
        self._ends.append(perf_counter())

    def seconds(self) -> float:
        """Seconds from the end of the first round to the end of the last."""
        return self._ends[-1] - self._ends[0]
