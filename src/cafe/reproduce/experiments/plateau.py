"""The plateau on which a run predicts almost only one class, and how long it lasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from cafe.analysis.statistics import Estimate, mean, paired
from cafe.latency.base import Floats
from cafe.report.cells import Cells
from cafe.reproduce import pictures
from cafe.reproduce.claims import Claim, judge, judge_differences
from cafe.reproduce.experiments.iid_quorum import rank_correlation
from cafe.reproduce.measured_tables import list_estimates, table, with_error
from cafe.reproduce.paper_tables import TABLE_AWU
from cafe.reproduce.rows import Rows, column, group, levels, select

HALF = 0.5  # the share of predictions in one class from which on a run is on the plateau
SCHEMES = ("mcu", "awu")
FOLLOWS, FOLLOWS_IN_PART = -0.8, -0.5  # rank correlation of the plateau's length with accuracy
EARLY = 0.2  # the part of a run after which the claims state what is predicted
DRAWN = 3  # number of shares in the picture


class Plateaus:
    """The plateaus of all runs.

    Attributes:
        rows: a row for each evaluation of each run: its round, the accuracy, and the share of
            predictions in the class that is predicted most often (``commonest``).
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.shares: Sequence[float] = levels(rows, "share")
        self.rounds: Sequence[int] = levels(rows, "round")

    @cached_property
    def ends(self) -> Mapping[tuple[float, str], list[float]]:
        """The last evaluated round on the plateau, by share and scheme, a value per seed."""
        return {
            (share, policy): [
                float(max((row["round"] for row in run if row["commonest"] >= HALF), default=0))
                for run in group(sorted(own, key=lambda row: row["seed"]), "seed").values()
            ]
            for (share, policy), own in group(self.rows, "share", "policy").items()
        }

    @cached_property
    def final(self) -> Mapping[tuple[float, str], list[float]]:
        """The accuracy after the last round, by share and scheme, a value per seed."""
        last = select(self.rows, round=self.rounds[-1])
        return {
            cell: column(own, "accuracy") for cell, own in group(last, "share", "policy").items()
        }

    def shortened(self, share: float) -> Estimate:
        """How many rounds earlier the age-weighted runs leave the plateau."""
        mcu, awu = (self.ends[share, policy] for policy in SCHEMES)
        return paired(mcu, awu)

    def curve(self, share: float, policy: str, name: str) -> Floats:
        """The mean of a column over the seeds, a value per evaluated round."""
        own = select(self.rows, share=share, policy=policy)
        return np.array([mean(column(own, name, round=at)).mean for at in self.rounds])

    @property
    def correlation(self) -> float:
        """Spearman's rank correlation of the plateau's end with the final accuracy."""
        ends = [end for cell in self.final for end in self.ends[cell]]
        accuracies = [value for values in self.final.values() for value in values]
        return rank_correlation(ends, accuracies)


def claims(plateaus: Plateaus, many: float) -> list[Claim]:
    """Whether the biased clients lengthen the plateau, and age weights shorten it.

    Args:
        plateaus: of all runs.
        many: the share of biased clients from which on the paper sees AWU ahead.
    """
    first, last = plateaus.shares[0], plateaus.shares[-1]
    longer = {
        policy: paired(plateaus.ends[last, policy], plateaus.ends[first, policy])
        for policy in SCHEMES
    }
    shortened = {share: plateaus.shortened(share) for share in plateaus.shares if share >= many}
    at = {f"at {share:.0%}": estimate for share, estimate in shortened.items()}
    correlation = plateaus.correlation
    early = min(plateaus.rounds, key=lambda at: abs(at - EARLY * plateaus.rounds[-1]))
    guessing = mean(column(plateaus.rows, "accuracy", share=last, policy="mcu", round=early))
    (printed,) = (row["accuracy"] for row in select(TABLE_AWU, share=last, policy="mcu"))
    return [
        Claim(
            "Beyond the paper: a run of MCU predicts one class for most examples at first, and the "
            "longer the more clients are biased",
            judge_differences([longer["mcu"]]),
            f"From {first:.0%} to {last:.0%} biased clients the plateau of MCU becomes "
            f"{with_error(longer['mcu'], 0)} rounds longer, that of AWU "
            f"{with_error(longer['awu'], 0)}. After {early} rounds the commonest class has "
            f"{_list_shares(plateaus, early)} of the predictions. The accuracy of MCU at "
            f"{last:.0%} is {with_error(guessing)} then, that of guessing; "
            f"the paper prints {printed:g} for it after 1000 rounds.",
        ),
        Claim(
            "Beyond the paper: with many biased clients (15 % and more) age weights shorten this "
            "plateau",
            judge_differences([*shortened.values()]),
            f"Rounds by which it is shorter: {list_estimates(at, '{}', 0)}.",
        ),
        Claim(
            "Beyond the paper: the accuracy after 1000 rounds follows the length of the plateau "
            "(rank correlation at most -0.8; in part: -0.5)",
            judge(correlation <= FOLLOWS, correlation <= FOLLOWS_IN_PART),
            f"Over all runs the rank correlation is {correlation:.2f}.",
        ),
    ]


def _list_shares(plateaus: Plateaus, at: int) -> str:
    """The commonest class's part of the predictions after a round, at the ends of the axis."""
    parts = {
        f"({policy.upper()}, {share:.0%})": mean(
            column(plateaus.rows, "commonest", share=share, policy=policy, round=at)
        )
        for share in (plateaus.shares[0], plateaus.shares[-1])
        for policy in SCHEMES
    }
    return list_estimates(parts, "{}", 2)


def lengths_table(plateaus: Plateaus) -> Cells:
    """How long the plateau is, by share and scheme."""
    return table(
        "The last round in which one class has half of the predictions or more, mean ± standard "
        "error",
        (
            {
                "share": f"{share:.0%}",
                **{
                    policy.upper(): with_error(mean(plateaus.ends[share, policy]), 0)
                    for policy in SCHEMES
                },
                "MCU - AWU": with_error(plateaus.shortened(share), 0),
            }
            for share in plateaus.shares
        ),
    )


def draw(plateaus: Plateaus) -> pictures.Figure:
    """Accuracy, and the share of the class predicted most often, over the rounds."""
    picture = pictures.figure(9.6, 4.2)
    left, right = picture.subplots(1, 2)
    every = (len(plateaus.shares) - 1) / (DRAWN - 1)
    shares = dict.fromkeys(plateaus.shares[round(every * i)] for i in range(DRAWN))
    for index, share in enumerate(shares):
        for policy, dashes in zip(SCHEMES, ("-", "--"), strict=True):
            style = {"color": pictures.COLOURS[index], "ls": dashes, "lw": 1.4}
            label = f"{policy.upper()}, {share:.0%}"
            for axes, name in ((left, "accuracy"), (right, "commonest")):
                axes.plot(
                    plateaus.rounds, plateaus.curve(share, policy, name), label=label, **style
                )
    right.axhline(HALF, color=pictures.GREY, lw=0.8)
    left.set(xlabel="rounds", ylabel="accuracy", ylim=(0, 1))
    right.set(xlabel="rounds", ylabel="predictions in the commonest class", ylim=(0, 1))
    pictures.legend_above(picture, left, right)
    return picture
