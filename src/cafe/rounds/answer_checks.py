"""What a policy may answer: every answer is checked when it is given.

A refusal names the policy, the decision, what was got, and what is allowed.
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
MOST_STEPS = 10**9  # steps or epochs of one job


def answer_error(
    policy: Policy, decision: str, allowed: str, got: Any, advice: str = ""
) -> InputError:
    """The error for an answer that cannot be used."""
    text = f"The policy {policy.name} must answer {allowed} in {decision}. Got {_shown(got)}."
    return InputError(f"{text} {advice}".strip())


def check_invitation(policy: Policy, decision: str, ledger: Ledger, answer: Any) -> Invitation:
    """An invitation whose clients can be invited now, with arrays in all its fields."""
    if not isinstance(answer, Invitation):
        advice = ""
        if isinstance(answer, np.ndarray | list | tuple):
            advice = "Wrap the clients: Invitation(clients)."
        raise answer_error(policy, decision, "an Invitation", answer, advice)
    clients = _clients(policy, decision, ledger, answer.clients)
    work: Any = answer.work
    if not isinstance(work, Work):
        advice = "For work that differs from client to client give Invitation(amount=...)."
        raise answer_error(policy, decision, "one Work for all invited", work, advice)
    if answer.local is None is answer.note and answer.amount is None:
        return answer if clients is answer.clients else replace(answer, clients=clients)
    n, given = len(clients), dict[str, Any]()
    if answer.local is not None:
        given["local"] = _column(policy, decision, "local", answer.local, n, "b")
    if answer.note is not None:
        note = _column(policy, decision, "note", answer.note, n, "iuf").astype(float)
        if not np.isfinite(note).all():
            raise answer_error(policy, decision, "finite numbers as note", note)
        given["note"] = note
    if answer.amount is not None:
        given["amount"] = _amount(policy, decision, answer, n)
    return replace(answer, clients=clients, **given)


def check_more(policy: Policy, ledger: Ledger, answer: Invitation) -> Invitation:
    """An invitation that ``close`` answers while its round is open."""
    found = check_invitation(policy, "close", ledger, answer)
    if not len(found.clients):
        raise answer_error(
            policy, "close", "an Invitation with a client", answer, "To wait, answer Wait(...)."
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
                f"The policy {policy.name} invited client {clients[busy][0]} in {decision} while "
                "its last job still runs. Invite clients of ledger.idle."
            )
    return clients


def _wrong_clients(policy: Policy, decision: str, ledger: Ledger, got: Any) -> InputError:
    return InputError(
        f"An invitation names clients from 0 to {ledger.clients - 1}, each once, in rising "
        f"order, as whole numbers. Got {_shown(got)} from {policy.name} in {decision}."
    )


def _amount(policy: Policy, decision: str, answer: Invitation, n: int) -> NDArray[Any]:
    kind = "iuf" if answer.work.seconds is not None else "iu"
    amount = _column(policy, decision, "amount", answer.amount, n, kind)
    most = np.inf if answer.work.seconds is not None else MOST_STEPS
    if not np.isfinite(amount).all() or np.any(amount <= 0) or np.any(amount > most):
        unit = "seconds above 0" if most == np.inf else f"whole numbers from 1 to {most}"
        raise answer_error(policy, decision, f"an amount of {unit}", answer.amount)
    return amount


def check_close(policy: Policy, answer: Any) -> Wait | Verdict | Invitation:
    """What ``close`` answered; an invitation is checked by :func:`check_invitation`."""
    if isinstance(answer, Verdict | Invitation):
        return answer
    allowed = "Wait(...), COMMIT, FAIL or an Invitation"
    if not isinstance(answer, Wait):
        raise answer_error(policy, "close", allowed, answer)
    wait, reports = answer, cast(Any, answer.reports)
    if reports is not None and (isinstance(reports, bool) or not isinstance(reports, int)):
        if not isinstance(reports, np.integer):
            raise answer_error(policy, "close", "Wait with a whole number of reports", answer)
        wait = replace(wait, reports=int(reports))
    if not isinstance(wait.until, int | float | np.number) or isinstance(wait.until, bool):
        raise answer_error(policy, "close", "Wait with a time in until", answer)
    return wait


def past_wait_error(policy: Policy, now: float, wait: Wait) -> InputError:
    """The error for a wait that is over before it begins."""
    return InputError(
        f"The policy {policy.name} waits for a moment that has passed: close answered {wait} at "
        f"time {now:g}. `until` is a time on the ledger's clock, such as ledger.opened + 5, and "
        "`reports` counts all reports of the round. Answer COMMIT or FAIL instead."
    )


def ask_merge(policy: Policy, ledger: Ledger, reports: Reports, parameters: int | None) -> Merge:
    """Call ``merge``: a coefficient for each report, and vectors that fit the model.

    Args:
        policy: that is called.
        ledger: what it sees.
        reports: what it is given.
        parameters: how many the model has; None without a task, where there is no model.
    """
    try:
        answer: Any = policy.merge(ledger, reports)
    except InputError as error:  # Merge, Mean and others do not know whose answer they are part of
        text = f"The policy {policy.name} could not answer a Merge in merge: {error}"
        raise InputError(text) from error
    if not isinstance(answer, Merge):
        advice = ""
        if isinstance(answer, np.ndarray | list | tuple):
            advice = "Wrap the coefficients: Merge(coefficient)."
        raise answer_error(policy, "merge", "a Merge", answer, advice)
    if answer.coefficient.shape != (len(reports),):
        raise InputError(
            f"The policy {policy.name} must give each of the {len(reports)} reports a "
            f"coefficient in merge. Got {_shown(answer.coefficient)}."
        )
    if answer.offset is None and answer.common is None and answer.frozen is None:
        return answer
    return _with_vectors(policy, answer, reports, parameters)


def _with_vectors(policy: Policy, answer: Merge, reports: Reports, parameters: int | None) -> Merge:
    """A merge with vectors for clients, as arrays of the right shape and kind."""
    if parameters is None:
        raise InputError(
            f"The policy {policy.name} answered offset, common or frozen in merge, and there is no "
            "model without a task: give one."
        )
    if answer.offset is not None and "updates" not in policy.needs:
        raise InputError(
            f"The policy {policy.name} answered an offset for the client of each report in merge, "
            "and does not say that it needs to see single clients' updates. Make it with "
            'Policy(..., needs=frozenset({"updates"})).'
        )
    found: dict[str, Any] = {}
    shapes = {"offset": (len(reports), parameters), "common": (parameters,)}
    for name, shape in shapes.items():
        given = getattr(answer, name)
        if given is None:
            continue
        array = _array(given)
        if array is None or array.shape != shape or array.dtype.kind not in "iuf":
            raise _wrong_vector(policy, name, f"numbers of shape {shape}", array)
        with np.errstate(over="ignore"):
            found[name] = array.astype(np.float32, copy=False)
        if not np.isfinite(found[name]).all():
            raise InputError(
                f"The policy {policy.name} must answer finite numbers as {name} in merge. Got "
                "others: clients would add them to their gradients, and spoil the model."
            )
    if answer.frozen is not None:
        mask = _array(answer.frozen)
        if mask is None or mask.shape != (parameters,) or mask.dtype != bool:
            wanted = f"True or False for each of the model's {parameters} parameters"
            raise _wrong_vector(policy, "frozen", wanted, mask)
        found["frozen"] = mask
    return replace(answer, **found)


def local_models_error(policy: Policy) -> InputError:
    """The error for jobs that go on from local models where clients add vectors."""
    return InputError(
        f"The policy {policy.name} lets clients go on from local models, and a merge has answered "
        "offset, common or frozen. One report would then mix steps under different vectors. "
        "Answer invitations with local=None, or leave these vectors out."
    )


def check_carry(policy: Policy, answer: Any, jobs: int, clients: int) -> Carried:
    """What outlives a round: codes for all of its jobs or for each, and who keeps."""
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
            allowed = f"one of DROP, RUN, HOLD, LOCAL, or a code for each of the {jobs} jobs,"
            raise answer_error(policy, "carry", allowed, answer.jobs)
        codes = Carry(int(codes)) if codes.ndim == 0 else codes.astype(np.int64, copy=False)
    kept: Any = answer.kept
    if not isinstance(kept, bool):
        kept = _array(kept)
        if kept is None or kept.dtype != bool or kept.shape not in ((), (clients,)):
            allowed = f"True or False, or one for each of the {clients} clients, as kept"
            raise answer_error(policy, "carry", allowed, answer.kept)
        kept = bool(kept) if kept.ndim == 0 else kept
    runs = bool(codes & RUN) if isinstance(codes, Carry) else bool(np.any(codes & int(RUN)))
    if runs and policy.deadline is not None and policy.late == "drop":
        raise InputError(
            f"The policy {policy.name} answered RUN in carry, and says late='drop': real clients "
            "stop at its deadline. Make it with Policy(..., late='keep')."
        )
    return Carried(codes, kept)


def check_state(policy: Policy, answer: Any) -> Any:
    """A policy's state, which must survive a JSON round trip."""
    try:
        wrong = _not_plain(answer)
    except RecursionError:
        wrong = "one that is nested too deeply, or contains itself"
    if wrong:
        raise InputError(
            f"The policy {policy.name} must answer a state in observe that survives a JSON round "
            f"trip: None, numbers that are finite, texts, lists, and dictionaries with texts for "
            f"keys. Got {wrong}."
        )
    return answer


def _not_plain(value: Any) -> str:
    """What in a value JSON would not give back as it was; empty where there is nothing."""
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
    return f"{_shown(value)} (a {kind.__name__})"


def _column(
    policy: Policy, decision: str, name: str, given: Any, count: int, kinds: str
) -> NDArray[Any]:
    found = _array(given)
    if found is None or found.shape != (count,) or (count and found.dtype.kind not in kinds):
        what = "True or False" if kinds == "b" else "a number"
        raise answer_error(
            policy, decision, f"{what} for each of the {count} invited as {name}", given
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
        f"The policy {policy.name} must answer {wanted} as {name} in merge. Got {got}."
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
