"""One valid call of each public function, and the kind of each of its parameters."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

import cafe
from cafe import data, decisions, live, policies, presence, results, rounds, testing, theory
from cafe.controllers import Fixed
from cafe.data import Examples, Shards
from cafe.engine import Run, StoppingRule, run_rounds
from cafe.federation_files import family_name, federation_from_table, latency_from_table
from cafe.latency import Various
from cafe.learn.linear import Logistic, Ridge
from cafe.learn.mlp import MLP
from cafe.learn.quadratic import Quadratic
from cafe.learn.schedules import LearningRate
from cafe.learn.server_optimisers import Adam, Momentum
from cafe.live.server import ServerConfig
from cafe.planner import Limit, pooled_quantile
from cafe.report import run_page
from cafe.reproduce import experiment, reproduce
from cafe.scenario import scenario_from_text
from tests.support.virtual_runs import start
from tests.support.wrong_calls import (
    ANY,
    FLAG,
    NATURAL,
    NOT_NEGATIVE,
    NOT_NEGATIVES,
    NOTHING,
    POSITIVE,
    POSITIVES,
    TEXT,
    Entry,
    kind,
    maybe,
)

SCENARIO = """
[federation]
clients = 6
rate = 1.0
[policy]
name = "mcu"
quorum = 1
deadline = 1.0
[run]
rounds = 2
"""
FEDERATION = "[federation]\nclients = 6\nrate = 1.0\n"
LOG = "client,seconds,deadline\na,1,\nb,2,\na,3,\nb,,4\n"
TRACE = "client,from,to\n0,0,10\n0,20,30\n"


@cache
def folder() -> Path:
    """A folder with a file of each kind."""
    made = Path(mkdtemp(prefix="cafe-calls-"))
    for name, text in (
        ("scenario.toml", SCENARIO),
        ("federation.toml", FEDERATION),
        ("log.csv", LOG),
        ("trace.csv", TRACE),
    ):
        (made / name).write_text(text)
    return made


@cache
def fleet() -> cafe.Federation:
    return cafe.Federation(6, cafe.Exponential(1.0))


@cache
def examples() -> Examples:
    rng = np.random.default_rng(0)
    return Examples(rng.normal(size=(24, 3)).astype(np.float32), np.arange(24) % 3)


@cache
def shards() -> Shards:
    return data.IID()(examples().y, 6, np.random.default_rng(0))


@cache
def task() -> cafe.Task:
    return cafe.Task(examples(), shards(), Logistic(3, 3, l2=0.1))


@cache
def policy() -> cafe.Policy:
    return policies.mcu(quorum=1, deadline=1.0)


@cache
def problem() -> cafe.Problem:
    return cafe.Problem(1.0, 0.1, 1.0, 1.0, 2.0)


@cache
def setting() -> theory.Setting:
    return theory.Setting(fleet(), 2, 1.0)


@cache
def variance() -> theory.Variance:
    return theory.expect(fleet(), quorum=2, deadline=1.0).variance


@cache
def history() -> cafe.History:
    return cafe.simulate(fleet(), policy(), rounds=3)


@cache
def result() -> results.Result:
    scenario = cafe.load_scenario(folder() / "scenario.toml")
    return results.execute(scenario, scenario.label, 0, folder() / "run")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


LABELS = np.arange(200) % 10


def given(**arguments: Any) -> Any:
    return lambda: arguments


def entry(call: Any, kinds: dict[str, Any], arguments: Any, name: str = "", **more: Any) -> Entry:
    package = call.__module__.removeprefix("cafe.").split(".")[0]
    return Entry(name or f"{package}.{call.__qualname__}", call, arguments, kinds, **more)


LIMITS = {"rounds": maybe(NOTHING), "updates": maybe(NOTHING), "time": maybe(POSITIVE)}
PRINTED = {"clients": NOTHING, "rate": POSITIVE, "quorum": NOTHING, "deadline": POSITIVE}
CALLBACK = maybe(NOTHING)
PATH = NOTHING  # a file that exists; "text" does not
NEW_PATH = TEXT  # a folder that is made


def printed(**more: Any) -> Any:
    return given(clients=6, rate=1.0, quorum=2, deadline=1.0, **more)


LATENCIES = [
    entry(cafe.Exponential, {"rate": POSITIVES}, given(rate=1.0)),
    entry(cafe.Constant, {"value": POSITIVES}, given(value=1.0)),
    entry(cafe.Gamma, {"shape": POSITIVES, "scale": POSITIVES}, given(shape=1.0, scale=1.0)),
    entry(cafe.Weibull, {"shape": POSITIVES, "scale": POSITIVES}, given(shape=1.0, scale=1.0)),
    entry(
        cafe.LogNormal,
        {"mu": NOT_NEGATIVES | {"-1"}, "sigma": POSITIVES, "shift": NOT_NEGATIVES},
        given(mu=1.0, sigma=0.5),
    ),
    entry(
        cafe.ShiftedExponential,
        {"shift": NOT_NEGATIVES, "rate": POSITIVES},
        given(shift=1.0, rate=1.0),
    ),
    entry(cafe.Uniform, {"low": NOT_NEGATIVES, "high": POSITIVES}, given(low=0.0, high=3.0)),
    entry(
        cafe.Empirical,
        {"times": kind("numbers"), "weights": kind("0.5", "numbers"), "kinds": NOTHING},
        given(times=[1.0, 2.0]),
    ),
    entry(
        cafe.Mixture,
        {"components": NOTHING, "weights": kind("numbers")},
        given(components=[cafe.Constant(1.0), cafe.Constant(2.0)], weights=[0.5, 0.5]),
    ),
    entry(Various, {"parts": NOTHING}, given(parts=[cafe.Constant(1.0)])),
]

ENTRIES = [
    *LATENCIES,
    entry(
        cafe.Federation,
        {
            "clients": NOTHING,
            "latency": NOTHING,
            "availability": POSITIVE,
            "examples": NATURAL,
            "kind": maybe(NOTHING),
            "per_step": NOT_NEGATIVE,
            "presence": maybe(NOTHING),
        },
        given(clients=6, latency=cafe.Exponential(1.0)),
        explains=True,
    ),
    entry(
        cafe.Federation.exponential,
        {"rates": POSITIVES, "availability": maybe(POSITIVE)},
        given(rates=[1.0, 2.0]),
    ),
    entry(
        cafe.phones,
        {
            "clients": NOTHING,
            "seed": NATURAL,
            "examples": NOTHING,
            "seconds_per_example": POSITIVE,
            "model_kbytes": POSITIVE,
            "availability": POSITIVE,
            "batch": maybe(NOTHING),
        },
        given(clients=5),
        explains=True,
    ),
    entry(
        cafe.expect,
        {
            "federation": NOTHING,
            "quorum": NOTHING,
            "deadline": POSITIVE,
            "target": maybe(NOTHING),
            "steps": NOTHING,
        },
        given(federation=fleet(), quorum=2, deadline=1.0),
        explains=True,
    ),
    entry(
        cafe.frontier,
        {
            "federation": NOTHING,
            "quorum": maybe(NOTHING),
            "close_when_all": FLAG,
            "steps": NOTHING,
            "progress": CALLBACK,
        },
        given(federation=fleet(), quorum=2),
        explains=True,
        slow=True,
    ),
    entry(
        cafe.plan,
        {
            "federation": NOTHING,
            "waste_price": NOT_NEGATIVE,
            "broadcast_price": NOT_NEGATIVE,
            "quorum": maybe(NOTHING),
            "goal": maybe(NOTHING),
            "at_most": maybe(kind("{}")),
            "at_least": maybe(kind("{}")),
            "close_when_all": FLAG,
            "steps": NOTHING,
            "progress": CALLBACK,
        },
        given(federation=fleet(), waste_price=1.0, broadcast_price=1.0, quorum=2),
        explains=True,
        slow=True,
    ),
    entry(
        cafe.Prices, {"waste": NOT_NEGATIVE, "broadcast": NOT_NEGATIVE}, given(waste=1, broadcast=1)
    ),
    entry(
        cafe.ToGap,
        {"problem": NOTHING, "gap": POSITIVE, "spend": NOTHING, "overhead": NOT_NEGATIVE},
        given(problem=problem(), gap=0.1),
    ),
    entry(
        cafe.Problem,
        {
            "smoothness": POSITIVE,
            "convexity": POSITIVE,
            "noise": NOT_NEGATIVE,
            "heterogeneity": NOT_NEGATIVE,
            "distance": NOT_NEGATIVE,
        },
        given(smoothness=1.0, convexity=0.1, noise=1.0, heterogeneity=1.0, distance=1.0),
    ),
    entry(
        Limit,
        {"quantity": NOTHING, "sign": kind("-1"), "value": NOT_NEGATIVE | {"-1"}},
        given(quantity="waste", sign=1, value=3.0),
    ),
    entry(
        pooled_quantile,
        {"federation": NOTHING, "share": POSITIVE},
        given(federation=fleet(), share=0.2),
    ),
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
        },
        given(seconds=[1.0, 2.0]),
    ),
    entry(cafe.read_observations, {"path": PATH}, lambda: {"path": folder() / "log.csv"}),
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
            "quorum": NOTHING,
            "deadline": maybe(POSITIVE),
            "target": maybe(NOTHING),
            "cohort": maybe(POSITIVE),
            "late": NOTHING,
            "score_every": NOTHING,
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
    # Policies and decisions.
    entry(
        policies.mcu,
        {
            "quorum": NOTHING,
            "deadline": maybe(POSITIVE),  # None waits for all clients
            "target": maybe(NOTHING),
            "close_when_all": FLAG,
            "cohort": maybe(NOTHING),
            "steps": NOTHING,
            "late": NOTHING,
        },
        given(quorum=1, deadline=1.0),
        explains=True,
    ),
    entry(
        policies.agu,
        {
            "quorum": NOTHING,
            "deadline": maybe(POSITIVE),  # None waits for all clients
            "pool": NOTHING,
            "target": maybe(NOTHING),
            "close_when_all": FLAG,
            "cohort": maybe(NOTHING),
            "steps": NOTHING,
        },
        given(quorum=1, deadline=1.0),
        explains=True,
    ),
    entry(
        policies.awu,
        {
            "deadline": maybe(POSITIVE),
            "weight": NOTHING,
            "unit": NOTHING,
            "quorum": NOTHING,
            "target": maybe(NOTHING),
            "close_when_all": FLAG,
            "cohort": maybe(NOTHING),
            "steps": NOTHING,
            "late": NOTHING,
        },
        given(deadline=1.0),
        explains=True,
    ),
    entry(
        policies.fedavg,
        {
            "fraction": POSITIVE,
            "epochs": maybe(NOTHING),
            "steps": maybe(NOTHING),
            "divisor": NOTHING,
            "deadline": maybe(POSITIVE),
            "quorum": NOTHING,
        },
        given(),
        explains=True,
    ),
    entry(policies.resolve, {"name": NOTHING, "folder": maybe(TEXT)}, given(name="mcu")),
    entry(
        policies.resolve_controller,
        {"name": NOTHING, "folder": maybe(TEXT)},
        given(name="tests.support.public_calls:make_controller"),
    ),
    entry(Fixed, {"policy": NOTHING}, given(policy=policy())),
    entry(decisions.Everyone, {"work": NOTHING}, given()),
    entry(decisions.Sample, {"cohort": NOTHING, "work": NOTHING}, given(cohort=2)),
    entry(decisions.Fraction, {"fraction": POSITIVE, "work": NOTHING}, given(fraction=0.1)),
    entry(decisions.Refill, {"concurrency": NOTHING, "work": NOTHING}, given(concurrency=2)),
    entry(
        decisions.DeadlineQuorum,
        {"quorum": NOTHING, "deadline": maybe(POSITIVE), "target": maybe(NOTHING), "all_in": FLAG},
        given(quorum=1, deadline=1.0),
    ),
    entry(
        decisions.closing,
        {"quorum": NOTHING, "deadline": maybe(POSITIVE), "target": maybe(NOTHING), "all_in": FLAG},
        given(quorum=1, deadline=1.0),
    ),
    entry(
        decisions.ByAge,
        {"weight": NOTHING, "unit": NOTHING, "divisor": NOTHING},
        given(weight=np.sqrt),
    ),
    entry(decisions.BySize, {"divisor": NOTHING}, given()),
    entry(decisions.FailedReports, {"pool": FLAG}, given()),
    entry(
        rounds.Work,
        {
            "steps": NOTHING,
            "epochs": maybe(NOTHING),
            "seconds": maybe(POSITIVE),
            "prox": NOT_NEGATIVE,
            "partial": FLAG,
            "scaled": FLAG,
            "download": NOT_NEGATIVE,
            "upload": NOT_NEGATIVE,
        },
        given(),
    ),
    # Presence.
    entry(
        presence.OnOff,
        {"on": POSITIVES, "off": POSITIVES},
        given(on=1.0, off=1.0),
    ),
    entry(
        presence.DayNight,
        {"day": POSITIVE, "share": POSITIVE, "spread": NOT_NEGATIVE},
        given(),
    ),
    entry(
        presence.Battery,
        {
            "capacity": POSITIVES,
            "cost": POSITIVES,
            "harvest": POSITIVES,
            "slot": POSITIVE,
            "start": maybe(NOT_NEGATIVES),
        },
        given(capacity=2.0, cost=0.5, harvest=1.0),
    ),
    entry(
        presence.Trace,
        {"windows": NOTHING, "repeat": maybe(NOTHING)},
        given(windows=[[0, 1.0, 2.0]]),
    ),
    entry(
        presence.read_trace,
        {"path": PATH, "repeat": maybe(NOTHING)},
        lambda: {"path": folder() / "trace.csv"},
    ),
    # Data.
    entry(
        Examples,
        {"x": kind("matrix"), "y": kind("numbers", "matrix")},
        given(x=[[1.0], [2.0]], y=[0, 1]),
    ),
    entry(
        Shards,
        {"rows": NOTHING, "starts": NOTHING},
        given(rows=[0, 1, 2], starts=[0, 2, 3]),
        words={"starts": "at least one client"},
    ),
    entry(
        Shards.of,
        {"by_client": NOTHING},
        given(by_client=[[0, 1], [2]]),
        words={"by_client": "shards"},
    ),
    *(
        entry(each, kinds, given(), use=lambda cut: cut(LABELS, 2, rng()))
        for each, kinds in (
            (data.IID, {"per_client": maybe(NOTHING)}),
            (data.Biased, {"share": NOT_NEGATIVE, "points": NOTHING, "per_client": maybe(NOTHING)}),
            (data.Classes, {"each": NOTHING, "per_client": maybe(NOTHING)}),
            (data.Dirichlet, {"alpha": POSITIVE, "least": NOTHING}),
            (data.Quantity, {"alpha": POSITIVE, "least": NOTHING}),
            (data.Random, {"least": NOTHING, "most": maybe(NOTHING)}),
            (data.Single, {"least": NOTHING, "most": maybe(NOTHING)}),
        )
    ),
    *(
        entry(
            each().__call__,
            {"labels": NOTHING, "clients": NOTHING, "rng": NOTHING},
            lambda: {"labels": LABELS, "clients": 3, "rng": rng()},
            name=f"data.{each.__name__}()",
            words={"labels": "examples"},
        )
        for each in (data.IID, data.Biased, data.Classes, data.Dirichlet, data.Quantity)
    ),
    entry(
        data.allocate,
        {"labels": NOTHING, "counts": NOTHING, "rng": NOTHING},
        lambda: {"labels": examples().y, "counts": [[1, 1, 1], [2, 0, 0]], "rng": rng()},
    ),
    entry(
        data.class_counts,
        {"labels": NOTHING, "shards": NOTHING},
        lambda: {"labels": examples().y, "shards": shards()},
    ),
    entry(
        data.load,
        {"name": NOTHING, "folder": maybe(TEXT), "fetching": NOTHING},
        given(name="digits"),
    ),
    # Learners.
    entry(
        Logistic,
        {"inputs": NOTHING, "classes": NOTHING, "l2": POSITIVE},
        given(inputs=3, classes=3, l2=0.1),
    ),
    entry(
        Ridge,
        {"inputs": NOTHING, "l2": POSITIVE, "classes": NATURAL},
        given(inputs=3, l2=0.1),
    ),
    entry(
        MLP,
        {
            "inputs": NOTHING,
            "classes": NOTHING,
            "hidden": kind("[]"),
            "l2": NOT_NEGATIVE,
            "threads": maybe(NOTHING),
        },
        given(inputs=3, classes=3),
    ),
    entry(Quadratic, {"inputs": NOTHING, "hessian": POSITIVES}, given(inputs=2)),
    entry(LearningRate, {"beta": POSITIVE, "gamma": NOT_NEGATIVE}, given(beta=1.0, gamma=1.0)),
    entry(Momentum, {"rate": POSITIVE, "momentum": NOT_NEGATIVE}, given()),
    entry(
        Adam,
        {
            "rate": POSITIVE,
            "first": NOT_NEGATIVE,
            "second": NOT_NEGATIVE,
            "floor": POSITIVE,
            "yogi": FLAG,
        },
        given(),
    ),
    # Engine.
    entry(StoppingRule, LIMITS | {"rounds": NOTHING}, given(rounds=1, updates=None, time=None)),
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
    # Theory.
    entry(
        theory.Setting,
        {"federation": NOTHING, "quorum": NOTHING, "deadline": POSITIVE, "target": maybe(NOTHING)},
        given(federation=fleet(), quorum=2, deadline=1.0),
    ),
    *(
        entry(each, {"setting": NOTHING}, given(setting=setting()))
        for each in (
            theory.absent_waste_per_round,
            theory.age_by_kind,
            theory.processing_waste_per_round,
            theory.waste_per_round,
        )
    ),
    entry(
        theory.agu_waste_per_update, {"setting": NOTHING, "pool": NOTHING}, given(setting=setting())
    ),
    *(
        entry(each, PRINTED, printed())
        for each in (
            theory.age_as_printed,
            theory.broadcasts_as_printed,
            theory.mean_share_as_printed,
            theory.merit_as_printed,
            theory.others_suffice_as_printed,
            theory.waste_as_printed,
        )
    ),
    entry(
        theory.objective_as_printed,
        {
            "clients": NOTHING,
            "rate": POSITIVE,
            "deadline": POSITIVE,
            "waste_price": NOT_NEGATIVE,
            "broadcast_price": NOT_NEGATIVE,
        },
        given(clients=6, rate=1.0, deadline=1.0, waste_price=1.0, broadcast_price=1.0),
    ),
    entry(
        theory.bound_as_printed,
        {"problem": NOTHING, **PRINTED, "rounds": NOT_NEGATIVES | {"matrix"}},
        printed(problem=problem(), rounds=3),
    ),
    entry(
        theory.bound_by_age_as_printed,
        {
            "problem": NOTHING,
            "quorum": NOTHING,
            "deadline": POSITIVE,
            "age": NOTHING,
            "rounds": POSITIVES | {"matrix"},
        },
        given(problem=problem(), quorum=2, deadline=1.0, age=3.0, rounds=3),
    ),
    entry(
        theory.learning_rate_as_printed, {"problem": NOTHING, **PRINTED}, printed(problem=problem())
    ),
    entry(
        theory.bound,
        {
            "problem": NOTHING,
            "variance": NOTHING,
            "rounds": NOT_NEGATIVES | {"matrix"},
            "slack": FLAG,
        },
        given(problem=problem(), variance=variance(), rounds=3),
    ),
    entry(
        theory.learning_rate,
        {"problem": NOTHING, "variance": NOTHING, "slack": FLAG},
        given(problem=problem(), variance=variance()),
    ),
    entry(
        theory.rounds_to_gap,
        {"problem": NOTHING, "variance": NOTHING, "gap": POSITIVE},
        given(problem=problem(), variance=variance(), gap=0.1),
    ),
    entry(theory.broadcasts, {"turnout": NOTHING}, lambda: {"turnout": setting().turnout}),
    # Files and results.
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
            "jobs": maybe(NOTHING),
            "resume": FLAG,
            "overwrite": NOTHING,
            "progress": CALLBACK,
            "say": CALLBACK,
        },
        lambda: {
            "scenario": cafe.load_scenario(folder() / "scenario.toml"),
            "runs": [results.PlannedRun("mcu", 0, result().folder)],
            "jobs": 1,
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
        {"norm": maybe(POSITIVE), "times": NOTHING, "examples": NOTHING},
        given(),
        words={"times": "multiple"},
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
        },
        given(policy=policy(), model=start, rounds=3),
        explains=True,
    ),
    # Tools for policies.
    entry(
        testing.check_policy,
        {
            "policy": NOTHING,
            "federation": maybe(NOTHING),
            "task": maybe(NOTHING),
            "rounds": NOTHING,
            "seed": NATURAL,
        },
        lambda: {"policy": policy(), "rounds": 3},
        slow=True,
    ),
]


def make_controller() -> Fixed:
    """A controller without parameters, for the entry of ``resolve_controller``."""
    return Fixed(policy())
