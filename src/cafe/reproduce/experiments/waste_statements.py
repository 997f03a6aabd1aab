"""What the paper's text says about waste, judged from the rows of the closed forms."""

from __future__ import annotations

from collections.abc import Callable
from math import hypot

from cafe.analysis.statistics import Estimate
from cafe.report.cells import Cells
from cafe.reproduce.agreement import CLOSE, Comparison
from cafe.reproduce.claims import Claim, judge, judge_all, judge_differences
from cafe.reproduce.measured_tables import table, with_error
from cafe.reproduce.paper_tables import TABLE_AGU
from cafe.reproduce.rows import Row, Rows, group, levels, ratio_of, select

EQUAL = "equal"  # the fleet of equal clients, which the paper's formulas are about
SIMILAR = 1.25  # a ratio up to which two costs are called similar
SHORT, LONG = 0.5, 2.0  # the deadlines that Sec. 8.2 compares
DENOMINATORS: dict[str, Callable[[Rows], Estimate]] = {
    "per update": lambda rows: ratio_of(rows, "waste", "updates"),
    "per used report": lambda rows: ratio_of(rows, "waste", "used"),
    "per unit of time": lambda rows: ratio_of(rows, "waste", "time"),
}
Settings = dict[tuple[int, int, float], list[Row]]  # rows by clients, quorum and deadline


def claims(rows: Rows) -> list[Claim]:
    """The statements about a round's waste, processing time, the best quorum and efficiency."""
    settings: Settings = {
        (clients, quorum, deadline): own
        for (clients, quorum, deadline), own in group(
            select(rows, fleet=EQUAL), "clients", "quorum", "deadline"
        ).items()
    }
    return [
        _round_claim(settings),
        _processing_claim(settings),
        _least_claim(settings),
        _efficiency_claim(settings),
    ]


def tables(rows: Rows) -> list[Cells]:
    """The success of rounds at Table II's quorums, and waste by three denominators."""
    hundred = select(rows, fleet=EQUAL, clients=100)
    return [_success_table(hundred), _waste_table(select(hundred, quorum=1))]


def _name(at: tuple[int, int, float]) -> str:
    return f"N={at[0]}, M={at[1]}, T={at[2]:g}"


def _compare(settings: Settings, over: str, under: str) -> dict[str, Comparison]:
    """A measured ratio and the value of Theorem 1 in every setting, by the setting's name."""
    return {
        _name(at): Comparison(ratio_of(own, over, under), own[0]["expected_waste"])
        for at, own in settings.items()
    }


def _differing(compared: dict[str, Comparison]) -> list[str]:
    """Settings in which a ratio differs from Theorem 1 significantly and by more than 1 %."""
    return [
        at for at, one in compared.items() if abs(one.difference) > CLOSE and not abs(one.z) <= 2
    ]


def _round_claim(settings: Settings) -> Claim:
    compared = _compare(settings, "waste", "rounds")
    different = _differing(compared)
    at, most = max(compared.items(), key=lambda item: item[1].expected / item[1].measured.mean)
    return Claim(
        "Theorem 1 is the waste of a round, as the text defines it (Sec. 4.1)",
        judge(not different, 2 * len(different) < len(settings)),
        f"The waste of a round differs in {len(different)} of {len(settings)} settings: "
        f"{with_error(most.measured)} at {at}, where the theorem gives {most.expected:.1f}. The "
        "theorem's is the waste of an update, which includes the failed rounds before it.",
    )


def _processing_claim(settings: Settings) -> Claim:
    compared = _compare(settings, "processing", "updates")
    different = _differing(compared)
    at, most = max(compared.items(), key=lambda item: item[1].expected / item[1].measured.mean)
    return Claim(
        "The waste is time that clients spend on processing (Sec. 4.1)",
        judge(not different, 2 * len(different) < len(settings)),
        f"Clients spend less in {len(different)} of {len(settings)} settings, because they are "
        "charged the whole round even if they finish earlier: "
        f"{with_error(most.measured, 1)} at {at}, where the theorem gives {most.expected:.1f}, "
        f"{most.expected / most.measured.mean - 1:.0%} more. The two agree at quorum 1.",
    )


def _least_claim(settings: Settings) -> Claim:
    """Judge Corollary 1 at every deadline that has runs with quorum 1 and with larger quorums."""
    waste = {at: ratio_of(own, "waste", "updates") for at, own in settings.items()}
    leads = {
        at: independent_difference(found, waste[at[0], 1, at[2]])
        for at, found in waste.items()
        if at[1] != 1 and (at[0], 1, at[2]) in waste
    }
    at, least = min(leads.items(), key=lambda item: item[1].mean)
    return Claim(
        "Corollary 1: at a fixed deadline quorum 1 has the least waste",
        judge_differences([*leads.values()]),
        f"All {len(leads)} larger quorums waste more; the smallest difference is "
        f"{with_error(least, 2)} at {_name(at)}."
        if least.mean > 0
        else f"At {_name(at)} the difference is {with_error(least, 2)}.",
    )


def independent_difference(first: Estimate, second: Estimate) -> Estimate:
    """The difference of two means of independent runs."""
    count = min(first.count, second.count)
    return Estimate(first.mean - second.mean, hypot(first.error, second.error), count)


def _efficiency_claim(settings: Settings) -> Claim:
    """Sec. 8.2, by three denominators."""
    short, long = (settings[100, 1, deadline] for deadline in (SHORT, LONG))
    parts, similar = [], []
    for name, waste in DENOMINATORS.items():
        first, second = waste(short), waste(long)
        times = first.mean / second.mean
        error = times * hypot(first.error / first.mean, second.error / second.mean)
        similar.append(1 / SIMILAR < times < SIMILAR)
        parts.append(
            f"{name} {first.mean:.3g} and {second.mean:.3g} ({times:.3f} ± {error:.3f} times)"
        )
    return Claim(
        f"T={SHORT:g} is about as efficient as T={LONG:g}, within {SIMILAR - 1:.0%} (Sec. 8.2)",
        judge_all(similar),
        f"The waste at T={SHORT:g} and T={LONG:g}: {'; '.join(parts)}.",
    )


def _success_table(rows: Rows) -> Cells:
    lines = []
    for printed in select(TABLE_AGU, policy="mcu"):
        own = select(rows, quorum=printed["quorum"], deadline=0.3)
        if own:
            one = Comparison(ratio_of(own, "updates", "rounds"), own[0]["expected_success"])
            lines.append(
                {
                    "quorum": f"{printed['quorum']}",
                    "expected": f"{one.expected:.4f}",
                    "measured": with_error(one.measured, 4),
                    "z": f"{one.z:+.1f}",
                    "updates in 1000 rounds": f"{1000 * one.expected:.0f}",
                    "MCU's printed accuracy": f"{printed['accuracy']:.3f}",
                }
            )
    return table("Table II's quorums: rounds that succeed (N=100, T=0.3)", lines)


def _waste_table(rows: Rows) -> Cells:
    return table(
        "Waste by three denominators (N=100, M=1)",
        (
            {"deadline": f"{t:g}"}
            | {name: with_error(of(select(rows, deadline=t))) for name, of in DENOMINATORS.items()}
            for t in levels(rows, "deadline")
        ),
    )
