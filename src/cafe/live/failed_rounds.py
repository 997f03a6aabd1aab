"""Why the rounds of a run failed, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from cafe.live.job_records import RESTARTED, JobRecord
from cafe.live.live_run import LiveRun
from cafe.rounds.outcome import Fate

ADVICE = "Lengthen the deadline, lower the quorum, or look into the clients' logs."
_WORDS = {  # of the fates that jobs of failed rounds have
    Fate.LATE: "were late",
    Fate.FAILED: "reported in a round that failed",
    Fate.CANCELLED: "were cancelled",
    Fate.CRASHED: "crashed",
    Fate.REFUSED: "were refused",
    Fate.ABSENT: "did not start",
}


def describe_streak(run: LiveRun, trouble: str) -> str:
    """Why the last rounds failed one after another, as far as it is known.

    Args:
        run: the run.
        trouble: the last problem of a client, in a sentence; empty if there was none.
    """
    last = run.outcomes[-1]
    return (
        f"{run.failures} rounds in a row have failed under {run.title}. {_fastest(run)}, and "
        f"the last round lasted {last.closed - last.opened:.4g} s and had {last.reports} "
        f"reports. {f'Last problem: {trouble}' if trouble else ADVICE}"
    )


def describe_failed_run(run: LiveRun, jobs: Sequence[JobRecord]) -> str:
    """Why no round of a run has succeeded, as far as it is known.

    Args:
        run: the run, which has reached its limit.
        jobs: its jobs.
    """
    counts = [
        (sum(job.fate == fate.name.lower() for job in jobs), words)
        for fate, words in _WORDS.items()
    ]
    fates = [f"{count} {words}" for count, words in sorted(counts, reverse=True) if count]
    fates = [", ".join(fates[:-1]), *fates[-1:]] if len(fates) > 2 else fates
    ended = f" Of {len(jobs)} jobs, {' and '.join(fates)}." if fates else ""
    problems = [job for job in jobs if job.reason not in ("", RESTARTED)]
    reason = ""
    if problems:
        last = problems[-1]
        reason = f" Last problem, of {run.clients.display_name(last.name)}: {last.reason}."
    return (
        f"No round has succeeded: {len(run.outcomes)} of {len(run.outcomes)} rounds failed under "
        f"{run.title}.{ended} {_fastest(run)}.{reason} {ADVICE} Then start the run over."
    )


def _fastest(run: LiveRun) -> str:
    took = [each.seconds for each in run.responses if each.seconds is not None]
    return f"The fastest report took {min(took):.4g} s" if took else "No client reported"
