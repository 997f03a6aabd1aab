"""Calls of functions of files, results, reports and real clients."""

from __future__ import annotations

import cafe
from cafe import live, results
from cafe.federation_files import family_name, federation_from_table, latency_from_table
from cafe.live.server_config import ServerConfig
from cafe.report import run_page
from cafe.reproduce import experiment, reproduce
from cafe.scenario import scenario_from_text
from cafe.workers import LocalProcesses
from tests.support.public_calls.samples import (
    CALLBACK,
    PATH,
    SCENARIO,
    entry,
    folder,
    given,
    history,
    policy,
    result,
)
from tests.support.virtual_runs import start
from tests.support.wrong_calls import (
    ANY,
    FLAG,
    NATURAL,
    NOTHING,
    POSITIVE,
    TEXT,
    kind,
    maybe,
)

ENTRIES = [
    entry(
        federation_from_table,
        {"table": NOTHING, "where": ANY},
        given(table={"clients": 6, "rate": 1.0}),
        words={"table": "federation.clients is missing"},
    ),
    entry(
        latency_from_table,
        {"table": NOTHING, "where": ANY},
        given(table={"family": "exponential", "rate": 1.0}),
        words={"table": "family is missing"},
    ),
    entry(family_name, {"family": NOTHING}, given(family=cafe.Exponential)),
    entry(
        scenario_from_text,
        {"path": TEXT, "text": NOTHING},
        given(path="scenario.toml", text=SCENARIO),
        words={"text": "not valid TOML"},
    ),
    entry(results.load, {"folder": PATH}, lambda: {"folder": result().folder}),
    entry(results.find, {"folder": PATH}, lambda: {"folder": result().folder}),
    entry(results.summary, {"history": NOTHING}, lambda: {"history": history()}),
    entry(
        results.execute,
        {
            "scenario": NOTHING,
            "policy": NOTHING,
            "seed": NATURAL,
            "folder": TEXT,
            "resume": FLAG,
            "overwrite": NOTHING,
            "threads": maybe(NOTHING),
            "progress": CALLBACK,
            "say": CALLBACK,
        },
        lambda: {
            "scenario": cafe.load_scenario(folder() / "scenario.toml"),
            "policy": "mcu",
            "seed": 0,
            "folder": result().folder,
            "resume": True,
        },
    ),
    entry(
        results.plan_runs,
        {
            "scenario": NOTHING,
            "labels": kind("[]"),
            "folder": TEXT,
            "resume": FLAG,
            "overwrite": FLAG,
        },
        lambda: {
            "scenario": cafe.load_scenario(folder() / "scenario.toml"),
            "labels": ["mcu"],
            "folder": folder() / "planned",
        },
        words={"labels": "policy"},
    ),
    entry(
        results.sweep,
        {
            "scenario": NOTHING,
            "runs": kind("[]"),
            "backend": maybe(NOTHING),
            "resume": FLAG,
            "overwrite": NOTHING,
            "progress": CALLBACK,
            "say": CALLBACK,
        },
        lambda: {
            "scenario": cafe.load_scenario(folder() / "scenario.toml"),
            "runs": [results.PlannedRun("mcu", 0, result().folder)],
            "backend": LocalProcesses(1),
            "resume": True,
        },
    ),
    entry(
        run_page.write,
        {
            "path": TEXT,
            "results": NOTHING,
            "title": TEXT,
            "story": kind("text", "[]", "names"),
            "class_counts": maybe(NOTHING),
            "accuracy": maybe(POSITIVE),
        },
        lambda: {"path": folder() / "page.html", "results": [result()]},
        name="report.run_page.write",
        slow=True,
    ),
    entry(
        reproduce,
        {
            "selection": kind("[]"),
            "folder": TEXT,
            "quick": FLAG,
            "backend": maybe(NOTHING),
            "fetching": NOTHING,
            "progress": CALLBACK,
            "on_finding": CALLBACK,
        },
        lambda: {"selection": ["theory"], "folder": folder() / "paper", "quick": True},
        words={"selection": "experiment"},
        costly=True,
    ),
    entry(experiment, {"name": NOTHING}, given(name="fig-deadline")),
    # Real clients.
    entry(live.Clip, {"times": POSITIVE}, given(), words={"times": "multiple"}),
    entry(live.Trimmed, {"share": NATURAL}, given()),
    entry(
        live.ReportLimits,
        {"clip": maybe(NOTHING), "norm": maybe(POSITIVE), "examples": NOTHING},
        given(),
    ),
    entry(
        live.GlobalModel,
        {"model": NOTHING, "combine": maybe(NOTHING), "optimiser": maybe(NOTHING)},
        lambda: {"model": start()},
    ),
    entry(
        ServerConfig,
        {
            "policy": NOTHING,
            "model": NOTHING,
            "rounds": NOTHING,
            "updates": maybe(NOTHING),
            "time": maybe(POSITIVE),
            "seed": NATURAL,
            "evaluate": maybe(NOTHING),
            "evaluate_every": NOTHING,
            "evaluate_seconds": POSITIVE,
            "report_limits": maybe(NOTHING),
            "combine": maybe(NOTHING),
            "optimiser": maybe(NOTHING),
            "clients": maybe(NOTHING),
            "wait": POSITIVE,
            "patience": NOTHING,
            "secure_aggregation": FLAG,
            "metrics": maybe(NOTHING),
        },
        given(policy=policy(), model=start, rounds=3),
        explains=True,
    ),
]
