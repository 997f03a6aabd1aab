"""Fig. 2: how a client's age goes up with time and down with its updates, and its mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, mean, paired
from cafe.engine import Run
from cafe.report.cells import Cells
from cafe.report.plotting import COLOURS
from cafe.reproduce.agreement import LEVEL
from cafe.reproduce.findings import Claim, ClaimVerdict, Effort, Experiment, Finding, Rows, shown
from cafe.reproduce.pictures import GREY, figure, tidy
from cafe.reproduce.trials import Row, Trial, TrialProgress, column, load_scenario, measured, points
from cafe.reproduce.warmup import per, settled, steady_trials, warmup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME, SEEDS, ROUNDS = "fig-age-cycle", 10, 2000
CLIENT, SHOWN = 0, 40  # whose age is drawn, and for how many rounds
# Quorums at which rounds succeed with a probability from 1 to 0.3, at each deadline.
QUORUMS = {0.5: (1, 33, 36, 39, 42), 1.0: (1, 58, 62, 66), 2.0: (1, 82, 85, 88)}
# Rounds that close once everybody is in, where N is far above 2M and where it is not.
LENGTHS = points(quorum=(1, 40), deadline=(0.5, 2.0, 4.0, 6.0))
ALMOST = 0.01  # share of rounds that may be shorter than T if they last T "almost surely"
At = tuple[int, float]  # quorum, deadline


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """One client's age, round by round; mean ages; and rounds that close once everybody is in."""
    rounds = ROUNDS if effort.rounds is None else 10 * effort.rounds
    trials: list[Trial] = []

    def add(kind: str, quorum: int, deadline: float, changes: Mapping[str, Any]) -> None:
        # The same seeds at every quorum: the same clients report, and differences are paired.
        seeds = [round(1000 * deadline) + seed for seed in effort.seeds(SEEDS)]
        point = _point(kind, quorum, deadline)
        trials.extend(steady_trials(NAME, point, seeds, rounds, changes))

    for deadline, quorums in QUORUMS.items():
        for quorum in effort.thin(quorums):
            add("fixed", quorum, deadline, {})
    for at in LENGTHS:
        add("early", at["quorum"], at["deadline"], {"policy.close_when_all": True})
    return path() + measured(trials, progress, settled)


def _point(kind: str, quorum: int, deadline: float) -> dict[str, Any]:
    """A place, with what theory says of rounds that last T and of those that close early."""
    federation = load_scenario(NAME).federation
    early = federation.clients if kind == "early" else None
    e = cafe.expect(federation, quorum=quorum, deadline=deadline, target=early)
    return {
        "kind": kind,
        "quorum": quorum,
        "deadline": deadline,
        "expected_age": e.age,
        "printed_age": cafe.theory.age_as_printed(federation.clients, 1.0, quorum, deadline),
        "expected_all_in": e.everybody_probability,
        "expected_length": e.round_duration,
        "warmup": warmup(e),
    }


def path() -> list[Row]:
    """One client's age before and after the close of each round, as the engine has it."""
    scenario = load_scenario(NAME)
    simulated = Run(scenario.federation, scenario.policy(scenario.label), seed=0)
    ledger, rows, client = simulated.ledger, [], np.array([CLIENT])
    for _ in range(SHOWN):
        start = float(ledger.age(client)[0])
        outcome = simulated.step()
        length = outcome.closed - outcome.opened
        rows.append(
            {
                "kind": "path",
                "deadline": scenario.policy(scenario.label).parameters["deadline"],
                "round": outcome.round,
                "opened": outcome.opened,
                "closed": outcome.closed,
                "before": start + length,
                "after": float(ledger.age(client)[0]),
                "merged": int(ledger.merged[CLIENT]),
            }
        )
    return rows


def conclude(rows: Rows) -> Finding:
    """The mean age is Theorem 2's; a round lasts T for another reason than the one given."""
    walk, fixed, early = (
        [row for row in rows if row["kind"] == kind] for kind in ("path", "fixed", "early")
    )
    ages = {at: mean([*column(_at(fixed, at), "age")]) for at in _places(fixed)}
    return Finding(
        [
            _cycle(walk),
            _theorem(fixed, ages),
            _corollary(fixed),
            _lasts(early),
            _reason(early),
        ],
        [_ages(fixed, ages), _lengths(early)],
        {"age": lambda: _drawn(walk, fixed, ages)},
        notes=[
            f"The path is client {CLIENT}'s in a simulated run (N=100, M=1, T=0.5, rate 1, seed "
            "0). The paper has a drawing. At the start, where nothing has been merged, age is "
            "counted from 0.",
            "Mean ages leave out a run's first rounds, 10 mean times between two uses of a "
            "client. Runs at one deadline have the same seeds, whatever the quorum: the same "
            "clients report.",
            f"The rule for Theorem 2: the least p-value of all settings, times their number, is "
            f"at least {LEVEL:g} (Bonferroni, right whatever runs have in common).",
            "More settings, and unequal clients: `theory`.",
        ],
    )


def _places(rows: Rows) -> list[At]:
    return list(dict.fromkeys((row["quorum"], row["deadline"]) for row in rows))


def _at(rows: Rows, at: At) -> list[Row]:
    return [row for row in rows if (row["quorum"], row["deadline"]) == at]


def _cycle(walk: Rows) -> Claim:
    """Up by T in a round that does not use the client, down to T in one that does."""
    used = [now["merged"] > last["merged"] for last, now in pairwise(walk)]
    right = [
        np.isclose(now["after"], now["deadline"] if use else last["after"] + now["deadline"])
        for (last, now), use in zip(pairwise(walk), used, strict=True)
    ]
    share = sum(right) / len(right)
    return Claim(
        "Age grows with time, and falls to T at an update that uses the client (Sec. 4.3)",
        ClaimVerdict.HOLDS if share == 1 else ClaimVerdict.FAILS,
        f"So it does in {share:.0%} of {len(right)} rounds; {sum(used)} of them use the client.",
    )


def _theorem(rows: Rows, ages: Mapping[At, Estimate]) -> Claim:
    chances = {at: age.chance(_at(rows, at)[0]["printed_age"]) for at, age in ages.items()}
    at = min(chances, key=lambda place: chances[place])
    joint = min(1.0, len(chances) * chances[at])
    expected = _at(rows, at)[0]["printed_age"]
    return Claim(
        "Theorem 2: the mean age is T/2 + T / (p Pr(ñ ≥ M-1))",
        ClaimVerdict.HOLDS if joint >= LEVEL else ClaimVerdict.FAILS,
        f"Of {len(chances)} settings M={at[0]}, T={at[1]:g} is farthest off: {shown(ages[at], 4)} "
        f"measured, {expected:.4f} expected; with all of them in mind p = {joint:.2g}.",
    )


def _corollary(rows: Rows) -> Claim:
    """The same reports come at every quorum; a higher one uses some of them less often."""
    more = {
        (quorum, deadline): paired(*(_seeds(rows, (m, deadline)) for m in (quorum, 1)))
        for quorum, deadline in _places(rows)
        if quorum > 1
    }
    younger = [at for at, lead in more.items() if lead.mean < 0 and lead.chance(0.0) < 0.05]
    beyond = [at for at, lead in more.items() if lead.mean > 0 and lead.chance(0.0) < 0.05]
    verdict = ClaimVerdict.HOLDS if 2 * len(beyond) > len(more) else ClaimVerdict.IN_PART
    listed = ", ".join(f"{shown(lead)} (M={m}, T={t:g})" for (m, t), lead in more.items())
    return Claim(
        "Corollary 2: at a fixed deadline quorum 1 has the least age",
        ClaimVerdict.FAILS if younger else verdict,
        f"How much older clients are than at quorum 1: {listed}.",
    )


def _seeds(rows: Rows, at: At) -> list[float]:
    return [*column(_at(rows, at), "age")]


def _shares(rows: Rows) -> dict[At, Estimate]:
    """In which share of the rounds everybody was in before the deadline."""
    return {at: per(_at(rows, at), "all_in", "rounds") for at in _places(rows)}


def _lasts(rows: Rows) -> Claim:
    shares = {at: share for at, share in _shares(rows).items() if at[0] == 1}
    few = [share.mean <= ALMOST for share in shares.values()]
    listed = ", ".join(f"{share.mean:.3f} at T={t:g}" for (_, t), share in shares.items())
    return Claim(
        "A round lasts T almost surely (Sec. 4.3)",
        ClaimVerdict.HOLDS
        if all(few)
        else ClaimVerdict.IN_PART
        if any(few)
        else ClaimVerdict.FAILS,
        f"Rounds in which everybody is in before T, N=100 and M=1: {listed}. The deadlines that "
        "Sec. 8.2 compares are 0.5 and 2.",
    )


def _reason(rows: Rows) -> Claim:
    """The share would have to be small wherever N is far above 2M, and grow with M."""
    shares = _shares(rows)
    quorums = sorted({quorum for quorum, _ in shares})
    low, high = quorums[0], quorums[-1]
    apart = {t: paired(*(_share(rows, (m, t)) for m in (high, low))) for _, t in shares}
    most = max((at for at in shares if at[0] == low), key=lambda at: shares[at].mean)
    grows = any(lead.mean > 0 and lead.chance(0.0) < 0.05 for lead in apart.values())
    small = shares[most].mean <= ALMOST
    widest = max(abs(lead.mean) for lead in apart.values())
    exact = _at(rows, most)[0]["expected_all_in"]
    verdict = ClaimVerdict.IN_PART if small or grows else ClaimVerdict.FAILS
    return Claim(
        "It does so because N is far above 2M",
        ClaimVerdict.HOLDS if small and grows else verdict,
        f"The chance that everybody is in is p^N, whatever the quorum: measured shares at M={low} "
        f"and M={high} differ by {widest:.3f} at most. At M={low}, with N {100 / (2 * low):g} "
        f"times 2M, it is {shown(shares[most])} at T={most[1]:g} (p^N = {exact:.3f}).",
    )


def _share(rows: Rows, at: At) -> list[float]:
    here = _at(rows, at)
    pairs = zip(column(here, "all_in"), column(here, "rounds"), strict=True)
    return [all_in / rounds for all_in, rounds in pairs]


def _ages(rows: Rows, ages: Mapping[At, Estimate]) -> Cells:
    lines = []
    for at, age in ages.items():
        expected = _at(rows, at)[0]["printed_age"]
        off = age.off_by(expected)
        lines.append([f"{at[1]:g}", f"{at[0]}", shown(age, 4), f"{expected:.4f}", f"{off:+.1f}"])
    header = ("deadline", "quorum", "measured age", "Theorem 2", "standard errors apart")
    return Cells("Mean age of a client (N=100)", header, lines)


def _lengths(rows: Rows) -> Cells:
    lines = []
    for at, share in _shares(rows).items():
        here = _at(rows, at)
        first = here[0]
        lines.append(
            [
                f"{at[1]:g}", f"{at[0]}", shown(share, 4), f"{first['expected_all_in']:.2g}",
                shown(per(here, "time", "rounds")), f"{first['expected_length']:.3f}",
                shown(mean([*column(here, "age")])), f"{first['expected_age']:.3f}",
                f"{first['printed_age']:.3f}",
            ]
        )  # fmt: skip
    header = (
        "deadline", "quorum", "everybody in", "p^N", "round lasts", "expected length", "age",
        "expected age", "Theorem 2",
    )  # fmt: skip
    return Cells("Rounds that close once everybody is in (N=100)", header, lines)


def _drawn(walk: Rows, rows: Rows, ages: Mapping[At, Estimate]) -> Figure:
    drawn = figure(9.6, 3.9)
    left, right = drawn.subplots(1, 2, width_ratios=(1.7, 1))
    deadline = walk[0]["deadline"]
    expected = _at(rows, (1, deadline))[0]["printed_age"]
    _saw(left, walk)
    left.axhline(deadline, color=GREY, lw=1, ls=":")
    left.axhline(expected, color=COLOURS[1], lw=1.2, ls="--")
    end = 1.01 * walk[-1]["closed"]
    left.text(end, deadline, "T", va="center", fontsize=9)
    left.text(end, expected, "mean\n(Th. 2)", va="center", fontsize=8, color=COLOURS[1])
    left.set(xlabel="time", ylabel=f"age of client {CLIENT}", ylim=(0, None))
    left.set_xlim(0, walk[-1]["closed"])
    _against(right, rows, ages)
    for axes in (left, right):
        tidy(axes)
    return drawn


def _saw(axes: Axes, walk: Rows) -> None:
    """The path: straight up through each round, straight down at its close."""
    time, age = [walk[0]["opened"]], [0.0]
    for row in walk:
        time += [row["closed"]] * 2
        age += [row["before"], row["after"]]
    axes.plot(time, age, color=COLOURS[0], lw=1.4)
    fell = [row for row in walk if row["after"] < row["before"] - 1e-9]
    axes.plot(
        [row["closed"] for row in fell], [row["after"] for row in fell], "o", ms=3.5,
        color=COLOURS[0],
    )  # fmt: skip


def _against(axes: Axes, rows: Rows, ages: Mapping[At, Estimate]) -> None:
    """Measured ages over the success of rounds, on the lines of Theorem 2."""
    deadlines: Sequence[float] = sorted({deadline for _, deadline in ages})
    for index, deadline in enumerate(deadlines):
        at = [place for place in ages if place[1] == deadline]
        colour = COLOURS[index]
        quorums = np.arange(1, at[-1][0] + 1)
        printed = [cafe.theory.age_as_printed(100, 1.0, int(m), deadline) for m in quorums]
        axes.plot(quorums, printed, color=colour, lw=1)
        axes.errorbar(
            [place[0] for place in at],
            [ages[place].mean for place in at],
            [2 * ages[place].error for place in at],
            ls="none", marker="o", ms=4, capsize=2.5, color=colour, label=f"T={deadline:g}",
        )  # fmt: skip
    axes.set(xlabel="quorum", ylabel="mean age", ylim=(0, None))


EXPERIMENT = Experiment(
    NAME,
    "Fig. 2, Theorem 2, Corollary 2, Sec. 4.3",
    "a client's age over time, and its mean",
    run,
    conclude,
)
