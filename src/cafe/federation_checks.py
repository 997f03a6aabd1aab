"""Checks of a federation's fields. Each raises an error, or returns the field as it is stored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError
from cafe.evidence import Evidence
from cafe.latency.base import Floats, to_floats
from cafe.presence import Presence

MOST_CLIENTS = 10**8
MOST_STEPS = 2**53  # larger whole numbers are not exact as floats


def check_clients(clients: int) -> None:
    """Raise an error unless the number of clients is from 1 to MOST_CLIENTS."""
    if clients < 1:
        raise InputError(f"A federation needs at least 1 client. Got {clients}.")
    if clients > MOST_CLIENTS:
        raise InputError(
            f"A federation may have at most {MOST_CLIENTS:,} clients. Got {clients:,}: "
            "their arrays would not fit in memory. Use a sample of them."
        )


def check_steps(steps: int) -> None:
    """Raise an error unless the number of gradient steps is a whole number from 1 to 2^53."""
    whole = isinstance(steps, int | np.integer) and not isinstance(steps, bool)
    if not whole or not 1 <= steps <= MOST_STEPS:
        raise InputError(
            f"steps must be a whole number from 1 to 2^53. Got {steps!r}: a client that takes part "
            "in a round takes at least one gradient step."
        )


def check_presence(presence: object, clients: int) -> None:
    """Raise an error unless the presence is usable by this number of clients."""
    if not isinstance(presence, Presence) or isinstance(presence, type):
        raise InputError(
            "presence must be one of cafe.presence, such as cafe.presence.DayNight(). "
            f"Got {presence!r}."
        )
    share = np.asarray(presence.long_run(clients))
    if share.shape not in ((), (clients,)) or not np.all((share > 0) & (share <= 1)):
        raise InputError(
            "presence.long_run must return the share of time that a client is present, above 0 "
            f"and at most 1, as one number or one per client ({clients}). "
            f"Got {share!r:.80} from {presence!r}."
        )


def check_availability(given: object, kinds: int) -> float | Floats:
    """The availability as a float or a read-only array with one entry per kind."""
    value = to_floats(given)
    if value is None or value.size == 0:
        raise InputError(
            f"Availability must be one number or one per kind of client. Got {given!r}."
        )
    if not np.all((value > 0) & (value <= 1)):
        raise InputError(
            "Availability must be a probability above 0 and at most 1. "
            f"Got {_first_bad(value)}: leave out clients that never take part."
        )
    if value.ndim > 1 or (value.ndim and kinds not in (1, value.size)):
        raise InputError(
            "Availability must be one number or one per kind of client "
            f"({kinds}). Got {value.size}."
        )
    value.setflags(write=False)
    return value if value.ndim else float(value)


def check_per_step(given: object, kinds: int) -> float | Floats:
    """The time of a gradient step as a float or a read-only array with one entry per kind."""
    value = to_floats(given)
    if value is None or value.size == 0:
        raise InputError(f"per_step must be one number or one per kind of client. Got {given!r}.")
    bad = ~(np.isfinite(value) & (value >= 0))
    if bad.any():
        raise InputError(
            "per_step, the time of a gradient step, must be not negative and finite. "
            f"Got {value.flat[int(np.argmax(bad))]:g}. Give 0 if steps take no time."
        )
    if value.ndim > 1 or (value.ndim and kinds not in (1, value.size)):
        raise InputError(
            f"per_step must be one number or one per kind of client ({kinds}). Got {value.size}."
        )
    value.setflags(write=False)
    return value if value.ndim else float(value)


def check_examples(given: object, clients: int) -> int | NDArray[np.int64]:
    """The number of examples as an int or a read-only array with one entry per client."""
    value = np.array(given)
    if not np.issubdtype(value.dtype, np.integer) or np.any(value < 0):
        raise InputError(
            "A client's examples must be a whole number, at least 0. "
            f"Got {np.array2string(value, threshold=5)}."
        )
    if value.ndim and value.shape != (clients,):
        raise InputError(
            f"examples must be one number or one per client ({clients}). Got {value.size}."
        )
    value = value.astype(np.int64)
    value.setflags(write=False)
    return value if value.ndim else int(value)


def check_kind(kind: object, clients: int, kinds: int) -> NDArray[np.intp]:
    """The kind of each client as a read-only array."""
    given = np.asarray(kind)
    whole = given.dtype.kind in "iu" and given.shape == (clients,)
    if not whole or np.any((given < 0) | (given >= kinds)):
        raise InputError(
            f"kind must have one whole number from 0 to {kinds - 1} for each of the "
            f"{clients} clients. Got {kind!r:.80}."
        )
    found = given.astype(np.intp)
    if np.bincount(found, minlength=kinds).min() == 0:
        missing = int(np.argmin(np.bincount(found, minlength=kinds)))
        raise InputError(
            f"Every kind must have at least one client. Got none of kind {missing}: leave it "
            "out of the latency."
        )
    found.setflags(write=False)
    return found


def check_evidence(evidence: object, clients: int) -> None:
    """Raise an error unless it is the evidence of this number of clients."""
    if not isinstance(evidence, Evidence):
        raise InputError(f"evidence must be a cafe.evidence.Evidence. Got {evidence!r:.80}.")
    for other in evidence.alternatives:
        if other.clients != clients:
            raise InputError(
                f"Every alternative of the evidence must have {clients} clients, like the "
                f"federation. Got one with {other.clients}: give evidence=None if clients were "
                "added or removed after the fit."
            )


def _first_bad(share: Floats) -> str:
    return f"{share.flat[int(np.argmin((share > 0) & (share <= 1)))]:g}"
