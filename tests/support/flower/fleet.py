"""An attacker that has a node's key and uses Flower's Fleet API directly."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
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
from tests.support.flower.accounts import chaos
from tests.support.flower.database import query
from tests.support.flower.trial import id_of_node
from tests.support.flower.waiting import LIMIT, wait_until

LONG = 1800.0  # seconds between two heartbeats, the most that the SuperLink allows
T = TypeVar("T")


def patiently(call: Callable[[], T]) -> T:
    """The result of a request, which is repeated while the SuperLink is too busy to answer."""
    until = time.monotonic() + LIMIT
    while True:
        try:
            return call()
        except httpx.HTTPStatusError as error:
            if error.response.status_code < 500 or time.monotonic() > until:
                raise
        except httpx.TransportError:
            if time.monotonic() > until:
                raise
        time.sleep(0.5)


def key_of(lab: Lab, name: str) -> ec.EllipticCurvePrivateKey:
    """A node's private key."""
    key = load_ssh_private_key(lab.paths.key(name).read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


class Signing(NodeAuthHttpInterceptor):
    """Signs requests; ``late``: as if they had been signed this many seconds ago."""

    late = 0.0

    def intercept(self, context: Any, call_next: Any) -> httpx.Response:
        """Sign with a clock that may be wrong."""
        moment = datetime.now(UTC) - timedelta(seconds=self.late)
        clock = "flwr.supernode.node_auth_http_interceptor.now"
        with mock.patch(clock, return_value=moment):
            return super().intercept(context, call_next)


def connect(
    lab: Lab,
    key: ec.EllipticCurvePrivateKey,
    shown: ec.EllipticCurvePrivateKey | None = None,
    late: float = 0.0,
) -> FleetHttpClient:
    """A connection to the SuperLink over TLS; the signing key may differ from the one shown."""
    state = lab.paths.load_state()
    assert state is not None
    signing = Signing(key, (shown or key).public_key())
    signing.late = late
    address, ca = f"127.0.0.1:{state.port}", (lab.paths.keys / "ca.pem").read_bytes()
    made = FleetHttpClient.from_server_address(address, False, ca, [signing])
    # A request that is repeated because its answer is late would be rejected: it has been served.
    made._client.timeout = LIMIT
    return made


class Attacker:
    """A client that has a node's key and takes the node's place.

    Args:
        lab: the federation.
        name: the node's name.
    """

    def __init__(self, lab: Lab, name: str) -> None:
        state, key = lab.paths.load_state(), key_of(lab, name)
        assert state is not None
        self.lab, self.name, self.public = lab, name, public_key_to_bytes(key.public_key())
        self.partition = state.nodes[name].partition
        self.node = Node(node_id=int(state.registered[name]))
        self.way = connect(lab, key)

    def join(self) -> None:
        """Sign on."""
        asked = ActivateNodeRequest(public_key=self.public, heartbeat_interval=LONG)
        assert patiently(lambda: self.way.ActivateNode(asked)).node_id == self.node.node_id

    def leave(self) -> None:
        """Sign off."""
        asked = DeactivateNodeRequest(node_id=self.node.node_id)
        patiently(lambda: self.way.DeactivateNode(asked))
        self.way.close()

    def order(self) -> Message:
        """Wait for the next message to this node, and download it."""
        asked = PullMessagesRequest(node=self.node)
        answer = wait_until(
            lambda: self._announced(patiently(lambda: self.way.PullMessages(asked))),
            lambda: f"There is no message for {self.name}.",
        )
        metadata, tree = answer.messages_list[0].metadata, answer.message_object_trees[0]
        ids = [piece.object_id for piece in iterate_object_tree(tree)]
        pieces = {each: self.piece(metadata.run_id, each) for each in ids}
        received = ConfirmMessageReceivedRequest(
            node=self.node, run_id=metadata.run_id, message_object_id=metadata.message_id
        )
        patiently(lambda: self.way.ConfirmMessageReceived(received))
        message = inflate_object_from_contents(metadata.message_id, pieces)
        assert isinstance(message, Message)
        return renamed(message, message_id=metadata.message_id)

    @staticmethod
    def _announced(answer: Any) -> Any:
        return answer if answer.messages_list else None

    def piece(self, run: int, piece: str) -> bytes:
        """Wait for a piece of a message; any message whose pieces' names are known."""
        asked = PullObjectRequest(node=self.node, run_id=run, object_id=piece)

        def pull() -> Any:
            answer = patiently(lambda: self.way.PullObject(asked))
            return answer if answer.object_available else None

        return bytes(wait_until(pull, lambda: f"The piece {piece} is missing.").object_content)

    def honest(self, message: Message) -> Message:
        """The reply that the node itself would send."""
        state = RecordDict()
        settings: Any = {"partition-id": self.partition, "name": self.name}
        context = Context(message.metadata.run_id, self.node.node_id, settings, state, {})
        return client(chaos().train)(message, context)

    def announce(self, answer: Message) -> tuple[str, list[str]]:
        """Announce a reply: the session, and the pieces that the SuperLink asks for."""
        return self._announce(answer, get_object_tree(answer))

    def spoil(self, order: Message, piece: str) -> list[str]:
        """Register a piece of what the server will send, with a false piece within it."""
        carrier = commanded(order, RecordDict(), order.metadata.src_node_id)
        tree = get_object_tree(carrier)
        tree.children.append(ObjectTree(object_id=piece, children=[ObjectTree(object_id="0" * 64)]))
        return self._announce(carrier, tree)[1]

    def _announce(self, message: Message, tree: ObjectTree) -> tuple[str, list[str]]:
        named = renamed(message, message_id=message.object_id)
        asked = PushMessagesRequest(
            node=self.node,
            messages_list=[message_to_proto(remove_content_from_message(named))],
            message_object_trees=[tree],
            clientapp_runtime_list=[0.1],
        )
        answer = patiently(lambda: self.way.PushMessages(asked))
        return answer.session_id, list(answer.objects_to_push)

    def upload(self, answer: Message, session: str, pieces: list[str], attempts: int = 6) -> int:
        """Upload pieces of a reply; how many of them the SuperLink has stored.

        The SuperLink also answers "not stored" if its database was busy, so the upload is repeated.
        """
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
            for attempt in range(attempts):
                time.sleep(attempt)
                if patiently(lambda asked=asked: self.way.PushObject(asked)).stored:  # type: ignore[misc]
                    taken += 1
                    break
        return taken

    def push(self, answer: Message) -> bool:
        """Announce and upload a reply; whether the SuperLink has stored it."""
        session, pieces = self.announce(answer)
        return bool(pieces) and self.upload(answer, session, pieces) == len(pieces)

    def deliver(self, answer: Message) -> None:
        """Push a reply that the SuperLink must accept, until it has."""
        wait_until(lambda: self.push(answer), lambda: f"{self.name} was rejected.", pause=1.0)


def renamed(message: Message, **metadata: Any) -> Message:
    """The same message with other metadata, which Flower's classes do not allow to set."""
    vars(message.metadata).update({f"_{name}": value for name, value in metadata.items()})
    return message


def forged(message: Message, update: RecordDict, **metadata: Any) -> Message:
    """A reply to a message, under a false name or to another client's message."""
    return renamed(make_reply(message, update, time.monotonic()), **metadata)


def commanded(order: Message, content: RecordDict, to: int) -> Message:
    """A message in the server's name, in the run that an order belongs to."""
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
    """Wait for a run's message to a node; its id, which no other client should know."""
    words = "SELECT message_id FROM message_ins WHERE dst_node_id = ? AND run_id = ?"
    (found,) = wait_until(lambda: query(lab, words, int(id_of_node(lab, node)), run))
    return found


def wait_for_answer(lab: Lab, order: str) -> None:
    """Wait until the SuperLink's database contains a reply to a message."""
    words = "SELECT message_id FROM message_res WHERE reply_to_message_id = ?"
    wait_until(lambda: query(lab, words, order), lambda: f"{order} was not answered.")
