"""Attackers that have nodes' keys and use Flower's Fleet API directly, on real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

import httpx
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    PullMessagesRequest,
    RegisterNodeFleetRequest,
)
from flwr.proto.node_pb2 import Node
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes

from cafe.flower import array_records, messages
from cafe.flower.lab import Lab
from cafe.live.job_records import digest
from cafe.live.model_layout import Layout
from cafe.live.run_log import read_rounds
from tests.support.flower.accounts import served, trained_again
from tests.support.flower.fleet import (
    Attacker,
    commanded,
    connect,
    forged,
    id_of_order,
    key_of,
    patiently,
    wait_for_answer,
)
from tests.support.flower.trial import Trial, id_of_node, leave
from tests.support.flower.waiting import unhurried

pytestmark = pytest.mark.federation


@pytest.fixture(scope="module")
def attackers(lab: Lab) -> Iterator[list[Attacker]]:
    """Two of four nodes have signed off, and attackers have their keys."""
    running = {each.name for each in lab.processes() if each.alive}
    leave(lab, *(f"node-{k}" for k in range(3, 9) if f"node-{k}" in running))
    made = [Attacker(lab, name) for name in ("node-3", "node-4")]
    for each in made:
        each.join()
    yield made
    for each in made:
        each.leave()


def lie(order: Message, value: float) -> RecordDict:
    """A valid report for an order, with the same number in all arrays."""
    asked, _ = messages.read_order(order.content.config_records["order"])
    model = array_records.join_parts(order.content.array_records["model"])
    update = {name: np.full_like(array, value) for name, array in model.items()}
    values: dict[str, Any] = {
        "invitation": asked.invitation,
        "version": asked.version,
        "carried": False,
        "examples": 1,
    }
    return RecordDict({"update": array_records.pack_arrays(update), "report": ConfigRecord(values)})


def update_in(answer: Message) -> str:
    """The digest of what an answer reports."""
    record = answer.content.array_records["update"]
    update = {name: array.numpy() for name, array in record.items()}
    return digest(Layout.of(update).flat(update))


def test_attackers_on_the_fleet_api_do_not_affect_others(
    lab: Lab, attackers: list[Attacker]
) -> None:
    one, two = attackers
    # Only in round 2 do clients miss the deadline. It must be shorter than the 180 seconds after
    # which the SuperLink forgets an incomplete upload.
    deadline = unhurried(15.0)
    trial = Trial(lab, "fleet", rounds=4, quorum=2, deadline=deadline)
    for victim in ("node-1", "node-2"):
        trial.tell(victim, "-", "hold", "-", "-")  # so that attackers can answer in its place
    trial.submit()

    # Round 0. The same answer twice, then another one; a false report, then the true one.
    first, second = one.order(), two.order()
    truth, twice = one.honest(first), forged(first, lie(first, 0.01))
    session, wanted = one.announce(truth)
    renewed, again = one.announce(truth)
    assert again in (wanted, [])  # nothing, once the server has received it
    assert not one.push(twice)
    assert one.upload(truth, renewed if again else session, wanted) == len(wanted) > 1
    assert not one.push(twice)
    two.deliver(forged(second, lie(second, np.nan)))
    assert not two.push(two.honest(second))
    # The predictable parts of the next order, registered in advance with false content.
    asked = dict(second.content.config_records["order"]) | {
        "round": 1,
        "invitation": 1,
        "version": 1,
    }
    expected = ConfigRecord(asked).object_id
    assert expected in two.spoil(second, expected)

    # Round 1. Answers to orders of other clients: under its own name, and under theirs.
    first, second = one.order(), two.order()
    run = first.metadata.run_id
    theirs, hers = (id_of_order(lab, node, run) for node in ("node-1", "node-2"))
    assert not one.push(forged(first, lie(first, 0.01), reply_to_message_id=theirs))
    node = int(id_of_node(lab, "node-2"))
    name = forged(second, lie(second, np.inf), reply_to_message_id=hers, src_node_id=node)
    two.deliver(name)  # the SuperLink compares the name with the order, not with the key
    for victim in ("node-1", "node-2"):
        trial.tell(victim, "-")
    one.deliver(one.honest(first))
    two.deliver(two.honest(second))

    # Round 2. An answer that is announced and only partly uploaded; one after the deadline.
    first, second = one.order(), two.order()
    slow, late = one.honest(first), two.honest(second)
    session, wanted = one.announce(slow)
    assert one.upload(slow, session, wanted[:-1]) == len(wanted) - 1

    # Round 3. The rest of them, which the SuperLink accepts for some seconds after the deadline;
    # and messages in the server's name, to itself and to a client.
    trial.wait(lambda now: now["round"] >= 3)
    two.push(late)
    one.upload(slow, session, wanted[-1:], attempts=1)
    third, fourth = one.order(), two.order()
    one.deliver(commanded(third, lie(third, 0.01), third.metadata.src_node_id))
    false = commanded(fourth, fourth.content, int(id_of_node(lab, "node-1")))
    two.deliver(false)
    wait_for_answer(lab, false.object_id)  # an attacker that knows a client's id can command it
    one.deliver(one.honest(third))
    two.deliver(two.honest(fourth))

    trial.finish()
    trial.conserved()
    rounds = read_rounds(trial.out)
    assert [outcome.succeeded for outcome in rounds] == [True] * 4
    assert [outcome.used for outcome in rounds] == [3, 3, 2, 4]
    assert rounds[2].closed - rounds[2].opened < 1.5 * deadline  # no attack delayed it
    fates = {f"node-{k}": [job.fate for job in trial.jobs(f"node-{k}")] for k in range(1, 5)}
    assert fates == {
        "node-1": ["fresh"] * 4,
        "node-2": ["fresh", "refused", "fresh", "fresh"],
        "node-3": ["fresh", "fresh", "late", "fresh"],
        "node-4": ["refused", "fresh", "late", "fresh"],
    }
    assert trial.jobs("node-3")[0].digest == update_in(truth)
    for blamed in (trial.jobs("node-4")[0], trial.jobs("node-2")[1]):
        assert "NaN or infinity" in blamed.reason
    # Training these clients again gives all reports that counted, each once.
    replayed = trained_again(trial.out)
    assert not replayed.differing
    assert replayed.reports == sum(outcome.used for outcome in rounds)
    assert replayed.model.tobytes() == served(trial.out).tobytes()


def rejection(call: Callable[[], object]) -> str:
    """What the SuperLink answers to a call that it must reject."""
    with pytest.raises(httpx.HTTPStatusError) as error:
        patiently(call)
    return f"{error.value.response.status_code} {error.value.response.text}"


def test_unregistered_and_impersonated_nodes_are_rejected(
    lab: Lab, attackers: list[Attacker]
) -> None:
    one, (stranger, public) = attackers[0], generate_key_pairs()
    shown = public_key_to_bytes(public)
    ask = PullMessagesRequest(node=one.node)
    join = ActivateNodeRequest(public_key=shown, heartbeat_interval=30)
    with connect(lab, stranger) as way:  # a key that is not registered
        assert "401" in rejection(lambda: way.PullMessages(ask))
        assert "activat" in rejection(lambda: way.ActivateNode(join)).lower()
        enter = RegisterNodeFleetRequest(public_key=shown)
        assert "regist" in rejection(lambda: way.RegisterNode(enter)).lower()
    with connect(lab, stranger, key_of(lab, one.name)) as way:  # without the private key
        assert "401" in rejection(lambda: way.PullMessages(ask))
    victim = Node(node_id=int(id_of_node(lab, "node-1")))
    assert "401" in rejection(lambda: one.way.PullMessages(PullMessagesRequest(node=victim)))
    with connect(lab, key_of(lab, one.name), late=400.0) as way:  # signed long ago
        assert "401" in rejection(lambda: way.PullMessages(ask))
    patiently(lambda: one.way.PullMessages(ask))  # the real client is accepted
