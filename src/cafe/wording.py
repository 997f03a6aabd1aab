"""Labels, units and meanings of quantities, and number formats, for terminal, page and docs."""

from __future__ import annotations

import math

# name: (label, unit, one line of meaning); the order is the order of display.
QUANTITIES: dict[str, tuple[str, str, str]] = {
    "success_probability": ("rounds that succeed", "", "Pr(n >= M), the paper's 1 - q"),
    "expected_reports": ("reports by the deadline", "per round", "E[n]"),
    "reports_per_update": ("reports used", "per update", "E[reports used | the round succeeds]"),
    "broadcasts": ("broadcasts", "per update", "E[C_b] = 1 / (1 - q)"),
    "messages": ("messages", "per update", "clients invited, in all rounds"),
    "waste": (
        "waste",
        "client-s per update",
        "E[C_w], Theorem 1: a discarded job costs the whole round",
    ),
    "waste_per_round": ("", "client-s per round", "E[C_w] of one round"),
    "waste_per_gradient": ("", "client-s per used report", "E[C_w] over reports used"),
    "waste_per_time": ("", "clients at any time", "E[C_w] per unit of time"),
    "processing_waste": ("processing waste", "client-s per update", "true times, not T"),
    "processing_waste_per_round": ("", "client-s per round", "true times, one round"),
    "processing_waste_per_gradient": ("", "client-s per used report", "true times, over reports"),
    "processing_waste_per_time": ("", "clients at any time", "true times, per unit of time"),
    "absent_waste": (
        "waste of absent clients",
        "client-s per update",
        "part of the waste",
    ),
    "agu_waste": ("waste under AGU, S_t only", "client-s per update", "failed rounds kept for S_t"),
    "agu_waste_union": ("waste under AGU, union", "client-s per update", "every report kept"),
    "client_seconds": ("client time, used or not", "client-s per update", "from broadcast on"),
    "age": ("age, mean over clients", "s", "E[Delta], Theorem 2"),
    "normalised_age": ("age in deadlines", "", "E[Delta] / T"),
    "worst_age": ("age of the worst client", "s", "max over clients"),
    "round_duration": ("round lasts", "s", "E[Y], T unless rounds close early"),
    "update_interval": ("between updates", "s", "E[Y] / (1 - q)"),
    "everybody_probability": ("all clients in time", "", "Pr(n = invited)"),
    "mean_share": ("mean share of a client", "", "S~ = (1 - q) / N, exact"),
    "bias": ("weight moved to fast clients", "", "0: equal weights"),
    "merit": ("g(M)", "", "M Pr(n~ >= M - 1)"),
    "noise_factor": ("noise factor e_M", "", "E[1/n; n >= M]"),
    "sampling_factor": ("sampling factor c_M", "", "E[(N-n)/(n(N-1)); n >= M]"),
}

TINY = 1e-12  # numbers below this are shown as 0

# fate: (label, meaning); the order is that of cafe.rounds.Fate, and of display.
FATES: dict[str, tuple[str, str]] = {
    "fresh": ("merged fresh", "used for the model version it started from"),
    "stale": ("merged stale", "used for a later model version"),
    "over": ("over quota", "reported, but its successful round did not use it"),
    "late": ("late", "had not reported by the deadline"),
    "failed": ("in a failed round", "reported, but its round failed"),
    "cancelled": ("cancelled", "still running when its round closed early"),
    "crashed": ("crashed", "started, but never reported"),
    "refused": ("refused", "reported, but the report was rejected"),
    "absent": ("absent", "invited, but never started"),
    "open": ("open", "no fate yet when the run ended"),
}

# Network traffic, and reports used more than once: (label, unit, meaning).
TRAFFIC: dict[str, tuple[str, str, str]] = {
    "downloads": ("models sent", "per update", "models sent to clients"),
    "bytes_down": (
        "sent to clients",
        "bytes per update",
        "size of the models or of the parts sent",
    ),
    "bytes_up": (
        "received",
        "bytes per update",
        "size of reports that arrived in time, used or not",
    ),
    "reused": ("reports used again", "per update", "held reports that an earlier update used too"),
}


def quantity_label(quantity: str) -> str:
    """The label of a quantity; variants without a label share the one above them."""
    label = ""
    for name, (own, _, _) in QUANTITIES.items():
        label = own or label
        if name == quantity:
            return label
    raise KeyError(quantity)


def format_count(number: int, noun: str) -> str:
    """A count with its noun: ``1 client``, ``2 clients``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_percent(share: float) -> str:
    """A share as a percentage with two decimals."""
    return f"{share:.2%}" if abs(share) < 10 else "-" if share != share else "over 1,000%"


def format_number(value: float | int | None) -> str:
    """Four significant digits; ``infinite``, ``undefined`` (NaN) or ``-`` (None); 0 if tiny."""
    if value is None:
        return "-"
    if value != value:
        return "undefined"
    if value in (float("inf"), float("-inf")):
        return "infinite"
    if abs(value) < TINY:
        return "0"
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e6):
        return f"{int(value):,}"
    if abs(value) >= 1e6:
        return f"{value:.4g}"
    return f"{value:,.4g}" if abs(value) < 9999.5 else f"{value:,.0f}"


def format_interval(low: float, high: float) -> str:
    """An interval: ``1.2 to 3.4``."""
    return f"{format_number(low)} to {format_number(high)}"


def format_estimate(mean: float, error: float) -> str:
    """A mean ± its standard error, with two digits of the error but at most five of the mean."""
    if not math.isfinite(mean) or not (math.isfinite(error) and error > 0):
        return format_number(mean)
    digits = 1 - math.floor(math.log10(error))
    if mean:
        digits = min(digits, 4 - math.floor(math.log10(abs(mean))))
    if digits > 8 or abs(mean) >= 1e9 or error >= 1e9:
        return f"{mean:.4g} ± {error:.2g}"
    shown = max(digits, 0)
    around = f"{error:,.{shown}f}"
    return f"{mean:,.{shown}f} ± {around if float(around.replace(',', '')) else f'{error:.1g}'}"


def format_share(mean: float, error: float = float("nan")) -> str:
    """A share from 0 to 1 as a percentage, with its standard error if that is known."""
    return (
        f"{format_estimate(100 * mean, 100 * error)}%"
        if math.isfinite(mean)
        else format_number(mean)
    )
