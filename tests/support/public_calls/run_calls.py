"""Calls of simulations, tasks, files of clients, and the engine."""

from __future__ import annotations

from dataclasses import replace

import cafe
from cafe import decisions, policies, presence
from cafe.engine import Run, StoppingRule, run_rounds
from cafe.federation_files import write_federation_by_hour
from cafe.fitting import read_log
from cafe.learn.linear import Logistic
from cafe.rounds import Hierarchy
from tests.support.public_calls.samples import (
    CALLBACK,
    PATH,
    entry,
    examples,
    fleet,
    folder,
    given,
    policy,
    shards,
    task,
)
from tests.support.wrong_calls import (
    FLAG,
    NATURAL,
    NOT_NEGATIVE,
    NOTHING,
    POSITIVE,
    TEXT,
    kind,
    maybe,
)


def one_cluster(federation: cafe.Federation) -> list[int]:
    return [0] * federation.clients


COLUMNS = {  # which columns of a log have what
    name: maybe(NOTHING) for name in ("client", "seconds", "deadline", "unit", "sent", "received")
}
ENTRIES = [
    entry(
        cafe.simulate,
        {
            "federation": NOTHING,
            "policy": NOTHING,
            "task": maybe(NOTHING),
            "rounds": NOTHING,
            "updates": maybe(NOTHING),
            "time": maybe(POSITIVE),
            "seed": NATURAL,
            "crash": NOT_NEGATIVE,
            "evaluate_every": maybe(NOTHING),
            "patience": NOTHING,
            "secure_aggregation": FLAG,
            "progress": CALLBACK,
        },
        lambda: {"federation": fleet(), "policy": policy(), "task": task(), "rounds": 2},
        explains=True,
    ),
    entry(
        cafe.two_levels,
        {
            "clusters": NOTHING,
            "cloud": NOTHING,
            "task": maybe(NOTHING),
            "link": maybe(NOTHING),
            "rounds": NOTHING,
            "updates": maybe(NOTHING),
            "time": maybe(POSITIVE),
            "seed": NATURAL,
            "crash": NOT_NEGATIVE,
            "evaluate_every": maybe(NOTHING),
            "patience": NOTHING,
            "progress": CALLBACK,
        },
        lambda: {
            "clusters": [cafe.Cluster(fleet(), policy())] * 2,
            "cloud": policies.mcu(quorum=1, deadline=3.0),
            "rounds": 2,
        },
        explains=True,
    ),
    entry(
        cafe.Cluster,
        {"federation": NOTHING, "policy": NOTHING},
        given(federation=fleet(), policy=policy()),
    ),
    entry(
        cafe.Task,
        {
            "data": NOTHING,
            "shards": NOTHING,
            "learner": NOTHING,
            "test": maybe(NOTHING),
            "batch": maybe(NOTHING),
            "rate": POSITIVE,
            "per": NOTHING,
            "server": maybe(NOTHING),
        },
        lambda: {"data": examples(), "shards": shards(), "learner": Logistic(3, 3, l2=0.1)},
        explains=True,
    ),
    entry(
        cafe.measure,
        {"task": NOTHING, "start": maybe(NOTHING), "scaled": FLAG, "progress": CALLBACK},
        lambda: {"task": task()},
    ),
    entry(
        cafe.Observations,
        {
            "seconds": kind("numbers"),
            "deadline": maybe(kind("numbers", "inf")),
            "client": maybe(kind("names", "numbers")),
            "sent": maybe(kind("numbers")),
        },
        given(seconds=[1.0, 2.0]),
    ),
    entry(
        cafe.read_observations,
        {"path": PATH, **COLUMNS},
        lambda: {"path": folder() / "log.csv"},
        words={"path": "the dictionary"},
    ),
    entry(
        read_log,
        {"source": PATH, **COLUMNS},
        lambda: {"source": folder() / "log.csv"},
        words={"source": "the dictionary"},
        explains=True,
    ),
    entry(
        cafe.fit,
        {
            "observations": kind("numbers"),
            **COLUMNS,
            "families": maybe(NOTHING),
            "criterion": NOTHING,
        },
        lambda: {"observations": folder() / "log.csv", "families": "exponential"},
        words={"observations": "seconds", "families": "famil"},
        explains=True,
        slow=True,
    ),
    entry(
        write_federation_by_hour,
        {"federation": NOTHING, "path": NOTHING, "clients": NOTHING, "names": maybe(NOTHING)},
        lambda: {
            "federation": replace(fleet(), presence=presence.ByHour([0.5, 1.0])),
            "path": folder() / "hours.toml",
            "clients": folder() / "hours.csv",
        },
    ),
    entry(cafe.load_federation, {"path": PATH}, lambda: {"path": folder() / "federation.toml"}),
    entry(cafe.load_scenario, {"path": PATH}, lambda: {"path": folder() / "scenario.toml"}),
    entry(
        cafe.write_federation,
        {"federation": NOTHING, "path": NOTHING, "names": maybe(NOTHING)},
        lambda: {"federation": fleet(), "path": folder() / "new.csv"},
    ),
    entry(
        cafe.Policy,
        {
            "name": TEXT,
            "invite": NOTHING,
            "close": NOTHING,
            "merge": NOTHING,
            "carry": NOTHING,
            "observe": maybe(NOTHING),
            "needs": NOTHING,
            "parameters": kind("{}"),
            "server": maybe(NOTHING),
            "quorum": NOTHING,
            "present": maybe(NOTHING),
            "deadline": maybe(POSITIVE),
            "target": maybe(NOTHING),
            "cohort": maybe(POSITIVE),
            "late": NOTHING,
            "score_every": NOTHING,
            "up_to_clients": kind("{}"),
        },
        given(
            name="own",
            invite=decisions.Everyone(),
            close=decisions.DeadlineQuorum(1, 1.0),
            merge=decisions.Mean(),
            carry=decisions.DropAll(),
        ),
        explains=True,
    ),
    entry(
        Hierarchy,
        {
            "name": TEXT,
            "assign": NOTHING,
            "edge": NOTHING,
            "cloud": NOTHING,
            "link": maybe(NOTHING),
            "needs": NOTHING,
            "parameters": kind("{}"),
        },
        given(name="own", assign=one_cluster, edge=policy(), cloud=policy()),
        explains=True,
    ),
    entry(
        StoppingRule,
        {"rounds": NOTHING, "updates": maybe(NOTHING), "time": maybe(POSITIVE)},
        given(rounds=1, updates=None, time=None),
    ),
    entry(
        Run,
        {
            "federation": NOTHING,
            "policy": NOTHING,
            "task": maybe(NOTHING),
            "seed": NATURAL,
            "crash": NOT_NEGATIVE,
            "patience": NOTHING,
            "secure_aggregation": FLAG,
        },
        given(federation=fleet(), policy=policy()),
    ),
    entry(
        run_rounds,
        {"run": NOTHING, "stopping": NOTHING, "evaluate_every": maybe(NOTHING)},
        lambda: {"run": Run(fleet(), policy(), task()), "stopping": StoppingRule(1, None, None)},
        use=list,
    ),
]
