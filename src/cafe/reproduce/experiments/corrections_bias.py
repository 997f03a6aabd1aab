"""Which clients dominate where speeds differ: weights, recall by class, and known limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, paired
from cafe.latency.base import Floats
from cafe.report.cells import Cells
from cafe.reproduce import pictures
from cafe.reproduce.claims import FAILS, Claim, ClaimVerdict, judge, judge_differences, negate
from cafe.reproduce.experiments import unequal_speeds as speeds
from cafe.reproduce.findings import Finding
from cafe.reproduce.measured_tables import list_estimates, table, with_error
from cafe.reproduce.rows import Rows, column, group, mean_of, select
from cafe.reproduce.trials import Effort, RunFunction

SEEDS, TOY_SEEDS, ROUNDS = 5, 20, 1000
LIMIT = 0.02  # a share of weight this close to a half treats both sides equally
QUORUMS = (1, 25, 50, 60)  # at which theory gives the slow clients' weight


def runs(effort: Effort) -> list[RunFunction]:
    """Every scheme with every learner on MNIST, and on the task with known limits."""
    rounds = effort.rounds or ROUNDS
    mnist: list[RunFunction] = [
        partial(speeds.run_mnist, learner, scheme, seed, rounds)
        for learner in effort.choose([*speeds.LEARNERS], quick=["softmax"])
        for scheme in speeds.SCHEMES
        for seed in effort.seeds(SEEDS)
    ]
    toy: list[RunFunction] = [
        partial(speeds.run_toy, scheme, seed, effort.choose(ROUNDS, quick=10 * rounds))
        for scheme in speeds.SCHEMES
        for seed in effort.seeds(TOY_SEEDS)
    ]
    return mnist + toy


@dataclass(frozen=True)
class Bias:
    """How schemes treat slow clients.

    Attributes:
        share: the slow clients' part of all weight, by scheme.
        gaps: to the optimum of the task with known limits, by scheme.
        limits: the gaps of the limits that the schemes' weights have, by scheme.
        lean: recall on slow clients' classes minus that on the others', by learner and scheme;
            the same difference with equally fast clients is subtracted.
    """

    share: Mapping[str, Estimate]
    gaps: Mapping[str, Estimate]
    limits: Mapping[str, Estimate]
    lean: Mapping[str, Mapping[str, Estimate]]

    @classmethod
    def of(cls, images: Rows, toy: Rows) -> Bias:
        """Averages over the seeds."""
        share, gaps, limits = (
            {scheme: mean_of(toy, name, policy=scheme) for scheme in speeds.SCHEMES}
            for name in ("slow_share", "gap", "limit")
        )
        learners = {name: own for (name,), own in group(images, "learner").items()}
        lean = {
            name: {s: paired(_lean(own, s), _lean(own, speeds.ALIKE)) for s in speeds.SCHEMES}
            for name, own in learners.items()
        }
        return cls(share, gaps, limits, lean)

    def effect(self, scheme: str) -> str:
        """What was measured of a scheme, in sentences."""
        leans = {name: by[scheme] for name, by in self.lean.items()}
        side = ", more than half" if self.share[scheme].mean > 0.5 + LIMIT else ""
        return (
            f"Slow clients are half of all and have {self.share[scheme].mean:.1%} of the "
            f"weight{side}. Recall on their classes of MNIST minus that on the others', compared "
            f"with equally fast clients: {list_estimates(leans, '({})')}. The gap to the optimum "
            f"of the known task is {with_error(self.gaps[scheme], None)}."
        )


def _lean(rows: Rows, scheme: str) -> Floats:
    """Recall on slow clients' classes minus that on fast ones', one value per seed."""
    late, early = (
        np.array(column(rows, f"{side}_recall", policy=scheme)) for side in ("slow", "fast")
    )
    return np.asarray(late - early)


def conclude(rows: Rows) -> Finding:
    """Judge which weights and quorums keep fast clients from dominating."""
    images = select(rows, part=speeds.MNIST)
    bias = Bias.of(images, select(rows, part=speeds.TOY))
    texts = {
        "awu, paper's Q": "Sec. 7.1: weights by age, the paper's Q, keep fast clients from "
        "dominating",
        "awu, linear": "Beyond the paper: weights by the rounds since the last use keep fast "
        "clients from dominating",
        "awu, unbiased": "Beyond the paper: these weights divided by N, not by their sum, keep "
        "fast clients from dominating",
    }
    return Finding(
        [
            Claim(
                "Sec. 7: where some clients are slow, fast ones dominate MCU at quorum 1",
                _judge_domination(bias),
                bias.effect("mcu"),
            ),
            *(
                Claim(text, _judge_repair(bias, scheme), bias.effect(scheme))
                for scheme, text in texts.items()
            ),
            _quorum_claim(),
        ],
        [_mnist_table(images, bias), _toy_table(bias)],
        {"bias": lambda: _draw(images, bias)},
        notes=[
            f"Where speeds differ: {speeds.CLIENTS} clients with T={speeds.DEADLINE:g}, M=1; "
            f"client k holds {speeds.HELD} examples of class k mod 10. Those with classes 0 to 4 "
            f"have rate {speeds.FAST:g}, the others {speeds.SLOW:g}. Rate {speeds.RATE:g}, batches "
            f"of {speeds.BATCH}, one local step; the network "
            "is 784-128-64-32-10 and softmax the same without hidden layers. Classes 5 to 9 are "
            "also the harder ones, so recall is compared with MCU among equally fast clients "
            f"(rate {speeds.EQUAL:g}).",
            "The task with known limits has a quadratic per client, fast ones around +1 and slow "
            f"ones around -1 in {speeds.SIZE} dimensions, so that a scheme's limit is the "
            "weighted mean of their centres. For MCU theory gives a gap of "
            f"{speeds.expected_gap():.3f} there.",
        ],
    )


def _judge_domination(bias: Bias) -> ClaimVerdict:
    """Slow clients have less than half of the weight, and the model knows less of their classes."""
    behind = judge_differences([negate(by["mcu"]) for by in bias.lean.values()])
    return behind if bias.share["mcu"].mean < 0.5 - LIMIT else FAILS


def _judge_repair(bias: Bias, scheme: str) -> ClaimVerdict:
    """Holds where slow clients have half of the weight; in part where closer than with MCU."""
    away, before = (abs(bias.share[which].mean - 0.5) for which in (scheme, "mcu"))
    return judge(away < LIMIT, away < before)


def _quorum_claim() -> Claim:
    """Sec. 7 expects a larger quorum to protect against fast clients."""
    federation = speeds.federation("mcu")
    expected = {m: cafe.expect(federation, quorum=m, deadline=speeds.DEADLINE) for m in QUORUMS}
    shares = {
        m: float(e.share_by_client[speeds.slow()].sum() / e.success_probability)
        for m, e in expected.items()
    }
    most = max(shares.values())
    listed = ", ".join(f"{value:.1%} at M={m}" for m, value in shares.items())
    return Claim(
        "Sec. 7: a quorum above 1 keeps fast clients from dominating MCU",
        judge(abs(most - 0.5) < LIMIT, most - shares[1] > 5 * LIMIT),
        f"The weight of the slow half, by theory: {listed}, where "
        f"{expected[QUORUMS[-1]].success_probability:.1%} of rounds succeed.",
    )


def _mnist_table(images: Rows, bias: Bias) -> Cells:
    columns = {
        "weight of the slow": "slow_share",
        "accuracy": "accuracy",
        "recall, classes 0-4 (fast)": "fast_recall",
        "recall, classes 5-9 (slow)": "slow_recall",
    }
    lines = []
    for learner, lean in bias.lean.items():
        for scheme in speeds.SCHEMES:
            own = select(images, learner=learner, policy=scheme)
            line = {"learner": learner, "scheme": scheme}
            line |= {text: with_error(mean_of(own, name)) for text, name in columns.items()}
            difference = "" if scheme == speeds.ALIKE else with_error(lean[scheme])
            lines.append({**line, "their difference, against equal speeds": difference})
    return table("MNIST where slow clients hold classes 5-9", lines, words=(0, 1))


def _toy_table(bias: Bias) -> Cells:
    return table(
        "The task with known limits",
        (
            {
                "scheme": scheme,
                "weight of the slow": with_error(share),
                "gap to the optimum": with_error(bias.gaps[scheme], None),
                "gap of the weights' limit": with_error(bias.limits[scheme], None),
            }
            for scheme, share in bias.share.items()
        ),
    )


def _draw(images: Rows, bias: Bias) -> pictures.Figure:
    learners, gaps = [*bias.lean], bias.gaps.values()
    picture = pictures.figure(4.2 + 3.2 * len(learners), 4.2)
    panels = picture.subplots(1, len(learners) + 1)
    for axes, learner in zip(panels, learners, strict=False):
        _draw_recall(axes, select(images, learner=learner))
        least = min(row["slow_recall"] for row in images)
        axes.set(title=learner, ylim=(max(0.0, np.floor(10 * least - 0.5) / 10), 1.0))
        _name_schemes(axes)
    panels[0].set_ylabel("recall on MNIST")
    panels[-1].bar(range(len(gaps)), [e.mean for e in gaps], 0.6, color=pictures.GREY,
                   yerr=[e.error for e in gaps], capsize=2.5)  # fmt: skip
    panels[-1].set(yscale="log", title="known task", ylabel="gap to the optimum")
    _name_schemes(panels[-1])
    pictures.legend_above(picture, *panels[:-1])
    return picture


def _draw_recall(axes: pictures.Axes, rows: Rows) -> None:
    labels = {"fast": "classes 0-4, of fast clients", "slow": "classes 5-9, of slow clients"}
    for place, (side, label) in enumerate(labels.items()):
        recall = [mean_of(rows, f"{side}_recall", policy=scheme) for scheme in speeds.SCHEMES]
        axes.bar(np.arange(len(recall)) + 0.36 * place - 0.18, [e.mean for e in recall], 0.34,
                 color=pictures.COLOURS[place], yerr=[e.error for e in recall], capsize=2.5,
                 label=label)  # fmt: skip


def _name_schemes(axes: pictures.Axes) -> None:
    names = [name.replace(", ", ",\n") for name in speeds.SCHEMES]
    axes.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=8)
    pictures.tidy(axes)
    axes.grid(visible=False, axis="x")
