"""Somebody who has a node's key and speaks Flower's Fleet API himself, in no node's way."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from flwr.app import Context, Message, RecordDict
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_to_proto
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    DeactivateNodeRequest,
    PullMessagesRequest,
    PushMessagesRequest,
)
from flwr.proto.message_pb2 import (
    ConfirmMessageReceivedRequest,
    ObjectTree,
    PullObjectRequest,
    PushObjectRequest,
)
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
)
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.primitives.asymmetric import public_key_to_bytes
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from cafe.flower import client
from cafe.flower.client_app import make_reply
from cafe.flower.lab import Lab
from tests.flower.accounts import chaos
from tests.flower.trial import by_name

LONG = 1800.0  # seconds between two heartbeats, the most that the SuperLink allows


def key_of(lab: Lab, name: str) -> ec.EllipticCurvePrivateKey:
    """A node's private key."""
    key = load_ssh_private_key(lab.paths.key(name).read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


class Signing(NodeAuthHttpInterceptor):
    """Signs requests; late: as one that was signed so many seconds ago."""

    late = 0.0

    def intercept(self, context: Any, call_next: Any) -> httpx.Response:
        """Sign, with a clock that may be wrong."""
        moment = datetime.now(UTC) - timedelta(seconds=self.late)
        clock = "flwr.supernode.node_auth_http_interceptor.now"
        with mock.patch(clock, return_value=moment):
            return super().intercept(context, call_next)


def door(
    lab: Lab,
    key: ec.EllipticCurvePrivateKey,
    shown: ec.EllipticCurvePrivateKey | None = None,
    late: float = 0.0,
) -> FleetHttpClient:
    """A way into the SuperLink, over TLS; the key that signs may be another than is shown."""
    memory = lab.paths.load_state()
    assert memory is not None
    signing = Signing(key, (shown or key).public_key())
    signing.late = late
    address, ca = f"127.0.0.1:{memory.port}", (lab.paths.keys / "ca.pem").read_bytes()
    return FleetHttpClient.from_server_address(address, False, ca, [signing])


class Attacker:
    """The holder of a node's key, in the node's place.

    Args:
        lab: whose SuperLink it talks to.
        name: of the node.
    """

    def __init__(self, lab: Lab, name: str) -> None:
        memory, key = lab.paths.load_state(), key_of(lab, name)
        assert memory is not None
        self.lab, self.name, self.public = lab, name, public_key_to_bytes(key.public_key())
        self.partition = memory.nodes[name].partition
        self.node = Node(node_id=int(memory.registered[name]))
        self.way = door(lab, key)

    def join(self) -> None:
        """Be online."""
        asked = ActivateNodeRequest(public_key=self.public, heartbeat_interval=LONG)
        assert self.way.ActivateNode(asked).node_id == self.node.node_id

    def leave(self) -> None:
        """Say good-bye."""
        self.way.DeactivateNode(DeactivateNodeRequest(node_id=self.node.node_id))
        self.way.close()

    def order(self, seconds: float = 60.0) -> Message:
        """The next message for this node, with all that is in it."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            answer = self.way.PullMessages(PullMessagesRequest(node=self.node))
            if answer.messages_list:
                metadata = answer.messages_list[0].metadata
                tree = answer.message_object_trees[0]
                ids = [piece.object_id for piece in iterate_object_tree(tree)]
                pieces = {each: self.piece(metadata.run_id, each) for each in ids}
                self.way.ConfirmMessageReceived(
                    ConfirmMessageReceivedRequest(
                        node=self.node,
                        run_id=metadata.run_id,
                        message_object_id=metadata.message_id,
                    )
                )
                message = inflate_object_from_contents(metadata.message_id, pieces)
                assert isinstance(message, Message)
                return renamed(message, message_id=metadata.message_id)
            time.sleep(0.1)
        raise AssertionError(f"No message for {self.name} in {seconds:.0f} s.")

    def piece(self, run: int, piece: str) -> bytes:
        """A piece of a message; of any message, where its name is known."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            asked = PullObjectRequest(node=self.node, run_id=run, object_id=piece)
            answer = self.way.PullObject(asked)
            if answer.object_available:
                return bytes(answer.object_content)
            time.sleep(0.05)
        raise AssertionError(f"The piece {piece} is not there.")

    def honest(self, message: Message) -> Message:
        """The answer that the node itself would give."""
        state = RecordDict()
        settings: Any = {"partition-id": self.partition, "name": self.name}
        context = Context(message.metadata.run_id, self.node.node_id, settings, state, {})
        return client(chaos().train)(message, context)

    def announce(self, answer: Message) -> tuple[str, list[str]]:
        """Say that there is an answer: the session, and the pieces that the SuperLink asks for."""
        return self._announce(answer, get_object_tree(answer))

    def spoil(self, order: Message, piece: str) -> list[str]:
        """Register a piece of what the server will send, with a false piece within it."""
        carrier = commanded(order, RecordDict(), order.metadata.src_node_id)
        tree = get_object_tree(carrier)
        tree.children.append(ObjectTree(object_id=piece, children=[ObjectTree(object_id="0" * 64)]))
        return self._announce(carrier, tree)[1]

    def _announce(self, message: Message, tree: ObjectTree) -> tuple[str, list[str]]:
        named = renamed(message, message_id=message.object_id)
        told = self.way.PushMessages(
            PushMessagesRequest(
                node=self.node,
                messages_list=[message_to_proto(remove_content_from_message(named))],
                message_object_trees=[tree],
                clientapp_runtime_list=[0.1],
            )
        )
        return told.session_id, list(told.objects_to_push)

    def upload(self, answer: Message, session: str, pieces: list[str]) -> int:
        """Hand over pieces of an answer; how many of them the SuperLink has taken."""
        every = get_all_nested_objects(answer)
        taken = 0
        for piece in pieces:
            asked = PushObjectRequest(
                node=self.node,
                run_id=answer.metadata.run_id,
                object_id=piece,
                object_content=every[piece].deflate(),
                session_id=session,
            )
            taken += self.way.PushObject(asked).stored
        return taken

    def push(self, answer: Message) -> bool:
        """Announce an answer and hand it over; whether the SuperLink has taken it."""
        session, pieces = self.announce(answer)
        return bool(pieces) and self.upload(answer, session, pieces) == len(pieces)


def renamed(message: Message, **metadata: Any) -> Message:
    """The same message with other metadata, which Flower's classes do not let one set."""
    vars(message.metadata).update({f"_{name}": value for name, value in metadata.items()})
    return message


def forged(message: Message, update: RecordDict, **metadata: Any) -> Message:
    """An answer to a message, under a false name or to another's message."""
    return renamed(make_reply(message, update, time.monotonic()), **metadata)


def commanded(order: Message, content: RecordDict, to: int) -> Message:
    """A message in the server's name, of the run that an order belongs to."""
    known = order.metadata
    return renamed(
        Message(content, reply_to=order),
        src_node_id=known.src_node_id,
        dst_node_id=to,
        reply_to_message_id="",
        src_task_id=known.src_task_id,
        dst_task_id=None,
    )


def id_of_order(lab: Lab, node: str, run: int) -> str:
    """The id of a run's message to a node, which nobody else should know: from the SuperLink."""
    (found,) = _asked(
        lab,
        "SELECT message_id FROM message_ins WHERE dst_node_id = ? AND run_id = ?",
        *(
            number - 2**64 if number >= 2**63 else number
            for number in (int(by_name(lab, node)), run)
        ),
    )
    return found


def answered(lab: Lab, order: str, seconds: float) -> bool:
    """Whether a message is answered within some seconds: from the SuperLink's files."""
    until = time.monotonic() + seconds
    words = "SELECT message_id FROM message_res WHERE reply_to_message_id = ?"
    while not (found := _asked(lab, words, order)) and time.monotonic() < until:
        time.sleep(0.2)
    return bool(found)


def _asked(lab: Lab, words: str, *values: str | int) -> list[str]:
    with closing(sqlite3.connect(f"file:{lab.paths.database}?mode=ro", uri=True)) as database:
        return [row[0] for row in database.execute(words, values)]
