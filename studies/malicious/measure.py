"""What clipping costs honest clients, and what malicious clients can do, for several rules.

Run it from the repository's root, with the package installed; it takes a few CPU minutes:

    python studies/malicious/measure.py studies/malicious/results.jsonl

Ten clients train a small network on a virtual wire. Each line of the output is a run: "honest",
attacked in every round ("repeated"), or in single rounds ("attack"). Lines that are in the file are
not measured again, so an interrupted run can be continued.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import cafe
from cafe.controllers import Fixed
from cafe.learn.mlp import MLP
from cafe.live import Clip, Median, ReportLimits, Sum, Trimmed
from cafe.live.aggregation import GlobalModel
from cafe.live.clipping import UpdateClipper, norm_of, scaled
from cafe.live.live_run import LiveRun
from cafe.randomness import Stream
from cafe.testing import VirtualWire, engine_trainer

CLIENTS, SEEDS = 10, range(5)
ROUNDS = {"digits": 40, "mnist": 25}  # of honest runs
MALICIOUS = (3, 8)  # one in five; with one class per client, no other client holds their classes
BATCH, RATE, STEPS = 32, 0.1, 5
TESTED = 2000  # test examples at most
LAST = 5  # accuracy is the mean over the last rounds
ATTACKED = {"digits": (0, 5, 20, 60, 120), "mnist": (0, 5, 20, 60)}  # rounds that are attacked
SHOWN = (1, 2, 5, 10, 20, 40, 41, 42, 45, 50, 60)  # rounds after which repeated attacks are judged

PARTITIONS: dict[str, Any] = {
    "iid": cafe.data.IID(),
    "three classes": cafe.data.Classes(3),
    "one class": cafe.data.Single(least=20),
    "unequal sizes": cafe.data.Quantity(0.5, least=5),
}
POLICIES: dict[str, cafe.Policy] = {
    "mcu": cafe.policies.mcu(quorum=3, deadline=1.0, steps=STEPS),
    "awu": cafe.policies.awu(deadline=1.0, steps=STEPS),
    "agu": cafe.policies.agu(quorum=7, deadline=1.0, steps=STEPS),
    "fedavg": cafe.policies.fedavg(fraction=1.0, deadline=1.0, epochs=1),
}
# A rule is a multiple of the usual norm, and a way to combine updates.
RULES: dict[str, tuple[float | None, Any]] = {
    "sum": (None, None),
    "clip 2": (2.0, None),
    "clip 3": (3.0, None),
    "round's median": (None, Clip()),
    "Trimmed": (None, Trimmed()),
    "Median": (None, Median()),
}
ATTACKS = ("flip", "random", "boost", "ascent")
Row = dict[str, Any]


@cache
def dataset(name: str) -> cafe.data.Dataset:
    """A dataset, read once."""
    return cafe.data.load(name)


def make_task(name: str, partition: str, seed: int, rate: Any = RATE) -> cafe.Task:
    """Ten clients with digits or MNIST, and a network with 32 hidden units."""
    data = dataset(name)
    rng = np.random.default_rng([seed, 5])
    shards = PARTITIONS[partition](data.train.y, CLIENTS, rng)
    net = MLP(int(np.prod(data.train.x.shape[1:])), 10, (32,), threads=1)
    test = data.test.take(np.arange(min(TESTED, len(data.test))))
    return cafe.Task(data.train, shards, net, test=test, rate=rate, batch=BATCH)


@dataclass(eq=False)
class Attack:
    """What malicious clients send from a round on; it also notes what honest clients send.

    "flip" is the client's own update times -1e6, "boost" its own update times 1e6, "random" a
    random direction that all malicious clients share, and "ascent" the gradient of the loss of the
    global model on 1,000 training examples, sent by clients that know all data.
    """

    task: cafe.Task
    kind: str = ""
    since: int = 0
    model: Callable[[], Any] = lambda: None
    honest: dict[int, Any] = field(default_factory=dict)

    def __call__(self, report: Any, order: Any) -> Any:
        ((name, update),) = report.update.items()
        self.honest[order.number] = update
        if not self.kind or order.number not in MALICIOUS or order.round < self.since:
            return report
        return replace(report, update={name: self.false(self.kind, update, order.round)})

    def false(self, kind: str, update: Any, at: int) -> Any:
        """The update that a malicious client sends in place of its own."""
        if kind in ("flip", "boost"):
            return update * np.float32(-1e6 if kind == "flip" else 1e6)
        if kind == "random":
            return np.random.default_rng([at, 9]).standard_normal(len(update), np.float32) * 1e6
        learner, data = self.task.learner, self.task.data
        rows = np.random.default_rng(at).choice(len(data), 1000)
        weight = np.full(1000, 1e3, np.float32)
        return learner.save(learner.gradient(learner.load(self.model()), data, rows, weight))


def begin(
    task: cafe.Task, policy: cafe.Policy, seed: int, rule: str, *, spread: bool = True
) -> tuple[LiveRun, Attack]:
    """A run before its first round. Without spread, all clients report in each round."""
    clip, combine = RULES[rule]
    times: cafe.latency.Latency = cafe.Exponential(1.0) if spread else cafe.Constant(0.5)
    attack = Attack(task)
    wire = VirtualWire(cafe.Federation(CLIENTS, times), seed, engine_trainer(task, seed), task=task)
    wire.tamper = attack
    start = task.learner.save(task.learner.start(Stream(seed, "start").at(0)))
    model, limits = GlobalModel({"w": start}, combine), ReportLimits(clip=clip)
    run = LiveRun(wire, Fixed(policy), model, seed=seed, report_limits=limits)
    run.refresh_clients()
    attack.model = lambda: run.model
    return run, attack


def accuracy(task: cafe.Task, model: Any) -> float:
    """The accuracy of a model on the test examples, in percent."""
    found = task.learner.score(task.learner.load(model), task.test).accuracy
    assert found is not None
    return round(100 * float(found), 3)


def honest(data: str, partition: str, policy: str, rule: str, seed: int) -> Row:
    """A run without malicious clients: its accuracy, and the share of updates that are clipped."""
    task = make_task(data, partition, seed)
    run, _ = begin(task, POLICIES[policy], seed, rule)
    records, accuracies = [], []
    for at in range(ROUNDS[data]):
        records += [r for r in run.step().records if r.coefficient is not None]
        if at >= ROUNDS[data] - LAST:
            accuracies.append(accuracy(task, run.model))
    clipped = round(sum(r.clipped is not None for r in records) / len(records), 5)
    return {"accuracy": round(float(np.mean(accuracies)), 3), "clipped": clipped}


def attacked(data: str, partition: str, seed: int) -> Row:
    """Attacks in single rounds of an honest run, by each rule, from the same updates."""
    task = make_task(data, partition, seed)
    run, attack = begin(task, POLICIES["mcu"], seed, "sum", spread=False)
    rounds = {}
    for at in range(max(ATTACKED[data]) + 1):
        model, known = run.model.copy(), dict(run.clipper.norms)
        ascent = attack.false("ascent", model, at)
        run.step()
        if at not in ATTACKED[data]:
            continue
        own = [attack.honest[k] for k in range(CLIENTS)]
        others = np.mean([own[k] for k in range(CLIENTS) if k not in MALICIOUS], axis=0)
        after: dict[str, dict[str, float]] = {rule: {} for rule in RULES}
        for kind, rule in product(ATTACKS, RULES):
            sent = [*own]
            for k in MALICIOUS:
                sent[k] = ascent if kind == "ascent" else attack.false(kind, own[k], at)
            moved = model + combined(rule, sent, model, known)
            after[rule][kind] = accuracy(task, moved.astype(np.float32))
        rounds[f"{at}"] = {
            "before": accuracy(task, model),
            "honest": accuracy(task, run.model),
            "absent": accuracy(task, model + others),
            "after": after,
        }
    return {"rounds": rounds}


def combined(rule: str, updates: list[Any], model: Any, known: dict[int, float]) -> Any:
    """The change of the model by one round in which all clients report."""
    clip, combine = RULES[rule]
    clipper, n = UpdateClipper(clip, dict(known)), len(updates)
    norms = [norm_of(update) for update in updates]
    factors = clipper.factors(range(n), norms, model)
    rows = [scaled(u, f) for u, f in zip(updates, factors, strict=True)]
    return (combine or Sum())(np.array(rows, dtype=np.float64), np.full(n, 1 / n))


def repeated(data: str, partition: str, attack: str, since: int, seed: int) -> Row:
    """The accuracy in a run that is attacked in every round from one on, with the default rule."""
    task = make_task(data, partition, seed)
    run, sender = begin(task, POLICIES["mcu"], seed, "clip 2", spread=False)
    sender.kind, sender.since = attack, since
    found = {}
    for at in range(max(SHOWN)):
        run.step()
        if at + 1 in SHOWN:
            found[at + 1] = accuracy(task, run.model)
    return {"after": found}


def cells() -> Iterator[tuple[Any, ...]]:
    """All that is measured; the first entry says how."""
    parts, usual = ("iid", "three classes", "one class"), ("mcu", "awu", "agu")
    both = ("clip 2", "sum")
    yield from product(("attack",), ("digits",), parts, SEEDS)
    yield from product(("honest",), ("digits",), parts, usual, both, SEEDS)
    yield from product(("honest",), ("mnist",), parts, usual, both, SEEDS)
    for attack, since in (("", 0), ("flip", 0), ("ascent", 0), ("flip", 40), ("ascent", 40)):
        yield from product(("repeated",), ("digits",), parts[:2], (attack,), (since,), SEEDS)
    yield from product(("honest",), ("digits",), parts[1:], ("mcu",), ("Trimmed", "Median"), SEEDS)
    yield from product(("attack",), ("mnist",), ("iid",), SEEDS)
    yield from product(("honest",), ("digits",), ("unequal sizes",), ("fedavg",), both, SEEDS)


def measure(how: str, *what: Any) -> Row:
    """What is measured in a cell."""
    by: dict[str, Callable[..., Row]]
    by = {"attack": attacked, "honest": honest, "repeated": repeated}
    return by[how](*what)


def main(path: Path) -> None:
    """Measure all cells that are not in the file yet."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {tuple(row["cell"]): row for row in rows}
    with path.open("a") as file:
        for cell in cells():
            if cell in done:
                continue
            twin = done.get((*cell[:4], "clip 2", *cell[5:]))
            # A run in which no update is clipped is the same run without clipping.
            same = cell[0] == "honest" and cell[4] == "sum" and twin and not twin["clipped"]
            row = {k: twin[k] for k in ("accuracy", "clipped")} if same else measure(*cell)
            done[cell] = {"cell": cell, **row}
            file.write(json.dumps(done[cell]) + "\n")
            file.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
