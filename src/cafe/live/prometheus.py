"""The status of a run as metrics, in the text format that Prometheus reads.

Names and types follow Prometheus's conventions: seconds and bytes as units, and ``_total`` for
counters, which only grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cafe.live.status_file import STATES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Metric:
    """A metric.

    Attributes:
        name: its name. A counter ends in ``_total``; all others are gauges.
        meaning: a sentence.
        values: its values, by the value of its label; None: not known.
        label: the name of the label; empty if there is only one value.
    """

    name: str
    meaning: str
    values: Mapping[str, float | None]
    label: str = ""

    def lines(self) -> Iterator[str]:
        """The lines of the text format; none if no value is known."""
        known = {key: value for key, value in self.values.items() if value is not None}
        if known:
            yield f"# HELP {self.name} {self.meaning}"
            yield f"# TYPE {self.name} {'counter' if self.name.endswith('_total') else 'gauge'}"
        for key, value in known.items():
            yield (
                f'{self.name}{{{self.label}="{key}"}} {value}'
                if self.label
                else (f"{self.name} {value}")
            )


def prometheus_text(status: Mapping[str, Any]) -> str:
    """The metrics of a run, as text.

    Args:
        status: the content of ``live.json``.
    """
    return "".join(f"{line}\n" for metric in metrics(status) for line in metric.lines())


def metrics(status: Mapping[str, Any]) -> list[Metric]:
    """The metrics of a run: those with a label, and those that are one field of the status."""
    online, succeeded = status["present"], status["version"]
    rounds = {"succeeded": succeeded, "failed": status["closed_rounds"] - succeeded}
    clients = {"yes": online, "no": len(status["clients"]) - online}
    states = {state: int(state == status["state"]) for state in STATES}
    return [
        Metric("cafe_state", "1 for the state of the server, 0 for the others.", states, "state"),
        Metric("cafe_rounds_total", "Rounds that have closed.", rounds, "result"),
        Metric("cafe_jobs_total", "Jobs that have ended, by fate.", status["fates"], "fate"),
        Metric("cafe_clients", "Known clients, by whether they are online.", clients, "online"),
        Metric("cafe_client_age_seconds", "Quantiles of ages.", status["ages"], "quantile"),
        *(Metric(name, words, {"": status[field]}) for name, field, words in _SINGLE),
    ]


# Name, field of the status, meaning.
_SINGLE = (
    ("cafe_round", "round", "The number of the open round, from 0."),
    ("cafe_failed_rounds_in_a_row", "failed_in_a_row", "Failed rounds since the last success."),
    ("cafe_since_update_seconds", "since_update", "Time since the last successful round."),
    ("cafe_quorum", "quorum", "Reports that the round needs."),
    ("cafe_deadline_seconds", "deadline", "How long the round waits."),
    ("cafe_policy_changes_total", "policy_changes", "Changes of the policy by a controller."),
    ("cafe_round_seconds", "round_seconds", "How long the round has been open."),
    ("cafe_round_invited", "invited", "Jobs started in the open round."),
    ("cafe_round_jobs", "jobs", "Jobs in the open round, with those of earlier rounds."),
    ("cafe_round_reports", "reports", "Reports received in the open round."),
    ("cafe_clipped_updates_total", "clipped", "Updates that were scaled down."),
    ("cafe_work_client_seconds_total", "work", "Client time of all jobs that have ended."),
    ("cafe_waste_client_seconds_total", "waste", "Client time that is in no update."),
    ("cafe_overhead_seconds", "overhead", "Median time of a response outside training."),
    ("cafe_loss", "loss", "Loss of the last evaluated model."),
    ("cafe_accuracy", "accuracy", "Accuracy of the last evaluated model."),
    ("cafe_superlink_errors_total", "errors", "Errors that this server process tolerated."),
    ("cafe_restarts_total", "restarts", "How often the run was resumed by a new server."),
    ("cafe_free_bytes", "free_bytes", "Free space on the disk of the run's folder."),
)
