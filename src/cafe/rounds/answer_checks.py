"""Checks of what a policy's decisions return.

Engine, reference and live server check every answer with these functions, as soon as a decision
returns it. An error names the policy and the decision, what was expected, and what was got.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError
from cafe.federation import Indices
from cafe.rounds.answers import HOLD, LOCAL, RUN, Carried, Carry, Merge, Verdict, Wait
from cafe.rounds.jobs import Invitation, Reports, Work
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy

_CARRY = int(RUN | HOLD | LOCAL)
_VECTORS = ("offset", "common", "frozen", "add")
MOST_STEPS = 10**9  # upper limit of the steps or epochs of one job


def answer_error(
    policy: Policy, decision: str, allowed: str, got: Any, advice: str = ""
) -> InputError:
    """The error for an answer that cannot be used.

    Args:
        policy: the policy.
        decision: the name of its decision, such as "close".
        allowed: what the decision may return, to follow "must return".
        got: the answer.
        advice: how to correct it.
    """
    text = f"The policy {policy.name} must return {allowed} in {decision}. Got {_shorten(got)}."
    return InputError(f"{text} {advice}".strip())


def check_invitation(policy: Policy, decision: str, ledger: Ledger, answer: Any) -> Invitation:
    """Check an invitation: its clients are idle, and its columns have one entry per client.

    Returns the invitation with arrays in all its fields.
    """
    if not isinstance(answer, Invitation):
        advice = ""
        if isinstance(answer, np.ndarray | list | tuple):
            advice = "Wrap the client numbers: Invitation(clients)."
        raise answer_error(policy, decision, "an Invitation", answer, advice)
    clients = _clients(policy, decision, ledger, answer.clients)
    work: Any = answer.work
    if not isinstance(work, Work):
        advice = "If the amount differs between clients, give Invitation(clients, amount=...)."
        raise answer_error(policy, decision, "one Work for all invited clients", work, advice)
    if answer.local is None is answer.note and answer.amount is None:
        return answer if clients is answer.clients else replace(answer, clients=clients)
    n, given = len(clients), dict[str, Any]()
    if answer.local is not None:
        given["local"] = _column(policy, decision, "local", answer.local, n, "b")
    if answer.note is not None:
        note = _column(policy, decision, "note", answer.note, n, "iuf").astype(float)
        if not np.isfinite(note).all():
            raise answer_error(
                policy, decision, "an Invitation whose note has finite numbers", note
            )
        given["note"] = note
    if answer.amount is not None:
        given["amount"] = _amount(policy, decision, answer, n)
    return replace(answer, clients=clients, **given)


def check_more(policy: Policy, ledger: Ledger, answer: Invitation) -> Invitation:
    """Check an invitation that ``close`` returns while its round is open; it may not be empty."""
    found = check_invitation(policy, "close", ledger, answer)
    if not len(found.clients):
        raise answer_error(
            policy,
            "close",
            "an Invitation of at least one client",
            answer,
            "To wait, return Wait(...).",
        )
    return found


def _clients(policy: Policy, decision: str, ledger: Ledger, given: Any) -> Indices:
    clients = _array(given)
    if clients is None or clients.ndim != 1 or (len(clients) and clients.dtype.kind not in "iu"):
        raise _wrong_clients(policy, decision, ledger, given)
    if len(clients) and (
        clients[0] < 0
        or clients[-1] >= ledger.clients
        or not bool((clients[1:] > clients[:-1]).all())
    ):
        raise _wrong_clients(policy, decision, ledger, given)
    clients = clients.astype(np.intp, copy=False)
    if len(clients) and ledger.working:
        busy = ledger.busy[clients]
        if busy.any():
            raise InputError(
                f"The policy {policy.name} must invite idle clients in {decision}. Got client "
                f"{clients[busy][0]}, whose last job still runs. Choose clients from ledger.idle."
            )
    return clients


def _wrong_clients(policy: Policy, decision: str, ledger: Ledger, got: Any) -> InputError:
    return InputError(
        f"The policy {policy.name} must return an Invitation in {decision} whose clients are whole "
        f"numbers from 0 to {ledger.clients - 1} in rising order, each at most once. Got "
        f"{_shorten(got)}."
    )


def _amount(policy: Policy, decision: str, answer: Invitation, n: int) -> NDArray[Any]:
    kind = "iuf" if answer.work.seconds is not None else "iu"
    amount = _column(policy, decision, "amount", answer.amount, n, kind)
    most = np.inf if answer.work.seconds is not None else MOST_STEPS
    if not np.isfinite(amount).all() or np.any(amount <= 0) or np.any(amount > most):
        unit = "seconds above 0" if most == np.inf else f"whole numbers from 1 to {most}"
        raise answer_error(
            policy, decision, f"an Invitation with an amount of {unit}", answer.amount
        )
    return amount


def check_close(policy: Policy, answer: Any) -> Wait | Verdict | Invitation:
    """Check the type of what ``close`` returned; :func:`check_more` checks an invitation."""
    if isinstance(answer, Verdict | Invitation):
        return answer
    allowed = "Wait(...), COMMIT, FAIL or an Invitation"
    if not isinstance(answer, Wait):
        raise answer_error(policy, "close", allowed, answer)
    wait, reports = answer, cast(Any, answer.reports)
    if reports is not None and (isinstance(reports, bool) or not isinstance(reports, int)):
        if not isinstance(reports, np.integer):
            raise answer_error(policy, "close", "a Wait with a whole number of reports", answer)
        wait = replace(wait, reports=int(reports))
    if not isinstance(wait.until, int | float | np.number) or isinstance(wait.until, bool):
        raise answer_error(policy, "close", "a Wait whose until is a time", answer)
    return wait


def past_wait_error(policy: Policy, now: float, wait: Wait) -> InputError:
    """The error for a wait that ends at or before the present time."""
    return InputError(
        f"The policy {policy.name} must wait for a later time or for more reports. Got {wait} from "
        f"close at time {now:g}: that time has passed, or this many reports have arrived. "
        "`until` is a time on the ledger's clock, such as ledger.opened + 5, and `reports` counts "
        "all reports of the round. To end the round, return COMMIT or FAIL."
    )


def ask_merge(policy: Policy, ledger: Ledger, reports: Reports, parameters: int | None) -> Merge:
    """Call ``merge`` and check its answer: a coefficient per report, vectors that fit the model.

    Args:
        policy: the policy whose ``merge`` is called.
        ledger: its first argument.
        reports: its second argument.
        parameters: the number of parameters of the model; None without a task.
    """
    try:
        answer: Any = policy.merge(ledger, reports)
    except InputError as error:  # Merge and Mean do not know the policy
        text = f"The policy {policy.name} could not return a Merge in merge. {error}"
        raise InputError(text) from error
    if not isinstance(answer, Merge):
        advice = ""
        if isinstance(answer, np.ndarray | list | tuple):
            advice = "Wrap the coefficients: Merge(coefficient)."
        raise answer_error(policy, "merge", "a Merge", answer, advice)
    if answer.coefficient.shape != (len(reports),):
        raise InputError(
            f"The policy {policy.name} must return a Merge in merge with a coefficient for each of "
            f"the {len(reports)} reports. Got {_shorten(answer.coefficient)}."
        )
    if answer.memory is not None or answer.memory_rows is not None:
        answer = replace(answer, memory=_memory(policy, ledger, answer))
    if all(getattr(answer, name) is None for name in _VECTORS):
        return cast(Merge, answer)
    return _with_vectors(policy, answer, reports, parameters)


def _memory(policy: Policy, ledger: Ledger, answer: Merge) -> NDArray[Any]:
    """The memory of a merge as an array. If it replaces rows, they fit those of the ledger."""
    memory, rows = _array(answer.memory), answer.memory_rows
    if memory is None or memory.dtype.kind != "f":
        other = "or None" if rows is None else "a row for each of memory_rows"
        allowed = f"a Merge whose memory is an array of floats, {other},"
        raise answer_error(policy, "merge", allowed, answer.memory)
    if rows is None:
        return memory
    if ledger.memory is None:
        advice = "ledger.memory is None: return the whole memory first."
        raise answer_error(policy, "merge", "a Merge without memory_rows", rows, advice)
    given, most = _array(rows), len(ledger.memory) - 1
    if (
        given is None
        or given.ndim != 1
        or given.dtype.kind not in "iu"
        or not _each_once(given, most)
    ):
        allowed = f"a Merge whose memory_rows are whole numbers from 0 to {most}, each once,"
        raise answer_error(policy, "merge", allowed, rows)
    shape = (len(given), *ledger.memory.shape[1:])
    if memory.shape != shape:
        allowed = f"a Merge whose memory has the shape {shape}, a row for each of memory_rows,"
        raise answer_error(policy, "merge", allowed, memory.shape)
    return memory


def _each_once(numbers: NDArray[Any], most: int) -> bool:
    """Whether these are different whole numbers from 0 to ``most``."""
    if not len(numbers):
        return True
    return numbers.min() >= 0 and numbers.max() <= most and len(np.unique(numbers)) == len(numbers)


def _with_vectors(policy: Policy, answer: Merge, reports: Reports, parameters: int | None) -> Merge:
    """Check the vectors of a merge, and convert them to arrays of the right type."""
    if parameters is None:
        raise InputError(
            f"The policy {policy.name} returned {_listed(answer)} in merge. This needs a "
            "model, but without a task there is none. Give the run a task."
        )
    if answer.offset is not None and "updates" not in policy.needs:
        raise InputError(
            f"The policy {policy.name} returned an offset per client in merge. That needs each "
            "client's own update, but the policy does not declare it. Make it with "
            'Policy(..., needs=frozenset({"updates"})).'
        )
    if answer.add is not None and not policy.needs & {"updates", "models"}:
        raise InputError(
            f"The policy {policy.name} returned a vector to add to the model in merge. It can be "
            "calculated only from clients' own updates or models, but the policy declares neither. "
            'Make it with Policy(..., needs=frozenset({"updates"})).'
        )
    found: dict[str, Any] = {}
    one = (parameters,)
    shapes = {"offset": (len(reports), parameters), "common": one, "add": one}
    for name, shape in shapes.items():
        given = getattr(answer, name)
        if given is None:
            continue
        array = _array(given)
        if array is None or array.shape != shape or array.dtype.kind not in "iuf":
            raise _wrong_vector(policy, name, f"numbers of shape {shape}", array)
        with np.errstate(over="ignore"):
            found[name] = array.astype(np.float32, copy=False)
        # An infinite model fails the round: see Training.merge.
        if name != "add" and not np.isfinite(found[name]).all():
            raise InputError(
                f"The policy {policy.name} must return finite numbers as {name} in merge. Got NaN "
                "or infinity, which clients would add to their gradients."
            )
    if answer.frozen is not None:
        mask = _array(answer.frozen)
        if mask is None or mask.shape != (parameters,) or mask.dtype != bool:
            wanted = f"True or False for each of the model's {parameters} parameters"
            raise _wrong_vector(policy, "frozen", wanted, mask)
        found["frozen"] = mask
    return replace(answer, **found)


def _listed(answer: Merge) -> str:
    """The names of the vectors that a merge returns."""
    return " and ".join(name for name in _VECTORS if getattr(answer, name) is not None)


def local_models_error(policy: Policy) -> InputError:
    """The error for jobs that continue from local models after a merge has returned vectors."""
    return InputError(
        f"The policy {policy.name} must not combine local models with vectors for clients. Got an "
        "invitation with local models after a merge that returned offset, common or frozen: one "
        "report would mix steps under different vectors. Return invitations with local=None, or "
        "leave these vectors out."
    )


def check_carry(policy: Policy, answer: Any, jobs: int, clients: int) -> Carried:
    """Check what ``carry`` returned: codes for the round's jobs, and which clients keep reports.

    Args:
        policy: the policy.
        answer: what ``carry`` returned.
        jobs: the number of open jobs of the round.
        clients: the number of clients of the federation.
    """
    if not isinstance(answer, Carried):
        advice = ""
        if isinstance(answer, Carry | np.ndarray | list | tuple):
            advice = "Wrap it: Carried(RUN), or Carried(codes) with a code for each job."
        raise answer_error(policy, "carry", "a Carried", answer, advice)
    codes: Any = answer.jobs
    if not isinstance(codes, Carry):
        codes = _array(codes)
        right = codes is not None and codes.dtype.kind in "iu" and codes.shape in ((), (jobs,))
        if not right or np.any((codes < 0) | (codes > _CARRY)):
            allowed = (
                f"a Carried with DROP, RUN, HOLD or LOCAL, or a code for each of the {jobs} jobs,"
            )
            raise answer_error(policy, "carry", allowed, answer.jobs)
        codes = Carry(int(codes)) if codes.ndim == 0 else codes.astype(np.int64, copy=False)
    kept: Any = answer.kept
    if not isinstance(kept, bool):
        kept = _array(kept)
        if kept is None or kept.dtype != bool or kept.shape not in ((), (clients,)):
            allowed = (
                f"a Carried whose kept is True or False, or one for each of the {clients} clients,"
            )
            raise answer_error(policy, "carry", allowed, answer.kept)
        kept = bool(kept) if kept.ndim == 0 else kept
    runs = bool(codes & RUN) if isinstance(codes, Carry) else bool(np.any(codes & int(RUN)))
    if runs and policy.deadline is not None and policy.late == "drop":
        raise InputError(
            f"The policy {policy.name} returned RUN in carry although it declares late='drop', "
            "with which real clients stop at the deadline. Make it with Policy(..., late='keep')."
        )
    return Carried(codes, kept)


def check_state(policy: Policy, answer: Any) -> Any:
    """Check that a policy's state survives a JSON round trip, so that it can be saved."""
    return check_plain(f"The policy {policy.name} must return a state in observe", answer)


def check_plain(must: str, answer: Any) -> Any:
    """Check that a value survives a JSON round trip; ``must`` begins the error's sentence."""
    try:
        wrong = _not_plain(answer)
    except RecursionError:
        wrong = "a state that is nested too deeply or contains itself"
    if wrong:
        raise InputError(
            f"{must} that survives a JSON round trip: None, True, False, finite numbers, strings, "
            f"lists, and dictionaries with string keys. Got {wrong}. Convert it, such as with "
            "float(), list() or array.tolist()."
        )
    return answer


def _not_plain(value: Any) -> str:
    """The part of a value that changes in a JSON round trip; empty if there is none."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return ""
    if kind is float:
        return "" if math.isfinite(value) else f"{value}"
    if kind is list:
        return next(filter(None, map(_not_plain, value)), "")
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                return f"the key {key!r}"
            wrong = _not_plain(item)
            if wrong:
                return wrong
        return ""
    return f"{_shorten(value)} (a {kind.__name__})"


def _column(
    policy: Policy, decision: str, name: str, given: Any, count: int, kinds: str
) -> NDArray[Any]:
    found = _array(given)
    if found is None or found.shape != (count,) or (count and found.dtype.kind not in kinds):
        what = "True or False" if kinds == "b" else "a number"
        raise answer_error(
            policy, decision, f"{what} for each of the {count} invited clients as {name}", given
        )
    return found


def _array(given: Any) -> NDArray[Any] | None:
    try:
        return np.asarray(given)
    except ValueError:
        return None


def _wrong_vector(policy: Policy, name: str, wanted: str, array: NDArray[Any] | None) -> InputError:
    got = "rows of different lengths"
    if array is not None:
        got = f"an array of shape {array.shape} and type {array.dtype}"
    return InputError(
        f"The policy {policy.name} must return {wanted} as {name} in merge. Got {got}."
    )


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
