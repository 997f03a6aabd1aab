"""Who decides where speeds differ: weights, recall by class on MNIST, and a task with known limits.

Fast clients hold the classes 0 to 4 and slow ones 5 to 9, so that a scheme that leans to either
side is seen in what the model knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, mean, paired
from cafe.data import Dataset, Examples, Shards, Single, load
from cafe.engine import simulate
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.latency.base import Floats
from cafe.learn.mlp import MLP
from cafe.learn.quadratic import Quadratic
from cafe.learn.schedules import LearningRate
from cafe.policies import awu, mcu
from cafe.randomness import Stream
from cafe.report.cells import Cells
from cafe.report.plotting import COLOURS
from cafe.reproduce.experiments.corrections_work import legend_above, part, precise
from cafe.reproduce.findings import (
    Claim,
    ClaimVerdict,
    Effort,
    Finding,
    Rows,
    judge_differences,
    shown,
)
from cafe.reproduce.pictures import GREY, figure, tidy
from cafe.reproduce.trials import Job, Row, column
from cafe.rounds import History, Policy
from cafe.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MNIST, TOY = "mnist", "toy"
SEEDS, TOY_SEEDS, ROUNDS = 5, 20, 1000
CLIENTS, DEADLINE = 100, 0.5
FAST, SLOW, EQUAL = 5.0, 0.3, 1.0  # rates: 92 %, 14 % and 39 % of them report by the deadline
HELD, BATCH, RATE = 100, 10, 0.1
LEARNERS: dict[str, tuple[int, ...]] = {"softmax": (), "network": (128, 64, 32)}
ALIKE = "mcu, equal speeds"
LIMIT = 0.02  # of weight: a share within this of a half treats both sides alike
SIZE = 10
QUORUMS = (1, 25, 50, 60)  # of which theory says how much weight slow clients have

SCHEMES: dict[str, Callable[[], Policy]] = {
    ALIKE: lambda: mcu(quorum=1, deadline=DEADLINE),
    "mcu": lambda: mcu(quorum=1, deadline=DEADLINE),
    "awu, paper's Q": lambda: awu(deadline=DEADLINE),
    "awu, linear": lambda: awu(deadline=DEADLINE, weight="linear"),
    "awu, unbiased": lambda: awu(deadline=DEADLINE, weight="unbiased"),
}


def slow() -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which clients are slow: client k holds class k mod 10, and slow ones hold 5 to 9."""
    return np.asarray(np.arange(CLIENTS) % 10 >= 5)


def federation(scheme: str) -> Federation:
    """Half of the clients fast and half slow; or all alike, for comparison."""
    if scheme == ALIKE:
        return Federation(CLIENTS, Exponential(EQUAL))
    return Federation(CLIENTS, Exponential(np.array([FAST, SLOW])), kind=slow().astype(np.intp))


def jobs(effort: Effort) -> list[Job]:
    """Every scheme with every learner on MNIST, and on the task with known limits."""
    rounds = effort.rounds or ROUNDS
    learners = [*LEARNERS][:1] if effort.quick else LEARNERS
    found: list[Job] = [
        partial(_mnist, learner, scheme, seed, rounds)
        for learner in learners for scheme in SCHEMES for seed in effort.seeds(SEEDS)
    ]  # fmt: skip
    found += [
        partial(_toy, scheme, seed, 10 * rounds if effort.quick else rounds)
        for scheme in SCHEMES for seed in effort.seeds(TOY_SEEDS)
    ]  # fmt: skip
    return found


def _slow_share(history: History) -> float:
    """What part of all weight slow clients had."""
    weight = history.weight_by_client
    return float(weight[slow()].sum() / weight.sum())


# ------------------------------------------------------------------------------------------- runs


@lru_cache(maxsize=1)
def images() -> Dataset:
    """MNIST, as the paper splits it."""
    return load("mnist").paper_split()


def _mnist(learner: str, scheme: str, seed: int, rounds: int) -> list[Row]:
    data = images()
    shards = Single(HELD, HELD)(data.train.y, CLIENTS, Stream(seed, "partition").at(0))
    model = MLP(data.train.x.shape[1], 10, hidden=LEARNERS[learner], threads=1)
    task = Task(data.train, shards, model, data.test, batch=BATCH, rate=RATE)
    history = simulate(
        federation(scheme), SCHEMES[scheme](), task, rounds=rounds, seed=seed, evaluate_every=rounds
    )
    sides = {"fast": data.test.y < 5, "slow": data.test.y >= 5}
    recall = {
        f"{side}_recall": _accuracy(model, history, data.test.take(np.flatnonzero(rows)))
        for side, rows in sides.items()
    }
    return [
        {"part": MNIST, "learner": learner, "policy": scheme, "seed": seed, "rounds": rounds,
         "accuracy": history.accuracy, **recall, "slow_share": _slow_share(history)}
    ]  # fmt: skip


def _accuracy(learner: MLP, history: History, examples: Examples) -> float:
    assert history.model is not None
    return float(learner.score(learner.load(history.model), examples).accuracy or 0.0)


@lru_cache(maxsize=1)
def _centres() -> Floats:
    """Where each client's data lie: those of the fast on one side, those of the slow on the other.

    In float32, as the learner has them, so that limits are those of the very same points.
    """
    side = np.where(slow(), -1.0, 1.0)[:, None]
    places = np.random.default_rng(0).normal(side, 1.0, size=(CLIENTS, SIZE))
    return places.astype(np.float32).astype(float)


def _toy(scheme: str, seed: int, rounds: int) -> list[Row]:
    """A quadratic per client, all of the same bend: the weights' mean of the centres is the limit.

    The rate is Theorem 3's, with L = mu = 1.
    """
    centres = _centres()
    data = Examples(centres, np.zeros(CLIENTS))
    shards = Shards.of(list(np.arange(CLIENTS)[:, None]))
    task = Task(data, shards, Quadratic(SIZE), batch=None, rate=LearningRate(2.0, 3.0))
    history = simulate(
        federation(scheme), SCHEMES[scheme](), task, rounds=rounds, seed=seed, evaluate_every=rounds
    )
    assert history.model is not None
    weight = history.weight_by_client / history.weight_by_client.sum()
    return [
        {"part": TOY, "policy": scheme, "seed": seed, "rounds": rounds,
         "gap": _gap(history.model.astype(float)), "limit": _gap(weight @ centres),
         "slow_share": _slow_share(history)}
    ]  # fmt: skip


def _gap(model: Floats) -> float:
    """F(w) - F*: half the squared distance to the mean of all centres."""
    return float(np.sum((model - _centres().mean(axis=0)) ** 2)) / 2


def _expected_gap() -> float:
    """Where MCU goes by theory: to the mean of the centres with the shares S_k as weights."""
    e = cafe.expect(federation("mcu"), quorum=1, deadline=DEADLINE)
    return _gap(e.share_by_client / e.success_probability @ _centres())


# --------------------------------------------------------------------------------------- findings


def found(rows: Rows) -> Finding:
    """Shares of weight, recall by class, and the toy's gaps."""
    images, toy = part(rows, MNIST), part(rows, TOY)
    learners = list(dict.fromkeys(row["learner"] for row in images))
    lean = {name: {scheme: _lean(images, name, scheme) for scheme in SCHEMES} for name in learners}
    share = {s: mean([*column(toy, "slow_share", policy=s)]) for s in SCHEMES}
    gaps = {s: mean([*column(toy, "gap", policy=s)]) for s in SCHEMES}
    limits = {s: mean([*column(toy, "limit", policy=s)]) for s in SCHEMES}
    texts = {
        "awu, paper's Q": "Sec. 7.1: weights by age, the paper's Q, undo the lead of the fast",
        "awu, linear": "Beyond the paper: weighing by rounds since the last use undoes it",
        "awu, unbiased": "Beyond the paper: these weights over N, not over their sum, undo it",
    }
    claims = [_mcu_claim(share, lean, gaps)]
    claims += [_claim(scheme, text, share, lean, gaps) for scheme, text in texts.items()]
    return Finding(
        [*claims, _quorum_claim()],
        [_mnist_table(images, learners, lean), _toy_table(share, gaps, limits)],
        {"bias": lambda: _picture(images, learners, gaps)},
        notes=[
            f"Where speeds differ: {CLIENTS} clients with T={DEADLINE:g}, M=1; client k holds "
            f"{HELD} examples of class k mod 10. Those with classes 0 to 4 have rate {FAST:g}, "
            f"the others {SLOW:g}. Rate {RATE:g}, batches of {BATCH}, one local step; the network "
            "is 784-128-64-32-10 and softmax the same without hidden layers. Classes 5 to 9 are "
            "also the harder ones, so recall is compared with MCU among equally fast clients "
            f"(rate {EQUAL:g}).",
            "The task with known limits has a quadratic per client, fast ones around +1 and slow "
            f"ones around -1 in {SIZE} dimensions, so that a scheme's limit is the mean of their "
            f"places by weight. For MCU theory gives a gap of {_expected_gap():.3f} there.",
        ],
    )


def _lean(rows: Rows, learner: str, scheme: str) -> Estimate:
    """Recall on slow clients' classes minus that on fast ones', against that of equal clients."""

    def apart(which: str) -> Floats:
        slow_, fast = (
            np.array([*column(rows, f"{side}_recall", learner=learner, policy=which)])
            for side in ("slow", "fast")
        )
        return np.asarray(slow_ - fast)

    return paired(apart(scheme), apart(ALIKE))


def _mcu_claim(
    share: Mapping[str, Estimate],
    lean: Mapping[str, Mapping[str, Estimate]],
    gaps: Mapping[str, Estimate],
) -> Claim:
    """Slow clients have less than their half of the weight, and the model knows less of theirs."""
    behind = judge_differences([replace(by["mcu"], mean=-by["mcu"].mean) for by in lean.values()])
    return Claim(
        "Sec. 7: where some clients are slow, fast ones dominate MCU at quorum 1",
        behind if share["mcu"].mean < 0.5 - LIMIT else ClaimVerdict.FAILS,
        _effect("mcu", share, lean, gaps),
    )


def _claim(
    scheme: str,
    text: str,
    share: Mapping[str, Estimate],
    lean: Mapping[str, Mapping[str, Estimate]],
    gaps: Mapping[str, Estimate],
) -> Claim:
    """Undone: slow clients, half of all, have half of the weight. In part: closer than with MCU."""
    away, before = (abs(share[which].mean - 0.5) for which in (scheme, "mcu"))
    verdict = ClaimVerdict.HOLDS if away < LIMIT else ClaimVerdict.FAILS
    if verdict is ClaimVerdict.FAILS and away < before:
        verdict = ClaimVerdict.IN_PART
    return Claim(text, verdict, _effect(scheme, share, lean, gaps))


def _effect(
    scheme: str,
    share: Mapping[str, Estimate],
    lean: Mapping[str, Mapping[str, Estimate]],
    gaps: Mapping[str, Estimate],
) -> str:
    leans = ", ".join(f"{shown(by[scheme])} ({name})" for name, by in lean.items())
    side = ", more than their part" if share[scheme].mean > 0.5 + LIMIT else ""
    return (
        f"Slow clients are half of all and have {share[scheme].mean:.1%} of the weight{side}. "
        f"Recall on their classes of MNIST minus that on the others', against equally fast "
        f"clients: {leans}. The gap to the optimum of the known task is {precise(gaps[scheme])}."
    )


def _quorum_claim() -> Claim:
    """Sec. 7 sees in a larger quorum a guard against fast clients."""
    expected = {m: cafe.expect(federation("mcu"), quorum=m, deadline=DEADLINE) for m in QUORUMS}
    shares = {
        m: float(e.share_by_client[slow()].sum() / e.success_probability)
        for m, e in expected.items()
    }
    succeed = expected[QUORUMS[-1]].success_probability
    gain = max(shares.values()) - shares[1]
    texts = ", ".join(f"{value:.1%} at M={m}" for m, value in shares.items())
    verdict = ClaimVerdict.HOLDS if abs(max(shares.values()) - 0.5) < LIMIT else ClaimVerdict.FAILS
    if verdict is ClaimVerdict.FAILS and gain > 5 * LIMIT:
        verdict = ClaimVerdict.IN_PART
    return Claim(
        "Sec. 7: a quorum above 1 keeps fast clients from dominating MCU",
        verdict,
        f"The weight of the slow half, by theory: {texts}, where {succeed:.1%} of rounds succeed.",
    )


def _mnist_table(
    rows: Rows, learners: list[str], lean: Mapping[str, Mapping[str, Estimate]]
) -> Cells:
    lines = []
    for learner in learners:
        for scheme in SCHEMES:
            cells = [learner, scheme]
            for name in ("slow_share", "accuracy", "fast_recall", "slow_recall"):
                values = [*column(rows, name, learner=learner, policy=scheme)]
                cells.append(shown(mean(values)))
            lines.append([*cells, "" if scheme == ALIKE else shown(lean[learner][scheme])])
    header = (
        "learner", "scheme", "weight of the slow", "accuracy", "recall, classes 0-4 (fast)",
        "recall, classes 5-9 (slow)", "their difference, against equal speeds",
    )  # fmt: skip
    return Cells("MNIST where slow clients hold classes 5-9", header, lines, frozenset({0, 1}))


def _toy_table(
    share: Mapping[str, Estimate], gaps: Mapping[str, Estimate], limits: Mapping[str, Estimate]
) -> Cells:
    lines = [
        [scheme, shown(share[scheme]), precise(gaps[scheme]), precise(limits[scheme])]
        for scheme in share
    ]
    header = ("scheme", "weight of the slow", "gap to the optimum", "gap of the weights' limit")
    return Cells("The task with known limits", header, lines)


def _picture(rows: Rows, learners: list[str], gaps: Mapping[str, Estimate]) -> Figure:
    drawn = figure(4.2 + 3.2 * len(learners), 4.2)
    panels = drawn.subplots(1, len(learners) + 1)
    for axes, learner in zip(panels, learners, strict=False):
        _recall_panel(axes, rows, learner)
    panels[0].set_ylabel("recall on MNIST")
    last, names = panels[-1], [*gaps]
    last.bar(range(len(names)), [e.mean for e in gaps.values()], 0.6, color=GREY,
             yerr=[e.error for e in gaps.values()], capsize=2.5)  # fmt: skip
    last.set(yscale="log", title="known task", ylabel="gap to the optimum")
    _names(last, names)
    legend_above(drawn, *panels[:-1])
    return drawn


def _recall_panel(axes: Axes, rows: Rows, learner: str) -> None:
    sides = (("fast", "classes 0-4, of fast clients"), ("slow", "classes 5-9, of slow clients"))
    for place, (side, label) in enumerate(sides):
        found = [
            mean([*column(rows, f"{side}_recall", learner=learner, policy=scheme)])
            for scheme in SCHEMES
        ]
        axes.bar(np.arange(len(SCHEMES)) + 0.36 * place - 0.18, [e.mean for e in found], 0.34,
                 color=COLOURS[place], yerr=[e.error for e in found], capsize=2.5,
                 label=label)  # fmt: skip
    least = min(row["slow_recall"] for row in rows)
    axes.set(title=learner, ylim=(max(0.0, np.floor(10 * least - 0.5) / 10), 1.0))
    _names(axes, [*SCHEMES])


def _names(axes: Axes, names: list[str]) -> None:
    axes.set_xticks(range(len(names)), [name.replace(", ", ",\n") for name in names], rotation=40,
                    ha="right", fontsize=8)  # fmt: skip
    tidy(axes)
    axes.grid(visible=False, axis="x")
