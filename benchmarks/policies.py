"""The speed of each shipped policy on the work of W1: rounds and gradients per second.

A gradient is that of one batch. Only those that were computed count: reports that no update uses
are not trained, unless the policy sees single updates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import numpy as np

import cafe
from benchmarks import machine
from benchmarks.ours import task
from benchmarks.peak import Peak
from benchmarks.peers import Peer
from benchmarks.process import Process
from benchmarks.race import Contestant, DropsOutError, race
from benchmarks.report import Sheet, cell
from benchmarks.workloads import WORKLOADS, Workload
from cafe.data.examples import Examples, Rows
from cafe.errors import CafeError
from cafe.learn.base import Learner, Model
from cafe.learn.local_steps import LocalSteps, Weights
from cafe.policies import recipes, scheme_of

FUSED, SINGLE, LOSSES = "fused", "single updates", ", losses"
BASES = ("mcu", "fedavg")  # the policies that others are compared with


def settings(of: Workload) -> dict[str, dict[str, Any]]:
    """The arguments of each recipe, so that a round has the work of a workload where it can.

    Schemes with a deadline invite all clients. Others have as many clients at work as reports come
    in time in a round of MCU.
    """
    cohort, steps = of.cohort, {"steps": of.steps}
    share = steps | {"fraction": cohort / of.clients}
    in_time = steps | {"deadline": of.deadline}
    refilled = steps | {"concurrency": cohort}
    return {
        "age_of_update": steps | {"channels": cohort, "pause": 1},
        "agu": in_time | {"quorum": cohort},
        "anarchic": {"concurrency": cohort, "least_steps": of.steps, "most_steps": of.steps},
        "awu": in_time,
        "cost_aware_hierarchical": steps | {"edges": 4},
        "deadline_compensated": in_time,
        "energy_harvesting": steps | {"cohort": cohort},
        "fedadam": share,
        "fedasync": refilled,
        "fedavg": share,
        "fedbuff": refilled,
        "fednova": share,
        "fedprox": share,
        "fedtune": {"cohort": cohort, "epochs": 1},
        "fedyogi": share,
        "flanp": steps | {"first": cohort, "threshold": 1e-6},
        "fleet": refilled,
        "hierarchical": steps | {"clusters": 4, "goal": max(of.clients // 8, 1)},
        "li_sampling": steps | {"cohort": cohort},
        "mcu": in_time | {"quorum": 1},
        "oort": steps | {"goal": cohort, "preferred": of.deadline},
        "over_selection": steps | {"goal": cohort, "deadline": 20 * of.deadline},
        "parameter_freezing": in_time,
        "refl": steps | {"goal": cohort},
        "safa": share | {"deadline": of.deadline},
        "salvage": in_time,
        "scaffold": share,
        "tifl": steps | {"tiers": 2, "cohort": cohort},
        "timely": steps | {"cohort": min(2 * cohort, of.clients), "goal": cohort},
        "unbiased_age": in_time,
    }


def setting_of(name: str, workload: Workload) -> dict[str, Any]:
    """The arguments of a recipe.

    Raises:
        LookupError: if it has no setting.
    """
    known = settings(workload)
    if name not in known:
        raise LookupError(
            f"benchmarks/policies.py has no setting for the recipe {name}. Add one to settings(), "
            "so that the benchmark has a row for it."
        )
    return known[name]


class Counting:
    """A learner that counts the gradients it computes, and remembers how it was asked.

    Args:
        learner: does the work.
        batch: the number of examples of a gradient.
    """

    def __init__(self, learner: Learner, batch: int) -> None:
        self._learner, self._batch = learner, batch
        self.examples, self.asked = 0, set[str]()
        for name in ("start", "score", "save", "load"):
            setattr(self, name, getattr(learner, name))

    @property
    def gradients(self) -> float:
        """The number of gradients so far."""
        return self.examples / self._batch

    @property
    def content(self) -> str:
        """What was computed of each report besides its part of a sum."""
        single = SINGLE if "updates" in self.asked else FUSED
        return single + (LOSSES if "losses" in self.asked else "")

    def gradient(self, model: Model, data: Examples, rows: Rows, weight: Weights) -> Model:
        self._count("gradient", weight)
        return self._learner.gradient(model, data, rows, weight)

    def update(
        self, model: Model, data: Examples, local: LocalSteps, coefficient: Weights
    ) -> Model:
        self._count("update", taken(local)[coefficient != 0])
        return self._learner.update(model, data, local, coefficient)

    def updates(self, model: Model, data: Examples, local: LocalSteps) -> Model:
        self._count("updates", taken(local))
        return self._learner.updates(model, data, local)

    def losses(self, model: Model, data: Examples, rows: Rows) -> Model:
        self.asked.add("losses")
        return self._learner.losses(model, data, rows)

    def _count(self, what: str, weight: Weights) -> None:
        self.asked.add(what)
        self.examples += int(np.count_nonzero(weight))


def taken(local: LocalSteps) -> Weights:
    """The weights of all examples, 0 in steps that a client does not take."""
    return np.where((local.rate != 0)[:, :, None], local.weight, np.float32(0.0))


class OfRecipe:
    """cafe.simulate with a recipe as a contestant; every call uses a new seed.

    Args:
        recipe: its name.

    Attributes:
        per_round: the gradients per round of each call.
        content: what was computed of each report in the last call.
    """

    networks: frozenset[str] | None = frozenset({"perceptron"})

    def __init__(self, recipe: str) -> None:
        self.name, self.per_round, self.content = recipe, list[float](), ""

    def seconds(self, workload: Workload, rounds: int) -> float:
        """Seconds for this many rounds."""
        policy = recipes()[self.name](**setting_of(self.name, workload))
        federation = cafe.Federation(workload.clients, cafe.Exponential(rate=1.0))
        base = task(workload)
        counting = Counting(base.learner, workload.batch)
        given = cafe.Task(
            base.data,
            base.shards,
            cast(Learner, counting),
            test=base.test,
            batch=base.batch,
            rate=base.rate,
        )
        seed = len(self.per_round)
        began = perf_counter()
        try:
            cafe.simulate(
                federation, policy, given, rounds=rounds, evaluate_every=rounds, seed=seed
            )
        except CafeError as error:
            raise DropsOutError(str(error)) from error
        took = perf_counter() - began
        self.per_round.append(counting.gradients / rounds)
        self.content = counting.content
        return took


def measure(
    say: Callable[[str], None],
    *,
    peers: Sequence[Peer] = (),
    folder: Path = Path(),
    workload: Workload = WORKLOADS[0],
    repetitions: int = 7,
    slot: float = 1.0,
) -> dict[str, object]:
    """The speed of each recipe, of the matrix-product peak, and of other simulators.

    Args:
        say: called with a description of each stage.
        peers: simulators whose plain FedAvg is measured too.
        folder: the folder of their environments, which are created if they do not exist.
        workload: the work of a round.
        repetitions: how often everything is repeated, interleaved.
        slot: approximate seconds of each contestant in each repetition.
    """
    about = machine.describe()
    ours = [OfRecipe(name) for name in recipes()]
    with ExitStack() as stack:
        others = [stack.enter_context(closing(Process(peer, folder))) for peer in peers]
        contestants: list[Contestant] = [Peak(), *others, *ours]
        finish = race(contestants, [workload], repetitions, slot, say)
    rates = finish.rates[workload.name]
    per_round = workload.reports * workload.steps
    found: dict[str, object] = {}
    for one in ours:
        if one.name in rates:
            pairs = zip(rates[one.name], one.per_round[-repetitions:], strict=True)
            found[one.name] = {
                "kind": _kind(one.name),
                "setting": setting_of(one.name, workload),
                "content": one.content,
                "rounds_per_second": rates[one.name],
                "gradients_per_second": [rate * each for rate, each in pairs],
            }
    return {
        "machine": about,
        "workload": workload.name,
        "repetitions": repetitions,
        # A round of these has as many reports as come in time on average, or a fixed cohort.
        "peak_gradients_per_second": [rate * per_round for rate in rates[Peak.name]],
        "peers_gradients_per_second": {
            one.name: [rate * workload.cohort * workload.steps for rate in rates[one.name]]
            for one in others
            if one.name in rates
        },
        "policies": found,
        "dropped_out": finish.dropped,
    }


def _kind(name: str) -> str:
    scheme = scheme_of(recipes()[name])
    return "" if scheme is None else scheme.kind


def sheets(measured: Mapping[str, Any]) -> list[Sheet]:
    """The table: a row per policy, the slowest last; ratios are within a repetition."""
    policies, peak = measured["policies"], measured["peak_gradients_per_second"]
    speed = {name: of["gradients_per_second"] for name, of in policies.items()}
    peers = measured["peers_gradients_per_second"]
    bases = {name: speed[name] for name in BASES if name in speed} | peers

    def over(name: str, other: Sequence[float]) -> str:
        return cell([a / b for a, b in zip(speed[name], other, strict=False)])

    rows = [
        [
            name,
            policies[name]["kind"],
            policies[name]["content"],
            cell(policies[name]["rounds_per_second"], 4),
            cell([rate / 1000 for rate in speed[name]]),
            over(name, peak),
            *(over(name, base) for base in bases.values()),
        ]
        for name in sorted(speed, key=lambda name: -float(np.median(speed[name])))
    ]
    head = ["", "kind", "computed", "rounds per second"]
    head += ["1,000 gradients per second", "over the peak"]
    head += [f"over {name}" for name in bases]
    empty = [""] * (len(head) - 2)
    rows += [[f"{name}: {why}", *empty, "none"] for name, why in measured["dropped_out"].items()]
    title = f"Policies on the work of {measured['workload']}: median (quartiles)"
    return [Sheet(title, head, rows)]
